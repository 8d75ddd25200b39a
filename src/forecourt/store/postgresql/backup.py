"""Copies of a PostgreSQL schema by `pg_dump`, and a schema made of such a copy again by `pg_restore`."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from forecourt.store.backup import EPHEMERAL, Backup, BackupError, new_file, pack, scratch, unpack
from forecourt.store.postgresql.look import found_at, migration_names
from forecourt.store.postgresql.session import Connection
from forecourt.store.statements import migrations, queries

__all__ = ["back_up", "restore"]

_LONGEST: Final = 6 * 3600
"""Seconds that a program of PostgreSQL's may take."""
_LONGEST_WORDS: Final = 300
_HEADER: Final = b"PGDMP"
_OURS: Final = ("migration", "lead", "consent_grant", "delivery")


def back_up(connect: Callable[[], Connection], address: str, file: Path) -> Backup:
    """Copy the schema as of one moment; nobody waits for it."""
    with new_file(file) as draft, scratch(file) as copy, contextlib.closing(connect()) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        # The snapshot is this transaction's, which does nothing while the program reads.
        connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        database, schema, is_there = found_at(connection)
        if not is_there:
            raise BackupError(f"there is no database yet in the schema {schema} of {database}")
        told = _told(connection)
        found = connection.execute("SELECT pg_export_snapshot()").fetchone()
        assert found is not None
        left_out = [f"--exclude-table-data={_quoted(schema)}.{table}" for table in sorted(EPHEMERAL)]
        _run(
            "pg_dump", address, "--format=custom", "--compress=0", "--no-owner", "--no-privileges", "--no-password",
            f"--snapshot={found[0]}", f"--schema={_quoted(schema)}", *left_out, f"--file={copy}",
        )  # fmt: skip
        return Backup(*told, pack(copy, draft))


def restore(connect: Callable[[], Connection], address: str, file: Path) -> Backup:
    """Make the tables of a copy, all in one transaction, in the schema of the same name that has none of them."""
    with contextlib.closing(connect()) as connection:
        database, schema, is_there = found_at(connection)
        if is_there:
            raise BackupError(
                f"there is a database in the schema {schema} of {database} already: stop its servers and move it away,"
                " nothing is written over"
            )
    with scratch(file) as copy:
        unpack(file, copy)
        with copy.open("rb") as found:
            if found.read(len(_HEADER)) != _HEADER:
                raise BackupError(f"{file} holds no PostgreSQL database; one of SQLite is restored into SQLite")
        _check_contents(copy, file, schema)
        _run(
            "pg_restore", address, "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges",
            "--no-password", f"--schema={schema}", str(copy),
        )  # fmt: skip
    with contextlib.closing(connect()) as connection:
        return Backup(*_told(connection), file.stat().st_size)


def _check_contents(copy: Path, file: Path, schema: str) -> None:
    """Raise BackupError unless the copy is of ours and of a schema of this name."""
    listed = _run("pg_restore", None, "--list", str(copy))
    # A line is `212; 1259 16397 TABLE public lead postgres`; those of TABLE DATA are of the same tables.
    found = [line.split()[3:6] for line in listed.splitlines()]
    tables = [words[1:] for words in found if len(words) == 3 and words[0] == "TABLE" and words[1] != "DATA"]
    schemas = {name for name, _ in tables}
    if not {table for _, table in tables}.issuperset(_OURS):
        raise BackupError(f"{file} was not made by forecourt backup")
    if schemas != {schema}:
        raise BackupError(f"{file} is of the schema {', '.join(sorted(schemas))}, and the address leads to {schema}")


def _told(connection: Connection) -> tuple[int, int, str]:
    names = migration_names(connection)
    newest = max(names, default=0)
    known = migrations("postgresql")[-1][0]
    if newest > known:
        raise BackupError(f"the database is of a newer version of Forecourt (migration {newest:04})")
    found = connection.execute(queries("postgresql")["survey_totals"]).fetchone()
    assert found is not None
    return found[0], found[1], names.get(newest, "none")


def _run(program: str, address: str | None, *arguments: str) -> str:
    """Run a program of PostgreSQL's and return what it prints. Raises BackupError."""
    place = shutil.which(program)
    if place is None:
        raise BackupError(f"{program} is not installed: it comes with PostgreSQL's client programs (postgresql-client)")
    command, environment = [place, *arguments], dict(os.environ)
    if address is not None:
        given: dict[str, Any] = conninfo_to_dict("postgresql:" + address.partition(":")[2])
        # What stands on a command line, every user of the machine can read.
        if (password := given.pop("password", None)) is not None:
            environment["PGPASSWORD"] = str(password)
        command.insert(1, f"--dbname={make_conninfo(**given)}")
    try:
        ended = subprocess.run(  # noqa: S603 - a program of PostgreSQL's, with arguments of ours
            command, env=environment, capture_output=True, timeout=_LONGEST, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired:
        raise BackupError(f"{program} took longer than {_LONGEST // 3600} hours") from None
    if ended.returncode:
        raise BackupError(f"{program} gave up{_reason(program, ended.stderr)}")
    return ended.stdout.decode("utf-8", "replace")


def _reason(program: str, said: bytes) -> str:
    """Return a program's own first words about what is wrong, where they cannot hold anything of a row."""
    lines = said.decode("utf-8", "replace").splitlines()
    if program == "pg_restore" and any("COPY" in line for line in lines):
        return ": the rows of a table cannot be restored"
    told: Sequence[str] = [line.partition("error: ")[2] for line in lines if "error: " in line]
    return f": {told[0][:_LONGEST_WORDS]}" if told else ""


def _quoted(name: str) -> str:
    """Return a name as the patterns of pg_dump take it literally."""
    return '"' + name.replace('"', '""') + '"'
