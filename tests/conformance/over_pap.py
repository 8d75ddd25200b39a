"""Conformance cases over PAP: a payload is the body of its skill's operation, an `aap.error` the body of its refusal.

The statuses are written down here from the source page, independently of the product: "Errors and retries", section
"Error code reference". Steps of the contract 1.1, which PAP does not carry, go over A2A to the same server.
"""

from collections.abc import Mapping
from typing import Any, Final

from tests.conformance import over_a2a
from tests.conformance.runner import Exchange, Filler, differences, exchanges, expected_error
from tests.pap_agent import Response, agent_of
from tests.server_process import ServerProcess

__all__ = ["faults", "payload_of"]

_STATUSES: Final[Mapping[str, int]] = {
    "UNSUPPORTED_SKILL": 404,
    "VEHICLE_NOT_FOUND": 404,
    "DEALER_NOT_FOUND": 404,
    "CONTACT_CONSENT_REQUIRED": 403,
    "INVALID_CONSENT": 403,
    "VEHICLE_UNAVAILABLE": 409,
    "APPOINTMENT_TIME_UNAVAILABLE": 409,
    "IDEMPOTENCY_CONFLICT": 409,
    "RATE_LIMITED": 429,
    "INTERNAL_ERROR": 500,
}
"""A code that is not listed has 422."""

_ANY_OPERATION: Final = "inventory.search"
"""Where a payload goes that names no skill."""


def faults(case: Mapping[str, Any], server: ServerProcess) -> list[str]:
    """Run a case and return what its answers have wrong, one sentence each; an empty list when it holds."""
    filler = Filler(server.started_on)
    answers: dict[str, Any] = {}
    found: list[str] = []
    for number, exchange in enumerate(exchanges(case), start=1):
        label = exchange.name or f"exchange {number}"
        payload = filler.fill(exchange.sent["payload"])
        if exchange.contract == "3.1":
            answer = _call(server, payload, exchange.seller)
            body, everything = answer.json, f"{answer.headers} {answer.body.decode()}"
        else:
            body, everything = _over_a2a(server, payload, exchange)
        found += [f"{label}: says {text!r}" for text in case.get("never", ()) if text in everything]
        if exchange.name is not None:
            answers[exchange.name] = filler.answers[exchange.name] = body
        if exchange.expect is not None:
            expect = filler.fill(exchange.expect)
            if "equals" in expect and body != answers[expect["equals"]]:
                found.append(f"{label}: is not the answer of {expect['equals']} again: {body}")
            if exchange.contract == "3.1":
                found += [f"{label}: {line}" for line in _judge(answer, expect)]
            else:
                found += [f"{label}: {line}" for line in _judge_body(body, expect)]
    return found


def payload_of(exchange: Exchange, server: ServerProcess) -> Any:
    """Send an exchange's payload and return the AAP payload that comes back: a response or an `aap.error`."""
    return _call(server, Filler(server.started_on).fill(exchange.sent["payload"]), exchange.seller).json


def _call(server: ServerProcess, payload: Any, seller: str | None) -> Response:
    kind = payload.get("type") if isinstance(payload, dict) else None
    named = isinstance(kind, str) and kind.endswith(".request")
    skill = str(kind).removesuffix(".request") if named else _ANY_OPERATION
    tree = f"/dealers/{seller}" if seller else ""
    return agent_of(server).call(payload, f"{tree}/api/{skill}")


def _over_a2a(server: ServerProcess, payload: Any, exchange: Exchange) -> tuple[Any, str]:
    sent = Exchange(exchange.contract, {"payload": payload}, None, None, exchange.seller)
    answer = over_a2a._send(server, over_a2a._http_request(sent, Filler(server.started_on)), sent)
    body = over_a2a._referable(answer, sent)
    return (body["error"]["data"] if "error" in body else body), answer.everything


def _judge(answer: Response, expect: Mapping[str, Any]) -> list[str]:
    status = expect.get("status", _STATUSES.get(expect["error"]["code"], 422) if "error" in expect else 200)
    found = [] if answer.status == status else [f"the status is {answer.status}, not {status}"]
    headers = {"content-type": "application/json", "cache-control": "no-store", **expect.get("headers", {})}
    for name, value in headers.items():
        if value is None:
            found += [f"the header {name} is there"] if name in answer.headers else []
        else:
            found += differences(value, answer.headers.get(name), f"header {name}")
    if status == 429:
        least = answer.json["details"]["retry_after_ms"] / 1000
        seconds = int(answer.headers.get("retry-after", 0))
        found += [] if least <= seconds < least + 1 else [f"Retry-After is {seconds}, not {least} rounded up"]
    if "text" in expect:
        found += differences(expect["text"], answer.body.decode(), "text")
    return found + _judge_body(answer.json, expect)


def _judge_body(body: Any, expect: Mapping[str, Any]) -> list[str]:
    if "payload" in expect:
        return differences(expect["payload"], body)
    if "error" in expect:
        return differences(expected_error(expect["error"]), body)
    return differences(expect["body"], body) if "body" in expect else []
