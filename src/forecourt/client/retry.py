"""Whether to try again, and when: one pure function, and the policy that bounds it.

"Errors and retries", section "Retry without changing the outcome": the `retryable` that came back is obeyed, also where
it differs from the table; minimum waits are minimum waits; everything else backs off and ends.
"""

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from forecourt.a2a import ClientError, is_retryable
from forecourt.errors import AAPError

__all__ = ["NO_RETRY", "RetryPolicy", "Stop", "Timing", "Wait", "decide", "retry_after"]

_spread = random.Random()  # noqa: S311 - spreads waits and keeps no secret; not everybody's own generator


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The bounds of trying again.

    `tries` counts the first try. `seconds` bound a call from its beginning to its end, tries and waits together.
    Without a minimum from the dealer the waits begin at `first_wait` seconds, double, and end at `longest_wait`; half
    of each is left to chance, so that many buyers do not come back together.
    """

    tries: int = 5
    seconds: float = 60.0
    first_wait: float = 0.5
    longest_wait: float = 15.0

    def __post_init__(self) -> None:
        """Refuse bounds that are none: ValueError."""
        if self.tries < 1 or not 0 < self.seconds < float("inf") or self.first_wait < 0 or self.longest_wait < 0:
            raise ValueError("a policy has at least one try, a finite total time and no negative waits")


NO_RETRY: Final = RetryPolicy(tries=1)
"""One try, no more."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Send the same request again after so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Stop:
    """Do not try again. `reason`: "final" (the failure says so), "tries" or "time" (the policy does)."""

    reason: str


def decide(
    error: Exception,
    attempt: int,
    elapsed: float,
    headers: Mapping[str, str],
    policy: RetryPolicy,
    now: datetime,
    chance: float,
) -> Wait | Stop:
    """Decide what follows `error`, the failure of try number `attempt` (from 1), `elapsed` seconds into the call.

    `headers` are those of the answer, by lower-case name; `now` is the present with its offset; `chance` is a random
    number from 0 up to 1. Nothing else counts: the same arguments give the same decision.
    """
    if isinstance(error, AAPError):
        again, minimum = error.retryable, (error.retry_after_ms or 0) / 1000
    else:
        again, minimum = isinstance(error, ClientError) and is_retryable(error), 0.0
    if not again:
        return Stop("final")
    if attempt >= policy.tries:
        return Stop("tries")
    backoff = min(policy.longest_wait, policy.first_wait * 2.0 ** min(attempt - 1, 60))
    wait = max(backoff * (0.5 + 0.5 * chance), minimum, retry_after(headers, now))
    if elapsed + wait >= policy.seconds:
        return Stop("time")
    return Wait(wait)


def retry_after(headers: Mapping[str, str], now: datetime) -> float:
    """Return the seconds that `Retry-After` asks for: a number, or an HTTP date (RFC 9110, section 10.2.3); else 0.

    A date counts from `now`, and from the answer's own `Date` where that makes the wait longer: clocks differ.
    """
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:12])
    until = _http_date(value)
    if until is None:
        return 0.0
    said = _http_date(headers.get("date", "").strip())
    return max(0.0, (until - now).total_seconds(), (until - said).total_seconds() if said else 0.0)


def _http_date(value: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


class Timing:
    """The clock, the waits and the chance of a client; tests have their own."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    def now(self) -> datetime:
        """Return the present in UTC."""
        return datetime.now(UTC)

    def chance(self) -> float:
        """Return a random number from 0 up to 1."""
        return _spread.random()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
