"""The A2A binding: bytes and headers in, a call or one answer out.

Sources: "JSON-RPC 2.0 binding"; "Errors and retries", sections "Protocol-level A2A failures" and "Activation
recovery"; CONTRACTS.md sections 2 and 3.
"""

import json
from typing import Any, Final

import pytest
from tests.binding.exchange import (
    BINDINGS,
    MARK,
    URIS,
    aap_error,
    answered,
    both,
    called,
    checked,
    envelope,
    read,
    refused,
    with_message,
    with_part,
)
from tests.contract.example_requests import request

from forecourt.binding import Answer
from forecourt.binding.a2a import HEADERS, Call
from forecourt.contract import SKILLS
from forecourt.errors import AAPError

# Requests that get through


@both
@pytest.mark.parametrize("skill", SKILLS.values(), ids=SKILLS)
@pytest.mark.requirement(
    "RPC-SEND-MESSAGE-EVERY-SKILL", "RPC-DATA-PART-PACKAGE", "RPC-ENVELOPE-REQUEST-TYPE", "RPC-PROTOJSON-ACCEPT"
)
def test_every_skill_is_called_by_send_message_with_a_data_part(version: str, skill: Any) -> None:
    body = envelope(request(skill.id))
    body["params"]["message"]["parts"][0]["mediaType"] = skill.request_media_type
    body["params"]["configuration"] = {"acceptedOutputModes": [skill.response_media_type]}
    call = called(version, body)
    assert call == Call(7, request(skill.id), skill, None)


MEDIA_TYPES: Final = {
    "dealer.information": "dealer-information",
    "inventory.facets": "inventory-facets",
    "inventory.search": "inventory-search",
    "inventory.vehicle": "vehicle-detail",
    "lead.submit": "lead-submit",
}


@both
@pytest.mark.parametrize(("skill", "name"), MEDIA_TYPES.items())
@pytest.mark.requirement(
    "RPC-ENVELOPE-RESPONSE", "RPC-ENVELOPE-RESPONSE-TYPE", "RPC-ENVELOPE-RESPONSE-MEDIA-TYPE", "RPC-PROTOJSON-EMIT",
    "RPC-MESSAGE-ONLY", "RPC-A2A-UNCHANGED", "RPC-EX-INFORMATION-MEDIA-TYPES", "RPC-EX-FACETS-MEDIA-TYPES",
    "RPC-EX-SEARCH-MEDIA-TYPES", "RPC-EX-VEHICLE-MEDIA-TYPES", "RPC-EX-LEAD-MEDIA-TYPES",
)  # fmt: skip
def test_a_reply_travels_as_one_typed_data_part_of_an_agents_message(version: str, skill: str, name: str) -> None:
    payload = b'{"type":"%s.response","data":{"n":26780}}' % skill.encode()
    call = called(version, envelope(request(skill)))
    answer = BINDINGS[version].write(call, payload)
    assert answer.status == 200
    found = checked(answer)
    assert found["id"] == 7
    message = found["result"].pop("message")
    assert found["result"] == {}
    assert message.pop("messageId")
    if version == "3.1":
        assert message.pop("contextId")
    assert message == {
        "role": "ROLE_AGENT",
        "parts": [
            {
                "data": {"type": f"{skill}.response", "data": {"n": 26780}},
                "mediaType": f"application/vnd.autoagent.{name}-response+json",
            }
        ],
    }
    assert payload in answer.body


@both
@pytest.mark.requirement("RPC-RESPONSE-ID-OWN", "RPC-RESPONSE-ID-DIFFERS")
def test_every_answer_has_a_message_id_of_its_own(version: str) -> None:
    call = called(version, envelope())
    answers = [checked(BINDINGS[version].write(call, b"{}"))["result"]["message"]["messageId"] for _ in range(50)]
    assert len({*answers, "m-1"}) == 51


def test_a_context_id_comes_back_and_a_missing_one_is_made_in_3_1() -> None:
    def context(call: Call) -> str:
        found: str = checked(BINDINGS["3.1"].write(call, b"{}"))["result"]["message"]["contextId"]
        return found

    text = 'c "1" \\ \N{SNOWMAN}'
    assert context(called("3.1", with_message(contextId=text))) == text
    for absent in (envelope(), with_message(contextId=""), with_message(contextId=None)):
        call = called("3.1", absent)
        first, second = context(call), context(call)
        assert first
        assert first != second


