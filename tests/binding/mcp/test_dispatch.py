"""The MCP binding: a message in, a call or one answer out ("Errors and retries", section "Three envelopes"; MCP).

That whole answers are those of the official SDK, in every revision, tests/interop/test_mcp_sdk_server.py shows.
"""

import json
from typing import Any, Final

import pytest
from tests.binding.mcp.talk import (
    BINDINGS,
    HEADERS,
    NETWORK,
    SINGLE,
    ask,
    call,
    called,
    checked,
    error,
    handshake,
    result,
    single,
)
from tests.contract.example_requests import VERSIONS, contract, request

from forecourt.binding import Answer
from forecourt.binding.mcp import MCPBinding, Toolbox, tool_name
from forecourt.contract import SKILLS
from forecourt.errors import CODES, AAPError, Problem

both = pytest.mark.parametrize("version", VERSIONS)
MARK: Final = "\N{SNOWMAN}mark"
SEARCH: Final = "aap_inventory_search"


# Calls


@both
@pytest.mark.parametrize("skill", SKILLS.values(), ids=SKILLS)
def test_a_tool_calls_its_skill_with_or_without_the_type(skill: Any, version: str) -> None:
    payload = request(skill.id)
    bare = {name: value for name, value in payload.items() if name != "type"}
    for arguments in (payload, bare):
        assert called(version, call(tool_name(skill.id), arguments)).payload == payload
        alone = single("tools/call", {"name": tool_name(skill.id), "arguments": arguments})
        assert called(version, alone).payload == payload
        assert called(version, alone).single


@both
@pytest.mark.parametrize("arguments", [..., None, {}, "{}"])
def test_a_call_without_arguments_has_none(arguments: Any, version: str) -> None:
    assert called(version, call("aap_dealer_information", arguments)).payload == {"type": "dealer.information.request"}


def test_arguments_that_came_as_text_are_read() -> None:
    payload = called("3.1", call(SEARCH, {"filters": '{"make": "[\\"Kia\\"]"}'})).payload
    assert payload == {"type": "inventory.search.request", "filters": {"make": ["Kia"]}}


@both
def test_one_tool_never_does_what_another_is_for(version: str) -> None:
    """A host that lets a model search freely, and asks before each lead, must not be led around."""
    answer = ask(version, call(SEARCH, request("lead.submit")))
    told = checked(answer)["result"]
    assert told["isError"] is True
    assert told["structuredContent"]["code"] == "SCHEMA_VALIDATION_FAILED"
    problems = {
        (problem["instanceLocation"], problem["keyword"]) for problem in told["structuredContent"]["details"]["errors"]
    }
    assert ("/type", "const") in problems


@both
@pytest.mark.parametrize("kind", ["vehicle.reserve.request", "inventory.search.response", "", 7, None])
def test_a_type_of_no_skill_is_left_to_the_contract(kind: Any, version: str) -> None:
    assert called(version, call(SEARCH, {"type": kind})).payload == {"type": kind}


@both
@pytest.mark.requirement("ERR-PROTOCOL-UNKNOWN-TOOL")
@pytest.mark.parametrize("name", ["aap_vehicle_reserve", "", "AAP_INVENTORY_SEARCH", MARK, 7, None, [], {}])
def test_a_tool_that_is_not_here_is_a_failure_of_the_protocol(name: Any, version: str) -> None:
    answer = ask(version, call(name))
    assert error(answer) == (200, -32602)
    assert "aap.error" not in str(checked(answer))
    assert MARK not in str(checked(answer))


@both
@pytest.mark.parametrize("arguments", [[1], 7, True, "text", "[1]", '"{}"', "{"])
def test_arguments_that_are_no_object_are_malformed(arguments: Any, version: str) -> None:
    assert error(ask(version, call(SEARCH, arguments))) == (200, -32602)
    alone = single("tools/call", {"name": SEARCH, "arguments": arguments})
    assert error(ask(version, alone)) == (400, -32602)


# Results


