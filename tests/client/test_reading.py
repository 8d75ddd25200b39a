"""Every shape in which a failure arrives becomes one typed error, and nothing of it is lost."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.simulated import aap, detail

from forecourt.a2a import A2AError, FailureKind
from forecourt.client.failure import Answer, TransportError
from forecourt.client.reading import (
    aap_error,
    from_json_rpc,
    from_tool_result,
    is_readable,
    json_body,
    status_failure,
)
from forecourt.errors import CODES, AAPError, Problem

RAW = Answer("https://dealer.example.com/a2a", 200, {}, b"{}")
OTHERS: list[Any] = [
    {"@type": "type.googleapis.com/google.rpc.DebugInfo", "detail": "x"},
    {"@type": "type.googleapis.com/google.protobuf.Struct", "value": {"type": "something.else"}},
    {"@type": "type.googleapis.com/google.protobuf.Struct", "value": {"type": "aap.error", "code": 7}},
    {"@type": 5},
    "a text",
    None,
]
LIMITED = aap("RATE_LIMITED", True, retry_after_ms=30_000)


def rpc(data: Any, code: int = -32000) -> dict[str, Any]:
    return {"code": code, "message": "It failed.", "data": data}


def read(error: Any) -> AAPError:
    found = from_json_rpc(error, RAW)
    assert isinstance(found, AAPError)
    return found


@pytest.mark.parametrize(
    "data",
    [
        LIMITED,
        [LIMITED],
        [{"@type": "https://autoagentprotocol.org/error", **LIMITED}],
        detail(LIMITED),
        [{"value": LIMITED}],
        detail(LIMITED)[1:],
    ],
    ids=["1.1 object", "2.0 draft", "2.0 draft with a type", "3.1", "value alone", "without ErrorInfo"],
)
def test_every_shape_gives_the_same_error(data: Any) -> None:
    error = read(rpc(data))
    assert (error.code, error.retryable, error.retry_after_ms) == ("RATE_LIMITED", True, 30_000)
    assert (error.error_id, error.message, error.created_at) == ("err_1", "It failed.", "2026-11-01T12:00:00Z")
    assert error.received == LIMITED
    assert error.raw is RAW


@pytest.mark.requirement("ERR-A2A-READER-BY-TYPE", "ERR-A2A-READER-IGNORES")
def test_the_payload_is_found_in_any_order_among_any_others() -> None:
    for entries in itertools.permutations([*detail(LIMITED), *OTHERS[:3]]):
        assert read(rpc(list(entries))).retry_after_ms == 30_000
    assert read(rpc([*OTHERS, *detail(LIMITED), *OTHERS])).received == LIMITED


@pytest.mark.requirement("ERR-A2A-READER-VALIDATES", "ERR-SDK-EXTRACT")
@pytest.mark.parametrize(
    "wrong",
    [
        {"retryable": "true"}, {"retryable": None}, {"code": 5}, {"message": None}, {"error_id": 1},
        {"created_at": "yesterday"}, {"type": "aap.errors"},
    ],
)  # fmt: skip
def test_a_payload_that_breaks_its_schema_is_not_trusted(wrong: dict[str, Any]) -> None:
    broken = LIMITED | wrong
    assert aap_error(broken) is None
    error = from_json_rpc(rpc([{"@type": "type.googleapis.com/google.protobuf.Struct", "value": broken}]), RAW)
    assert isinstance(error, A2AError)
    assert error.data[0]["value"] == broken
    assert error.raw is RAW


@pytest.mark.parametrize("missing", ["type", "error_id", "code", "message", "retryable", "created_at"])
def test_a_payload_that_lacks_a_required_member_is_not_trusted(missing: str) -> None:
    assert aap_error({name: value for name, value in LIMITED.items() if name != missing}) is None


@pytest.mark.requirement("ERR-A2A-READER-VALIDATES")
def test_a_broken_payload_does_not_hide_a_good_one() -> None:
    broken = {"@type": "type.googleapis.com/google.protobuf.Struct", "value": LIMITED | {"retryable": 1}}
    assert read(rpc([broken, *detail(LIMITED)])).retryable is True


@pytest.mark.parametrize("code", [*CODES, "A_CODE_OF_TOMORROW"])
def test_every_code_is_read_and_unknown_ones_and_members_survive(code: str) -> None:
    value = aap(code, True, new_detail={"a": [1]}) | {"severity": "high"}
    error = read(rpc(detail(value)))
    assert error.code == code
    assert error.details == {"new_detail": {"a": [1]}}
    assert error.received == value


@pytest.mark.requirement("ERR-OBJECT-DETAILS-OPTIONAL")
def test_an_error_without_details_is_read() -> None:
    assert read(rpc(aap("RATE_LIMITED", True))).retry_after_ms is None


def test_the_problems_of_a_validation_are_read_and_stay_as_they_came_where_they_cannot_be() -> None:
    entry = {"instanceLocation": "/filters/mkae", "keyword": "additionalProperties", "error": "is not known"}
    error = read(rpc(aap("SCHEMA_VALIDATION_FAILED", errors=[entry], hint="Did you mean make?")))
    assert error.problems == (Problem("/filters/mkae", "additionalProperties", "is not known"),)
    assert error.hint == "Did you mean make?"
    for odd in ([entry, "text"], [{**entry, "more": 1}], "text", [{"error": 5}]):
        kept = read(rpc(aap("SCHEMA_VALIDATION_FAILED", errors=odd)))
        assert kept.problems == ()
        assert kept.details["errors"] == odd


@pytest.mark.parametrize("wait", [-1, "30000", True, 10**13, None])
def test_a_wait_that_is_none_is_no_wait(wait: Any) -> None:
    assert read(rpc(aap("RATE_LIMITED", True, retry_after_ms=wait))).retry_after_ms is None


def test_a_wait_with_a_fraction_is_never_shortened() -> None:
    assert read(rpc(aap("RATE_LIMITED", True, retry_after_ms=1000.5))).retry_after_ms == 1001


@pytest.mark.requirement("ERR-SDK-OLDER-ADAPTERS")
def test_an_error_that_lost_its_payload_is_read_from_the_metadata_that_is_left() -> None:
    error = read(rpc(detail(LIMITED)[:1]))
    assert (error.code, error.retryable, error.error_id) == ("RATE_LIMITED", True, "err_1")
    assert error.received is None
    without_code = detail(LIMITED)[0]
    del without_code["metadata"]["code"]
    assert read(rpc([without_code])).code == "RATE_LIMITED"


@pytest.mark.requirement("ERR-SDK-RAW-KEPT")
@pytest.mark.parametrize(
    "data",
    [None, {"a": 1}, [], [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "a2a-protocol.org"}], "text"],
)
def test_an_error_of_the_protocol_is_kept_whole(data: Any) -> None:
    error = from_json_rpc({"code": -32050, "message": "new", "data": data, "more": 1}, RAW)
    assert isinstance(error, A2AError)
    assert error.to_payload() == {"code": -32050, "message": "new", "data": data, "more": 1}
    assert error.raw is RAW


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["type", "value", "@type", "code", "data", "message", "metadata", "domain"]), inner
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_json_comes_it_becomes_an_error(error: Any) -> None:
    assert isinstance(from_json_rpc(error), AAPError | A2AError)
    assert isinstance(from_tool_result({"content": error, "structuredContent": error}), AAPError | TransportError)


@pytest.mark.requirement("ERR-RETRY-200-NO-SUCCESS", "ERR-SDK-MCP-STRUCTURED")
def test_an_mcp_result_is_read_from_its_structure_or_its_text() -> None:
    structured = from_tool_result({"isError": True, "structuredContent": LIMITED, "content": []}, RAW)
    assert isinstance(structured, AAPError)
    assert structured.received == LIMITED
    text = from_tool_result(
        {"isError": True, "content": [{"type": "image"}, {"type": "text", "text": "no JSON"},
                                      {"type": "text", "text": json.dumps(LIMITED)}]}, RAW
    )  # fmt: skip
    assert isinstance(text, AAPError)
    assert (text.received, text.raw) == (LIMITED, RAW)


def test_an_mcp_failure_without_an_aap_error_is_unreadable_and_no_success() -> None:
    error = from_tool_result({"isError": True, "content": [{"type": "text", "text": "boom"}]}, RAW)
    assert isinstance(error, TransportError)
    assert error.kind is FailureKind.UNREADABLE


def test_the_shape_of_details_does_not_spoil_an_error() -> None:
    assert is_readable(LIMITED | {"details": "text"})
    assert not is_readable({"type": "aap.error"})


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, FailureKind.BAD_ENDPOINT), (400, FailureKind.STATUS), (401, FailureKind.AUTH_REQUIRED),
        (403, FailureKind.AUTH_REQUIRED), (429, FailureKind.STATUS), (500, FailureKind.STATUS),
    ],
)  # fmt: skip
def test_a_status_is_what_it_says(status: int, kind: FailureKind) -> None:
    failure = status_failure(Answer("https://x.example.com", status, {"www-authenticate": "Bearer"}, b""))
    assert (failure.kind, failure.status) == (kind, status)
    assert failure.challenge == "Bearer"


@pytest.mark.parametrize(
    ("kind", "body"), [("text/html", b"{}"), ("application/json", b"<html>"), ("application/json", b""), ("", b"NaN")]
)
def test_what_is_no_json_is_unreadable(kind: str, body: bytes) -> None:
    with pytest.raises(TransportError) as caught:
        json_body(Answer("https://x.example.com", 200, {"content-type": kind} if kind else {}, body))
    assert caught.value.kind is FailureKind.UNREADABLE
    assert caught.value.raw is not None


def test_json_of_any_json_media_type_is_read() -> None:
    for kind in ("application/json; charset=utf-8", "application/vnd.autoagent.x+json", "text/plain", ""):
        assert json_body(Answer("https://x.example.com", 200, {"content-type": kind}, b"[1]")) == [1]
