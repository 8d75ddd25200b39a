"""What an authorization server keeps here: records by kind and key, and marks of what may be used once.

`AccessStore` is the part of a store (`Store.access`) on which the PAP binding puts its Sessions and its memory of
assertions and proofs, so that every process that shares the database shares them, and a restart forgets none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

__all__ = ["AccessRecord", "AccessStore", "Admission", "Mark"]


@dataclass(frozen=True, slots=True)
class AccessRecord:
    """A record as it is kept. `version` is another one after every write; without `expires_at` it is kept for good."""

    value: bytes
    version: str
    expires_at: datetime | None = None


class Mark(NamedTuple):
    """Something that may be used once: its digest, the Unix time in seconds until which it counts as used.

    `record` may name a record, (kind, key), on whose being as it was the use depends.
    """

    digest: bytes
    until: int
    record: tuple[str, str] | None = None


class Admission(NamedTuple):
    """What became of a mark: whether it was the first of its digest, and the version of its record, if it is there."""

    first: bool
    version: str | None


class AccessStore(Protocol):
    """Records and marks. What has expired by `now` reads as absent; methods may be called concurrently.

    Keys are short and printable; values are opaque. Every method raises StoreError when the database fails.
    """

    async def get(self, kind: str, key: str, now: datetime) -> AccessRecord | None:
        """Return a record."""
        ...

    async def put(self, kind: str, key: str, record: AccessRecord) -> None:
        """Write a record, whether or not there is one."""
        ...

    async def create(self, kind: str, key: str, record: AccessRecord, now: datetime) -> bool:
        """Write a record unless there is one; tell whether it was written."""
        ...

    async def replace(self, kind: str, key: str, version: str, record: AccessRecord, now: datetime) -> bool:
        """Write a record in the place of the one that still has `version`; tell whether it was written."""
        ...

    async def take(self, kind: str, key: str, now: datetime) -> bytes | None:
        """Delete a record and return its value; of several callers one gets it."""
        ...

    async def delete(self, kind: str, key: str) -> None:
        """Delete a record, if it is there."""
        ...

    async def records(self, kind: str, now: datetime, limit: int) -> Sequence[AccessRecord]:
        """Return the records of a kind, at most `limit`, in no order."""
        ...

    async def admit(self, marks: Sequence[Mark], now: datetime) -> Sequence[Admission]:
        """Keep marks, all in one durable transaction, and tell of each in turn whether it is the first of its digest.

        A digest counts as used until `Mark.until`, inclusive; no two calls, of any processes, are both told that
        theirs was the first. The versions are those of the moment at which the marks are kept.
        """
        ...

    async def forget_expired(self, before: datetime, limit: int) -> int:
        """Delete what had expired by `before`, at most `limit` records and as many marks; return how many."""
        ...
