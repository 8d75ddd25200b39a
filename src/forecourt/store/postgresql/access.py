"""The records and marks of access control in PostgreSQL: see `forecourt.store.access`."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from forecourt.store.access import AccessRecord, Admission, Mark
from forecourt.store.postgresql.session import Connection
from forecourt.store.statements import queries

__all__ = ["PostgreSQLAccess"]

Result = TypeVar("Result")


class Runner(Protocol):
    """Runs work on a connection of the store's, in a transaction that writes or one that only reads."""

    async def __call__(self, work: Callable[[Connection], Result]) -> Result: ...


class PostgreSQLAccess:
    """Records and marks; a batch of marks is one statement."""

    def __init__(self, write: Runner, read: Runner) -> None:
        self._write = write
        self._read = read
        self._sql = queries("postgresql")

    async def get(self, kind: str, key: str, now: datetime) -> AccessRecord | None:
        """Read one row."""

        def work(connection: Connection) -> AccessRecord | None:
            found = connection.execute(self._sql["access_get"], (kind, key, now)).fetchone()
            return AccessRecord(*found) if found else None

        return await self._read(work)

    async def put(self, kind: str, key: str, record: AccessRecord) -> None:
        """Write one row."""
        values = (kind, key, record.value, record.version, record.expires_at)
        await self._write(lambda connection: connection.execute(self._sql["access_put"], values) and None)

    async def create(self, kind: str, key: str, record: AccessRecord, now: datetime) -> bool:
        """Write one row where there is none, or one that has expired."""
        return await self._changed("access_create", (kind, key, record.value, record.version, record.expires_at, now))

    async def replace(self, kind: str, key: str, version: str, record: AccessRecord, now: datetime) -> bool:
        """Write over the row of that version."""
        return await self._changed(
            "access_replace", (record.value, record.version, record.expires_at, kind, key, version, now)
        )

    async def _changed(self, statement: str, values: tuple[Any, ...]) -> bool:
        return await self._write(lambda connection: connection.execute(self._sql[statement], values).rowcount == 1)

    async def take(self, kind: str, key: str, now: datetime) -> bytes | None:
        """Delete the row and give it back."""

        def work(connection: Connection) -> bytes | None:
            found = connection.execute(self._sql["access_take"], (kind, key, now)).fetchone()
            return found[0] if found else None

        return await self._write(work)

    async def delete(self, kind: str, key: str) -> None:
        """Delete the row."""
        await self._write(lambda connection: connection.execute(self._sql["access_delete"], (kind, key)) and None)

    async def records(self, kind: str, now: datetime, limit: int) -> Sequence[AccessRecord]:
        """Read the rows of a kind."""
        values = (kind, now, limit)
        return await self._read(
            lambda connection: [
                AccessRecord(*found) for found in connection.execute(self._sql["access_records"], values)
            ]
        )

    async def admit(self, marks: Sequence[Mark], now: datetime) -> Sequence[Admission]:
        """Write the marks by one statement, and read the versions by another.

        The digests are written in their order, so that two batches which meet in one wait for each other in turn.
        """
        latest: dict[bytes, int] = {}
        for mark in marks:
            latest[mark.digest] = max(mark.until, latest.get(mark.digest, 0))
        digests = sorted(latest)
        records = sorted({mark.record for mark in marks if mark.record is not None})

        def work(connection: Connection) -> tuple[set[bytes], dict[tuple[str, str], str]]:
            values = (digests, [latest[digest] for digest in digests], int(now.timestamp()))
            first = {found[0] for found in connection.execute(self._sql["access_mark"], values)}
            versions: dict[tuple[str, str], str] = {}
            if records:
                named = ([kind for kind, _ in records], [key for _, key in records], now)
                for kind, key, version in connection.execute(self._sql["access_version"], named):
                    versions[kind, key] = version
            return first, versions

        first, versions = await self._write(work)
        admitted = []
        for mark in marks:
            admitted.append(Admission(mark.digest in first, None if mark.record is None else versions.get(mark.record)))
            # The second of two alike in one batch is a use like any other.
            first.discard(mark.digest)
        return admitted

    async def forget_expired(self, before: datetime, limit: int) -> int:
        """Delete the rows that expired first, passing over those that another process is about to."""

        def work(connection: Connection) -> int:
            gone = connection.execute(self._sql["access_forget_records"], (before, limit)).rowcount
            values = (int(before.timestamp()), limit)
            return gone + connection.execute(self._sql["access_forget_marks"], values).rowcount

        return await self._write(work)
