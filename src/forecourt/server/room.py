"""Room for requests: how many skills run at a time, how many wait for it, and who is turned away unread."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, MutableMapping
from typing import Any, Final

from forecourt.errors import AAPError

__all__ = ["ARRIVED", "CROWDED", "Room", "busy", "crowded"]

ARRIVED: Final = "forecourt.arrived"
"""In an ASGI scope: when the request's head was there, by the monotonic clock."""
CROWDED: Final = "forecourt.crowded"
"""In an ASGI scope: that the client has as many requests under way as one may have."""

_WAIT_SECONDS: Final = 0.5
"""How long a request waits in line for room."""
_LATE_SECONDS: Final = 1.0
"""How long after its arrival a request is still begun. Whoever waits longer is better told when to come again."""
_RETRY_MS: Final = 1000


class Room:
    """So many skills at a time; as many again may wait in line, each for a moment.

    More than that would only wait: for the processor, or for a database that everybody waits for.
    """

    def __init__(self, places: int, refused: Callable[[str], None]) -> None:
        """`refused` counts a word for each request that finds no room."""
        self._places = places
        self._free = places
        self._line: deque[asyncio.Future[None]] = deque()
        self._refused = refused

    def refusal(self, scope: MutableMapping[str, Any]) -> AAPError | None:
        """Return the error for a request that is not begun at all, None for one that is."""
        if CROWDED in scope:
            return crowded()
        arrived = scope.get(ARRIVED)
        if arrived is not None and time.monotonic() - arrived > _LATE_SECONDS:
            self._refused("overload")
            return busy()
        return None

    def enter_now(self) -> bool:
        """Take a place if one is free."""
        if self._free > 0:
            self._free -= 1
            return True
        return False

    async def enter(self) -> None:
        """Take a place, waiting in line for a moment. Raises AAPError RATE_LIMITED where that was in vain."""
        if self.enter_now():
            return
        if len(self._line) >= self._places:
            self._refused("overload")
            raise busy()
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append(mine)
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await mine
        except BaseException as error:
            if mine.done() and not mine.cancelled():
                # The place was given in the same moment.
                self.leave()
            else:
                self._line.remove(mine)
            if isinstance(error, TimeoutError):
                self._refused("overload")
                raise busy() from None
            raise

    def leave(self) -> None:
        """Give the place to the first in line."""
        while self._line:
            first = self._line.popleft()
            if not first.done():
                first.set_result(None)
                return
        self._free += 1


def crowded() -> AAPError:
    """Return the error for a client that has too much under way at once."""
    return AAPError("RATE_LIMITED", "Too many requests of this client at a time.", retry_after_ms=_RETRY_MS)


def busy() -> AAPError:
    """Return the error for a request that came when there was no room for anybody's."""
    return AAPError("RATE_LIMITED", "The dealer agent has too much to do right now.", retry_after_ms=_RETRY_MS)
