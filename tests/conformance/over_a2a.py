"""Conformance cases over A2A JSON-RPC: payloads go in its envelope, and the answer's envelope is compared too.

The numbers and forms are written down here from the source pages, independently of the product: "JSON-RPC 2.0
binding", sections "Generic envelope" and "Error mapping"; "Errors and retries", sections "A2A detail encoding" and
"Error code reference".
"""

import base64
import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.conformance.runner import Exchange, Filler, differences, exchanges, expected_error
from tests.server_process import ServerProcess

__all__ = ["Answer", "faults", "payload_of"]

_SECONDS: Final = 30
_INVALID_PARAMS: Final = (
    "INVALID_CONDITION",
    "INVALID_CURSOR",
    "MISSING_REQUIRED_FIELD",
    "SCHEMA_VALIDATION_FAILED",
    "UNSUPPORTED_FILTER",
    "UNSUPPORTED_SKILL",
    "UNSUPPORTED_SORT",
)
_NUMBERS: Final[Mapping[str, Mapping[str, int]]] = {
    "1.1": {
        **dict.fromkeys(_INVALID_PARAMS, -32602),
        "UNSUPPORTED_SKILL": -32601,
        "RATE_LIMITED": -32002,
        "INTERNAL_ERROR": -32603,
    },
    "3.1": {**dict.fromkeys(_INVALID_PARAMS, -32602), "INTERNAL_ERROR": -32603},
}
"""JSON-RPC numbers by contract and code; a code that is not listed has -32000."""

_NAMES: Final = {-32601: "Method not found: ", -32602: "Invalid params: ", -32603: "Internal error: "}
_EXTENSION: Final = "https://autoagentprotocol.org/extensions/aap/v3.1"
_STEMS: Final = {
    "dealer.information": "dealer-information",
    "inventory.facets": "inventory-facets",
    "inventory.search": "inventory-search",
    "inventory.vehicle": "vehicle-detail",
    "lead.submit": "lead-submit",
}
_ID: Final = "conformance-1"
_MESSAGE_ID: Final = "6f7d1c52b3a84e09a1c0d5e4f3b2a190"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status, the headers by lower-case name (several joined by ", "), and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")

    @property
    def json(self) -> Any:
        """The body as JSON, None where it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def everything(self) -> str:
        """Headers and body as one text, to look for what must not be there."""
        return "\n".join([*(f"{name}: {value}" for name, value in self.headers.items()), self.text])

    @property
    def without_ids(self) -> str:
        """The body without the ids that A2A wants fresh in each message."""
        message = self.json.get("result", {}).get("message", {})
        text = self.text
        for name in ("messageId", "contextId"):
            if name in message:
                text = text.replace(json.dumps(message[name]), '""')
        return text


def faults(case: Mapping[str, Any], server: ServerProcess) -> list[str]:
    """Run a case and return what its answers have wrong, one sentence each; an empty list when it holds."""
    filler = Filler(server.started_on)
    answers: dict[str, Answer] = {}
    found: list[str] = []
    for number, exchange in enumerate(exchanges(case), start=1):
        label = exchange.name or f"exchange {number}"
        answer = _send(server, _http_request(exchange, filler), exchange)
        found += [f"{label}: says {text!r}" for text in case.get("never", ()) if text in answer.everything]
        if exchange.name is not None:
            answers[exchange.name] = answer
            filler.answers[exchange.name] = _referable(answer, exchange)
        if exchange.expect is not None:
            found += [f"{label}: {line}" for line in _judge(exchange, answer, filler, answers)]
    return found


def payload_of(exchange: Exchange, server: ServerProcess) -> Any:
    """Send an exchange's payload and return the AAP payload that comes back: a response or an `aap.error`."""
    answer = _send(server, _http_request(exchange, Filler(server.started_on)), exchange)
    if "result" in answer.json:
        return _referable(answer, exchange)
    data = answer.json["error"]["data"]
    return data if exchange.contract == "1.1" else data[1]["value"]


# Sending ------------------------------------------------------------------------------------------


def _http_request(exchange: Exchange, filler: Filler) -> dict[str, Any]:
    if "request" in exchange.sent:
        return filler.fill(exchange.sent["request"])  # type: ignore[no-any-return]
    payload = filler.fill(exchange.sent["payload"])
    part: dict[str, Any] = {"data": payload}
    configuration: dict[str, Any] = {}
    stem = _stem(payload)
    if stem is not None:
        part["mediaType"] = f"application/vnd.autoagent.{stem}-request+json"
        configuration = {"acceptedOutputModes": [f"application/vnd.autoagent.{stem}-response+json"]}
    message = {"messageId": _MESSAGE_ID, "role": "ROLE_USER", "parts": [part]}
    params = {"message": message, **({"configuration": configuration} if configuration else {})}
    return {"body": {"jsonrpc": "2.0", "id": _ID, "method": "SendMessage", "params": params}}


def _stem(payload: Any) -> str | None:
    kind = payload.get("type") if isinstance(payload, dict) else None
    return _STEMS.get(kind.removesuffix(".request")) if isinstance(kind, str) else None


