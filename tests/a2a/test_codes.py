"""`forecourt.a2a.codes` against the table of A2A v1.0, section 5.4, and JSON-RPC 2.0, section 5.1."""

import copy
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecourt.a2a import ErrorCode

JSON_RPC = [
    ("PARSE_ERROR", -32700, 400, "INVALID_ARGUMENT"),
    ("INVALID_REQUEST", -32600, 400, "INVALID_ARGUMENT"),
    ("METHOD_NOT_FOUND", -32601, 404, "UNIMPLEMENTED"),
    ("INVALID_PARAMS", -32602, 400, "INVALID_ARGUMENT"),
    ("INTERNAL_ERROR", -32603, 500, "INTERNAL"),
]
A2A = [
    ("TASK_NOT_FOUND", -32001, 404, "NOT_FOUND"),
    ("TASK_NOT_CANCELABLE", -32002, 400, "FAILED_PRECONDITION"),
    ("PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, 400, "FAILED_PRECONDITION"),
    ("UNSUPPORTED_OPERATION", -32004, 400, "FAILED_PRECONDITION"),
    ("CONTENT_TYPE_NOT_SUPPORTED", -32005, 400, "INVALID_ARGUMENT"),
    ("INVALID_AGENT_RESPONSE", -32006, 500, "INTERNAL"),
    ("EXTENDED_AGENT_CARD_NOT_CONFIGURED", -32007, 400, "FAILED_PRECONDITION"),
    ("EXTENSION_SUPPORT_REQUIRED", -32008, 400, "FAILED_PRECONDITION"),
    ("VERSION_NOT_SUPPORTED", -32009, 400, "FAILED_PRECONDITION"),
]
NUMBERS = {number for _, number, _, _ in JSON_RPC + A2A}
UNKNOWN = st.integers(-(2**63), 2**63 - 1).filter(lambda number: number not in NUMBERS)


@pytest.mark.parametrize(("name", "number", "http_status", "grpc_status"), JSON_RPC + A2A)
def test_each_code_has_its_number_and_its_http_and_grpc_equivalents(
    name: str, number: int, http_status: int, grpc_status: str
) -> None:
    code = ErrorCode(number)
    assert code is ErrorCode[name]
    assert (code.http_status, code.grpc_status) == (http_status, grpc_status)
    assert code.is_known


def test_no_code_is_missing_from_the_table() -> None:
    assert {int(code) for code in ErrorCode} == NUMBERS


@pytest.mark.parametrize("name", [row[0] for row in A2A])
def test_the_reason_of_an_a2a_code_is_its_name_in_upper_snake(name: str) -> None:
    assert ErrorCode[name].reason == name


@pytest.mark.parametrize("name", [row[0] for row in JSON_RPC])
def test_a_plain_json_rpc_code_has_no_reason(name: str) -> None:
    assert ErrorCode[name].reason is None


@pytest.mark.requirement("A2A-METRIC-LABEL-BOUNDED")
@pytest.mark.parametrize("code", list(ErrorCode))
def test_metric_labels_are_lower_case_and_messages_are_there(code: ErrorCode) -> None:
    assert code.metric_label == code.name.lower()
    assert re.fullmatch("[a-z_]+", code.metric_label)
    assert code.default_message


@pytest.mark.requirement("A2A-FIELD-CODE")
@given(UNKNOWN)
def test_an_unknown_number_is_kept_as_that_number(number: int) -> None:
    code = ErrorCode(number)
    assert int(code) == number
    assert code == number
    assert hash(code) == hash(number)
    assert str(code) == str(number)
    assert not code.is_known
    assert copy.deepcopy(code) == number
    assert pickle.loads(pickle.dumps(code)) == number


@pytest.mark.requirement("A2A-METRIC-LABEL-BOUNDED")
@given(UNKNOWN)
def test_unknown_numbers_share_one_metric_label_and_safe_defaults(number: int) -> None:
    code = ErrorCode(number)
    assert (code.metric_label, code.reason) == ("unknown", None)
    assert (code.http_status, code.grpc_status) == (500, "UNKNOWN")
    assert code.default_message


def test_unknown_numbers_do_not_grow_the_enum() -> None:
    for number in range(100):
        ErrorCode(number)
    assert {int(code) for code in ErrorCode} == NUMBERS


@pytest.mark.parametrize(
    "value", [True, None, "-32600", 1.5, 2**63, -(2**63) - 1, pytest.param(10**5000, id="5001 digits")]
)
def test_what_is_no_integer_of_64_bits_is_no_code(value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text is the enum's, or int's for the longest
        ErrorCode(value)  # type: ignore[arg-type]
