"""Marks of what may be used once, kept in the store many at a time: the calls that wait share one commit.

Nothing is served before its mark is durable in the store that all processes share. What this process has seen lately
is refused without asking; what it has not, the store decides.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from forecourt.store import AccessStore, Admission, Mark, StoreError

__all__ = ["MarkQueue"]

_BATCH: Final = 256
"""How many marks one transaction keeps at most."""
_WAITING: Final = 4096
"""How many marks may wait; more are refused, so that memory stays bounded."""
_LATELY: Final = 50_000
"""How many digests are remembered, and as many of those before."""
_SWEEP_EVERY: Final = 64
"""After how many transactions what has expired is deleted."""
_SWEEP_LEAST: Final = 500
_GRACE: Final = timedelta(minutes=10)
"""How long expired marks stay: clocks of other processes may be behind this one's."""

_USED: Final = Admission(first=False, version=None)

_log = logging.getLogger("forecourt.server")


class MarkQueue:
    """The way of this process's marks into the store."""

    def __init__(self, store: AccessStore, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self._waiting: deque[tuple[Mark, asyncio.Future[Admission]]] = deque()
        self._seen: set[bytes] = set()
        self._seen_before: set[bytes] = set()
        self._writing: asyncio.Task[None] | None = None
        self._unswept = 0
        self._batches = 0

    async def admit(self, mark: Mark) -> Admission:
        """Keep a mark and tell whether it is the first of its digest. Raises StoreError: then nobody may go on."""
        if mark.digest in self._seen or mark.digest in self._seen_before:
            return _USED
        if len(self._waiting) >= _WAITING:
            raise StoreError("too many proofs are waiting for the database")
        # Remembered before it is kept: should the store fail, the outcome is unknown and the digest stays used.
        self._remember(mark.digest)
        future: asyncio.Future[Admission] = asyncio.get_running_loop().create_future()
        self._waiting.append((mark, future))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write(), name="forecourt-pap-marks")
        return await future

    async def close(self) -> None:
        """Finish what waits."""
        if self._writing is not None:
            await self._writing

    def _remember(self, digest: bytes) -> None:
        if len(self._seen) >= _LATELY:
            self._seen_before, self._seen = self._seen, set()
        self._seen.add(digest)

    async def _write(self) -> None:
        try:
            # What arrives in the same turn of the loop goes along.
            await asyncio.sleep(0)
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
                await self._keep(batch)
                self._unswept += len(batch)
                self._batches += 1
                if self._batches % _SWEEP_EVERY == 0:
                    await self._sweep()
        finally:
            self._writing = None

    async def _keep(self, batch: list[tuple[Mark, asyncio.Future[Admission]]]) -> None:
        try:
            admitted = await self._store.admit([mark for mark, _ in batch], self._now())
        except Exception as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), admission in zip(batch, admitted, strict=True):
            if not future.done():
                future.set_result(admission)

    async def _sweep(self) -> None:
        """Delete more than was added since the last time, so that what has expired never piles up."""
        limit, self._unswept = _SWEEP_LEAST + 2 * self._unswept, 0
        try:
            await self._store.forget_expired(self._now() - _GRACE, limit)
        except StoreError:
            _log.warning("what has expired of agents' Sessions and proofs could not be deleted; trying again later")
