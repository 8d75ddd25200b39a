"""MCP messages: JSON-RPC 2.0, and what a request that stands alone says of itself (MCP 2026-07-28)."""

from typing import Any

import pytest
from tests.binding.mcp.talk import META, SINGLE, handshake, single, single_headers

from forecourt.binding.mcp.request import (
    ProtocolError,
    Request,
    check_single,
    is_single,
    read_request,
    request_headers,
)


@pytest.mark.parametrize("id", [0, -1, 2**70, "", "abc", "\N{SNOWMAN}"])
@pytest.mark.parametrize("alone", [True, False])
def test_a_request_is_read_with_its_id(id: Any, alone: bool) -> None:  # noqa: A002
    message = handshake("tools/list", {"cursor": "x"}, id=id)
    assert read_request(message, single=alone) == Request(id, "tools/list", {"cursor": "x"}, alone)


def test_params_that_are_absent_or_null_are_none() -> None:
    assert read_request(handshake("ping"), single=False) == Request(7, "ping", {}, False)
    assert read_request({**handshake("ping"), "params": None}, single=False) == Request(7, "ping", {}, False)


@pytest.mark.parametrize("alone", [True, False])
def test_a_notification_gets_no_answer(alone: bool) -> None:
    assert read_request(handshake("notifications/cancelled", {"requestId": 1}, id=...), single=alone) is None


@pytest.mark.parametrize("outcome", ["result", "error"])
def test_a_response_gets_no_answer_in_the_older_revisions_and_is_refused_in_the_newer(outcome: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, outcome: {}}
    assert read_request(message, single=False) is None
    with pytest.raises(ProtocolError) as raised:
        read_request(message, single=True)
    assert raised.value.code == -32600


@pytest.mark.parametrize(
    "message",
    [
        None, 7, "x", [], [handshake("ping")], {}, handshake("ping", jsonrpc="1.0"), handshake("ping", jsonrpc=...),
        handshake("ping", method=7), handshake("ping", method=...), handshake("ping", id=None),
        handshake("ping", id=True), handshake("ping", id=1.5), handshake("ping", id=[]), handshake("ping", params=[]),
        handshake("ping", params="x"), handshake("ping", params=0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("alone", [True, False])
def test_what_is_no_request_is_told_so(message: Any, alone: bool) -> None:
    with pytest.raises(ProtocolError) as raised:
        read_request(message, single=alone)
    assert raised.value.code == -32600


@pytest.mark.parametrize(
    ("version", "message", "alone"),
    [
        ("2026-07-28", handshake("ping"), True),
        ("2099-01-01", handshake("ping"), True),
        ("", handshake("ping"), True),
        ("2025-11-25", single("ping"), False),
        ("2024-11-05", handshake("ping"), False),
        (None, handshake("ping"), False),
        (None, single("ping"), True),
        (None, handshake("ping", {"_meta": {"progressToken": 1}}), False),
        (None, handshake("ping", {"_meta": None}), False),
        (None, handshake("ping", []), False),
        (None, [], False),
    ],
)
def test_the_header_tells_how_a_message_came_and_without_one_the_message(
    version: str | None, message: Any, alone: bool
) -> None:
    assert is_single(message, version) is alone


def test_a_request_is_held_against_its_headers() -> None:
    message = single("tools/call", {"name": "aap_lead_submit"})
    request = read_request(message, single=True)
    assert request is not None
    check_single(request, single_headers(message))
    check_single(request, {**single_headers(message), b"mcp-name": "=?base64?YWFwX2xlYWRfc3VibWl0?="})
    for name, value in (
        (b"mcp-protocol-version", "2025-11-25"),
        (b"mcp-method", "tools/list"),
        (b"mcp-method", "tools/call,tools/call"),
        (b"mcp-name", "aap_inventory_search"),
        (b"mcp-name", "AAP_LEAD_SUBMIT"),
    ):
        with pytest.raises(ProtocolError) as raised:
            check_single(request, {**single_headers(message), name: value})
        assert raised.value.code == -32020
    for name in (b"mcp-protocol-version", b"mcp-method", b"mcp-name"):
        headers = {key: value for key, value in single_headers(message).items() if key != name}
        with pytest.raises(ProtocolError) as raised:
            check_single(request, headers)
        assert raised.value.code == -32020


def test_an_absent_header_does_not_equal_a_revision_that_is_null() -> None:
    meta = {**META, "io.modelcontextprotocol/protocolVersion": None}
    with pytest.raises(ProtocolError) as raised:
        check_single(Request(1, "tools/list", {"_meta": meta}, True), {b"mcp-method": "tools/list"})
    assert raised.value.code == -32020


def test_a_request_without_headers_is_held_against_itself_alone() -> None:
    request = read_request(single("tools/list"), single=True)
    assert request is not None
    check_single(request, None)


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        (None, -32602),
        ([], -32602),
        ({}, -32602),
        ({**META, "io.modelcontextprotocol/protocolVersion": None}, -32602),
        ({**META, "io.modelcontextprotocol/protocolVersion": 7}, -32602),
        ({**META, "io.modelcontextprotocol/protocolVersion": "2025-11-25"}, -32022),
        ({**META, "io.modelcontextprotocol/clientCapabilities": None}, -32602),
        ({**META, "io.modelcontextprotocol/clientInfo": {"name": "x"}}, -32602),
        ({**META, "io.modelcontextprotocol/clientInfo": []}, -32602),
    ],
)
def test_what_a_request_says_of_itself_must_be_whole(meta: Any, code: int) -> None:
    with pytest.raises(ProtocolError) as raised:
        check_single(Request(1, "tools/list", {"_meta": meta}, True), None)
    assert raised.value.code == code
    if code == -32022:
        assert raised.value.data == {"supported": [SINGLE], "requested": "2025-11-25"}


def test_a_revision_that_is_no_revision_comes_back_no_longer_than_one_needs() -> None:
    long = {**META, "io.modelcontextprotocol/protocolVersion": "x" * 10_000}
    with pytest.raises(ProtocolError) as raised:
        check_single(Request(1, "tools/list", {"_meta": long}, True), None)
    assert len(raised.value.data["requested"]) == 64


def test_a_client_sends_the_headers_that_its_message_needs() -> None:
    message = single("resources/read", {"uri": "aap://dealer/größe"})
    assert request_headers(message) == {
        "MCP-Protocol-Version": SINGLE,
        "Mcp-Method": "resources/read",
        "Mcp-Name": "=?base64?YWFwOi8vZGVhbGVyL2dyw7bDn2U=?=",
    }
    assert request_headers(single("tools/list")) == {"MCP-Protocol-Version": SINGLE, "Mcp-Method": "tools/list"}


@pytest.mark.parametrize(
    "message",
    [
        None, [], "x", {}, handshake("tools/call", {"name": "x"}), single("ping", method=...), single("ping", method=7),
        single("ping", method=[]), handshake("ping", {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": 7}}),
    ],
)  # fmt: skip
def test_a_message_that_does_not_say_its_revision_needs_no_headers(message: Any) -> None:
    assert request_headers(message) == {}
