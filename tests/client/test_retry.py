"""When a call is tried again, and when not: one pure function ("Errors and retries", "Retry without changing...")."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecourt.a2a import (
    RETRYABLE_STATUSES,
    A2AError,
    ErrorCode,
    FailureClass,
    FailureKind,
    error_class,
    is_retryable,
    to_a2a_error,
)
from forecourt.client.failure import DealerError, TransportError
from forecourt.client.retry import NO_RETRY, RetryPolicy, Stop, Wait, decide, retry_after
from forecourt.errors import CODES, AAPError

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
POLICY = RetryPolicy(tries=5, seconds=60, first_wait=1, longest_wait=8)


def follows(
    error: Exception,
    attempt: int = 1,
    elapsed: float = 0,
    headers: dict[str, str] | None = None,
    policy: RetryPolicy = POLICY,
    chance: float = 1.0,
) -> Wait | Stop:
    return decide(error, attempt, elapsed, headers or {}, policy, NOW, chance)


def received(code: str, retryable: bool, wait: int | None = None) -> AAPError:
    return AAPError(code, retryable=retryable, retry_after_ms=wait, error_id="err_1")


@pytest.mark.requirement("ERR-RETRY-OBEY", "ERR-RETRY-CHANGE-INPUT")
@pytest.mark.parametrize("code", [*CODES, "A_CODE_OF_TOMORROW"])
def test_the_retryable_that_came_back_is_obeyed_whatever_the_table_says(code: str) -> None:
    assert isinstance(follows(received(code, True)), Wait)
    assert follows(received(code, False)) == Stop("final")


@pytest.mark.requirement("ERR-SDK-CLASS-NO-POLICY")
@pytest.mark.parametrize("number", [int(code) for code in ErrorCode] + [-32000, -32050])
def test_an_error_of_the_protocol_is_never_tried_again_by_its_class_or_number(number: int) -> None:
    assert follows(A2AError(number)) == Stop("final")


@pytest.mark.requirement("ERR-RETRY-WAIT-MINIMUM")
@pytest.mark.parametrize(
    ("wait_ms", "header", "seconds"),
    [
        (30_000, None, 30), (30_000, "10", 30), (5_000, "20", 20), (None, "20", 20), (0, "0", 1), (None, None, 1),
    ],
)  # fmt: skip
def test_the_wait_is_at_least_the_longest_minimum_that_applies(
    wait_ms: int | None, header: str | None, seconds: float
) -> None:
    headers = {} if header is None else {"retry-after": header}
    assert follows(received("RATE_LIMITED", True, wait_ms), headers=headers) == Wait(seconds)


@pytest.mark.requirement("ERR-RETRY-HTTP-DATE")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "Sun, 01 Nov 2026 12:00:25 GMT"}, 25),
        ({"retry-after": "Sun, 01 Nov 2026 11:00:00 GMT"}, 0),
        # The dealer's clock is ten minutes behind: its own Date says what the wait was meant to be.
        ({"retry-after": "Sun, 01 Nov 2026 11:50:25 GMT", "date": "Sun, 01 Nov 2026 11:50:00 GMT"}, 25),
        ({"retry-after": "Sunday, 01-Nov-26 12:00:25 GMT"}, 25),
        ({"retry-after": "120"}, 120),
        ({"retry-after": " 7 "}, 7),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "1.5"}, 0),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "\u0663"}, 0),
        ({"retry-after": "9" * 400}, 999_999_999_999),
        ({"retry-after": "Sun, 01 Nov 99999 12:00:25 GMT"}, 0),
        ({"retry-after": ""}, 0),
        ({}, 0),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: dict[str, str], seconds: float) -> None:
    assert retry_after(headers, NOW) == seconds


@pytest.mark.requirement("ERR-RETRY-BOUNDED-BACKOFF")
def test_without_a_minimum_the_waits_double_up_to_a_bound_and_end() -> None:
    error = TransportError(FailureKind.CONNECTION, "gone")
    longest = [follows(error, attempt) for attempt in range(1, 6)]
    assert longest == [Wait(1), Wait(2), Wait(4), Wait(8), Stop("tries")]
    assert follows(error, 1, chance=0.0) == Wait(0.5)
    assert follows(error, 1, policy=NO_RETRY) == Stop("tries")


@pytest.mark.requirement("ERR-RETRY-BOUNDED-BACKOFF")
def test_a_wait_that_would_pass_the_total_time_is_not_begun() -> None:
    assert follows(received("RATE_LIMITED", True, 30_000), elapsed=29) == Wait(30)
    assert follows(received("RATE_LIMITED", True, 30_000), elapsed=30) == Stop("time")
    assert follows(received("RATE_LIMITED", True, 3_600_000)) == Stop("time")


@pytest.mark.requirement("A2A-FROM-SAME-JUDGEMENT")
@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind is not FailureKind.PROTOCOL])
@pytest.mark.parametrize("status", [None, 301, 400, 401, 404, 429, 500, 501, 502, 503, 504])
def test_what_the_client_tries_again_is_exactly_what_converts_to_transient(
    kind: FailureKind, status: int | None
) -> None:
    if kind is FailureKind.STATUS and status is None:
        return
    failure = TransportError(kind, "it failed", status=status)
    again = isinstance(follows(failure), Wait)
    assert again == is_retryable(failure) == (error_class(to_a2a_error(failure)) is FailureClass.TRANSIENT)
    transient = (FailureKind.TIMEOUT, FailureKind.CONNECTION, FailureKind.TOO_MANY_PENDING)
    assert again == (status in RETRYABLE_STATUSES if kind is FailureKind.STATUS else kind in transient)


def test_that_there_is_no_dealer_is_final() -> None:
    assert follows(DealerError("no card")) == Stop("final")
    assert follows(ValueError()) == Stop("final")


@given(
    attempt=st.integers(1, 10_000),
    elapsed=st.floats(0, 1000),
    chance=st.floats(0, 1, exclude_max=True),
    wait=st.none() | st.integers(0, 10**9),
    header=st.text(max_size=40),
)
def test_whatever_comes_the_decision_is_bounded_and_keeps_the_minimum(
    attempt: int, elapsed: float, chance: float, wait: int | None, header: str
) -> None:
    headers = {"retry-after": header}
    decision = follows(received("RATE_LIMITED", True, wait), attempt, elapsed, headers, chance=chance)
    if isinstance(decision, Wait):
        assert attempt < POLICY.tries
        assert elapsed + decision.seconds < POLICY.seconds
        assert decision.seconds >= max((wait or 0) / 1000, retry_after(headers, NOW))


@pytest.mark.parametrize(
    "bounds", [{"tries": 0}, {"seconds": 0}, {"seconds": float("inf")}, {"first_wait": -1}, {"longest_wait": -1}]
)
def test_a_policy_without_bounds_is_refused(bounds: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a policy has"):
        RetryPolicy(**bounds)
