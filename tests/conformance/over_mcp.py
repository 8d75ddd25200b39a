"""Conformance cases over MCP: payloads go as the arguments of tools, and the results around the answers are compared.

Written down here from the source pages, independently of the product: "Errors and retries", sections "Three envelopes"
and "Error code reference"; MCP 2026-07-28 and 2025-11-25, sections "Calling tools" and "Tool result". Exchanges take
turns between these two revisions, and every second call leaves out the `type` that its tool says anyway.
"""

import contextlib
import http.client
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.conformance.runner import Exchange, Filler, differences, exchanges, expected_error
from tests.server_process import ServerProcess

__all__ = ["Answer", "call", "faults", "payload_of"]

_SECONDS: Final = 30
_TOOLS: Final = {
    "dealer.information.request": "aap_dealer_information",
    "inventory.facets.request": "aap_inventory_facets",
    "inventory.search.request": "aap_inventory_search",
    "inventory.vehicle.request": "aap_inventory_vehicle",
    "lead.submit.request": "aap_lead_submit",
}
_ANY_TOOL: Final = "aap_inventory_search"
"""What a payload is sent to whose type no tool has: the type is refused, not the tool."""
_ID: Final = "conformance-1"
_SINGLE: Final = "2026-07-28"
_REVISIONS: Final = (_SINGLE, "2025-11-25")

_turns = itertools.count()


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status, the headers by lower-case name, and the body."""

    revision: str
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
    def content(self) -> str | None:
        """The text of the result: the payload as it was written, None where there is no result."""
        try:
            text: str = self.json["result"]["content"][0]["text"]
        except (KeyError, IndexError, TypeError):
            return None
        return text


def faults(case: Mapping[str, Any], server: ServerProcess) -> list[str]:
    """Run a case and return what its answers have wrong, one sentence each; an empty list when it holds."""
    filler = Filler(server.started_on)
    answers: dict[str, Answer] = {}
    found: list[str] = []
    for number, exchange in enumerate(exchanges(case), start=1):
        label = exchange.name or f"exchange {number}"
        answer = _send(server, exchange, filler)
        found += [f"{label}: says {text!r}" for text in case.get("never", ()) if text in answer.everything]
        if exchange.name is not None:
            answers[exchange.name] = answer
            filler.answers[exchange.name] = json.loads(answer.content or "null")
        if exchange.expect is not None:
            found += [f"{label}: {line}" for line in _judge(exchange, answer, filler, answers)]
    return found


def payload_of(exchange: Exchange, server: ServerProcess) -> Any:
    """Send an exchange's payload and return the AAP payload that comes back: a response or an `aap.error`."""
    return _send(server, exchange, Filler(server.started_on)).json["result"]["structuredContent"]


def _send(server: ServerProcess, exchange: Exchange, filler: Filler) -> Answer:
    tree = f"/dealers/{exchange.seller}" if exchange.seller else ""
    path = f"{tree}/v{exchange.contract}/mcp"
    if "request" in exchange.sent:
        request = filler.fill(exchange.sent["request"])
        body = json.dumps(request["body"]).encode() if "body" in request else str(request.get("text", "")).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers |= request.get("headers", {})
        revision = headers.get("MCP-Protocol-Version", _REVISIONS[1])
        return _exchange(server, request.get("method", "POST"), request.get("path", path), headers, body, revision)
    turn = next(_turns)
    return call(server, path, filler.fill(exchange.sent["payload"]), _REVISIONS[turn % 2], with_type=turn % 4 < 2)


def call(server: ServerProcess, path: str, payload: Any, revision: str = _SINGLE, *, with_type: bool = True) -> Answer:
    """Send a payload to the tool that its type names."""
    kind = payload.get("type") if isinstance(payload, dict) else None
    name = _TOOLS.get(kind, _ANY_TOOL) if isinstance(kind, str) else _ANY_TOOL
    arguments = payload
    if kind in _TOOLS and not with_type:
        arguments = {member: value for member, value in payload.items() if member != "type"}
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": revision,
    }
    if revision == _SINGLE:
        meta = {"protocolVersion": revision, "clientCapabilities": {}}
        params["_meta"] = {f"io.modelcontextprotocol/{key}": value for key, value in meta.items()}
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": name}
    body = json.dumps({"jsonrpc": "2.0", "id": _ID, "method": "tools/call", "params": params}, ensure_ascii=False)
    return _exchange(server, "POST", path, headers, body.encode(), revision)


def _exchange(
    server: ServerProcess, method: str, path: str, headers: Mapping[str, str | None], body: bytes, revision: str
) -> Answer:
    connection = server.connect(_SECONDS)
    with contextlib.closing(connection):
        sent = {name: value for name, value in headers.items() if value is not None}
        connection.request(method, path, body or None, sent)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(revision, response.status, found, response.read())


def _judge(exchange: Exchange, answer: Answer, filler: Filler, answers: Mapping[str, Answer]) -> list[str]:
    assert exchange.expect is not None
    expect = filler.fill(exchange.expect)
    found: list[str] = []
    if "equals" in expect and answer.content != answers[expect["equals"]].content:
        found.append(f"is not the answer of {expect['equals']} again: {answer.text}")
    if "payload" in expect or "error" in expect:
        payload = expect["payload"] if "payload" in expect else expected_error(expect["error"])
        found += _differences(payload, "error" in expect, answer)
    if "status" in expect and answer.status != expect["status"]:
        found.append(f"the status is {answer.status}, not {expect['status']}")
    for name, value in expect.get("headers", {}).items():
        if value is None:
            found += [f"the header {name} is there"] if name in answer.headers else []
        else:
            found += differences(value, answer.headers.get(name), f"header {name}")
    if "body" in expect:
        lines = differences(expect["body"], answer.json)
        found += lines if answer.json is not None else [f"the body is no JSON: {answer.text[:200]}"]
    if "text" in expect:
        found += differences(expect["text"], answer.text, "text")
    return found


def _differences(payload: Any, is_error: bool, answer: Answer) -> list[str]:
    """Compare a tool's result: always HTTP 200 and a completed result, with the payload in both its places."""
    result: dict[str, Any] = {
        "content": [{"type": "text", "text": {"$any": "string"}}],
        "structuredContent": payload,
        "isError": is_error,
    }
    if answer.revision == _SINGLE:
        # Requests that stand alone are answered by results that do: whole, and saying by whom.
        server = {"$subset": {"name": "forecourt", "version": {"$any": "string"}, "title": {"$any": "string"}}}
        result |= {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": server}}
    found = [] if answer.status == http.HTTPStatus.OK else [f"the status is {answer.status}, not 200"]
    found += differences("application/json", answer.headers.get("content-type"), "header content-type")
    found += differences({"jsonrpc": "2.0", "id": _ID, "result": result}, answer.json)
    content = answer.content
    if content is not None and f'"structuredContent":{content},' not in answer.text:
        found.append(f"the text is not the structured content, letter by letter: {content[:200]}")
    return found
