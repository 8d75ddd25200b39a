"""How often one client may call: moving windows, counted in memory or, for many processes, in Valkey or Redis."""

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from typing import Final

from limits import RateLimitItem, RateLimitItemPerSecond
from limits.aio.storage import MovingWindowSupport
from limits.aio.strategies import MovingWindowRateLimiter

from forecourt.errors import AAPError
from forecourt.server.config import ConfigError, Limits
from forecourt.server.window import MovingWindows, Rate

__all__ = ["ClientLimit"]

_PATIENCE_SECONDS: Final = 0.25
"""How long a call waits for the shared count before it is counted here instead."""
_LONGEST_LOOK: Final = 2.0
_PAUSE_SECONDS: Final = 1.0
"""How long the shared count is left alone after it failed, so that an outage does not slow every call."""
_CLOSED: Final = 16_384
"""How many names are remembered that are known to be full; one that is forgotten is counted again."""

_log = logging.getLogger("forecourt.limits")


class ClientLimit:
    """At most so many calls in any so many seconds in a row, per client, over all skills and for single ones.

    Where counts are shared and cannot be reached, each process counts for itself until they can: calls go on, and
    `outage` says so. Until when a full window is full is known and remembered: to refuse a client again takes no
    counting, and no way to the shared count.
    """

    def __init__(self, settings: Limits) -> None:
        """Raises ConfigError where the shared store needs what is not installed."""
        self._general = None if settings.requests is None else Rate(settings.requests, settings.seconds)
        self._skills = {skill: Rate(rate.requests, rate.seconds) for skill, rate in settings.skills.items()}
        self._here = MovingWindows()
        self._shared = _shared(settings.store)
        self._failed_at: float | None = None
        self._closed: dict[str, tuple[float, AAPError, bool]] = {}
        """Until when a window is full, the error that says so, and whether this process alone has counted it."""

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

    @property
    def may_refuse(self) -> bool:
        """Whether anybody is known to be beyond a limit."""
        return bool(self._closed)

    def refusal(self, client: str) -> AAPError | None:
        """Return the error RATE_LIMITED for a client that is known to be beyond its limit for all skills.

        It counts nothing, waits for nothing and makes nothing: all refusals until the window opens are one error, with
        one `error_id`, whose wait is that of the last time it was asked for.
        """
        wait = self._full(client)
        if wait <= 0:
            return None
        error = self._closed[client][1]
        error.retry_after_ms = max(1, math.ceil(wait * 1000))
        return error

    async def check(self, client: str, skill: str | None = None, own: tuple[int, int] | None = None) -> None:
        """Count one call of a client; `own` is its own (requests, seconds) in place of the general limit.

        Raises AAPError RATE_LIMITED with the time after which the next call is let through. What is refused does not
        count.
        """
        asked: list[tuple[Rate, str]] = []
        general = self._general if own is None else Rate(*own)
        if general is not None:
            asked.append((general, client))
        if skill is not None and skill in self._skills:
            asked.append((self._skills[skill], f"{client}|{skill}"))
        if not asked:
            return
        wait = max([self._full(name) for _, name in asked]) if self._closed else 0.0
        if wait <= 0:
            wait = await self._wait(asked)
        if wait > 0:
            raise _limited(wait)

    def _full(self, name: str) -> float:
        """Return for how many seconds a window is known to be full yet."""
        found = self._closed.get(name)
        if found is None:
            return 0.0
        now = time.monotonic()
        until, _, here = found
        if here and self._shared is not None and self._may_ask(now):
            # Counted in an outage that may be over: the shared count decides.
            until = now
        if until <= now:
            del self._closed[name]
        return until - now

    def _may_ask(self, now: float) -> bool:
        """Tell whether the shared count is to be asked: always, but for a pause after it has failed."""
        return self._failed_at is None or now - self._failed_at >= _PAUSE_SECONDS

    async def _wait(self, asked: Sequence[tuple[Rate, str]]) -> float:
        """Count, and return how many seconds to wait where that was one too many, else 0."""
        now = time.monotonic()
        if self._shared is not None and self._may_ask(now):
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    waits = await _counted(self._shared, [(_item(rate), name) for rate, name in asked])
            except Exception as error:
                # Whatever a driver raises: a call is not refused because it cannot be counted.
                if self._failed_at is None:
                    _log.warning("the shared rate limits cannot be reached: %s", type(error).__name__)
                self._failed_at = now
            else:
                if self._failed_at is not None:
                    _log.warning("the shared rate limits are reached again")
                self._failed_at = None
                return self._remembered(waits, here=False)
        return self._remembered(self._here.hit(asked), here=True)

    def _remembered(self, waits: dict[str, float], *, here: bool) -> float:
        """Return the longest wait, and keep each: the windows open no earlier."""
        now = time.monotonic()
        for name, wait in waits.items():
            while len(self._closed) >= _CLOSED:
                del self._closed[next(iter(self._closed))]
            self._closed[name] = (now + wait, _limited(wait), here)
        return max(waits.values(), default=0.0)


def _limited(wait: float) -> AAPError:
    return AAPError("RATE_LIMITED", "Per-client rate limit exceeded.", retry_after_ms=max(1, math.ceil(wait * 1000)))


async def _counted(limiter: MovingWindowRateLimiter, asked: Sequence[tuple[RateLimitItem, str]]) -> dict[str, float]:
    """Count a call under each name, or return the seconds to wait for those that have no room."""
    if len(asked) > 1:
        # Looked at before any is counted, so that a call which one limit refuses is not charged to the other.
        waits = {
            name: await _until_free(limiter, item, name) for item, name in asked if not await limiter.test(item, name)
        }
        if waits:
            return waits
    for item, name in asked:
        if not await limiter.hit(item, name):
            return {name: await _until_free(limiter, item, name)}
    return {}


async def _until_free(limiter: MovingWindowRateLimiter, item: RateLimitItem, name: str) -> float:
    window = await limiter.get_window_stats(item, name)
    # At least a moment: the window may have moved on since the call was refused.
    return max(window.reset_time - time.time(), 0.001)


def _item(rate: Rate) -> RateLimitItem:
    return RateLimitItemPerSecond(rate.requests, int(rate.seconds))


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
