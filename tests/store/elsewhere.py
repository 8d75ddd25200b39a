"""Another place for a database to be restored to: an empty one, of the same kind."""

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.store.postgresql_server import application_name, unavailable

__all__ = ["elsewhere"]


@contextmanager
def elsewhere(address: str, folder: Path) -> Iterator[str]:
    """Give the address of an empty database that what is at `address` can be restored to, and remove it afterwards.

    Skips where PostgreSQL's programs are not installed.
    """
    if address.startswith("sqlite:"):
        yield f"sqlite:{folder / 'elsewhere' / 'forecourt.db'}"
        return
    if shutil.which("pg_dump") is None or shutil.which("pg_restore") is None:
        unavailable("pg_dump and pg_restore are not installed")
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    schema, name = application_name(address), f"forecourt_{uuid.uuid4().hex}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            given: dict[str, Any] = conninfo_to_dict(address)
            with psycopg.connect(make_conninfo(**{**given, "dbname": name}), autocommit=True) as other:
                other.execute(f"CREATE SCHEMA {schema}")
            head, _, query = address.partition("?")
            yield f"{head.rpartition('/')[0]}/{name}?{query}"
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
