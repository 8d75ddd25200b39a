"""`personal-agent-protocol`'s store and replay cache, on ours: shared by every process, and there after a restart."""

import hashlib
import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from personal_agent_protocol.company.store import CLIENT, JsonObject, StoredRecord

from forecourt.server.pap.marks import MarkQueue
from forecourt.store import AccessRecord, AccessStore, Mark

__all__ = ["AgentRecords", "ReplayMarks", "replay_digest", "stored_key"]

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_CLIENT_KEPT: Final = timedelta(days=30)
"""The package keeps an agent that it has met for good; here it is forgotten, and met again."""
_LISTED: Final = 10_000
_GRACE_SECONDS: Final = 2

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def stored_key(key: str) -> str:
    """Return a key as it is kept: as it is where it is short and plain, its digest otherwise."""
    return key if _PLAIN.fullmatch(key) else hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def replay_digest(key: str) -> bytes:
    """Return what an identifier that may be used once is known by."""
    # A proof's `jti` is whatever text its sender chose, a lone surrogate included.
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


class AgentRecords:
    """The contribution `pap.company.store`."""

    def __init__(self, store: AccessStore, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now

    async def get(self, kind: str, key: str) -> StoredRecord | None:
        """Read a record."""
        found = await self._store.get(kind, stored_key(key), self._now())
        return None if found is None else StoredRecord(_decode(found.value), found.version, found.expires_at)

    async def put(self, kind: str, key: str, value: JsonObject, *, expires_at: datetime | None = None) -> None:
        """Write a record."""
        await self._store.put(kind, stored_key(key), self._made(kind, value, expires_at))

    async def create(self, kind: str, key: str, value: JsonObject, *, expires_at: datetime | None = None) -> bool:
        """Write a record unless there is one."""
        return await self._store.create(kind, stored_key(key), self._made(kind, value, expires_at), self._now())

    async def replace(
        self, kind: str, key: str, version: str, value: JsonObject, *, expires_at: datetime | None = None
    ) -> bool:
        """Write a record in the place of the version that was read."""
        made = self._made(kind, value, expires_at)
        return await self._store.replace(kind, stored_key(key), version, made, self._now())

    async def take(self, kind: str, key: str) -> JsonObject | None:
        """Delete a record and return it."""
        found = await self._store.take(kind, stored_key(key), self._now())
        return None if found is None else _decode(found)

    async def delete(self, kind: str, key: str) -> None:
        """Delete a record."""
        await self._store.delete(kind, stored_key(key))

    async def records(self, kind: str) -> list[StoredRecord]:
        """Read the records of a kind, at most 10,000."""
        found = await self._store.records(kind, self._now(), _LISTED)
        return [StoredRecord(_decode(each.value), each.version, each.expires_at) for each in found]

    def _made(self, kind: str, value: JsonObject, expires_at: datetime | None) -> AccessRecord:
        if kind == CLIENT and expires_at is None:
            expires_at = self._now() + _CLIENT_KEPT
        # Random versions: a record that was deleted and made again is another one.
        return AccessRecord(_encode(value), os.urandom(12).hex(), expires_at)


class ReplayMarks:
    """The contribution `pap.company.replayCache`."""

    def __init__(self, marks: MarkQueue) -> None:
        self._marks = marks

    async def mark_once(self, key: str, *, expires_at: datetime) -> bool:
        """Tell whether the identifier is used for the first time, once that is durable."""
        admission = await self._marks.admit(Mark(replay_digest(key), until(expires_at)))
        return admission.first


def until(expires_at: datetime) -> int:
    """Return the Unix time until which an identifier counts as used: a little longer than it would be accepted."""
    return int(expires_at.timestamp()) + _GRACE_SECONDS