@both
@pytest.mark.parametrize("alone", [True, False])
def test_a_response_stands_in_the_result_twice_letter_by_letter(alone: bool, version: str) -> None:
    params = {"name": SEARCH}
    got = called(version, single("tools/call", params) if alone else handshake("tools/call", params))
    payload = '{"type":"inventory.search.response","data":{"note":"“\\u2028\\"\\\\é\\n”","n":26780}}'.encode()
    answer = BINDINGS[version].write(got, payload[:20], payload[20:])
    shown = checked(answer)["result"]
    assert (answer.status, shown["isError"]) == (200, False)
    assert shown["content"] == [{"type": "text", "text": payload.decode()}]
    assert b'"structuredContent":' + payload + b"," in answer.body
    assert ("resultType" in shown, "_meta" in shown) == (alone, alone)


@both
@pytest.mark.parametrize("code", CODES)
@pytest.mark.requirement("ERR-ENVELOPE-MCP", "ERR-CODE-MCP-TYPED")
def test_every_code_is_a_completed_result_with_the_object_in_it_twice(code: str, version: str) -> None:
    failure = AAPError(code, problems=[Problem("/filters/make", "type", "must be an array")])
    answer = BINDINGS[version].fail(called(version, call(SEARCH)), failure)
    told = checked(answer)
    assert answer.status == 200
    assert told["id"] == 7
    assert told["result"]["isError"] is True
    assert told["result"]["structuredContent"] == contract(version).write_error(failure)
    (content,) = told["result"]["content"]
    assert content["type"] == "text"
    assert json.loads(content["text"]) == told["result"]["structuredContent"]
    # The code travels in words alone: no number stands for it.
    assert "error" not in told


def test_a_broken_reading_is_told_by_its_error_id_alone() -> None:
    failure = AAPError("INTERNAL_ERROR")
    told = checked(BINDINGS["3.1"].broken(failure))
    assert told["error"] == {"code": -32603, "message": failure.message, "data": {"error_id": failure.error_id}}


# Resources


def test_a_profile_is_read_by_its_skill_and_comes_back_as_text() -> None:
    message = single("resources/read", {"uri": "aap://dealer/profile"})
    got = called("3.1", message)
    assert got.payload == {"type": "dealer.information.request"}
    shown = checked(BINDINGS["3.1"].write(got, b'{"a":', b'"b"}'))["result"]
    assert shown["contents"] == [{"uri": "aap://dealer/profile", "mimeType": "application/json", "text": '{"a":"b"}'}]
    assert (shown["ttlMs"], shown["cacheScope"]) == (60_000, "public")


def test_a_profile_that_cannot_be_had_is_a_failure_of_the_protocol_with_the_error_in_it() -> None:
    got = called("3.1", handshake("resources/read", {"uri": "aap://dealer/profile"}))
    failure = AAPError("RATE_LIMITED", retry_after_ms=5)
    told = checked(BINDINGS["3.1"].fail(got, failure))["error"]
    assert (told["code"], told["data"]["code"], told["data"]["details"]["retry_after_ms"]) == (
        -32603,
        "RATE_LIMITED",
        5,
    )


def test_a_network_gives_the_profile_of_a_seller() -> None:
    binding = MCPBinding(Toolbox(contract("3.1")), NETWORK)
    uri = "aap://dealers/north/profile"
    assert called("3.1", handshake("resources/read", {"uri": uri}), binding=binding).payload == {
        "type": "dealer.information.request",
        "dealer_id": "north",
    }
    assert "aap://dealers" in str(result("3.1", handshake("resources/list"), binding))


@pytest.mark.parametrize("uri", ["aap://nothing", MARK, "file:///etc/passwd", "../../etc/passwd"])
def test_an_address_of_nothing_is_not_found_and_not_repeated(uri: str) -> None:
    older = ask("3.1", handshake("resources/read", {"uri": uri}))
    assert error(older) == (200, -32002)
    newer = BINDINGS["3.1"].read(json.dumps(single("resources/read", {"uri": uri})).encode(), None)
    assert error(newer) == (400, -32602)
    assert uri not in str(checked(older)) + str(checked(newer))


