"""Moving windows in this process's memory: at most so many calls in any so many seconds in a row, by name."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

__all__ = ["MovingWindows", "Rate"]

_NAMES: Final = 65_536
"""How many names are counted at most; beyond that the one that was let through longest ago is forgotten."""


class Rate(NamedTuple):
    """At most `requests` in any `seconds` in a row."""

    requests: int
    seconds: float


class MovingWindows:
    """Counts exactly, in time that depends neither on how many calls there were nor on how many names there are."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, names: int = _NAMES) -> None:
        self._clock = clock
        self._most = names
        # Kept in the order in which names were last let through, so that what is over stands in front.
        self._seen: dict[str, tuple[deque[float], float]] = {}

    def __len__(self) -> int:
        """Return how many names are counted."""
        return len(self._seen)

    def hit(self, asked: Sequence[tuple[Rate, str]]) -> dict[str, float]:
        """Count one call under each of the names and return nothing, or the seconds to wait by each that is full.

        A call that one of them refuses counts for none.
        """
        now = self._clock()
        waits: dict[str, float] = {}
        for rate, name in asked:
            found = self._seen.get(name)
            if found is not None:
                calls = found[0]
                while calls and calls[0] <= now - rate.seconds:
                    calls.popleft()
                if len(calls) >= rate.requests:
                    waits[name] = calls[-rate.requests] + rate.seconds - now
        if not waits:
            for rate, name in asked:
                found = self._seen.pop(name, None)
                calls = deque() if found is None else found[0]
                calls.append(now)
                self._seen[name] = (calls, now + rate.seconds)
            self._forget(now)
        return waits

    def _forget(self, now: float) -> None:
        """Let go of names whose last call has left its window: more of them than a call can have added."""
        for _ in range(4):
            oldest = next(iter(self._seen), None)
            if oldest is None or (self._seen[oldest][1] > now and len(self._seen) <= self._most):
                return
            del self._seen[oldest]
