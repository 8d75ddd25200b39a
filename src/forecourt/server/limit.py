"""How often one client may call: moving windows, counted in memory or, for many processes, in Valkey or Redis."""

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from typing import Final

from limits import RateLimitItem, RateLimitItemPerSecond
from limits.aio.storage import MemoryStorage, MovingWindowSupport
from limits.aio.strategies import MovingWindowRateLimiter

from forecourt.errors import AAPError
from forecourt.server.config import ConfigError, Limits

__all__ = ["ClientLimit"]

_PATIENCE_SECONDS: Final = 0.25
"""How long a call waits for the shared count before it is counted here instead."""
_LONGEST_LOOK: Final = 2.0
_PAUSE_SECONDS: Final = 1.0
"""How long the shared count is left alone after it failed, so that an outage does not slow every call."""

_log = logging.getLogger("forecourt.limits")


class ClientLimit:
    """At most so many calls in any so many seconds in a row, per client, over all skills and for single ones.

    Where counts are shared and cannot be reached, each process counts for itself until they can: calls go on, and
    `outage` says so.
    """

    def __init__(self, settings: Limits) -> None:
        """Raises ConfigError where the shared store needs what is not installed."""
        self._general = _item(settings.requests, settings.seconds)
        self._skills = {skill: _item(rate.requests, rate.seconds) for skill, rate in settings.skills.items()}
        self._here = MovingWindowRateLimiter(MemoryStorage())
        self._shared = _shared(settings.store)
        self._failed_at: float | None = None

    @property
    def is_set(self) -> bool:
        """Whether any limit is configured; a key may have one of its own all the same."""
        return self._general is not None or bool(self._skills)

    @property
    def outage(self) -> bool:
        """Whether calls are counted by each process for itself because the shared count cannot be reached."""
        return self._failed_at is not None

    async def answers(self) -> bool | None:
        """Tell whether the shared count can be reached now; None where each process counts for itself."""
        if self._shared is None:
            return None
        try:
            async with asyncio.timeout(_LONGEST_LOOK):
                return bool(await self._shared.storage.check())
        except Exception:
            # Whatever a driver raises, it is not there.
            return False

    async def close(self) -> None:
        """Let go of the connections."""
        if self._shared is not None:
            storage = self._shared.storage
            close = getattr(getattr(getattr(storage, "bridge", None), "storage", None), "aclose", None)
            if close is not None:
                await close()

    async def check(self, client: str, skill: str | None = None, own: tuple[int, int] | None = None) -> None:
        """Count one call of a client; `own` is its own (requests, seconds) in place of the general limit.

        Raises AAPError RATE_LIMITED with the time after which the next call is let through. What is refused does not
        count.
        """
        items = [(self._general if own is None else _item(*own), client)]
        if skill is not None and skill in self._skills:
            items.append((self._skills[skill], f"{client}|{skill}"))
        asked = [(item, name) for item, name in items if item is not None]
        if not asked:
            return
        wait = await self._wait(asked)
        if wait > 0:
            raise AAPError(
                "RATE_LIMITED", "Per-client rate limit exceeded.", retry_after_ms=max(1, math.ceil(wait * 1000))
            )

    async def _wait(self, asked: Sequence[tuple[RateLimitItem, str]]) -> float:
        """Count, and return how many seconds to wait where that was one too many, else 0."""
        now = time.monotonic()
        if self._shared is not None and (self._failed_at is None or now - self._failed_at >= _PAUSE_SECONDS):
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    wait = await _counted(self._shared, asked)
            except Exception as error:
                # Whatever a driver raises: a call is not refused because it cannot be counted.
                if self._failed_at is None:
                    _log.warning("the shared rate limits cannot be reached: %s", type(error).__name__)
                self._failed_at = now
            else:
                if self._failed_at is not None:
                    _log.warning("the shared rate limits are reached again")
                self._failed_at = None
                return wait
        return await _counted(self._here, asked)


async def _counted(limiter: MovingWindowRateLimiter, asked: Sequence[tuple[RateLimitItem, str]]) -> float:
    if len(asked) > 1:
        # Looked at before any is counted, so that a call which one limit refuses is not charged to the other.
        waits = [await _full(limiter, item, name) for item, name in asked]
        if any(waits):
            return max(waits)
    for item, name in asked:
        if not await limiter.hit(item, name):
            return await _until_free(limiter, item, name)
    return 0.0


async def _full(limiter: MovingWindowRateLimiter, item: RateLimitItem, name: str) -> float:
    return 0.0 if await limiter.test(item, name) else await _until_free(limiter, item, name)


async def _until_free(limiter: MovingWindowRateLimiter, item: RateLimitItem, name: str) -> float:
    window = await limiter.get_window_stats(item, name)
    # At least a moment: the window may have moved on since the call was refused.
    return max(window.reset_time - time.time(), 0.001)


def _item(requests: int | None, seconds: int) -> RateLimitItem | None:
    return None if requests is None else RateLimitItemPerSecond(requests, seconds)


def _shared(address: str | None) -> MovingWindowRateLimiter | None:
    if address is None:
        return None
    try:
        from limits.aio.storage import RedisStorage

        # Valkey speaks the protocol of Redis; one driver serves both.
        scheme, _, rest = address.partition("://")
        storage = RedisStorage(
            f"async+{scheme.replace('valkey', 'redis')}://{rest}",
            implementation="redispy",
            key_prefix="forecourt",
            socket_timeout=_PATIENCE_SECONDS,
            socket_connect_timeout=_PATIENCE_SECONDS,
        )
    except Exception as error:
        if isinstance(error, ImportError) or "redis" in type(error).__name__.lower() or "prerequisite" in str(error):
            raise ConfigError("needs the extra: pip install 'forecourt[redis]'", "limits", "store") from error
        raise ConfigError("is not an address that can be used", "limits", "store") from error
    assert isinstance(storage, MovingWindowSupport)
    return MovingWindowRateLimiter(storage)
