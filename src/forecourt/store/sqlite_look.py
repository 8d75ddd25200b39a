"""A look at an SQLite file that may be another version's, or none; nothing of it is changed by that."""

import contextlib
import json
import sqlite3
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from forecourt.store import FeedState, NoDatabaseError
from forecourt.store.comparable import time_of, time_text
from forecourt.store.statements import migrations, queries
from forecourt.store.survey import MOST_ROWS, Backlog, LeadCount, RooftopStock, Survey

__all__ = ["existing", "migration_names", "survey"]

_BUSY_SECONDS: Final = 5.0


@contextlib.contextmanager
def existing(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection to a database that is there, on which nothing can be written. Raises NoDatabaseError."""
    if not path.is_file():
        raise NoDatabaseError(f"there is no database yet at {path}")
    # Not "ro": the last one to leave tidies the log up, which a reader of an idle database must be able to do.
    address = f"{path.absolute().as_uri()}?mode=rw"
    with contextlib.closing(
        sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    ) as connection:
        connection.execute("PRAGMA query_only = ON")
        if not _has_migrations(connection):
            raise NoDatabaseError(f"there is no database yet at {path}")
        yield connection


def _has_migrations(connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migration'").fetchone()
    return found is not None


def migration_names(connection: sqlite3.Connection) -> dict[int, str]:
    """Return the names of the migrations that a database has, by number."""
    found = connection.execute(queries("sqlite")["survey_migrations"])
    return {number: f"{number:04}_{name}" for number, name in found}


def survey(path: Path, starts: Collection[datetime], feed_state: Callable[[tuple[Any, ...]], FeedState]) -> Survey:
    """Look at everything in one read transaction."""
    sql = queries("sqlite")
    limit = {"limit": MOST_ROWS}
    with existing(path) as connection:
        connection.execute("BEGIN")
        applied = migration_names(connection)
        known = {number: f"{number:04}_{name}" for number, name, _ in migrations("sqlite")}
        missing = [name for number, name in known.items() if number not in applied]
        names, unknown = list(applied.values()), len(applied.keys() - known.keys())
        if missing:
            return Survey(names, missing, unknown)
        values = {"starts": json.dumps(sorted(map(time_text, starts))), **limit}
        keys, keys_revoked = connection.execute(sql["survey_keys"]).fetchone()
        return Survey(
            names,
            unknown=unknown,
            stock=[RooftopStock(*row) for row in connection.execute(sql["survey_stock"], limit)],
            feeds=[feed_state(row) for row in connection.execute(sql["feed_states"])],
            leads=[LeadCount(time_of(row[0]), *row[1:]) for row in connection.execute(sql["survey_leads"], values)],
            backlogs=[
                Backlog(target, status, count, time_of(since), reason)
                for target, status, count, since, reason in connection.execute(sql["survey_deliveries"], limit)
            ],
            keys=keys,
            keys_revoked=keys_revoked,
        )
