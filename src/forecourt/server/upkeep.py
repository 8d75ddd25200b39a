"""The keys of cursors: read from the store, made anew every day, and exchanged while cursors live.

Every worker looks once a minute; whoever looks first when the newest key is a day old makes the next one, and all sign
with that from their next look on. What an older key signed is still read until the last of it has ended
(`forecourt.store.RETIRED_KEPT`). A worker that meets a key which it does not know yet looks at once (`Agent`, `renew`).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from forecourt.agent import Agent
from forecourt.cursor import CURSOR_PURPOSE, Cursors, new_key_bytes
from forecourt.identifier import sortable_id
from forecourt.store import Secret, Store, StoreError

__all__ = ["CursorUpkeep"]

_ROTATE_AFTER: Final = timedelta(hours=24)
_LOOK_SECONDS: Final = 60.0

_log = logging.getLogger("forecourt.upkeep")


def _utc_now() -> datetime:
    return datetime.now(UTC)


class CursorUpkeep:
    """Keeps the cursors of an agent in step with the store's keys."""

    def __init__(self, store: Store, now: Callable[[], datetime] = _utc_now) -> None:
        self._store = store
        self._now = now
        self._watching: asyncio.Task[None] | None = None

    async def read(self) -> Cursors:
        """Return cursors with the keys of the moment, making a key when it is time. Raises StoreError."""
        keys = await self._store.secrets(
            CURSOR_PURPOSE, lambda: Secret(sortable_id(), new_key_bytes()), self._now(), _ROTATE_AFTER
        )
        return Cursors(keys)

    def start(self, agent: Agent) -> None:
        """Exchange the agent's cursors from now on."""
        self._watching = asyncio.create_task(self._watch(agent), name="forecourt-cursor-upkeep")

    async def stop(self) -> None:
        """Stop exchanging."""
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching
            self._watching = None

    async def _watch(self, agent: Agent) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                agent.cursors = await self.read()
            except StoreError:
                # The keys known so far go on signing and reading; the store is asked again in a minute.
                _log.warning("the keys of cursors could not be read; going on with those that are known")
