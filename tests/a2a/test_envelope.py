"""`forecourt.a2a.envelope`: the JSON-RPC binding of A2A v1.0 (section 9) for one method, `SendMessage`."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecourt.a2a import A2AError, ErrorCode, envelope

MEDIA_TYPE = "application/vnd.autoagent.inventory-search-request+json"
EXTENSION = "https://autoagentprotocol.org/extensions/aap/v3.1"
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def _request(**changes: Any) -> dict[str, Any]:
    message = envelope.user_message("m-1", [envelope.data_part({"type": "dealer.information.request"})])
    return envelope.request("req-1", message) | changes


def _with_message(**changes: Any) -> dict[str, Any]:
    request = _request()
    request["params"]["message"] |= changes
    return request


def _refusal(payload: object) -> A2AError:
    with pytest.raises(A2AError) as caught:
        envelope.read_request(payload)
    return caught.value


# -- building


@pytest.mark.requirement("RPC-ENVELOPE-REQUEST")
def test_a_request_has_the_form_of_the_generic_envelope() -> None:
    message = envelope.user_message("01HZ9F4M7C", [envelope.data_part({"type": "x.request"}, MEDIA_TYPE)])
    assert envelope.request("req-1", message, accepted_output_modes=["application/json"]) == {
        "jsonrpc": "2.0",
        "id": "req-1",
        "method": "SendMessage",
        "params": {
            "message": {
                "messageId": "01HZ9F4M7C",
                "role": "ROLE_USER",
                "parts": [{"data": {"type": "x.request"}, "mediaType": MEDIA_TYPE}],
            },
            "configuration": {"acceptedOutputModes": ["application/json"]},
        },
    }


@pytest.mark.requirement(
    "RPC-WIRE-ROLE",
    "RPC-WIRE-RESULT",
    "RPC-WIRE-MESSAGE",
    "RPC-WIRE-PART",
    "RPC-WIRE-MESSAGE-ID",
    "RPC-ENVELOPE-RESULT-WRAPPED",
)
def test_an_answer_wraps_the_agents_message_under_result() -> None:
    message = envelope.agent_message("m-2", [envelope.data_part({"type": "x.response"})], context_id="c-1")
    assert envelope.result(7, message) == {
        "jsonrpc": "2.0",
        "id": 7,
        "result": {
            "message": {
                "messageId": "m-2",
                "role": "ROLE_AGENT",
                "parts": [{"data": {"type": "x.response"}}],
                "contextId": "c-1",
            }
        },
    }


@pytest.mark.requirement("A2A-ERROR-INFO-EVERY-A2A-CODE", "ERR-A2A-FAILURE-STANDARD-DATA")
@pytest.mark.parametrize("code", [code for code in ErrorCode if code.reason])
def test_an_a2a_error_travels_with_its_error_info(code: ErrorCode) -> None:
    failure = A2AError(code, "x")
    assert envelope.error("req-1", failure) == {
        "jsonrpc": "2.0",
        "id": "req-1",
        "error": {"code": code, "message": "x", "data": failure.error_info_data()},
    }


@pytest.mark.requirement("A2A-TO-SERVER-ERROR")
@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (A2AError.invalid_params("No"), {"code": -32602, "message": "No"}),
        (A2AError.with_data(-32050, "Odd", {"a": [1]}), {"code": -32050, "message": "Odd", "data": {"a": [1]}}),
    ],
)
def test_an_error_that_is_raised_becomes_the_answer_with_its_code_message_and_data(
    failure: A2AError, error: dict[str, Any]
) -> None:
    with pytest.raises(A2AError) as raised:
        raise failure
    answer = json.loads(json.dumps(envelope.error("req-1", raised.value)))
    assert answer == {"jsonrpc": "2.0", "id": "req-1", "error": error}
    with pytest.raises(A2AError) as received:
        envelope.read_response(answer, "req-1")
    assert received.value == failure


def test_a_plain_error_travels_bare_and_data_of_ones_own_stays() -> None:
    assert envelope.error(None, A2AError.parse_error())["error"] == {"code": -32700, "message": "Parse error"}
    own = A2AError.with_data(ErrorCode.TASK_NOT_FOUND, "x", [{"@type": "own"}])
    assert envelope.error(1, own)["error"]["data"] == [{"@type": "own"}]


def test_an_error_envelope_holds_no_private_key() -> None:
    answer = envelope.error(1, A2AError.stream_lagged(7))
    assert set(answer["error"]) == {"code", "message"}


# -- reading a request


@pytest.mark.requirement("RPC-ENVELOPE-REQUEST", "RPC-ID-UNCONSTRAINED")
@pytest.mark.parametrize("id_", ["req-1", "", 0, -7, 1.5, None])
def test_a_request_with_an_allowed_id_is_read(id_: object) -> None:
    request = _request(id=id_)
    assert envelope.read_request(request) is request["params"]
    assert envelope.request_id(request) == id_
    assert envelope.result(envelope.request_id(request), {"messageId": "m-2"})["id"] == id_
    assert not envelope.is_notification(request)


def test_a_request_without_an_id_is_a_notification() -> None:
    request = _request()
    del request["id"]
    assert envelope.read_request(request)
    assert envelope.is_notification(request)
    assert envelope.request_id(request) is None


@pytest.mark.parametrize("id_", [True, False, [], {}, ["req-1"]])
def test_an_id_of_another_type_is_an_invalid_request_answered_with_null(id_: object) -> None:
    request = _request(id=id_)
    assert _refusal(request).code == -32600
    assert envelope.request_id(request) is None


@pytest.mark.parametrize("payload", [None, True, 1, "SendMessage", [], [_request()], [1, 2]])
def test_what_is_no_single_request_object_is_an_invalid_request(payload: object) -> None:
    assert _refusal(payload).code == -32600
    assert envelope.request_id(payload) is None
    assert not envelope.is_notification(payload)


def test_a_batch_is_told_that_batches_are_not_supported() -> None:
    assert "Batches" in _refusal([_request()]).message


@pytest.mark.parametrize("version", ["1.0", "2", 2.0, None, ["2.0"]])
def test_another_jsonrpc_version_is_an_invalid_request(version: object) -> None:
    assert _refusal(_request(jsonrpc=version)).code == -32600


@pytest.mark.parametrize("method", [None, 7, [], {}, True])
def test_a_method_that_is_no_string_is_an_invalid_request(method: object) -> None:
    assert _refusal(_request(method=method)).code == -32600


@pytest.mark.parametrize("missing", ["jsonrpc", "method"])
def test_a_missing_jsonrpc_or_method_is_an_invalid_request(missing: str) -> None:
    request = _request()
    del request[missing]
    assert _refusal(request).code == -32600


@pytest.mark.requirement("ERR-A2A-OPERATION", "RPC-OPTIONAL-NOT-NEEDED")
@pytest.mark.parametrize(
    "method",
    ["SendStreamingMessage", "SubscribeToTask", "GetTask", "ListTasks", "CancelTask", "GetExtendedAgentCard"],
)
def test_the_other_operations_of_a2a_are_unsupported(method: str) -> None:
    failure = _refusal(_request(method=method))
    assert failure.code == -32004
    assert failure.data[0]["reason"] == "UNSUPPORTED_OPERATION"


@pytest.mark.requirement("ERR-A2A-PUSH", "RPC-OPTIONAL-NOT-NEEDED")
@pytest.mark.parametrize(
    "method",
    [
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
    ],
)
def test_push_notification_operations_are_not_supported(method: str) -> None:
    failure = _refusal(_request(method=method))
    assert failure.code == -32003
    assert failure.data[0]["reason"] == "PUSH_NOTIFICATION_NOT_SUPPORTED"


@pytest.mark.requirement("RPC-WIRE-METHOD")
@pytest.mark.parametrize(
    "method",
    [
        "message/send",
        "message/stream",
        "tasks/get",
        "tasks/list",
        "tasks/cancel",
        "tasks/resubscribe",
        "tasks/pushNotificationConfig/set",
        "tasks/pushNotificationConfig/get",
        "tasks/pushNotificationConfig/list",
        "tasks/pushNotificationConfig/delete",
        "agent/getAuthenticatedExtendedCard",
    ],
)
def test_a_method_name_of_a2a_0_3_is_not_found_and_told_of_send_message(method: str) -> None:
    failure = _refusal(_request(method=method))
    assert failure.code == -32601
    assert "SendMessage" in failure.message
    assert "0.3" in failure.message


@pytest.mark.requirement("RPC-ONE-METHOD")
@pytest.mark.parametrize("method", ["", "sendmessage", "SendMessage ", "jane@example.com"])
def test_any_other_method_is_not_found_and_not_repeated(method: str) -> None:
    failure = _refusal(_request(method=method))
    assert failure.code == -32601
    assert failure.message == _refusal(_request(method="other")).message


@pytest.mark.requirement("RPC-WIRE-ROLE", "RPC-WIRE-MESSAGE-ID")
@pytest.mark.parametrize(
    ("place", "payload"),
    [
        ("params", _request(params=None)),
        ("params", _request(params=[])),
        ("params", _request(params="x")),
        ("params.message", _request(params={})),
        ("params.message", _request(params={"message": None})),
        ("params.message", _request(params={"message": [1]})),
        ("params.message.role", _with_message(role="user")),
        ("params.message.role", _with_message(role="ROLE_AGENT")),
        ("params.message.role", _with_message(role=None)),
        ("params.message.role", _with_message(role=["ROLE_USER"])),
        ("params.message.messageId", _with_message(messageId="")),
        ("params.message.messageId", _with_message(messageId=7)),
        ("params.message.messageId", _with_message(messageId=None)),
        ("params.message.parts", _with_message(parts=[])),
        ("params.message.parts", _with_message(parts=None)),
        ("params.message.parts", _with_message(parts={"data": 1})),
        ("params.message.parts", _with_message(parts=[{"data": 1}, "text"])),
        ("params.message.contextId", _with_message(contextId=7)),
    ],
)
def test_unusable_params_are_invalid_and_the_place_is_named(place: str, payload: object) -> None:
    failure = _refusal(payload)
    assert failure.code == -32602
    assert failure.message.startswith(f"{place} must")


@pytest.mark.requirement("RPC-FIRST-PART-READ", "RPC-WIRE-PART")
def test_the_first_part_with_a_data_member_is_the_one_that_counts() -> None:
    parts: list[dict[str, Any]] = [{"text": "hello"}, {"data": None, "metadata": {}}, {"data": 2}]
    assert envelope.first_data_part(envelope.user_message("m", parts)) is parts[1]
    assert envelope.first_data_part(envelope.user_message("m", [{"text": "hello"}])) is None


@given(
    JSON
    | st.builds(lambda changes: _request(**changes), st.dictionaries(
        st.sampled_from(["jsonrpc", "id", "method", "params"]), JSON, max_size=2))
    | st.builds(lambda changes: _with_message(**changes), st.dictionaries(
        st.sampled_from(["role", "messageId", "parts", "contextId"]), JSON, max_size=2))
)  # fmt: skip
def test_no_json_value_makes_the_request_check_raise_anything_but_an_a2a_error(payload: object) -> None:
    envelope.request_id(payload)
    envelope.is_notification(payload)
    try:
        params = envelope.read_request(payload)
    except A2AError as failure:
        # The answer can be written, too.
        json.dumps(envelope.error(envelope.request_id(payload), failure))
    else:
        envelope.first_data_part(params["message"])


@pytest.mark.requirement("ERR-DETAILS-NO-CUSTOMER-VALUE")
@given(st.text().map(lambda text: "\N{SNOWMAN}" + text))
def test_no_message_repeats_what_was_sent(value: str) -> None:
    for payload in (
        _request(method=value), _request(jsonrpc=value), _request(params=value), _request(id=[value]),
        _with_message(role=value), _with_message(messageId=[value]), _with_message(parts=value),
        _with_message(contextId=[value]), [value],
    ):  # fmt: skip
        assert "\N{SNOWMAN}" not in json.dumps(_refusal(payload).to_payload(), ensure_ascii=False)
    checks: list[Callable[[str], object]] = [
        envelope.check_version,
        lambda sent: envelope.activate(EXTENSION, sent, sent),
        lambda sent: envelope.check_media_type({"data": 1, "mediaType": sent}, MEDIA_TYPE),
        lambda sent: envelope.check_output_modes(_modes([sent]), MEDIA_TYPE),
    ]
    for check in checks:
        with pytest.raises(A2AError) as caught:
            check(value)
        assert "\N{SNOWMAN}" not in json.dumps(caught.value.to_payload(), ensure_ascii=False)


# -- media types


@pytest.mark.requirement("RPC-WIRE-MEDIA-TYPE")
@pytest.mark.parametrize(
    "part",
    [
        {"data": 1},
        {"data": 1, "mediaType": None},
        {"data": 1, "mediaType": MEDIA_TYPE},
        {"data": 1, "mediaType": MEDIA_TYPE.upper()},
        {"data": 1, "mediaType": "application/json"},
        {"data": 1, "mediaType": "application/json; charset=utf-8"},
    ],
)
def test_the_skills_media_type_json_and_none_are_read(part: dict[str, Any]) -> None:
    envelope.check_media_type(part, MEDIA_TYPE)


@pytest.mark.requirement("ERR-A2A-CONTENT-TYPE", "RPC-WIRE-MEDIA-TYPE")
@pytest.mark.parametrize("media_type", ["text/plain", "", "application/*", 7, [MEDIA_TYPE]])
def test_another_media_type_is_not_supported(media_type: object) -> None:
    with pytest.raises(A2AError) as caught:
        envelope.check_media_type({"data": 1, "mediaType": media_type}, MEDIA_TYPE)
    assert caught.value.code == -32005
    assert caught.value.data[0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"


def _modes(modes: object) -> dict[str, Any]:
    return {"configuration": {"acceptedOutputModes": modes}}


@pytest.mark.requirement("ERR-A2A-OUTPUT-ALTERNATIVES", "RPC-OUTPUT-MODES-READ")
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"configuration": None},
        {"configuration": {}},
        _modes(None),
        _modes([]),
        _modes([MEDIA_TYPE]),
        _modes(["text/plain", MEDIA_TYPE.upper()]),
        _modes(["text/plain", "application/json"]),
        _modes(["application/*"]),
        _modes(["text/plain", "*/*;q=0.1"]),
    ],
)
def test_output_modes_are_alternatives_of_which_one_suffices(params: dict[str, Any]) -> None:
    envelope.check_output_modes(params, MEDIA_TYPE)


@pytest.mark.requirement("ERR-A2A-CONTENT-TYPE")
@pytest.mark.parametrize(
    ("params", "code"),
    [
        (_modes(["text/plain", "text/*"]), -32005),
        (_modes([""]), -32005),
        (_modes("application/json"), -32602),
        (_modes([7]), -32602),
        ({"configuration": []}, -32602),
    ],
)
def test_output_modes_that_cannot_be_produced_or_read_are_refused(params: dict[str, Any], code: int) -> None:
    with pytest.raises(A2AError) as caught:
        envelope.check_output_modes(params, MEDIA_TYPE)
    assert caught.value.code == code


# -- headers


@pytest.mark.requirement("ERR-A2A-VERSION", "ERR-A2A-VERSION-ABSENT")
@pytest.mark.parametrize("header", [None, "1.0", " 1.0 ", "1.0.0", "1.0.17"])
def test_version_1_0_its_patches_and_no_header_are_served(header: str | None) -> None:
    envelope.check_version(header)


@pytest.mark.requirement("ERR-A2A-VERSION", "ERR-PROTOCOL-VERSION")
@pytest.mark.parametrize("header", ["", " ", "0.3", "1", "1.1", "2.0", "1.0.", "1.0.x", "1.0.0.0", "1.0.٣", "v1.0"])
def test_other_versions_are_not_supported_and_told_what_to_send(header: str) -> None:
    with pytest.raises(A2AError) as caught:
        envelope.check_version(header)
    failure = caught.value
    assert failure.code == -32009
    assert "A2A-Version: 1.0" in failure.message
    assert failure.data[0]["reason"] == "VERSION_NOT_SUPPORTED"


@pytest.mark.requirement("ERR-A2A-VERSION-EMPTY")
def test_an_empty_version_header_is_told_that_it_means_0_3() -> None:
    with pytest.raises(A2AError, match=r"0\.3"):
        envelope.check_version("")


@pytest.mark.requirement("ERR-ACTIVATION-HEADER-ABSENT")
@pytest.mark.parametrize(
    "header", [None, EXTENSION, f"https://example.com/a, {EXTENSION}", f"{EXTENSION},https://example.com/a"]
)
def test_an_absent_header_and_one_that_names_the_extension_activate_it(header: str | None) -> None:
    assert envelope.activate(EXTENSION, header) == EXTENSION
    assert envelope.activate(EXTENSION, header, "anything") == EXTENSION


@pytest.mark.requirement(
    "ERR-A2A-EXTENSION-REQUIRED",
    "ERR-ACTIVATION-MESSAGE-URI",
    "ERR-ACTIVATION-MESSAGE-HEADER",
    "ERR-ACTIVATION-DOMAIN",
    "ERR-ACTIVATION-REASON",
    "ERR-ACTIVATION-METADATA-URI",
    "ERR-ACTIVATION-METADATA-HEADER",
)
@pytest.mark.parametrize(
    "header",
    ["", ",", "https://autoagentprotocol.org/extensions/aap/v1.1", EXTENSION + "/", EXTENSION.upper()],
)
def test_a_header_without_the_exact_extension_is_answered_with_how_to_activate_it(header: str) -> None:
    with pytest.raises(A2AError) as caught:
        envelope.activate(EXTENSION, header)
    failure = caught.value
    # "Errors and retries", section "Activation recovery".
    assert failure.code == -32008
    assert failure.message.endswith(f"A2A-Extensions: {EXTENSION}")
    assert failure.data == [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "EXTENSION_SUPPORT_REQUIRED",
            "domain": "a2a-protocol.org",
            "metadata": {"extensionUri": EXTENSION, "requiredHeader": "A2A-Extensions"},
        }
    ]


def test_the_old_header_activates_nothing_and_the_error_says_so() -> None:
    with pytest.raises(A2AError, match="X-A2A-Extensions is an old spelling"):
        envelope.activate(EXTENSION, "https://example.com/a", EXTENSION)


# -- reading an answer


def test_the_message_of_an_answer_is_returned() -> None:
    message = envelope.agent_message("m-2", [envelope.data_part({"a": 1})])
    assert envelope.read_response(envelope.result("req-1", message), "req-1") == message


@pytest.mark.requirement("A2A-IS-EXCEPTION")
def test_the_error_of_an_answer_is_raised_whole() -> None:
    failure = A2AError.with_data(-32000, "No such vehicle", {"type": "aap.error"})
    with pytest.raises(A2AError) as caught:
        envelope.read_response(envelope.error("req-1", failure), "req-1")
    assert caught.value == failure


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {},
        {"id": 1, "result": None},
        {"id": 1, "result": {"task": {"id": "t"}}},
        {"id": 1, "result": {"message": {"parts": {}}}},
        {"id": 1, "result": {"message": {"parts": [1]}}},
        {"id": 2, "result": {"message": {"parts": []}}},
        {"id": 1, "error": "boom"},
    ],
)
def test_an_answer_that_is_none_is_an_invalid_agent_response(payload: object) -> None:
    with pytest.raises(A2AError) as caught:
        envelope.read_response(payload, 1)
    assert caught.value.code == ErrorCode.INVALID_AGENT_RESPONSE


@given(JSON | st.fixed_dictionaries({}, optional={"id": JSON, "result": JSON, "error": JSON}))
def test_no_answer_makes_the_reader_raise_anything_but_an_a2a_error(payload: object) -> None:
    with pytest.raises(A2AError):
        envelope.read_response(payload)
