"""The JSON-RPC 2.0 envelopes of A2A v1.0's `SendMessage`: plain dicts in, plain dicts out, no bytes.

A server reads with `read_request`, `check_version` and `activate`, which raise the `A2AError` to answer
with, and writes with `result` and `error`. A client writes with `request` and reads with `read_response`.
No message made here repeats a value that the other side sent.

Source: A2A v1.0, sections 3.6 (versions), 4.6 (extensions), 5.3 (methods) and 9 (JSON-RPC binding).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from forecourt.a2a.codes import ErrorCode
from forecourt.a2a.error import A2AError

__all__ = [
    "EXTENSIONS_HEADER",
    "OLD_EXTENSIONS_HEADER",
    "PROTOCOL_VERSION",
    "ROLE_AGENT",
    "ROLE_USER",
    "SEND_MESSAGE",
    "VERSION_HEADER",
    "RequestId",
    "activate",
    "agent_message",
    "check_media_type",
    "check_output_modes",
    "check_version",
    "data_part",
    "error",
    "first_data_part",
    "is_notification",
    "read_request",
    "read_response",
    "request",
    "request_id",
    "result",
    "user_message",
]

VERSION_HEADER: Final = "A2A-Version"
EXTENSIONS_HEADER: Final = "A2A-Extensions"
OLD_EXTENSIONS_HEADER: Final = "X-A2A-Extensions"

PROTOCOL_VERSION: Final = "1.0"
SEND_MESSAGE: Final = "SendMessage"
ROLE_USER: Final = "ROLE_USER"
ROLE_AGENT: Final = "ROLE_AGENT"

RequestId: TypeAlias = str | int | float | None
"""What JSON-RPC 2.0 allows as an id."""

_ID_TYPES: Final = (str, int, float)

_TASK_MESSAGE: Final = "This agent answers messages directly and has no tasks or streams; use SendMessage"
_PUSH_MESSAGE: Final = "This agent has no push notifications; use SendMessage"
_OLD_MESSAGE: Final = "This is a method of A2A 0.3; this agent speaks A2A 1.0, whose method is SendMessage"
_UNKNOWN_MESSAGE: Final = "No such method; this agent has SendMessage"
_MODES_MESSAGE: Final = "params.configuration.acceptedOutputModes must be a list of media types"

_OTHER_METHODS: Final[Mapping[str, tuple[ErrorCode, str]]] = {
    "SendStreamingMessage": (ErrorCode.UNSUPPORTED_OPERATION, _TASK_MESSAGE),
    "SubscribeToTask": (ErrorCode.UNSUPPORTED_OPERATION, _TASK_MESSAGE),
    "GetTask": (ErrorCode.UNSUPPORTED_OPERATION, _TASK_MESSAGE),
    "ListTasks": (ErrorCode.UNSUPPORTED_OPERATION, _TASK_MESSAGE),
    "CancelTask": (ErrorCode.UNSUPPORTED_OPERATION, _TASK_MESSAGE),
    "GetExtendedAgentCard": (ErrorCode.UNSUPPORTED_OPERATION, "This agent has no extended agent card"),
    "CreateTaskPushNotificationConfig": (ErrorCode.PUSH_NOTIFICATION_NOT_SUPPORTED, _PUSH_MESSAGE),
    "GetTaskPushNotificationConfig": (ErrorCode.PUSH_NOTIFICATION_NOT_SUPPORTED, _PUSH_MESSAGE),
    "ListTaskPushNotificationConfigs": (ErrorCode.PUSH_NOTIFICATION_NOT_SUPPORTED, _PUSH_MESSAGE),
    "DeleteTaskPushNotificationConfig": (ErrorCode.PUSH_NOTIFICATION_NOT_SUPPORTED, _PUSH_MESSAGE),
} | dict.fromkeys(
    (
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
    ),
    (ErrorCode.METHOD_NOT_FOUND, _OLD_MESSAGE),
)


# -- building


def data_part(data: Any, media_type: str | None = None) -> dict[str, Any]:
    """Return a part that holds `data`, any JSON value."""
    return {"data": data} if media_type is None else {"data": data, "mediaType": media_type}


def user_message(message_id: str, parts: Sequence[dict[str, Any]], *, context_id: str | None = None) -> dict[str, Any]:
    """Return a message to an agent. `message_id` is the sender's own and never used twice."""
    return _message(ROLE_USER, message_id, parts, context_id)


def agent_message(message_id: str, parts: Sequence[dict[str, Any]], *, context_id: str | None = None) -> dict[str, Any]:
    """Return a message of an agent. `message_id` is fresh; it is not that of the message it answers."""
    return _message(ROLE_AGENT, message_id, parts, context_id)


def _message(role: str, message_id: str, parts: Sequence[dict[str, Any]], context_id: str | None) -> dict[str, Any]:
    message: dict[str, Any] = {"messageId": message_id, "role": role, "parts": list(parts)}
    if context_id is not None:
        message["contextId"] = context_id
    return message


