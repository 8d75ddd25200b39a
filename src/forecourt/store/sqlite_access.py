"""The records and marks of access control in SQLite: see `forecourt.store.access`."""

import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from forecourt.store.access import AccessRecord, Admission, Mark
from forecourt.store.statements import queries

__all__ = ["SQLiteAccess"]

Result = TypeVar("Result")


class Runner(Protocol):
    """Runs work on a connection of the store's, in a transaction that writes or one that only reads."""

    async def __call__(self, work: Callable[[sqlite3.Connection], Result]) -> Result: ...


class SQLiteAccess:
    """Records and marks, written by the one writer of the store and committed with whatever else waits for it."""

    def __init__(self, write: Runner, read: Runner) -> None:
        self._write = write
        self._read = read
        self._sql = queries("sqlite", "access")

    async def get(self, kind: str, key: str, now: datetime) -> AccessRecord | None:
        """Read one row."""
        values = (kind, key, now.timestamp())

        def work(connection: sqlite3.Connection) -> AccessRecord | None:
            found = connection.execute(self._sql["access_get"], values).fetchone()
            return _record(found) if found else None

        return await self._read(work)

    async def put(self, kind: str, key: str, record: AccessRecord) -> None:
        """Write one row."""
        values = (kind, key, *_columns(record))
        await self._write(lambda connection: connection.execute(self._sql["access_put"], values) and None)

    async def create(self, kind: str, key: str, record: AccessRecord, now: datetime) -> bool:
        """Write one row where there is none, or one that has expired."""
        values = (kind, key, *_columns(record), now.timestamp())
        return await self._changed("access_create", values)

    async def replace(self, kind: str, key: str, version: str, record: AccessRecord, now: datetime) -> bool:
        """Write over the row of that version."""
        return await self._changed("access_replace", (*_columns(record), kind, key, version, now.timestamp()))

    async def _changed(self, statement: str, values: tuple[Any, ...]) -> bool:
        return await self._write(lambda connection: connection.execute(self._sql[statement], values).rowcount == 1)

    async def take(self, kind: str, key: str, now: datetime) -> bytes | None:
        """Delete the row and give it back."""
        values = (kind, key, now.timestamp())

        def work(connection: sqlite3.Connection) -> bytes | None:
            found = connection.execute(self._sql["access_take"], values).fetchall()
            return found[0][0] if found else None

        return await self._write(work)

    async def delete(self, kind: str, key: str) -> None:
        """Delete the row."""
        await self._write(lambda connection: connection.execute(self._sql["access_delete"], (kind, key)) and None)

    async def records(self, kind: str, now: datetime, limit: int) -> Sequence[AccessRecord]:
        """Read the rows of a kind."""
        values = (kind, now.timestamp(), limit)
        return await self._read(
            lambda connection: [_record(found) for found in connection.execute(self._sql["access_records"], values)]
        )

    async def admit(self, marks: Sequence[Mark], now: datetime) -> Sequence[Admission]:
        """Write the marks one by one, in one transaction."""
        seconds = now.timestamp()
        mark_once, version_of = self._sql["access_mark"], self._sql["access_version"]

        def work(connection: sqlite3.Connection) -> list[Admission]:
            run = connection.execute
            admitted = []
            for digest, until, record in marks:
                first = run(mark_once, (digest, until, seconds)).rowcount == 1
                found = run(version_of, (*record, seconds)).fetchone() if record is not None else None
                admitted.append(Admission(first, found[0] if found else None))
            return admitted

        return await self._write(work)

    async def forget_expired(self, before: datetime, limit: int) -> int:
        """Delete the rows that expired first."""
        values = (before.timestamp(), limit)

        def work(connection: sqlite3.Connection) -> int:
            return sum(
                connection.execute(self._sql[statement], values).rowcount
                for statement in ("access_forget_records", "access_forget_marks")
            )

        return await self._write(work)


def _columns(record: AccessRecord) -> tuple[bytes, str, float | None]:
    return record.value, record.version, None if record.expires_at is None else record.expires_at.timestamp()


def _record(row: tuple[bytes, str, float | None]) -> AccessRecord:
    value, version, expires_at = row
    return AccessRecord(value, version, None if expires_at is None else datetime.fromtimestamp(expires_at, UTC))
