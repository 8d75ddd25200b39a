"""Copies of an SQLite file while it is written, and a file made of such a copy again."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from forecourt.store.backup import EPHEMERAL, Backup, BackupError, new_file, pack, scratch, unpack
from forecourt.store.sqlite_look import existing, migration_names
from forecourt.store.statements import migrations, queries

__all__ = ["back_up", "restore"]

_HEADER: Final = b"SQLite format 3\0"
_MARK: Final = 0x46637274
"""The application id of a copy, "Fcrt": what was copied by other means may lack what its log held."""


def back_up(path: Path, file: Path) -> Backup:
    """Copy the database as of one moment; whoever writes meanwhile does not wait."""
    with new_file(file) as draft, scratch(file) as copy:
        with existing(path) as connection:
            # Leaves out what was deleted and stood in free pages, as a copy of the pages would not.
            connection.execute("PRAGMA query_only = OFF")
            try:
                connection.execute("VACUUM INTO ?", (str(copy),))
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL:
                    raise BackupError(f"{file.absolute().parent} has no room for the copy") from None
                raise
        with _opened(copy) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            for table in EPHEMERAL & _tables(connection):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours
            connection.execute(f"PRAGMA application_id = {_MARK}")
            told = _checked(connection, "the database")
        return Backup(*told, pack(copy, draft))


def restore(file: Path, path: Path) -> Backup:
    """Write the database of a copy to where none is yet."""
    _refuse_to_replace(path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with new_file(path) as draft:
        unpack(file, draft)
        with draft.open("rb") as found:
            if found.read(len(_HEADER)) != _HEADER:
                raise BackupError(f"{file} holds no SQLite database; one of PostgreSQL is restored into PostgreSQL")
        try:
            with _opened(draft) as connection:
                if connection.execute("PRAGMA application_id").fetchone()[0] != _MARK:
                    raise BackupError(f"{file} was not made by forecourt backup")
                told = _checked(connection, str(file))
                connection.execute("PRAGMA application_id = 0")
        except sqlite3.DatabaseError:
            raise BackupError(f"{file} is damaged") from None
        return Backup(*told, file.stat().st_size)


def _refuse_to_replace(path: Path) -> None:
    if path.exists():
        if _is_in_use(path):
            raise BackupError(f"a server or a command is using {path}: stop it, then move its folder away")
        raise BackupError(f"there is a database at {path} already: move its folder away, nothing is written over")
    for rest in (path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal")):
        if rest.exists():
            # SQLite would take what is in it for a part of the restored database.
            raise BackupError(f"{rest} is left of another database: move it away")


def _is_in_use(path: Path) -> bool:
    """Tell whether another process has the database open: then it cannot be had for oneself alone."""
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=0, isolation_level=None)
        ) as connection:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
    except sqlite3.DatabaseError:
        return False
    return False


@contextlib.contextmanager
def _opened(copy: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        yield connection


def _tables(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the tables that there are: an older version has fewer."""
    found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    return frozenset(name for (name,) in found)


def _checked(connection: sqlite3.Connection, what: str) -> tuple[int, int, str]:
    """Return leads, listings and the newest migration. Raises BackupError for what no server should be given."""
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != ("ok",) or connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise BackupError(f"{what} is damaged")
    names = migration_names(connection)
    newest = max(names, default=0)
    known = migrations("sqlite")[-1][0]
    if newest > known:
        raise BackupError(f"{what} is of a newer version of Forecourt (migration {newest:04}; this one has {known:04})")
    leads, listings = connection.execute(queries("sqlite")["survey_totals"]).fetchone()
    return leads, listings, names.get(newest, "none")
