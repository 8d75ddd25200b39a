"""The A2A JSON-RPC binding: one `SendMessage` request in, one answer out.

Source: "JSON-RPC 2.0 binding" and "Errors and retries", sections "A2A detail encoding", "Protocol-level A2A failures"
and "Activation recovery"; CONTRACTS.md sections 2 to 4.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from forecourt.a2a import ERROR_INFO_TYPE, A2AError, envelope
from forecourt.binding import Answer
from forecourt.binding.json_text import MalformedJSONError, decode, encode
from forecourt.contract import Contract, Skill
from forecourt.errors import CODES, AAPError, Kind, Problem
from forecourt.identifier import random_bytes

__all__ = ["HEADERS", "A2ABinding", "Call"]

HEADERS: Final = (b"content-type", b"a2a-version", b"a2a-extensions", b"x-a2a-extensions")
"""The request headers that this binding reads, in lower case."""

_NUMBERS: Final[Mapping[Kind, int]] = {
    Kind.UNSUPPORTED_SKILL: -32602,
    Kind.INVALID: -32602,
    Kind.NOT_FOUND: -32000,
    Kind.CONFLICT: -32000,
    Kind.CONSENT: -32000,
    Kind.THROTTLED: -32000,
    Kind.INTERNAL: -32603,
}
"""JSON-RPC codes where errors are typed details ("Errors and retries", section "Error code reference")."""

_PLAIN_NUMBERS: Final[Mapping[Kind, int]] = {**_NUMBERS, Kind.UNSUPPORTED_SKILL: -32601, Kind.THROTTLED: -32002}
"""The same where the error is the data ("JSON-RPC 2.0 binding", section "Error mapping")."""

_PLAIN_PREFIXES: Final[Mapping[int, str]] = {
    -32601: "Method not found: ",
    -32602: "Invalid params: ",
    -32603: "Internal error: ",
}
"""What the 1.1 page puts before an error's message where the code has a name in JSON-RPC."""

_AAP_DOMAIN: Final = "autoagentprotocol.org"
_STRUCT_TYPE: Final = "type.googleapis.com/google.protobuf.Struct"


class _Numbered(msgspec.Struct):
    """A request of which only its id matters."""

    id: str | int | float | msgspec.UnsetType | None = msgspec.UNSET


_decode_id = msgspec.json.Decoder(_Numbered).decode

_NO_CONTENT: Final = Answer(204, (), b"")


class Call(msgspec.Struct, frozen=True):
    """A request that got through the protocol: what to run, and what the answer has to repeat.

    `payload` is the AAP payload, not yet looked at; `skill` is None when its type names no skill.
    """

    id: envelope.RequestId
    payload: Any
    skill: Skill | None
    context_id: str | None