def request(
    id: RequestId,  # noqa: A002 - the member's name
    message: Mapping[str, Any],
    *,
    accepted_output_modes: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a `SendMessage` request. `accepted_output_modes` are alternatives; none accepts everything."""
    params: dict[str, Any] = {"message": dict(message)}
    if accepted_output_modes:
        params["configuration"] = {"acceptedOutputModes": list(accepted_output_modes)}
    return {"jsonrpc": "2.0", "id": id, "method": SEND_MESSAGE, "params": params}


def result(id: RequestId, message: Mapping[str, Any]) -> dict[str, Any]:  # noqa: A002 - the member's name
    """Return the answer that carries an agent's message."""
    return {"jsonrpc": "2.0", "id": id, "result": {"message": message}}


def error(id: RequestId, failure: A2AError) -> dict[str, Any]:  # noqa: A002 - the member's name
    """Return the answer that carries an error, as `A2AError.to_wire` lets it out.

    An A2A error that would leave without data gets its ErrorInfo, which A2A requires (section 9.5).
    """
    wire = failure.to_wire()
    if "data" not in wire and failure.code.reason is not None:
        wire["data"] = failure.error_info_data()
    return {"jsonrpc": "2.0", "id": id, "error": wire}


# -- reading, as a server


def request_id(payload: object) -> RequestId:
    """Return the id to answer with: the request's, or None where there is none that JSON-RPC allows."""
    found = payload.get("id") if isinstance(payload, dict) else None
    return found if isinstance(found, _ID_TYPES) and not isinstance(found, bool) else None


def is_notification(payload: object) -> bool:
    """Tell whether this is a request without an id, which gets no answer (JSON-RPC 2.0, section 4.1)."""
    return isinstance(payload, dict) and "id" not in payload


def read_request(payload: object) -> dict[str, Any]:
    """Check a JSON-RPC request for `SendMessage` and return its `params`.

    Known of `params["message"]` is then: `role` is ROLE_USER, `messageId` a string that is not empty,
    `parts` a list of objects that is not empty, `contextId` a string if it is there. Whether a part carries
    data is for the caller (`first_data_part`).

    Raises A2AError: INVALID_REQUEST for what is no single request object, METHOD_NOT_FOUND,
    UNSUPPORTED_OPERATION or PUSH_NOTIFICATION_NOT_SUPPORTED for other methods, INVALID_PARAMS for the rest.
    """
    if not isinstance(payload, dict):
        raise A2AError.invalid_request(
            "Batches are not supported; send one request object"
            if isinstance(payload, list)
            else "A request is a JSON object"
        )
    if payload.get("jsonrpc") != "2.0":
        raise A2AError.invalid_request('jsonrpc must be "2.0"')
    found = payload.get("id")
    if found is not None and (isinstance(found, bool) or not isinstance(found, _ID_TYPES)):
        raise A2AError.invalid_request("id must be a string, a number or null")
    method = payload.get("method")
    if method != SEND_MESSAGE:
        raise _method_error(method)
    params = payload.get("params")
    if not isinstance(params, dict):
        raise A2AError.invalid_params("params must be an object")
    message = params.get("message")
    if not isinstance(message, dict):
        raise A2AError.invalid_params("params.message must be an object")
    if message.get("role") != ROLE_USER:
        raise A2AError.invalid_params("params.message.role must be ROLE_USER")
    message_id = message.get("messageId")
    if not isinstance(message_id, str) or not message_id:
        raise A2AError.invalid_params("params.message.messageId must be a string that is not empty")
    parts = message.get("parts")
    if not isinstance(parts, list) or not parts:
        raise A2AError.invalid_params("params.message.parts must be a list that is not empty")
    for part in parts:
        if not isinstance(part, dict):
            raise A2AError.invalid_params("params.message.parts must hold objects only")
    context_id = message.get("contextId")
    if context_id is not None and not isinstance(context_id, str):
        raise A2AError.invalid_params("params.message.contextId must be a string")
    return params


def _method_error(method: object) -> A2AError:
    if not isinstance(method, str):
        return A2AError.invalid_request("method must be a string")
    code, message = _OTHER_METHODS.get(method, (ErrorCode.METHOD_NOT_FOUND, _UNKNOWN_MESSAGE))
    failure = A2AError(code, message)
    return failure if code.reason is None else failure.with_error_info()


def first_data_part(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the first part that has a `data` member; the parts of `message` are known to be objects."""
    for part in message["parts"]:
        if "data" in part:
            return part  # type: ignore[no-any-return]
    return None


def check_media_type(part: Mapping[str, Any], expected: str) -> None:
    """Check that a part is of the media type `expected`, of application/json, or says nothing.

    Parameters (`; charset=utf-8`) and case do not matter. Raises A2AError CONTENT_TYPE_NOT_SUPPORTED.
    """
    found = part.get("mediaType")
    if found is None or found == expected:
        return
    if not isinstance(found, str) or _essence(found) not in (expected.lower(), "application/json"):
        raise A2AError.content_type_not_supported(
            f"The data part's mediaType must be {expected} or application/json"
        ).with_error_info({"supportedMediaType": expected})


def check_output_modes(params: Mapping[str, Any], produced: str) -> None:
    """Check that `configuration.acceptedOutputModes` allows an answer of the media type `produced`.

    The modes are alternatives. An absent or empty list accepts everything; application/json,
    `application/*` and `*/*` accept. Raises A2AError CONTENT_TYPE_NOT_SUPPORTED when no alternative fits,
    INVALID_PARAMS when the list cannot be read.
    """
    configuration = params.get("configuration")
    if configuration is None:
        return
    if not isinstance(configuration, dict):
        raise A2AError.invalid_params("params.configuration must be an object")
    modes = configuration.get("acceptedOutputModes")
    if modes is None:
        return
    if not isinstance(modes, list):
        raise A2AError.invalid_params(_MODES_MESSAGE)
    if not modes or produced in modes:
        return
    accepting = (produced.lower(), "application/json", "application/*", "*/*")
    for mode in modes:
        if not isinstance(mode, str):
            raise A2AError.invalid_params(_MODES_MESSAGE)
        if _essence(mode) in accepting:
            return
    raise A2AError.content_type_not_supported(
        f"None of the acceptedOutputModes can be produced; this answer is {produced}"
    ).with_error_info({"producedMediaType": produced})


def _essence(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def check_version(header: str | None) -> None:
    """Check the header `A2A-Version`; None (absent) means the version that the endpoint is pinned to.

    "1.0" and "1.0.x" are served. Raises A2AError VERSION_NOT_SUPPORTED for all others; an empty header
    means 0.3.
    """
    if header is None or header == PROTOCOL_VERSION:
        return
    version = header.strip()
    if version == PROTOCOL_VERSION:
        return
    series, _, patch = version.rpartition(".")
    if series == PROTOCOL_VERSION and patch.isascii() and patch.isdigit():
        return
    meant = "" if version else f"; an empty {VERSION_HEADER} means 0.3"
    raise A2AError.version_not_supported(
        f"This endpoint serves A2A {PROTOCOL_VERSION}{meant}. "
        f"Send {VERSION_HEADER}: {PROTOCOL_VERSION}, or leave the header out"
    ).with_error_info({"supportedVersions": PROTOCOL_VERSION, "requiredHeader": VERSION_HEADER})


def activate(extension_uri: str, header: str | None, old_header: str | None = None) -> str:
    """Check that the header `A2A-Extensions` activates `extension_uri`; return it for the answer's header.

    None (absent) activates the extension that the endpoint is pinned to; a list that names it activates it,
    whatever else it names. `old_header` is `X-A2A-Extensions`, which activates nothing. Raises A2AError
    EXTENSION_SUPPORT_REQUIRED ("Errors and retries", section "Activation recovery").
    """
    if header is None or header == extension_uri:
        return extension_uri
    if extension_uri in [uri.strip() for uri in header.split(",")]:
        return extension_uri
    old = "" if old_header is None else f" ({OLD_EXTENSIONS_HEADER} is an old spelling and activates nothing)"
    raise A2AError.extension_support_required(
        f"Activate the supported extension with {EXTENSIONS_HEADER}: {extension_uri}{old}"
    ).with_error_info({"extensionUri": extension_uri, "requiredHeader": EXTENSIONS_HEADER})


# -- reading, as a client


def read_response(payload: object, id: RequestId = None) -> dict[str, Any]:  # noqa: A002 - the member's name
    """Return the agent's message from the answer to a `SendMessage` request whose id was `id`.

    Raises the A2AError that the answer carries, or INVALID_AGENT_RESPONSE for an answer that is none: not
    an object, another id (None checks none), neither error nor message, parts that are not a list of
    objects. Further rules of A2A (a role, a fresh messageId) are not held against an agent whose answer can
    be read.
    """
    if not isinstance(payload, dict):
        raise A2AError.invalid_agent_response("The agent's answer is not a JSON-RPC object")
    if payload.get("error") is not None:
        raise A2AError.from_payload(payload["error"])
    if id is not None and payload.get("id") != id:
        raise A2AError.invalid_agent_response("The agent's answer is for another request")
    outcome = payload.get("result")
    message = outcome.get("message") if isinstance(outcome, dict) else None
    if not isinstance(message, dict):
        raise A2AError.invalid_agent_response("The agent's answer holds no message")
    parts = message.get("parts")
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise A2AError.invalid_agent_response("The parts of the agent's message cannot be read")
    return message
