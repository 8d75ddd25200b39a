"""Our MCP answers and those of the official SDK's server are the same, in every revision of the protocol."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

if os.environ.get("CI") != "true":
    # Where every dependency should be there, a skip would hide that this was never tried.
    pytest.importorskip("mcp", reason="mcp is not installed (it comes with the extra 'dev')")

from tests.interop.mcp_sdk_server import asgi, ask, sdk_server

from forecourt.server import create_app, load

HANDSHAKES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
SINGLE: Final = "2026-07-28"
CONTRACTS: Final = ("1.1", "3.1")
META: Final = {
    "io.modelcontextprotocol/protocolVersion": SINGLE,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
CHANGING: Final = ("error_id", "created_at", "next_cursor")

Question = tuple[str, dict[str, str], Any]
"""HTTP method, headers, and the body: bytes, or a value that is sent as JSON."""


class Pair:
    """Both servers over one deployment, in one event loop."""

    def __init__(self, folder: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._app = create_app(load(None, data=str(folder)))
        self._loop.run_until_complete(self._app.deployment.open())

    def close(self) -> None:
        """Close the deployment."""
        self._loop.run_until_complete(self._app.deployment.close())
        self._loop.close()

    def answers(self, contract: str, question: Question) -> tuple["Answer", "Answer"]:
        """Return our answer and the SDK's."""
        method, headers, asked = question
        body = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
        sent = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
        sent = {"host": "localhost", **{name: value for name, value in sent.items() if value}}

        async def both() -> tuple[Answer, Answer]:
            async with asgi(sdk_server(self._app, contract)) as theirs:
                path = f"/v{contract}/mcp"
                ours = Answer(*await ask(self._app, method, path, sent, body))
                return ours, Answer(*await ask(theirs, method, "/mcp", sent, body))

        return self._loop.run_until_complete(both())


class Answer:
    """An HTTP answer with what differs from call to call taken out."""

    def __init__(self, status: int, headers: Any, body: bytes) -> None:
        self.status = status
        self.type = headers.get("content-type")
        self.json: Any = _settled(json.loads(body)) if body and self.type == "application/json" else None

    @property
    def code(self) -> int | None:
        """The code of the JSON-RPC error, None where there is none."""
        return self.json["error"]["code"] if self.json and "error" in self.json else None


def _settled(value: Any, name: str = "") -> Any:
    if isinstance(value, list):
        return [_settled(item) for item in value]
    if isinstance(value, dict):
        return {key: "…" if key in CHANGING else _settled(member, key) for key, member in value.items()}
    # The text of a result is JSON itself.
    return _settled(json.loads(value)) if name == "text" and isinstance(value, str) and value[:1] == "{" else value


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    servers = Pair(tmp_path_factory.mktemp("pair"))
    yield servers
    servers.close()


def single(method: str, params: dict[str, Any] | None = None, **headers: str) -> Question:
    """Return a request that stands alone, with the headers that it needs."""
    params = params or {}
    named = params.get(NAMED.get(method, ""))
    sent = {"mcp-protocol-version": SINGLE, "mcp-method": method, **({"mcp-name": named} if named else {})}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    return "POST", sent, {"jsonrpc": "2.0", "id": 7, "method": method, "params": {"_meta": META, **params}}


def within(revision: str, method: str, params: dict[str, Any] | None = None) -> Question:
    """Return a request after a handshake that agreed on this revision."""
    message = {"jsonrpc": "2.0", "id": "abc", "method": method, **({"params": params} if params is not None else {})}
    return "POST", {"mcp-protocol-version": revision}, message


def initialize(revision: Any) -> Question:
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return "POST", {}, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