class A2ABinding:
    """One contract over A2A. Bytes and headers in, `Answer` out; it neither waits nor runs a skill."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self._plain_headers = ((b"content-type", b"application/json"),)
        self._headers = (*self._plain_headers, (b"a2a-extensions", contract.extension_uri.encode()))
        self._numbers = _NUMBERS if contract.typed_details else _PLAIN_NUMBERS
        self._tails = {
            skill.id: b',"mediaType":"' + skill.response_media_type.encode() + b'"}]}}}'
            for skill in contract.skills.values()
        }

    def read(self, body: bytes, headers: Mapping[bytes, str]) -> Call | Answer:
        """Read a request; an `Answer` is what to say at once, a `Call` is to be run.

        `headers` holds those of `HEADERS` that came, in lower case; several of one name are joined by commas.
        """
        payload: Any = None
        try:
            if headers.get(b"content-type") != "application/json":
                _check_content_type(headers.get(b"content-type"))
            payload = decode(body)
            params = envelope.read_request(payload)
            if b"a2a-version" in headers:
                envelope.check_version(headers[b"a2a-version"])
            if self.contract.activation and b"a2a-extensions" in headers:
                envelope.activate(
                    self.contract.extension_uri, headers[b"a2a-extensions"], headers.get(b"x-a2a-extensions")
                )
            if envelope.is_notification(payload):
                return _NO_CONTENT
            message = params["message"]
            part = envelope.first_data_part(message)
            if part is None:
                raise AAPError(
                    "SCHEMA_VALIDATION_FAILED",
                    "params.message.parts holds no data part",
                    problems=[Problem("", "required", "must come as the `data` of a part of params.message")],
                    hint="Send the AAP request as {data, mediaType} in params.message.parts; text is not read.",
                )
            request = part["data"]
            skill = self.contract.skill_of(request)
            if skill is not None:
                envelope.check_media_type(part, skill.request_media_type)
                envelope.check_output_modes(params, skill.response_media_type)
            context_id = message.get("contextId") or None
            return Call(payload["id"], request, skill, context_id)
        except MalformedJSONError as error:
            # These messages are ours, word for word: they hold nothing of the body.
            return self.fail(None, A2AError.parse_error(f"Parse error: {error}"))
        except (A2AError, AAPError) as error:
            if _wants_no_answer(payload):
                return _NO_CONTENT
            return self.fail(envelope.request_id(payload), error)

    def write(self, call: Call, *payload: bytes) -> Answer:
        """Return the answer that carries a skill's response payload: JSON bytes, whole or in pieces."""
        assert call.skill is not None
        # Random, not counted: a caller that could guess it could send it first, and the two must differ.
        fresh = random_bytes(16).hex().encode()
        context = b""
        if self.contract.activation:
            context_id = encode(call.context_id) if call.context_id else b'"c%s"' % fresh
            context = b',"contextId":' + context_id
        parts = (
            b'{"jsonrpc":"2.0","id":',
            encode(call.id),
            b',"result":{"message":{"messageId":"',
            fresh,
            b'"',
            context,
            b',"role":"ROLE_AGENT","parts":[{"data":',
            *payload,
            self._tails[call.skill.id],
        )
        return Answer(200, self._headers, b"".join(parts))

    def turn_away(self, body: bytes, error: AAPError) -> Answer:
        """Return the answer that carries an error to a request that is not read, but for the id to answer to."""
        try:
            id = _decode_id(body).id  # noqa: A001 - the member's name
        except (msgspec.DecodeError, UnicodeDecodeError):
            id = None  # noqa: A001
        return _NO_CONTENT if id is msgspec.UNSET else self.fail(id, error)

    def fail(self, id: envelope.RequestId, error: A2AError | AAPError) -> Answer:  # noqa: A002 - the member's name
        """Return the answer that carries an error: HTTP 200, except where credentials are refused."""
        if isinstance(error, AAPError):
            body = encode({"jsonrpc": "2.0", "id": id, "error": self._skill_error(error)})
            return Answer(200, self._headers, body, error.code, error.error_id)
        # A protocol error came before any contract was in force, so none is echoed.
        status = 200
        headers: tuple[tuple[bytes, bytes], ...] = self._plain_headers
        if error.auth_rejection is not None:
            status = error.auth_rejection.http_status
            if error.auth_rejection.challenge is not None:
                headers += ((b"www-authenticate", error.auth_rejection.challenge.encode("ascii")),)
        return Answer(status, headers, encode(envelope.error(id, error)), error.metric_label)

    def _skill_error(self, error: AAPError) -> dict[str, Any]:
        payload = self.contract.write_error(error)
        # The contract may have told the error by another of its codes; the number follows the code that is sent.
        declared = CODES.get(payload["code"])
        number = self._numbers[declared.kind if declared else Kind.INTERNAL]
        if not self.contract.typed_details:
            message = _PLAIN_PREFIXES.get(number, "") + payload["message"]
            return {"code": number, "message": message, "data": payload}
        info = {
            "@type": ERROR_INFO_TYPE,
            "reason": payload["code"],
            "domain": _AAP_DOMAIN,
            # The code stands here again for SDKs that leave the reason out; metadata is strings only.
            "metadata": {
                "code": payload["code"],
                "error_id": payload["error_id"],
                "retryable": "true" if payload["retryable"] else "false",
                "created_at": payload["created_at"],
            },
        }
        return {
            "code": number,
            "message": payload["message"],
            "data": [info, {"@type": _STRUCT_TYPE, "value": payload}],
        }


def _check_content_type(content_type: str | None) -> None:
    essence, _, parameters = (content_type or "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if essence.strip().lower() != "application/json" or charset not in ("", "utf-8", "utf8"):
        raise A2AError.content_type_not_supported("Send the request as Content-Type: application/json in UTF-8")


def _wants_no_answer(payload: Any) -> bool:
    """Tell whether this was a notification: a request object in every respect but its missing id."""
    return (
        envelope.is_notification(payload) and payload.get("jsonrpc") == "2.0" and isinstance(payload.get("method"), str)
    )