# HTTP


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({b"content-type": "text/plain"}, 415),
        ({b"content-type": ""}, 415),
        ({b"accept": "text/event-stream"}, 406),
        ({b"accept": "text/html"}, 406),
    ],
)
def test_a_type_that_is_not_spoken_is_refused_with_a_reason(headers: dict[bytes, str], status: int) -> None:
    answer = ask("3.1", handshake("ping"), {**HEADERS, **headers})
    assert error(answer) == (status, -32600)
    assert checked(answer)["id"] is None


@pytest.mark.parametrize(
    "body", [b"", b" ", b"{", b"nan", b"\xff", b'{"a":1,"a":1}', b"[" * 1000, b'{"jsonrpc":"2.0"} x', b"1e999"]
)
@pytest.mark.parametrize("headers", [HEADERS, {**HEADERS, b"mcp-protocol-version": SINGLE}, None])
def test_what_is_no_json_is_a_parse_error(headers: Any, body: bytes) -> None:
    answer = BINDINGS["3.1"].read(body, headers)
    assert error(answer) == (400, -32700)
    assert checked(answer)["id"] is None


def test_a_message_that_wants_no_answer_gets_none() -> None:
    for message in (handshake("notifications/initialized", id=...), {"jsonrpc": "2.0", "id": 1, "result": {}}):
        assert ask("3.1", message, HEADERS) == Answer(202, (), b"")


@both
def test_a_notification_runs_no_tool(version: str) -> None:
    for headers in (HEADERS, {**HEADERS, b"mcp-protocol-version": SINGLE, b"mcp-method": "tools/call"}):
        message = call("aap_lead_submit", request("lead.submit"))
        del message["id"]
        assert ask(version, message, headers) == Answer(202, (), b"")


def test_a_header_that_came_twice_fits_nothing() -> None:
    message = single("tools/list")
    headers = {**HEADERS, b"mcp-protocol-version": SINGLE, b"mcp-method": "tools/list,tools/list"}
    assert error(ask("3.1", message, headers)) == (400, -32020)


def test_without_headers_a_message_says_itself_what_it_is() -> None:
    alone = BINDINGS["3.1"].read(json.dumps(single("server/discover")).encode(), None)
    assert checked(alone)["result"]["supportedVersions"] == [SINGLE]
    older = BINDINGS["3.1"].read(json.dumps(handshake("ping")).encode(), None)
    assert checked(older)["result"] == {}


@pytest.mark.parametrize(
    "method", ["tools/mend", MARK, "", "initialize ", "completion/complete", "subscriptions/listen"]
)
def test_a_method_that_is_not_here_is_not_found_and_not_repeated(method: str) -> None:
    older = ask("3.1", handshake(method))
    assert error(older) == (200, -32601)
    newer = BINDINGS["3.1"].read(json.dumps(single(method)).encode(), None)
    assert error(newer) == (404, -32601)
    assert MARK not in str(checked(older)) + str(checked(newer))


@pytest.mark.parametrize("id", [2**80, -1, "", "a\N{SNOWMAN}\u2028"])
def test_an_id_comes_back_as_it_was(id: Any) -> None:  # noqa: A002
    assert checked(ask("3.1", handshake("ping", id=id)))["id"] == id


def test_lists_may_be_kept_and_say_so() -> None:
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover"):
        shown = result("3.1", single(method))
        assert (shown["ttlMs"], shown["cacheScope"], shown["resultType"]) == (300_000, "public", "complete")
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        assert len(result("3.1", handshake(method))) == 1


@pytest.mark.parametrize("cursor", ["", "x", 7, {}])
def test_there_is_no_second_page_of_a_list(cursor: Any) -> None:
    assert error(ask("3.1", handshake("tools/list", {"cursor": cursor}))) == (200, -32602)