def test_messages_of_1_1_have_no_context_id() -> None:
    answer = BINDINGS["1.1"].write(called("1.1", with_message(contextId="c-1")), b"{}")
    assert "contextId" not in checked(answer)["result"]["message"]


@both
def test_the_first_part_with_data_is_the_request_and_text_means_nothing(version: str) -> None:
    wanted = request("inventory.vehicle")
    parts = [{"text": "please"}, {"data": wanted}, {"data": request("dealer.information")}]
    assert called(version, with_message(parts=parts)).payload == wanted


@both
def test_a_type_that_names_no_skill_gets_through_to_the_contract(version: str) -> None:
    payloads: list[Any] = [
        {"type": "vehicle.paint.request"},
        {"type": "inventory.search"},
        {},
        [],
        None,
        5,
        {"type": 1},
    ]
    for payload in payloads:
        body = envelope()
        body["params"]["message"]["parts"][0] = {"data": payload, "mediaType": "text/html"}
        assert called(version, body).skill is None


# Ids


@both
@pytest.mark.parametrize(
    "text",
    ["1", "0", "-1", "1.5", "-0.25", "12345678901234567890123456789012345678901234567890", '""', '"req-1"', "null",
     '"\u2603\\"\\\\"', "18446744073709551616", "-9223372036854775809"],
)  # fmt: skip
def test_any_id_that_json_rpc_allows_comes_back_as_it_was(version: str, text: str) -> None:
    body = json.dumps(envelope()).replace('"id": 7', f'"id": {text}').encode()
    call = called(version, body)
    for answer in (BINDINGS[version].write(call, b"{}"), BINDINGS[version].fail(call.id, AAPError("RATE_LIMITED"))):
        found = checked(answer)
        assert found["id"] == json.loads(text)
        assert type(found["id"]) is type(json.loads(text))


@both
@pytest.mark.parametrize("found", [True, False, [], {}, [1], {"id": 1}])
def test_an_id_of_another_type_is_an_invalid_request_and_answered_with_null(version: str, found: Any) -> None:
    answer = answered(version, envelope(id=found))
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)


@both
@pytest.mark.parametrize("found", [1, "a", 2.5, None])
def test_an_error_before_the_skill_has_the_id_as_well(version: str, found: Any) -> None:
    assert answered(version, envelope(id=found, method="GetTask"))["id"] == found


# Notifications


@both
@pytest.mark.parametrize(
    "changes",
    [{}, {"method": "GetTask"}, {"method": "nonsense"}, {"params": None}, {"params": {}}, {"params": {"message": {}}}],
)
def test_a_notification_gets_no_content_and_runs_nothing(version: str, changes: dict[str, Any]) -> None:
    body = envelope(request("lead.submit"), **changes)
    del body["id"]
    assert read(version, body) == Answer(204, (), b"")


@both
def test_a_notification_with_headers_that_are_refused_gets_no_content_either(version: str) -> None:
    body = envelope()
    del body["id"]
    assert read(version, body, {b"a2a-version": "0.3"}) == Answer(204, (), b"")


@both
@pytest.mark.parametrize("changes", [{"jsonrpc": "1.0"}, {"jsonrpc": None}, {"method": 5}])
def test_an_object_without_an_id_that_is_no_request_is_told_so(version: str, changes: dict[str, Any]) -> None:
    body = envelope(**changes)
    del body["id"]
    answer = answered(version, body)
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)


# Malformed input


@both
@pytest.mark.requirement("ERR-PROTOCOL-MALFORMED", "ERR-INTRO-PROTOCOL-OWN-FORM", "ERR-PROTOCOL-NO-PRETENCE")
@pytest.mark.parametrize(
    ("body", "number"),
    [
        (b"", -32700),
        (b"   ", -32700),
        (b'{"jsonrpc":"2.0","id":1,', -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 10_000 + b"]" * 10_000, -32700),
        (b'{"jsonrpc":"2.0","id":1,"id":2}', -32700),
        (b'{"id":NaN}', -32700),
        (b"<html>", -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"SendMessage"}]', -32600),
        (b"null", -32600),
        (b"5", -32600),
        (b'"SendMessage"', -32600),
        (b"{}", -32600),
        (b'{"id":1,"method":"SendMessage"}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"SendMessage"}', -32600),
        (b'{"jsonrpc":2.0,"id":1,"method":"SendMessage"}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":null}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"SendMessage"}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":5}}', -32602),
    ],
)
def test_malformed_input_is_a_protocol_error(version: str, body: bytes, number: int) -> None:
    found, message, _ = refused(version, body)
    assert found == number
    assert message
    if number == -32700:
        assert answered(version, body)["id"] is None
        assert message.startswith("Parse error: ")