def _send(server: ServerProcess, request: Mapping[str, Any], exchange: Exchange) -> Answer:
    tree = f"/dealers/{exchange.seller}" if exchange.seller else ""
    # A path may come from a card, which has whole addresses.
    path = request.get("path", f"{tree}/v{exchange.contract}/a2a").removeprefix(server.base_url)
    headers = {"Content-Type": "application/json", **request.get("headers", {})}
    body = _body(request)
    connection = server.connect(_SECONDS)
    with contextlib.closing(connection):
        method = request.get("method", "POST")
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            for single in value if isinstance(value, list) else [value]:
                if single is not None:
                    connection.putheader(name, single)
        if body or method == "POST":
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body or None)
        response = connection.getresponse()
        found: dict[str, str] = {}
        for name, value in response.getheaders():
            key = name.lower()
            found[key] = f"{found[key]}, {value}" if key in found else value
        return Answer(response.status, found, response.read())


def _body(request: Mapping[str, Any]) -> bytes:
    if "body" in request:
        return json.dumps(request["body"], ensure_ascii=False).encode()
    if "base64" in request:
        return base64.b64decode(request["base64"], validate=True)
    return str(request.get("text", "")).encode()


# Judging ------------------------------------------------------------------------------------------


def _referable(answer: Answer, exchange: Exchange) -> Any:
    """Return what references to this exchange look into: the payload, or the body of a request of bytes."""
    if "request" in exchange.sent or not isinstance(answer.json, dict) or "result" not in answer.json:
        return answer.json
    return answer.json["result"]["message"]["parts"][0]["data"]


def _judge(exchange: Exchange, answer: Answer, filler: Filler, answers: Mapping[str, Answer]) -> list[str]:
    assert exchange.expect is not None
    expect = filler.fill(exchange.expect)
    found: list[str] = []
    if "equals" in expect and answer.without_ids != answers[expect["equals"]].without_ids:
        found.append(f"is not the answer of {expect['equals']} again: {answer.text}")
    if "payload" in expect or "error" in expect:
        expect = {**expect, **_over_a2a(exchange, expect)}
    if "status" in expect and answer.status != expect["status"]:
        found.append(f"the status is {answer.status}, not {expect['status']}")
    for name, value in expect.get("headers", {}).items():
        if value is None:
            found += [f"the header {name} is there"] if name in answer.headers else []
        else:
            found += differences(value, answer.headers.get(name), f"header {name}")
    if "error" in expect and exchange.contract != "1.1":
        found += _disagreement(answer.json)
    if "body" in expect:
        lines = differences(expect["body"], answer.json)
        found += lines if answer.json is not None else [f"the body is no JSON: {answer.text[:200]}"]
    if "text" in expect:
        found += differences(expect["text"], answer.text, "text")
    return found


def _disagreement(body: Any) -> list[str]:
    """Return where the two details of a 3.1 error, and its message, tell of different errors."""
    try:
        info, struct = body["error"]["data"][:2]
        told, payload = info["metadata"], struct["value"]
        same = told["error_id"] == payload["error_id"] and told["created_at"] == payload["created_at"]
        same = same and body["error"]["message"] == payload["message"]
    except (KeyError, TypeError, ValueError):
        return []  # not an error of this form: the comparison of the body says so
    return [] if same else ["ErrorInfo, payload and message are not of one error"]


def _over_a2a(exchange: Exchange, expect: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status, headers and body that carry an expected payload or error by this contract's A2A rules."""
    headers: dict[str, Any] = {"content-type": "application/json"}
    if exchange.contract != "1.1":
        headers["a2a-extensions"] = _EXTENSION
    body = {"jsonrpc": "2.0", "id": _ID}
    if "error" in expect:
        error = _error(exchange.contract, expect["error"])
        return {"status": 200, "headers": headers, "body": {**body, "error": error}}
    stem = _stem(exchange.sent["payload"])
    message = {
        "messageId": {"$pattern": f"(?!{_MESSAGE_ID})[0-9a-zA-Z-]{{16,64}}"},
        "role": "ROLE_AGENT",
        "parts": [{"data": expect["payload"], "mediaType": f"application/vnd.autoagent.{stem}-response+json"}],
    }
    if exchange.contract != "1.1":
        message["contextId"] = {"$any": "string"}
    return {"status": 200, "headers": headers, "body": {**body, "result": {"message": message}}}


def _error(contract: str, short: Mapping[str, Any]) -> dict[str, Any]:
    payload = expected_error(short)
    number = _NUMBERS[contract].get(short["code"], -32000)
    if contract == "1.1":
        message = payload["message"]
        if isinstance(message, str):
            message = _NAMES.get(number, "") + message
        return {"code": number, "message": message, "data": payload}
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": short["code"],
        "domain": "autoagentprotocol.org",
        "metadata": {
            "code": short["code"],
            "error_id": {"$any": "error_id"},
            "retryable": "true" if short["retryable"] else "false",
            "created_at": {"$any": "timestamp"},
        },
    }
    struct = {"@type": "type.googleapis.com/google.protobuf.Struct", "value": payload}
    return {"code": number, "message": payload["message"], "data": [info, struct]}
