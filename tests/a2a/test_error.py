"""`forecourt.a2a.error`: the error type, its JSON-RPC form, and what a server keeps to itself."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecourt.a2a import (
    FAILURE_CLASS_KEY,
    PRIVATE_KEYS,
    STREAM_LAGGED_MARKER,
    A2AError,
    AuthRejection,
    ErrorCode,
    FailureClass,
    with_failure_class,
)

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10)
KEYS = st.text(max_size=6) | st.sampled_from(
    [*sorted(PRIVATE_KEYS), "code", "message", "data", "@type", "jsonrpc", "id"]
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
CODES = st.sampled_from(list(map(int, ErrorCode))) | st.integers(-(2**63), 2**63 - 1)


# -- constructors


@pytest.mark.requirement(
    "A2A-INTERNAL",
    "A2A-INVALID-PARAMS",
    "A2A-UNSUPPORTED-OPERATION",
    "A2A-PARSE-ERROR",
    "A2A-INVALID-AGENT-RESPONSE",
    "A2A-EXTENDED-CARD-NOT-CONFIGURED",
    "A2A-PUSH-NOT-SUPPORTED",
    "A2A-CONTENT-TYPE-NOT-SUPPORTED",
    "A2A-EXTENSION-SUPPORT-REQUIRED",
    "A2A-VERSION-NOT-SUPPORTED",
    "A2A-AUTH-REJECTION-ACCESS",
    "A2A-AUTH-REJECTION-ONLY-TWO",
)
@pytest.mark.parametrize(
    ("make", "code"),
    [
        (A2AError.parse_error, -32700),
        (A2AError.invalid_request, -32600),
        (A2AError.method_not_found, -32601),
        (A2AError.invalid_params, -32602),
        (A2AError.internal, -32603),
        (A2AError.push_not_supported, -32003),
        (A2AError.unsupported_operation, -32004),
        (A2AError.content_type_not_supported, -32005),
        (A2AError.invalid_agent_response, -32006),
        (A2AError.extended_card_not_configured, -32007),
        (A2AError.extension_support_required, -32008),
        (A2AError.version_not_supported, -32009),
    ],
)
def test_each_constructor_gives_its_code_and_the_message_it_was_given(make: Callable[..., A2AError], code: int) -> None:
    error = make("What happened")
    assert (error.code, error.message, error.data) == (code, "What happened", None)
    assert error.auth_rejection is None
    assert make().message == ErrorCode(code).default_message


@pytest.mark.requirement("A2A-TASK-NOT-FOUND", "A2A-TASK-NOT-CANCELABLE")
@pytest.mark.parametrize(("make", "code"), [(A2AError.task_not_found, -32001), (A2AError.task_not_cancelable, -32002)])
def test_a_task_error_names_its_task_but_not_at_any_length(make: Callable[[object], A2AError], code: int) -> None:
    assert make("task-7").code == code
    assert "task-7" in make("task-7").message
    assert len(make("x" * 100_000).message) < 200


@pytest.mark.requirement("A2A-CANONICAL", "A2A-NEW", "A2A-WITH-DATA")
def test_new_and_with_data_take_any_code() -> None:
    assert A2AError.new(-32050, "Odd").to_payload() == {"code": -32050, "message": "Odd"}
    assert A2AError.with_data(ErrorCode.INTERNAL_ERROR, "Odd", [1]).data == [1]


@pytest.mark.requirement("A2A-STR")
def test_str_is_the_code_in_brackets_and_the_message() -> None:
    assert str(A2AError.task_not_found("t")) == "[-32001] Task not found: t"


@pytest.mark.requirement("A2A-REPR")
def test_repr_names_the_type_and_shows_code_and_message() -> None:
    assert repr(A2AError.task_not_found("t")) == "A2AError(-32001, 'Task not found: t')"
    assert repr(A2AError.new(-32050, "Two\nlines")) == "A2AError(-32050, 'Two\\nlines')"


def test_neither_str_nor_repr_nor_args_show_the_data() -> None:
    error = A2AError.with_data(ErrorCode.INTERNAL_ERROR, "Odd", {"secret": "s3cret"})
    assert "s3cret" not in f"{error} {error!r} {error.args}"


@pytest.mark.requirement("A2A-METRIC-LABEL-FROM-CODE", "A2A-METRIC-LABEL-NOT-MESSAGE")
def test_the_metric_label_is_the_codes_and_never_the_message() -> None:
    assert A2AError.invalid_params("jane@example.com").metric_label == "invalid_params"
    assert A2AError.new(-1, "jane@example.com").metric_label == "unknown"


# -- refused credentials


@pytest.mark.requirement("A2A-UNAUTHENTICATED-GRPC", "A2A-UNAUTHENTICATED-JSONRPC", "A2A-AUTH-REJECTION-ACCESS")
def test_unauthenticated_is_401_with_its_challenge_and_invalid_request_over_json_rpc() -> None:
    error = A2AError.unauthenticated("Sign in", 'Bearer realm="a2a"')
    assert error.auth_rejection == AuthRejection(401, "UNAUTHENTICATED", 'Bearer realm="a2a"')
    assert error.to_wire() == {"code": -32600, "message": "Sign in"}


@pytest.mark.requirement("A2A-PERMISSION-DENIED-GRPC", "A2A-PERMISSION-DENIED-JSONRPC", "A2A-AUTH-REJECTION-ACCESS")
def test_permission_denied_is_403_without_a_challenge() -> None:
    error = A2AError.permission_denied("Not for you")
    assert error.auth_rejection == AuthRejection(403, "PERMISSION_DENIED", None)
    assert error.code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("challenge", ["", " ", "Bearer\r\nSet-Cookie: a=b", "Bearer é", "a\x00"])
def test_a_challenge_that_no_header_can_hold_is_refused(challenge: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII"):
        A2AError.unauthenticated("Sign in", challenge)


@pytest.mark.requirement("A2A-AUTH-REJECTION-NOT-FROM-WIRE")
def test_a_peer_cannot_forge_a_refusal_of_credentials() -> None:
    refusal = A2AError.unauthenticated("Sign in", "Bearer")
    forged = refusal.to_payload() | {
        "auth_rejection": {"http_status": 401},
        "_auth_rejection": {"http_status": 401},
    }
    for payload in (refusal.to_payload(), refusal.to_wire(), forged):
        assert A2AError.from_payload(payload).auth_rejection is None


@pytest.mark.requirement("A2A-AUTH-REJECTION-ACCESS", "A2A-AUTH-REJECTION-ONLY-TWO")
@pytest.mark.parametrize(
    "error",
    [
        *(A2AError(code) for code in ErrorCode),
        A2AError.new(-32600, "Sign in"),
        A2AError.with_data(-32600, "Sign in", {"http_status": 401}),
        A2AError.task_not_found("t"),
        A2AError.task_not_cancelable("t"),
        A2AError.stream_lagged(7),
    ],
    ids=repr,
)
def test_no_error_that_is_made_in_another_way_is_a_refusal_of_credentials(error: A2AError) -> None:
    assert error.auth_rejection is None


# -- stream lag


@pytest.mark.requirement("A2A-LAG-RECOGNISED", "A2A-LAG-COUNT", "A2A-LAG-BUILD")
def test_a_lag_signal_is_recognised_and_tells_how_many_events_were_dropped() -> None:
    lag = A2AError.stream_lagged(7)
    assert lag.is_stream_lagged
    assert lag.dropped_event_count == 7
    assert lag.code == ErrorCode.INTERNAL_ERROR


@pytest.mark.requirement("A2A-LAG-BY-MARKER", "A2A-LAG-OTHERS-FALSE", "A2A-LAG-COUNT-NONE")
@pytest.mark.parametrize(
    "error",
    [
        A2AError.internal("boom"),
        A2AError.new(-32001, "gone"),
        A2AError.internal(A2AError.stream_lagged(7).message),
        A2AError.with_data(-32603, "x", STREAM_LAGGED_MARKER),
        A2AError.with_data(-32603, "x", [STREAM_LAGGED_MARKER]),
    ],
)
def test_code_message_and_stray_words_make_no_lag_signal(error: A2AError) -> None:
    assert not error.is_stream_lagged
    assert error.dropped_event_count is None


@pytest.mark.requirement("A2A-LAG-BY-MARKER")
@pytest.mark.parametrize("count", [None, True, -1, 1.5, "7", 2**64, [7]])
def test_a_lag_signal_with_an_unreadable_count_stays_a_lag_signal(count: object) -> None:
    error = A2AError.with_data(-1, "any code, any message", {STREAM_LAGGED_MARKER: count})
    assert error.is_stream_lagged
    assert error.dropped_event_count is None


@pytest.mark.parametrize("dropped", [-1, True, 1.5, 2**64])
def test_what_is_no_count_makes_no_lag_signal(dropped: Any) -> None:
    with pytest.raises(ValueError, match="number of events"):
        A2AError.stream_lagged(dropped)


# -- ErrorInfo


@pytest.mark.requirement("A2A-ERROR-INFO-ARRAY", "A2A-ERROR-INFO-FIELDS", "A2A-ERROR-INFO-METADATA")
@pytest.mark.parametrize("code", [code for code in ErrorCode if code.reason])
def test_the_error_info_of_an_a2a_code_names_its_reason_in_the_a2a_domain(code: ErrorCode) -> None:
    assert A2AError(code).error_info_data({"key": "value"}) == [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": code.name,
            "domain": "a2a-protocol.org",
            "metadata": {"key": "value"},
        }
    ]


@pytest.mark.requirement("A2A-ERROR-INFO-METADATA")
@pytest.mark.parametrize("code", [ErrorCode.INVALID_PARAMS, -32050])
def test_the_error_info_of_a_code_without_a_reason_is_written_without_one(code: int) -> None:
    assert A2AError(code).error_info_data() == [
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "a2a-protocol.org"}
    ]


@pytest.mark.requirement("A2A-ERROR-INFO-METADATA")
@pytest.mark.parametrize("metadata", [{"n": 1}, {1: "n"}, {"n": None}])
def test_metadata_that_is_not_strings_is_refused(metadata: Any) -> None:
    with pytest.raises(TypeError, match="strings"):
        A2AError(ErrorCode.TASK_NOT_FOUND).error_info_data(metadata)


# -- reading and writing


@pytest.mark.requirement("A2A-CANONICAL", "A2A-FIELD-DATA", "A2A-READ-WIRE", "A2A-WRITE-WIRE")
@given(
    st.fixed_dictionaries(
        {"code": CODES, "message": st.text(max_size=20)},
        optional={"data": JSON, "details": JSON, "streamLagged": JSON},
    )
)
def test_a_well_formed_error_object_is_read_and_written_back_without_loss(payload: dict[str, Any]) -> None:
    error = A2AError.from_payload(payload)
    assert error.to_payload() == payload
    assert ("data" in error.to_payload()) == ("data" in payload)
    assert A2AError.from_payload(json.loads(json.dumps(error.to_payload()))) == error


@given(JSON | st.fixed_dictionaries({}, optional={"code": JSON, "message": JSON, "data": JSON}))
def test_reading_never_raises_whatever_a_peer_sends(payload: object) -> None:
    error = A2AError.from_payload(payload)
    assert isinstance(error.message, str)
    assert isinstance(error.code, ErrorCode)
    assert str(error)
    assert error.auth_rejection is None
    error.to_payload()
    error.to_wire()


@pytest.mark.requirement("A2A-READ-WIRE")
@pytest.mark.parametrize(
    "payload",
    [
        None,
        "boom",
        [],
        {},
        {"message": "no code"},
        {"code": True, "message": "x"},
        {"code": "-32601", "message": "x"},
        {"code": -32601.5, "message": "x"},
        {"code": None, "message": "x"},
        {"code": 2**63, "message": "x"},
        pytest.param({"code": 10**5000, "message": "x"}, id="5001 digits"),
        {"code": 1e300, "message": "x"},
        {"code": float("inf"), "message": "x"},
        {"code": [], "message": "x"},
    ],
)
def test_an_error_object_without_a_readable_code_is_an_invalid_agent_response_that_keeps_it(
    payload: object,
) -> None:
    error = A2AError.from_payload(payload)
    assert error.code == ErrorCode.INVALID_AGENT_RESPONSE
    assert error.data == payload


@pytest.mark.requirement("A2A-FIELD-MESSAGE")
@pytest.mark.parametrize("payload", [{"code": -32602}, {"code": -32602, "message": 7}])
def test_a_missing_or_unreadable_message_is_replaced_by_the_codes_own(payload: object) -> None:
    error = A2AError.from_payload(payload)
    assert (error.code, error.message) == (ErrorCode.INVALID_PARAMS, "Invalid params")


def test_an_integral_float_is_the_code_that_it_equals() -> None:
    assert A2AError.from_payload({"code": -32601.0, "message": "x"}).code is ErrorCode.METHOD_NOT_FOUND


@pytest.mark.requirement("A2A-NON-EXHAUSTIVE")
def test_unknown_members_are_kept_and_not_passed_on_to_a_caller() -> None:
    error = A2AError.from_payload({"code": -1, "message": "x", "hint": "y"})
    assert error.extra == {"hint": "y"}
    assert error.to_payload() == {"code": -1, "message": "x", "hint": "y"}
    assert error.to_wire() == {"code": -1, "message": "x"}


@pytest.mark.requirement("A2A-NON-EXHAUSTIVE")
def test_an_error_is_read_by_the_names_of_its_fields_so_that_more_may_come() -> None:
    error = A2AError.with_data(-1, "x", [1])
    assert (error.code, error.message, error.data) == (-1, "x", [1])
    with pytest.raises(TypeError, match="not iterable"):
        iter(error)  # type: ignore[call-overload]
    assert not hasattr(A2AError, "__match_args__")


def test_data_that_is_set_later_wins_over_an_explicit_null_that_was_read() -> None:
    error = A2AError.from_payload({"code": -32001, "message": "x", "data": None})
    assert "data" in error.to_payload()
    error.with_error_info()
    assert error.to_payload()["data"] == error.error_info_data()


# -- what a server keeps to itself


def _private_keys_in(data: object) -> set[str]:
    entries = [data, *data] if isinstance(data, list) else [data]
    return {key for entry in entries if isinstance(entry, dict) for key in PRIVATE_KEYS & set(entry)}


@pytest.mark.requirement("A2A-FROM-CLASS-PRIVATE")
@given(JSON)
def test_no_private_key_ever_reaches_a_caller(data: object) -> None:
    error = A2AError.with_data(ErrorCode.INTERNAL_ERROR, "x", data)
    before = copy.deepcopy(data)
    assert _private_keys_in(error.to_wire().get("data")) == set()
    assert error.data == before, "writing changes nothing"


@pytest.mark.requirement("A2A-WRITE-WIRE")
@given(JSON)
def test_data_without_private_keys_is_written_whole(data: object) -> None:
    if not _private_keys_in(data) and data is not None:
        assert A2AError.with_data(-1, "x", data).to_wire()["data"] == data


@pytest.mark.parametrize(
    "error",
    [
        with_failure_class(A2AError.internal("x"), FailureClass.TRANSIENT),
        with_failure_class(A2AError.with_data(-32603, "x", []), FailureClass.TRANSIENT),
        A2AError.with_data(-32603, "x", {FAILURE_CLASS_KEY: "transient", STREAM_LAGGED_MARKER: 1}),
        A2AError.with_data(-32603, "x", [{FAILURE_CLASS_KEY: "transient"}, {STREAM_LAGGED_MARKER: 1}]),
        A2AError.stream_lagged(7),
    ],
)
def test_data_that_held_private_keys_only_is_left_out_altogether(error: A2AError) -> None:
    assert "data" in error.to_payload()
    assert "data" not in error.to_wire()


def test_the_public_rest_of_marked_data_stays() -> None:
    marked = with_failure_class(A2AError.with_data(-32603, "x", {"a": 1}), FailureClass.TRANSIENT)
    assert marked.to_wire()["data"] == {"a": 1}
    info = A2AError.task_not_found("t").with_error_info()
    assert with_failure_class(info, FailureClass.TRANSIENT).to_wire() == info.to_wire()


def test_empty_data_that_nothing_was_taken_from_stays() -> None:
    assert A2AError.with_data(-1, "x", {}).to_wire()["data"] == {}
    assert A2AError.with_data(-1, "x", []).to_wire()["data"] == []


@pytest.mark.requirement("A2A-LAG-RECOVERABLE")
def test_inside_a_stream_the_lag_signal_reaches_its_reader_and_the_failure_class_does_not() -> None:
    lag = with_failure_class(A2AError.stream_lagged(7), FailureClass.TRANSIENT)
    received = A2AError.from_payload(lag.to_wire(in_stream=True))
    assert received.dropped_event_count == 7
    assert received.data == {STREAM_LAGGED_MARKER: 7}


# -- being a value


@pytest.mark.requirement("A2A-COPY")
@pytest.mark.parametrize(
    "error",
    [
        A2AError.task_not_found("t").with_error_info({"a": "b"}),
        A2AError.new(-32050, "Odd"),
        A2AError.unauthenticated("Sign in", "Bearer"),
        A2AError.from_payload({"code": -1, "message": "x", "data": None, "hint": [1]}),
    ],
)
def test_copies_and_pickles_are_equal_to_the_original(error: A2AError) -> None:
    for again in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert again == error
        assert hash(again) == hash(error)
        assert again.auth_rejection == error.auth_rejection
        assert str(again) == str(error)


@pytest.mark.parametrize(
    "other",
    [
        A2AError.new(-2, "x"),
        A2AError.new(-1, "y"),
        A2AError.with_data(-1, "x", 0),
        A2AError.from_payload({"code": -1, "message": "x", "hint": 1}),
        ValueError("x"),
    ],
)
def test_errors_that_say_different_things_are_not_equal(other: Exception) -> None:
    assert A2AError.new(-1, "x") != other


def test_a_refusal_of_credentials_is_not_equal_to_the_same_words_from_a_peer() -> None:
    refusal = A2AError.permission_denied("No")
    assert A2AError.from_payload(refusal.to_payload()) != refusal