@both
@pytest.mark.parametrize(
    "changes",
    [
        {"role": "user"}, {"role": "ROLE_AGENT"}, {"role": None}, {"messageId": ""}, {"messageId": 5},
        {"messageId": None}, {"parts": []}, {"parts": {}}, {"parts": [5]}, {"contextId": 5},
    ],
)  # fmt: skip
def test_a_message_that_is_not_one_is_invalid_params(version: str, changes: dict[str, Any]) -> None:
    assert refused(version, with_message(**changes))[0] == -32602


@both
def test_a_message_without_a_data_part_is_a_schema_failure_that_names_the_place(version: str) -> None:
    answer = answered(version, with_message(parts=[{"text": MARK}]))
    assert answer["error"]["code"] == -32602
    payload = aap_error(version, answer["error"])
    assert payload["code"] == "SCHEMA_VALIDATION_FAILED"
    assert "params.message.parts" in payload["message"]
    assert [entry["keyword"] for entry in payload["details"]["errors"]] == ["required"]
    assert MARK not in json.dumps(answer, ensure_ascii=False)


@both
@pytest.mark.requirement("RPC-POST-JSON")
@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        " application/json ; charset=utf8",
    ],
)
def test_json_in_utf_8_is_read(version: str, content_type: str) -> None:
    assert called(version, envelope(), {b"content-type": content_type})


@both
@pytest.mark.requirement("RPC-POST-JSON")
@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "application/json; charset=latin-1", "application/json; boundary=x",
     "application/x-www-form-urlencoded", "application/jsonp", "application/json,text/html"],
)  # fmt: skip
def test_another_content_type_is_not_supported(version: str, content_type: str | None) -> None:
    headers = {} if content_type is None else {b"content-type": content_type}
    outcome = BINDINGS[version].read(json.dumps(envelope()).encode(), headers)
    assert isinstance(outcome, Answer)
    error = checked(outcome)["error"]
    assert (error["code"], error["data"][0]["reason"]) == (-32005, "CONTENT_TYPE_NOT_SUPPORTED")


