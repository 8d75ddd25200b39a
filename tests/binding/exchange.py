"""Requests for the A2A binding, and readers of its answers that look at what every answer has."""

import json
from typing import Any, Final

import pytest
from tests.contract.example_requests import VERSIONS, contract, request

from forecourt.binding import Answer
from forecourt.binding.a2a import A2ABinding, Call

__all__ = [
    "BINDINGS", "JSON", "MARK", "URIS", "aap_error", "answered", "both", "called", "checked", "envelope", "read",
    "refused", "with_message", "with_part",
]  # fmt: skip

URIS: Final = {version: f"https://autoagentprotocol.org/extensions/aap/v{version}" for version in VERSIONS}
BINDINGS: Final = {version: A2ABinding(contract(version)) for version in VERSIONS}
JSON: Final = {b"content-type": "application/json"}
MARK: Final = "\N{SNOWMAN}mark"

both = pytest.mark.parametrize("version", VERSIONS)
"""Runs a test for each contract."""


def envelope(payload: Any = None, **changes: Any) -> dict[str, Any]:
    """Return a request around an AAP payload, with members of the envelope replaced."""
    data: Any = request("dealer.information") if payload is None else payload
    part = {"data": data}
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [part]}
    return {"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": {"message": message}, **changes}


def with_message(**changes: Any) -> dict[str, Any]:
    """Return a request whose message has members replaced."""
    made = envelope()
    made["params"]["message"].update(changes)
    return made


def with_part(**changes: Any) -> dict[str, Any]:
    """Return a request whose data part has members replaced."""
    made = envelope()
    made["params"]["message"]["parts"][0].update(changes)
    return made


def read(version: str, body: Any, headers: dict[bytes, str] | None = None) -> Call | Answer:
    """Read a body, given as bytes or as a value, by the binding of a contract."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return BINDINGS[version].read(text, JSON if headers is None else {**JSON, **headers})


def called(version: str, body: Any, headers: dict[bytes, str] | None = None) -> Call:
    """Read a body that has to get through."""
    outcome = read(version, body, headers)
    assert isinstance(outcome, Call), outcome
    return outcome


def answered(version: str, body: Any, headers: dict[bytes, str] | None = None) -> dict[str, Any]:
    """Read a body that has to be answered at once, and return that JSON-RPC answer."""
    outcome = read(version, body, headers)
    assert isinstance(outcome, Answer)
    assert outcome.status == 200
    return checked(outcome)


def checked(answer: Answer) -> dict[str, Any]:
    """Return an answer's JSON-RPC object after looking at what all of them have."""
    assert (b"content-type", b"application/json") in answer.headers
    found: dict[str, Any] = json.loads(answer.body)
    assert found["jsonrpc"] == "2.0"
    assert ("result" in found) != ("error" in found)
    assert found.keys() <= {"jsonrpc", "id", "result", "error"}
    return found


def refused(version: str, body: Any, headers: dict[bytes, str] | None = None) -> tuple[int, str, Any]:
    """Return the number, the message and the reason of a protocol error; it carries no aap.error."""
    error = answered(version, body, headers)["error"]
    data = error.get("data")
    if data is not None:
        assert [entry["@type"] for entry in data] == ["type.googleapis.com/google.rpc.ErrorInfo"]
        assert data[0]["domain"] == "a2a-protocol.org"
        assert all(isinstance(value, str) for value in data[0].get("metadata", {}).values())
    assert "aap.error" not in json.dumps(error)
    return error["code"], error["message"], data[0]["reason"] if data else None


def aap_error(version: str, error: dict[str, Any]) -> dict[str, Any]:
    """Return the aap.error object out of a contract's envelope."""
    found: dict[str, Any] = error["data"] if version == "1.1" else error["data"][1]["value"]
    return found
