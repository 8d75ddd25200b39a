"""`forecourt.a2a.failure`: failure classes, and failed downstream calls as A2A errors."""

import asyncio
import pickle
from typing import NoReturn

import pytest

from forecourt.a2a import (
    FAILURE_CLASS_KEY,
    A2AError,
    ClientError,
    ErrorCode,
    FailureClass,
    FailureKind,
    error_class,
    from_a2a_error,
    is_retryable,
    to_a2a_error,
    with_failure_class,
)

RETRIED = [
    ClientError(FailureKind.TIMEOUT, "timed out"),
    ClientError(FailureKind.CONNECTION, "connection refused"),
    ClientError(FailureKind.TOO_MANY_PENDING, "64 requests are under way"),
    *(ClientError(FailureKind.STATUS, f"HTTP {status}", status=status) for status in (429, 502, 503, 504)),
]
EVERYTHING_ELSE = [
    ClientError(FailureKind.BAD_ENDPOINT, "no such host"),
    ClientError(FailureKind.BINDING_MISMATCH, "no JSONRPC interface"),
    ClientError(FailureKind.AUTH_REQUIRED, "credentials needed", status=401),
    ClientError(FailureKind.OTHER, "odd"),
    *(ClientError(FailureKind.STATUS, f"HTTP {status}", status=status) for status in (301, 400, 403, 404, 500)),
]
UNREADABLE = ClientError(FailureKind.UNREADABLE, "not JSON")

CLASSES = {
    ErrorCode.PARSE_ERROR: "invalid_request",
    ErrorCode.INVALID_REQUEST: "invalid_request",
    ErrorCode.METHOD_NOT_FOUND: "invalid_request",
    ErrorCode.INVALID_PARAMS: "invalid_request",
    ErrorCode.INTERNAL_ERROR: "internal",
    ErrorCode.TASK_NOT_FOUND: "invalid_request",
    ErrorCode.TASK_NOT_CANCELABLE: "invalid_request",
    ErrorCode.PUSH_NOTIFICATION_NOT_SUPPORTED: "invalid_request",
    ErrorCode.UNSUPPORTED_OPERATION: "invalid_request",
    ErrorCode.CONTENT_TYPE_NOT_SUPPORTED: "invalid_request",
    ErrorCode.INVALID_AGENT_RESPONSE: "internal",
    ErrorCode.EXTENDED_AGENT_CARD_NOT_CONFIGURED: "invalid_request",
    ErrorCode.EXTENSION_SUPPORT_REQUIRED: "invalid_request",
    ErrorCode.VERSION_NOT_SUPPORTED: "invalid_request",
}


# -- classes


@pytest.mark.parametrize("code", list(ErrorCode))
def test_an_unmarked_error_is_classified_by_its_code(code: ErrorCode) -> None:
    assert error_class(A2AError(code)) == CLASSES[code]


def test_an_unlisted_code_is_internal() -> None:
    assert error_class(A2AError.new(-32050, "x")) is FailureClass.INTERNAL


def test_the_classes_are_these_five() -> None:
    assert sorted(FailureClass) == [
        "budget_exhausted", "internal", "invalid_request", "policy_refusal", "transient",
    ]  # fmt: skip


@pytest.mark.parametrize("unknown", ["weather", "", "TRANSIENT"])
def test_an_unknown_class_reads_as_internal(unknown: str) -> None:
    assert FailureClass(unknown) is FailureClass.INTERNAL


@pytest.mark.requirement("A2A-FROM-CLASS-KEY", "A2A-FROM-CLASS-PRIVATE")
@pytest.mark.parametrize("failure_class", list(FailureClass))
@pytest.mark.parametrize("data", [None, {}, {"a": 1}, [], [{"@type": "x"}], [1]])
def test_an_errors_own_mark_counts_before_its_code(failure_class: FailureClass, data: object) -> None:
    error = A2AError.with_data(ErrorCode.INVALID_PARAMS, "x", data)
    marked = with_failure_class(error, failure_class)
    assert error_class(marked) is failure_class
    assert (marked.code, marked.message, error.data) == (error.code, error.message, data)
    assert FAILURE_CLASS_KEY not in str(marked.to_wire())


def test_marking_again_replaces_the_mark() -> None:
    for data in (None, [{"@type": "x"}]):
        once = with_failure_class(A2AError.with_data(-1, "x", data), FailureClass.TRANSIENT)
        assert error_class(with_failure_class(once, FailureClass.POLICY_REFUSAL)) is FailureClass.POLICY_REFUSAL


def test_marking_keeps_a_refusal_of_credentials() -> None:
    refusal = A2AError.permission_denied("No")
    assert with_failure_class(refusal, FailureClass.POLICY_REFUSAL).auth_rejection == refusal.auth_rejection


@pytest.mark.parametrize("mark", ["weather", 7, None, ["transient"], {}])
def test_a_mark_that_cannot_be_read_is_internal(mark: object) -> None:
    error = A2AError.with_data(ErrorCode.INVALID_PARAMS, "x", {FAILURE_CLASS_KEY: mark})
    assert error_class(error) is FailureClass.INTERNAL


@pytest.mark.parametrize("data", ["text", 1, True])
def test_data_without_a_place_for_a_mark_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match="object or an array"):
        with_failure_class(A2AError.with_data(-1, "x", data), FailureClass.TRANSIENT)


# -- a failed downstream call


def _name(failure: ClientError) -> str:
    return f"{failure.kind.value}-{failure.status}"


