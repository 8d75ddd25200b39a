"""The records and marks of access control in SQLite: see `forecourt.store.access`."""

import os
import sqlite3
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TypeVar

from forecourt.store.access import AccessRecord, Admission, Mark
from forecourt.store.statements import queries

__all__ = ["SQLiteAccess"]

Result = TypeVar("Result")

_DIGEST: Final = 16
"""How much of a digest is kept: enough that no two are ever alike by accident or by trying."""
_MARK: Final = struct.Struct(f">{_DIGEST}sq")
_FIRST_PRUNE: Final = 10_000


class Runner(Protocol):
    """Runs work on a connection of the store's, in a transaction that writes or one that only reads."""

    async def __call__(self, work: Callable[[sqlite3.Connection], Result]) -> Result: ...


class SQLiteAccess:
    """Records and marks, written by the one writer of the store and committed with whatever else waits for it."""

    def __init__(self, write: Runner, read: Runner) -> None:
        self._write = write
        self._read = read
        self._sql = queries("sqlite")
        self._marks = _Marks(self._sql)

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
        """Write the marks that are the first of their digests, as one row."""
        seconds = now.timestamp()
        version_of = self._sql["access_version"]

        def work(connection: sqlite3.Connection) -> list[Admission]:
            firsts = self._marks.add(connection, marks, seconds)
            versions: dict[tuple[str, str], str | None] = {}
            for record in {mark.record for mark in marks if mark.record is not None}:
                found = connection.execute(version_of, (*record, seconds)).fetchone()
                versions[record] = found[0] if found else None
            return [
                Admission(first, None if mark.record is None else versions[mark.record])
                for first, mark in zip(firsts, marks, strict=True)
            ]

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


class _Marks:
    """Every mark that counts, in memory, and how it is kept in step with the file.

    A row for each mark, found by its digest, would dirty a page of the file for each: most of what a call costs. So a
    transaction appends one row with all of its marks, and reads first what other processes have appended. SQLite lets
    one transaction write at a time, so nothing can be appended in between. Only the store's writer comes here.

    Where the transaction is undone afterwards, its marks count here all the same: a proof is refused that nobody used,
    and no proof is used twice.
    """

    def __init__(self, sql: dict[str, str]) -> None:
        self._sql = sql
        self._until: dict[bytes, int] = {}
        self._last: tuple[int, bytes] = (-1, b"")
        self._prune_at = _FIRST_PRUNE

    def add(self, connection: sqlite3.Connection, marks: Sequence[Mark], now: float) -> list[bool]:
        """Append marks and tell which are the first of their digests."""
        self._catch_up(connection)
        firsts, kept, latest = [], [], 0
        for digest, until, _ in marks:
            short = digest[:_DIGEST]
            first = self._until.get(short, -1) < now
            firsts.append(first)
            if first:
                self._until[short] = until
                kept.append(_MARK.pack(short, until))
                latest = max(latest, until)
        if kept:
            connection.execute(self._sql["access_mark"], (os.urandom(8), latest, b"".join(kept)))
        if len(self._until) >= self._prune_at:
            self._until = {digest: until for digest, until in self._until.items() if until >= now}
            self._prune_at = max(_FIRST_PRUNE, 2 * len(self._until))
        return firsts

    def _catch_up(self, connection: sqlite3.Connection) -> None:
        rows = connection.execute(self._sql["access_marks"], (self._last[0],)).fetchall()
        if not rows or rows[0][:2] != self._last:
            # The row that was read last is gone, or another has its number: what lies between cannot be told.
            rows = connection.execute(self._sql["access_marks"], (-1,)).fetchall()
        for number, tag, packed in rows:
            for digest, until in _MARK.iter_unpack(packed):
                if until > self._until.get(digest, -1):
                    self._until[digest] = until
            self._last = (number, tag)


def _columns(record: AccessRecord) -> tuple[bytes, str, float | None]:
    return record.value, record.version, None if record.expires_at is None else record.expires_at.timestamp()


def _record(row: tuple[bytes, str, float | None]) -> AccessRecord:
    value, version, expires_at = row
    return AccessRecord(value, version, None if expires_at is None else datetime.fromtimestamp(expires_at, UTC))
