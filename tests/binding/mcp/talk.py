"""Messages for the MCP binding in both forms, and readers of its answers that look at what every answer has."""

import json
from collections.abc import Mapping
from typing import Any, Final

from tests.contract.example_requests import VERSIONS, contract

from forecourt.binding import Answer
from forecourt.binding.mcp import Call, MCPBinding, Place, Toolbox

__all__ = [
    "BINDINGS", "HEADERS", "META", "NETWORK", "PLACE", "SINGLE", "call", "called", "checked", "error", "handshake",
    "result", "single", "single_headers",
]  # fmt: skip

SINGLE: Final = "2026-07-28"
PLACE: Final = Place("Demo Cars", {"demo": "Demo Cars"}, lambda code: code.replace("_", " "), "1.2.3")
NETWORK: Final = Place("Network", {"north": "North Cars", "south": "South Cars"}, lambda code: code, "1.2.3")
BINDINGS: Final = {version: MCPBinding(Toolbox(contract(version)), PLACE) for version in VERSIONS}
HEADERS: Final = {b"content-type": "application/json", b"accept": "application/json, text/event-stream"}
META: Final[dict[str, Any]] = {
    "io.modelcontextprotocol/protocolVersion": SINGLE,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def handshake(method: Any, params: Any = None, /, **changes: Any) -> dict[str, Any]:
    """Return a message of the revisions that begin with a handshake."""
    message = {"jsonrpc": "2.0", "id": 7, "method": method, **({} if params is None else {"params": params}), **changes}
    return {name: value for name, value in message.items() if value is not ...}


def single(method: Any, params: Mapping[str, Any] | None = None, /, **changes: Any) -> dict[str, Any]:
    """Return a message that stands alone."""
    return handshake(method, {"_meta": META, **(params or {})}, **changes)


def single_headers(message: Mapping[str, Any]) -> dict[bytes, str]:
    """Return the headers that belong to a message that stands alone."""
    params = message["params"]
    name = params.get("uri") or params.get("name")
    named = {b"mcp-name": name} if name else {}
    return {**HEADERS, b"mcp-protocol-version": SINGLE, b"mcp-method": message["method"], **named}


def ask(version: str, message: Any, headers: dict[bytes, str] | None = None, binding: Any = None) -> Call | Answer:
    """Read a message, given as bytes or as a value; without headers, with those that belong to it."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    if headers is None:
        alone = isinstance(message, dict) and "_meta" in message.get("params", {})
        headers = single_headers(message) if alone else HEADERS
    outcome: Call | Answer = (binding or BINDINGS[version]).read(body, headers)
    return outcome


def called(version: str, message: Any, headers: dict[bytes, str] | None = None, binding: Any = None) -> Call:
    """Read a message that has to get through to a skill."""
    outcome = ask(version, message, headers, binding)
    assert isinstance(outcome, Call), outcome
    return outcome


def call(name: str, arguments: Any = ..., **params: Any) -> dict[str, Any]:
    """Return a `tools/call`."""
    return handshake("tools/call", {"name": name, **({} if arguments is ... else {"arguments": arguments}), **params})


def checked(answer: Call | Answer) -> dict[str, Any]:
    """Return the JSON-RPC message of an answer, which must be one."""
    assert isinstance(answer, Answer), answer
    assert (b"content-type", b"application/json") in answer.headers
    found: dict[str, Any] = json.loads(answer.body)
    assert found["jsonrpc"] == "2.0"
    assert ("result" in found) != ("error" in found)
    return found


def result(version: str, message: Any, binding: Any = None) -> dict[str, Any]:
    """Return the result of a message that is answered at once."""
    answer = ask(version, message, binding=binding)
    found = checked(answer)
    assert isinstance(answer, Answer)
    assert answer.status == 200
    assert "result" in found, found
    shown: dict[str, Any] = found["result"]
    return shown


def error(answer: Call | Answer) -> tuple[int, int]:
    """Return the HTTP status and the code of a protocol error."""
    found = checked(answer)
    assert isinstance(answer, Answer)
    return answer.status, found["error"]["code"]