CALLS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "aap://search/capabilities"}),
    ("resources/read", {"uri": "aap://dealer/profile"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "find_me_a_car"}),
    ("prompts/get", {"name": "find_me_a_car", "arguments": {"wish": "a wagon", "budget": "20000"}}),
    ("tools/call", {"name": "aap_dealer_information"}),
    ("tools/call", {"name": "aap_dealer_information", "arguments": {}}),
    ("tools/call", {"name": "aap_inventory_facets", "arguments": {"filters": {"make": ["Toyota"]}}}),
    (
        "tools/call",
        {
            "name": "aap_inventory_search",
            "arguments": {"filters": {"price_max": 30000}, "sort": {"field": "price", "order": "asc"}},
        },
    ),
    ("tools/call", {"name": "aap_inventory_vehicle", "arguments": {"stock": "T12345"}}),
    ("tools/call", {"name": "aap_inventory_vehicle", "arguments": {"stock": "nothing"}}),
    ("tools/call", {"name": "aap_inventory_search", "arguments": {"filters": {"price_max": "cheap"}, "more": 1}}),
    ("tools/call", {"name": "aap_lead_submit", "arguments": {"message": "hello"}}),
    ("tools/call", {"name": "aap_inventory_search", "arguments": {"type": "vehicle.reserve.request"}}),
]


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("revision", [*HANDSHAKES, SINGLE])
def test_every_good_request_has_the_same_answer(revision: str, contract: str, pair: Pair) -> None:
    for method, params in CALLS:
        question = single(method, params) if revision == SINGLE else within(revision, method, params)
        ours, theirs = pair.answers(contract, question)
        assert ours.json is not None
        assert "result" in ours.json, (method, ours.json)
        assert (ours.status, ours.json) == (theirs.status, theirs.json), (method, params)


@pytest.mark.parametrize("revision", [*HANDSHAKES, SINGLE, "1999-01-01", "latest"])
def test_the_handshake_agrees_on_the_same_revision(revision: str, pair: Pair) -> None:
    ours, theirs = pair.answers("3.1", initialize(revision))
    assert ours.json["result"]["protocolVersion"] == (revision if revision in HANDSHAKES else "2025-11-25")
    assert (ours.status, ours.json) == (theirs.status, theirs.json)


def test_the_discovery_is_the_same(pair: Pair) -> None:
    ours, theirs = pair.answers("3.1", single("server/discover"))
    assert ours.json["result"]["supportedVersions"] == [SINGLE]
    assert (ours.status, ours.json) == (theirs.status, theirs.json)


@pytest.mark.parametrize("revision", HANDSHAKES)
def test_a_ping_is_answered_the_same(revision: str, pair: Pair) -> None:
    ours, theirs = pair.answers("3.1", within(revision, "ping"))
    assert (ours.status, ours.json) == (200, {"jsonrpc": "2.0", "id": "abc", "result": {}})
    assert ours.json == theirs.json


@pytest.mark.parametrize(
    "question",
    [
        ("POST", {"mcp-protocol-version": "2025-06-18"}, {"jsonrpc": "2.0", "method": "notifications/initialized"}),
        ("POST", {}, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        ("POST", {"mcp-protocol-version": SINGLE}, {"jsonrpc": "2.0", "method": "notifications/cancelled"}),
        ("POST", {"mcp-protocol-version": SINGLE}, {"jsonrpc": "2.0", "method": "of/no/kind", "params": {}}),
        ("POST", {}, {"jsonrpc": "2.0", "id": 1, "result": {}}),
        ("POST", {}, {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}}),
    ],
)
def test_what_needs_no_answer_is_taken_in_the_same(question: Question, pair: Pair) -> None:
    ours, theirs = pair.answers("3.1", question)
    assert (ours.status, ours.json) == (theirs.status, theirs.json) == (202, None)


def _changed(question: Question, **changes: Any) -> Question:
    method, headers, message = question
    return method, headers, {**message, **changes}


def _meta(**changes: Any) -> dict[str, Any]:
    changed = {**META, **{f"io.modelcontextprotocol/{name}": value for name, value in changes.items()}}
    return {"_meta": {name: value for name, value in changed.items() if value is not ...}}


