"""A2A JSON-RPC ("JSON-RPC 2.0 binding", section "Generic envelope")."""

import uuid
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from forecourt.a2a import envelope
from forecourt.client.carrier.interface import Carrier, Payload, checked
from forecourt.client.dialect import Dialect
from forecourt.client.failure import Answer, TransportError
from forecourt.client.json_text import encode
from forecourt.client.reading import from_json_rpc, json_body, status_failure, unreadable
from forecourt.contract import Skill
from forecourt.errors import AAPError

__all__ = ["CARRIER"]


class A2ACarrier(Carrier):
    """One A2A endpoint. The extension is activated with every request, and A2A-Version said."""

    binding: ClassVar[str] = "a2a"

    async def send(
        self, skill: Skill, payload: Mapping[str, Any], dialect: Dialect, headers: Mapping[str, str], seconds: float
    ) -> tuple[Payload, Answer]:
        """Send one `SendMessage`."""
        request_id = uuid.uuid4().hex
        part = envelope.data_part(payload, skill.request_media_type)
        message = envelope.user_message(uuid.uuid4().hex, [part])
        request = envelope.request(request_id, message, accepted_output_modes=[skill.response_media_type])
        sent = {
            **headers,
            "Content-Type": "application/json",
            "Accept": "application/json",
            envelope.VERSION_HEADER: envelope.PROTOCOL_VERSION,
            envelope.EXTENSIONS_HEADER: dialect.extension_uri,
        }
        answer = await self._http.post(self.endpoint, sent, encode(request), seconds)
        return read(answer, request_id, skill), answer


def read(answer: Answer, request_id: str, skill: Skill) -> Payload:
    """Return the response payload of an answer to `SendMessage`.

    An error in the body wins over the HTTP status where it is a skill's; a status that asks for credentials, or that
    may pass, wins over an error of the protocol.
    """
    good = 200 <= answer.status < 300
    try:
        body = json_body(answer)
    except TransportError:
        if not good:
            raise status_failure(answer) from None
        raise
    if not isinstance(body, dict):
        raise unreadable(answer, "the answer is no JSON-RPC object") if good else status_failure(answer)
    if body.get("error") is not None:
        failure = from_json_rpc(body["error"], answer)
        if isinstance(failure, AAPError) or answer.status < 300 or answer.status in (400, 404, 409, 422, 500):
            raise failure
        raise status_failure(answer) from failure
    if not good:
        raise status_failure(answer)
    if body.get("id") != request_id:
        raise unreadable(answer, "the answer is for another request")
    result = body.get("result")
    message = result.get("message") if isinstance(result, dict) else None
    parts = message.get("parts") if isinstance(message, dict) else None
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict) and "data" in part:
            return checked(part["data"], skill, answer)
    raise unreadable(answer, "the answer holds no message with data")


CARRIER: Final = A2ACarrier