@both
@pytest.mark.parametrize(
    ("method", "number", "reason"),
    [
        ("SendStreamingMessage", -32004, "UNSUPPORTED_OPERATION"),
        ("SubscribeToTask", -32004, "UNSUPPORTED_OPERATION"),
        ("GetTask", -32004, "UNSUPPORTED_OPERATION"),
        ("ListTasks", -32004, "UNSUPPORTED_OPERATION"),
        ("CancelTask", -32004, "UNSUPPORTED_OPERATION"),
        ("GetExtendedAgentCard", -32004, "UNSUPPORTED_OPERATION"),
        ("CreateTaskPushNotificationConfig", -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ("GetTaskPushNotificationConfig", -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ("ListTaskPushNotificationConfigs", -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ("DeleteTaskPushNotificationConfig", -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        ("message/send", -32601, None),
        ("sendmessage", -32601, None),
        (MARK, -32601, None),
    ],
)
def test_other_methods_are_refused_by_their_numbers(version: str, method: str, number: int, reason: str | None) -> None:
    found, message, why = refused(version, envelope(method=method))
    assert (found, why) == (number, reason)
    assert "SendMessage" in message or method == "GetExtendedAgentCard"
    assert MARK not in message


# Versions and activation (CONTRACTS.md section 2)


@both
@pytest.mark.parametrize("header", ["1.0", "1.0.0", "1.0.17", " 1.0 "])
def test_a2a_1_0_is_served(version: str, header: str) -> None:
    assert called(version, envelope(), {b"a2a-version": header})


@both
@pytest.mark.parametrize("header", ["", "0.3", "1", "1.1", "2.0", "1.0.x", "v1.0", "1.0,1.0", MARK])
def test_another_a2a_version_is_refused_and_told_what_to_send(version: str, header: str) -> None:
    number, message, reason = refused(version, envelope(), {b"a2a-version": header})
    assert (number, reason) == (-32009, "VERSION_NOT_SUPPORTED")
    assert "A2A-Version: 1.0" in message
    assert ("0.3" in message) == (header == "")
    assert MARK not in message


@pytest.mark.parametrize(
    "header", [URIS["3.1"], f"https://example.com/x, {URIS['3.1']}", f"{URIS['3.1']},{URIS['1.1']}"]
)
def test_a_list_that_names_the_contract_activates_it_and_is_echoed(header: str) -> None:
    call = called("3.1", envelope(), {b"a2a-extensions": header})
    for answer in (BINDINGS["3.1"].write(call, b"{}"), BINDINGS["3.1"].fail(1, AAPError("RATE_LIMITED"))):
        assert (b"a2a-extensions", URIS["3.1"].encode()) in answer.headers


def test_without_the_header_the_contract_of_the_endpoint_is_in_force() -> None:
    answer = BINDINGS["3.1"].write(called("3.1", envelope()), b"{}")
    assert (b"a2a-extensions", URIS["3.1"].encode()) in answer.headers


@pytest.mark.requirement(
    "ERR-ACTIVATION-EXAMPLE", "ERR-ACTIVATION-HEADER-CONFLICT", "ERR-ACTIVATION-BEFORE-SKILL",
    "ERR-ACTIVATION-ENFORCED", "ERR-A2A-FAILURE-NO-AAP-ERROR",
)  # fmt: skip
@pytest.mark.parametrize(
    "header", ["", URIS["1.1"], "https://example.com/x", URIS["3.1"] + "/", URIS["3.1"].upper(), f"{MARK}, x"]
)
def test_a_list_without_the_contract_is_refused_like_the_example(header: str) -> None:
    body = envelope({"type": "no.such.request"}, id="req-3")
    assert answered("3.1", body, {b"a2a-extensions": header}) == {
        "jsonrpc": "2.0",
        "id": "req-3",
        "error": {
            "code": -32008,
            "message": f"Activate the supported extension with A2A-Extensions: {URIS['3.1']}",
            "data": [
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "EXTENSION_SUPPORT_REQUIRED",
                    "domain": "a2a-protocol.org",
                    "metadata": {"extensionUri": URIS["3.1"], "requiredHeader": "A2A-Extensions"},
                }
            ],
        },
    }


def test_the_old_header_activates_nothing_and_an_error_beside_it_says_so() -> None:
    old = {b"x-a2a-extensions": URIS["3.1"]}
    assert called("3.1", envelope(), old)
    number, message, _ = refused("3.1", envelope(), {**old, b"a2a-extensions": "https://example.com/x"})
    assert number == -32008
    assert "X-A2A-Extensions" in message


def test_1_1_asks_for_no_activation() -> None:
    for header in ("", URIS["3.1"], "https://example.com/x"):
        assert called("1.1", envelope(), {b"a2a-extensions": header})


def test_the_binding_names_the_headers_that_it_reads() -> None:
    assert sorted(HEADERS) == [b"a2a-extensions", b"a2a-version", b"content-type", b"x-a2a-extensions"]


# Media types and output modes (CONTRACTS.md section 3)


@both
@pytest.mark.parametrize(
    "media_type",
    ["application/vnd.autoagent.dealer-information-request+json", "application/json", "Application/Json; x=1", None],
)
def test_the_skills_own_media_type_and_plain_json_are_read(version: str, media_type: str | None) -> None:
    assert called(version, with_part(mediaType=media_type))


@both
@pytest.mark.parametrize(
    "media_type", ["text/plain", "", "application/vnd.autoagent.lead-submit-request+json", 5, [], MARK]
)
def test_another_media_type_is_refused(version: str, media_type: Any) -> None:
    number, message, reason = refused(version, with_part(mediaType=media_type))
    assert (number, reason) == (-32005, "CONTENT_TYPE_NOT_SUPPORTED")
    assert MARK not in message


@both
@pytest.mark.parametrize(
    ("modes", "number"),
    [
        (None, None),
        ([], None),
        (["application/vnd.autoagent.dealer-information-response+json"], None),
        (["text/html", "application/json"], None),
        (["*/*"], None),
        (["application/*"], None),
        (["text/html"], -32005),
        (["application/vnd.autoagent.lead-submit-response+json", "image/*"], -32005),
        ("application/json", -32602),
        ([5], -32602),
    ],
)
def test_output_modes_are_alternatives(version: str, modes: Any, number: int | None) -> None:
    body = envelope()
    body["params"]["configuration"] = {"acceptedOutputModes": modes}
    if number is None:
        assert called(version, body)
    else:
        assert refused(version, body)[0] == number
