"""Keys that callers prove themselves with: made once, shown once, kept as a digest, looked up in memory."""

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

from forecourt.identifier import sortable_id
from forecourt.store import APIKey, Store

__all__ = ["PREFIX", "KeyRing", "new_key"]

PREFIX: Final = "fck_"
"""What every key begins with, so that scanners for leaked secrets can know one."""

_FRESH_SECONDS: Final = 2.0
"""How long what was read of the keys is believed: a revoked key opens nothing after that, in any process."""
_STALE_SECONDS: Final = 60.0
"""For how long keys go on opening while the database does not answer."""
_PATIENCE_SECONDS: Final = 1.0
"""How long a call waits for the database while what was read before may be believed: one that is gone without a word
is noticed by its driver much later."""
_LONGEST: Final = 256


def new_key(
    name: str,
    now: datetime,
    sellers: tuple[str, ...] | None = None,
    requests: int | None = None,
    seconds: int | None = None,
) -> tuple[str, APIKey]:
    """Return a new key as its caller writes it, and as it is kept. The former cannot be made from the latter."""
    key_id = sortable_id(PREFIX)
    text = f"{key_id}.{secrets.token_urlsafe(32)}"
    return text, APIKey(key_id, _digest(text), name, sellers, requests, seconds, now)


def _digest(text: str) -> bytes:
    # Not a password's slow hash: 256 random bits cannot be guessed, however fast one guess is.
    return hashlib.sha256(text.encode()).digest()


class KeyRing:
    """The keys of a deployment, as this process knows them."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._keys: dict[str, APIKey] = {}
        self._read_at: float | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waited = False

    async def find(self, text: str) -> APIKey | None:
        """Return the key that is written so, None when it is none or was revoked. Raises StoreError."""
        key_id, dot, _ = text.partition(".")
        if not dot or len(text) > _LONGEST or not text.isascii():
            return None
        age = self._age()
        if age is None or age > _FRESH_SECONDS:
            await self._renew(age)
        key = self._keys.get(key_id)
        # An unknown id is compared as well, so that time tells nothing of which ids there are.
        known = key.digest if key is not None else bytes(32)
        if not hmac.compare_digest(_digest(text), known) or key is None or key.revoked_at is not None:
            return None
        return key

    def _age(self) -> float | None:
        return None if self._read_at is None else self._clock() - self._read_at

    async def _renew(self, age: float | None) -> None:
        """Read the keys, once for all who ask at the same time."""
        reading = self._reading
        if reading is None or reading.done():
            self._waited = False
            reading = self._reading = asyncio.create_task(self._read(), name="forecourt-api-keys")
            reading.add_done_callback(_taken)
        if age is None or age > _STALE_SECONDS:
            await asyncio.shield(reading)
            return
        if self._waited and not reading.done():
            # Somebody has waited for this look already: it slows one call each, not all of them.
            return
        done, _ = await asyncio.wait({reading}, timeout=_PATIENCE_SECONDS)
        self._waited = not done

    async def _read(self) -> None:
        began = self._clock()
        keys = await self._store.api_keys()
        self._keys = {key.key_id: key for key in keys}
        self._read_at = began


def _taken(reading: asyncio.Task[None]) -> None:
    """Take what a look has raised, which nobody may be waiting for any more."""
    if not reading.cancelled():
        reading.exception()