REFUSED: Final[dict[str, tuple[Question, int, int]]] = {
    "truncated": (("POST", {"mcp-protocol-version": SINGLE}, b'{"jsonrpc": "2.0",'), 400, -32700),
    "truncated, older": (("POST", {}, b'{"jsonrpc": "2.0",'), 400, -32700),
    "empty": (("POST", {}, b""), 400, -32700),
    "a batch": (("POST", {"mcp-protocol-version": SINGLE}, [single("tools/list")[2]]), 400, -32600),
    "a response": (("POST", {"mcp-protocol-version": SINGLE}, {"jsonrpc": "2.0", "id": 1, "result": {}}), 400, -32600),
    "a null id": (_changed(single("tools/list"), id=None), 400, -32600),
    "an id that is a fraction": (_changed(single("tools/list"), id=1.5), 400, -32600),
    "an id that is true": (_changed(single("tools/list"), id=True), 400, -32600),
    "another JSON-RPC": (_changed(single("tools/list"), jsonrpc="1.0"), 400, -32600),
    "params in a list": (_changed(single("tools/list"), params=[]), 400, -32600),
    "a method that is a number": (_changed(single("tools/list"), method=7), 400, -32600),
    "no _meta": (("POST", single("tools/list")[1], {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), 400, -32602),
    "_meta that is a list": (_changed(single("tools/list"), params={"_meta": []}), 400, -32602),
    "no revision in _meta": (single("tools/list", _meta(protocolVersion=...)), 400, -32602),
    "no capabilities in _meta": (single("tools/list", _meta(clientCapabilities=...)), 400, -32602),
    "capabilities that are a list": (single("tools/list", _meta(clientCapabilities=[])), 400, -32602),
    "a client without a version": (single("tools/list", _meta(clientInfo={"name": "x"})), 400, -32602),
    "another revision in _meta": (single("tools/list", _meta(protocolVersion="2025-11-25")), 400, -32020),
    "a null revision in _meta": (single("tools/list", _meta(protocolVersion=None)), 400, -32020),
    "another method in the header": (single("tools/list", mcp_method="tools/call"), 400, -32020),
    "no method in the header": (single("tools/list", mcp_method=""), 400, -32020),
    "another name in the header": (single("tools/call", {"name": "aap_lead_submit"}, mcp_name="x"), 400, -32020),
    "no name in the header": (single("tools/call", {"name": "aap_lead_submit"}, mcp_name=""), 400, -32020),
    "a broken name in the header": (
        single("tools/call", {"name": "aap_lead_submit"}, mcp_name="=?base64?YWFw*?="), 400, -32020
    ),
    "a revision to come": (
        single("tools/list", _meta(protocolVersion="2027-01-01"), mcp_protocol_version="2027-01-01"), 400, -32022
    ),
    "a notification of a revision to come": (
        ("POST", {"mcp-protocol-version": "2027-01-01"}, {"jsonrpc": "2.0", "method": "notifications/cancelled"}),
        400,
        -32022,
    ),
    "initialize on its own": (single("initialize", initialize("2025-11-25")[2]["params"]), 404, -32601),
    "ping on its own": (single("ping"), 404, -32601),
    "no such method on its own": (single("tools/mend"), 404, -32601),
    "logging on its own": (single("logging/setLevel", {"level": "debug"}), 404, -32601),
    "no such tool on its own": (single("tools/call", {"name": "aap_vehicle_reserve"}), 400, -32602),
    "no tool on its own": (single("tools/call"), 400, -32602),
    "a tool that is a number on its own": (
        _changed(single("tools/call"), params={"name": 7, "_meta": META}), 400, -32020
    ),
    "arguments in a list on its own": (
        single("tools/call", {"name": "aap_inventory_search", "arguments": [1]}), 400, -32602
    ),
    "no such resource on its own": (single("resources/read", {"uri": "aap://nothing"}), 400, -32602),
    "no such prompt on its own": (single("prompts/get", {"name": "sell_me_a_car"}), 400, -32602),
    "a prompt's arguments that are no texts": (
        single("prompts/get", {"name": "find_me_a_car", "arguments": {"wish": 7}}), 400, -32602
    ),
    "no such method": (within("2025-11-25", "tools/mend"), 200, -32601),
    "discovery in an older revision": (within("2025-11-25", "server/discover"), 200, -32601),
    "logging": (within("2025-11-25", "logging/setLevel", {"level": "debug"}), 200, -32601),
    "completion": (
        within(
            "2025-11-25",
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "find_me_a_car"}, "argument": {"name": "wish", "value": "a"}},
        ),
        200,
        -32601,
    ),
    "no such tool": (within("2025-06-18", "tools/call", {"name": "aap_vehicle_reserve"}), 200, -32602),
    "no tool": (within("2025-06-18", "tools/call", {}), 200, -32602),
    "arguments in a list": (
        within("2025-06-18", "tools/call", {"name": "aap_inventory_search", "arguments": [1]}), 200, -32602
    ),
    "no such resource": (within("2025-06-18", "resources/read", {"uri": "aap://nothing"}), 200, -32002),
    "no such prompt": (within("2025-06-18", "prompts/get", {"name": "sell_me_a_car"}), 200, -32602),
    "a handshake without a client": (
        ("POST", {}, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}),
        200,
        -32602,
    ),
    "a handshake about nothing": (initialize(None), 200, -32602),
}  # fmt: skip
"""What is asked -> the status and the code that both servers give; their words differ."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_refused_the_same(name: str, pair: Pair) -> None:
    question, status, code = REFUSED[name]
    ours, theirs = pair.answers("3.1", question)
    assert (ours.status, ours.code) == (status, code)
    assert (theirs.status, theirs.code) == (status, code)
    assert ours.json["id"] == theirs.json["id"]
    if code == -32022:
        assert ours.json["error"]["data"] == theirs.json["error"]["data"]


DIFFERENT: Final[dict[str, tuple[Question, tuple[int, int | None], tuple[int, int | None]]]] = {
    # A content type that cannot be read is 415 in HTTP (RFC 9110 section 15.5.16).
    "a form": (("POST", {"content-type": "application/x-www-form-urlencoded"}, b"a=b"), (415, -32600), (400, None)),
    # Both refuse; ours says in the body why.
    "only a stream": (("POST", {**single("tools/list")[1], "accept": "text/event-stream"}, single("tools/list")[2]),
                      (406, -32600), (406, None)),
    # No Accept header takes everything (RFC 9110 section 12.5.1).
    "no Accept": (("POST", {**single("tools/list")[1], "accept": ""}, single("tools/list")[2]),
                  (200, None), (406, None)),
    # What is no request is -32600 in JSON-RPC 2.0 (section 5.1), whatever the revision.
    "a batch in an older revision": (("POST", {}, [within("2025-11-25", "ping")[2]]), (400, -32600), (400, -32602)),
    "a null id in an older revision": (_changed(within("2025-11-25", "ping"), id=None), (400, -32600), (202, None)),
    # The version header must be there (MCP 2026-07-28); without it this is no request of an older revision.
    "no revision in the header": (single("tools/list", mcp_protocol_version=""), (400, -32020), (200, None)),
    # A member given twice is read differently by different readers (RFC 8259 section 4).
    "a member twice": (("POST", {}, b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}'), (400, -32700), (200, None)),
    # There is no second page.
    "a cursor": (within("2025-11-25", "tools/list", {"cursor": "x"}), (200, -32602), (200, None)),
    # An argument that several hosts send as text.
    "arguments as text": (
        within("2025-11-25", "tools/call", {"name": "aap_dealer_information", "arguments": "{}"}),
        (200, None), (200, -32602),
    ),
}  # fmt: skip
"""Where the two differ and why: what is asked -> our status and code, and the SDK's."""


@pytest.mark.parametrize("name", DIFFERENT)
def test_where_the_answers_differ_there_is_a_reason(name: str, pair: Pair) -> None:
    question, ours, theirs = DIFFERENT[name]
    mine, sdk = pair.answers("3.1", question)
    assert (mine.status, mine.code) == ours
    assert (sdk.status, sdk.code) == theirs
