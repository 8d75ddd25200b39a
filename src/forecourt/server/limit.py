"""How often one client may call."""

import math
import time

from limits import RateLimitItemPerSecond
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter

from forecourt.errors import AAPError

__all__ = ["ClientLimit"]


class ClientLimit:
    """At most `requests` in any `seconds` in a row, per client."""

    def __init__(self, requests: int, seconds: int) -> None:
        self._item = RateLimitItemPerSecond(requests, seconds)
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    async def check(self, client: str) -> None:
        """Count one call. Raises AAPError RATE_LIMITED with the time after which the next one is let through."""
        if await self._limiter.hit(self._item, client):
            return
        window = await self._limiter.get_window_stats(self._item, client)
        wait_ms = max(1, math.ceil((window.reset_time - time.time()) * 1000))
        raise AAPError(
            "RATE_LIMITED",
            "Per-client rate limit exceeded.",
            retry_after_ms=wait_ms,
        )