@pytest.mark.requirement("A2A-FROM-RETRYABLE")
@pytest.mark.parametrize("failure", RETRIED, ids=_name)
def test_what_the_client_would_retry_becomes_a_transient_internal_error(failure: ClientError) -> None:
    error = to_a2a_error(failure)
    assert is_retryable(failure)
    assert (error.code, error_class(error)) == (ErrorCode.INTERNAL_ERROR, FailureClass.TRANSIENT)


@pytest.mark.requirement("A2A-FROM-OTHER")
@pytest.mark.parametrize("failure", EVERYTHING_ELSE, ids=_name)
def test_everything_else_becomes_an_internal_error(failure: ClientError) -> None:
    error = to_a2a_error(failure)
    assert not is_retryable(failure)
    assert (error.code, error_class(error)) == (ErrorCode.INTERNAL_ERROR, FailureClass.INTERNAL)


@pytest.mark.requirement("A2A-FROM-UNREADABLE")
def test_something_unreadable_becomes_an_invalid_agent_response() -> None:
    error = to_a2a_error(UNREADABLE)
    assert not is_retryable(UNREADABLE)
    assert (error.code, error_class(error)) == (ErrorCode.INVALID_AGENT_RESPONSE, FailureClass.INTERNAL)


@pytest.mark.requirement("A2A-TO-CLIENT-ERROR", "A2A-FROM-PROTOCOL", "A2A-FROM-NOTHING-LOST")
@pytest.mark.parametrize("code", [*ErrorCode, -32050])
def test_a_protocol_error_passes_with_code_message_and_data_unchanged(code: int) -> None:
    received = A2AError.from_payload({"code": code, "message": "x", "data": [{"a": 1}], "hint": "y"})
    failure = from_a2a_error(received)
    assert (failure.kind, failure.error) == (FailureKind.PROTOCOL, received)
    assert failure.__cause__ is received
    error = to_a2a_error(failure)
    assert error == received
    assert error_class(error) is error_class(A2AError(code))
    assert not is_retryable(failure)


def test_a_refusal_of_this_agent_is_no_refusal_of_its_caller() -> None:
    assert to_a2a_error(from_a2a_error(A2AError.permission_denied("No"))).auth_rejection is None


@pytest.mark.requirement(
    "A2A-SOURCE",
    "A2A-FROM-CLASS-KEY",
    "A2A-FROM-CLASS-PRIVATE",
    "A2A-FROM-MESSAGE",
    "A2A-FROM-NOTHING-LOST",
)
@pytest.mark.parametrize("failure", [*RETRIED, *EVERYTHING_ELSE, UNREADABLE], ids=_name)
def test_a_conversion_says_what_happened_and_shows_the_caller_no_class(failure: ClientError) -> None:
    error = to_a2a_error(failure)
    assert error.message == f"downstream A2A call failed: {failure.message}"
    assert error.__cause__ is failure
    assert error.data == {FAILURE_CLASS_KEY: error_class(error)}
    assert "data" not in error.to_wire()


@pytest.mark.requirement("A2A-FROM-MESSAGE", "A2A-FROM-NOTHING-LOST")
def test_the_causes_are_joined_in_the_message() -> None:
    failure = ClientError(FailureKind.CONNECTION, "cannot connect")
    failure.__cause__ = OSError("network is\nunreachable")
    failure.__cause__.__cause__ = KeyError()
    assert to_a2a_error(failure).message == (
        "downstream A2A call failed: cannot connect: network is unreachable: KeyError"
    )


async def _call_an_agent_that_never_answers() -> NoReturn:
    try:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    except TimeoutError as cause:
        raise ClientError(FailureKind.TIMEOUT, "no answer in time") from cause
    raise AssertionError("the wait ended without an answer")


async def _skill_that_delegates() -> NoReturn:
    try:
        await _call_an_agent_that_never_answers()
    except ClientError as failure:
        raise to_a2a_error(failure) from failure


@pytest.mark.requirement("A2A-SOURCE", "A2A-FROM-CLIENT-RAISES", "A2A-FROM-EXAMPLE")
def test_a_skill_that_delegates_raises_a_timeout_downstream_as_a_transient_failure() -> None:
    with pytest.raises(A2AError) as caught:
        asyncio.run(_skill_that_delegates())
    error = caught.value
    assert (error.code, error_class(error)) == (ErrorCode.INTERNAL_ERROR, FailureClass.TRANSIENT)
    assert error.message.startswith("downstream A2A call failed: no answer in time: TimeoutError")
    assert isinstance(error.__cause__, ClientError)
    assert isinstance(error.__cause__.__cause__, TimeoutError)


def test_a_ring_of_causes_and_long_texts_are_bounded() -> None:
    failure = ClientError(FailureKind.OTHER, "x" * 1_000_000)
    failure.__cause__ = OSError("y" * 1_000_000)
    failure.__cause__.__cause__ = failure
    assert len(to_a2a_error(failure).message) < 3000


def test_a_failure_lacking_what_its_kind_is_about_is_refused() -> None:
    with pytest.raises(ValueError, match="A2AError"):
        ClientError(FailureKind.PROTOCOL, "x")
    with pytest.raises(ValueError, match="A2AError"):
        ClientError(FailureKind.TIMEOUT, "x", error=A2AError.internal())
    with pytest.raises(ValueError, match="HTTP status"):
        ClientError(FailureKind.STATUS, "x")


@pytest.mark.parametrize("failure", [*RETRIED[-1:], from_a2a_error(A2AError.new(-1, "x"))], ids=_name)
def test_a_failure_survives_pickling(failure: ClientError) -> None:
    again = pickle.loads(pickle.dumps(failure))
    assert (again.kind, again.message, again.status, again.error) == (
        failure.kind, failure.message, failure.status, failure.error,
    )  # fmt: skip
