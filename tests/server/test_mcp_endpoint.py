"""MCP over HTTP, on a running server: addresses, sellers, limits, browsers, faults."""

import contextlib
import http.client
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests.server.running import RunningAgent, lead, running
from tests.server.test_network import NORTH, SOUTH, profile, rows

from forecourt.agent import Agent
from forecourt.binding.mcp import MCPBinding
from forecourt.store import StoreError

SINGLE: Final = "2026-07-28"
HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def message(method: str, params: dict[str, Any] | None = None) -> bytes:
    """Return a request of the older revisions."""
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}).encode()


def call(agent: RunningAgent, name: str, arguments: Any, path: str = "/mcp", **headers: str) -> dict[str, Any]:
    """Call a tool and return its result."""
    body = message("tools/call", {"name": name, "arguments": arguments})
    reply = agent.post(body, path, {**HEADERS, **headers})
    assert reply.status == 200, reply
    result: dict[str, Any] = reply.json()["result"]
    return result


# Addresses and sellers


@pytest.mark.parametrize("path", ["/mcp", "/v3.1/mcp", "/v1.1/mcp", "/dealers/demo-auto-group/mcp"])
def test_every_contract_and_every_seller_has_an_endpoint(path: str, demo: RunningAgent) -> None:
    found = call(demo, "aap_inventory_search", {"pagination": {"limit": 1}}, path)["structuredContent"]["data"]
    assert found["total"] == 554
    assert ("skip" in found) == ("1.1" in path)


def test_the_default_endpoint_is_of_the_newest_contract(demo: RunningAgent) -> None:
    assert "next_cursor" in call(demo, "aap_inventory_search", {})["structuredContent"]["data"]


def test_spaces_around_a_header_are_no_part_of_it(demo: RunningAgent) -> None:
    # RFC 9110 section 5.5: optional whitespace around a field value is taken off before the value is looked at.
    meta = {"io.modelcontextprotocol/protocolVersion": SINGLE, "io.modelcontextprotocol/clientCapabilities": {}}
    body = message("tools/call", {"name": "aap_dealer_information", "arguments": {}, "_meta": meta})
    padded = {
        "MCP-Protocol-Version": f" {SINGLE}\t",
        "Mcp-Method": "\ttools/call ",
        "Mcp-Name": "  aap_dealer_information  ",
    }
    reply = demo.post(body, "/mcp", {**HEADERS, **padded})
    assert reply.status == 200, reply
    assert reply.json()["result"]["structuredContent"]["type"] == "dealer.information.response"


@pytest.mark.parametrize("path", ["/dealers/nobody/mcp", "/v2.0/mcp", "/mcp/"])
def test_an_address_of_nothing_is_not_found(path: str, demo: RunningAgent) -> None:
    assert demo.post(message("ping"), path, HEADERS).status == 404


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAgent]:
    """A network of two sellers with stock."""
    from datetime import UTC, datetime

    folder = tmp_path_factory.mktemp("network")
    dealers = [profile(folder, dealer_id) for dealer_id in (NORTH, SOUTH)]
    with running(folder / "data", dealers=dealers, server={"name": "Demo Network"}) as agent:
        for dealer_id in (NORTH, SOUTH):
            store = agent.app.deployment.store
            agent.run(store.replace_listings(dealer_id, None, rows(dealer_id), datetime.now(UTC)))
        end = time.monotonic() + 10
        while call(agent, "aap_inventory_search", {})["structuredContent"]["data"]["total"] != 5:
            assert time.monotonic() < end
            time.sleep(0.05)
        yield agent


@pytest.mark.parametrize("contract", ["v1.1", "v3.1"])
def test_a_sellers_own_tree_and_its_own_host_show_nothing_of_another(network: RunningAgent, contract: str) -> None:
    for found in (
        call(network, "aap_inventory_facets", {}, f"/dealers/{SOUTH}/{contract}/mcp"),
        call(network, "aap_inventory_facets", {}, f"/{contract}/mcp", Host=f"{SOUTH.upper()}.example.com"),
    ):
        assert found["structuredContent"]["data"]["price_range"] == {"min": 21_000, "max": 22_000}
    body = message(
        "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    )
    told = network.post(body, f"/dealers/{SOUTH}/mcp", HEADERS).json()["result"]
    assert told["serverInfo"]["title"] == "South.cars Group"
    assert "north" not in json.dumps(told).lower()


def test_a_network_lists_its_sellers_and_gives_their_profiles(network: RunningAgent) -> None:
    def read(uri: str) -> Any:
        reply = network.post(message("resources/read", {"uri": uri}), "/mcp", HEADERS).json()
        return json.loads(reply["result"]["contents"][0]["text"])

    assert [dealer["dealer_id"] for dealer in read("aap://dealers")["dealers"]] == [NORTH, SOUTH]
    assert read(f"aap://dealers/{NORTH}/profile")["data"]["dealer_id"] == NORTH


# Limits


def test_too_many_calls_are_a_result_that_says_how_long_to_wait(tmp_path: Path) -> None:
    with running(tmp_path, limits={"requests": 2, "seconds": 3600}) as agent:
        first, second, third = (call(agent, "aap_dealer_information", {}) for _ in range(3))
    assert (first["isError"], second["isError"], third["isError"]) == (False, False, True)
    assert third["structuredContent"]["code"] == "RATE_LIMITED"
    assert third["structuredContent"]["details"]["retry_after_ms"] > 0


def test_a_body_that_is_too_long_is_refused_and_the_next_one_served(demo: RunningAgent) -> None:
    long = message("tools/call", {"name": "aap_dealer_information", "arguments": {"x": "y" * (1 << 20)}})
    reply = demo.post(long, "/mcp", HEADERS)
    assert (reply.status, reply.json()["error"]["code"], reply.json()["id"]) == (413, -32600, None)
    assert demo.post(message("ping"), "/mcp", HEADERS).json()["result"] == {}


@pytest.mark.parametrize(("length", "status"), [(1024, 200), (1025, 413)])
def test_a_smaller_limit_counts_to_the_byte(length: int, status: int, tmp_path: Path) -> None:
    with running(tmp_path, server={"max_body_bytes": 1024}) as agent:
        assert agent.post(message("ping").ljust(length), "/mcp", HEADERS).status == status


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    with running(tmp_path, server={"body_seconds": 0.2}) as agent:
        head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
        reply = agent.exchange(head.encode())
        assert (reply.status, reply.json()["error"]["code"]) == (408, -32600)


def test_a_caller_that_hangs_up_harms_nobody(demo: RunningAgent) -> None:
    with demo.connection() as connection:
        head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
        connection.sendall(head.encode())
    assert demo.post(message("ping"), "/mcp", HEADERS).status == 200


# Browsers and other methods


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
def test_other_methods_are_not_allowed(method: str, demo: RunningAgent) -> None:
    reply = demo.request(method, "/v3.1/mcp", headers={"Accept": "text/event-stream"})
    assert (reply.status, reply.headers["allow"]) == (405, "POST, OPTIONS")


def test_a_rebound_page_is_turned_away_before_anything_is_read(demo: RunningAgent) -> None:
    evil = {"Host": "evil.example.com", "Origin": "http://evil.example.com"}
    reply = demo.post(message("tools/list"), "/mcp", {**HEADERS, **evil})
    assert (reply.status, reply.json()["error"]["code"]) == (421, -32600)
    other = demo.post(message("tools/list"), "/mcp", {**HEADERS, "Origin": "https://evil.example.com"})
    assert (other.status, other.json()["id"]) == (403, None)
    assert "access-control-allow-origin" not in other.headers
    for method in ("OPTIONS", "GET"):
        assert demo.request(method, "/mcp", headers={"Origin": "https://evil.example.com"}).status == 403


def test_an_allowed_page_may_ask_and_may_read_the_answer(tmp_path: Path) -> None:
    origin = "https://assistant.example.com"
    with running(tmp_path, mcp={"allowed_origins": [origin]}) as agent:
        asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        preflight = agent.request("OPTIONS", "/mcp", headers=asked)
        assert (preflight.status, preflight.headers["access-control-allow-origin"]) == (204, origin)
        assert "mcp-protocol-version" in preflight.headers["access-control-allow-headers"]
        reply = agent.post(message("ping"), "/mcp", {**HEADERS, "Origin": origin})
        assert (reply.status, reply.headers["access-control-allow-origin"], reply.headers["vary"]) == (
            200,
            origin,
            "Origin",
        )


def test_without_an_origin_nothing_is_said_of_one(demo: RunningAgent) -> None:
    headers = demo.post(message("ping"), "/mcp", HEADERS).headers
    assert not [name for name in headers if name.startswith("access-control")]


# Faults and leads


def test_a_fault_of_ours_is_a_result_without_its_text(
    demo: RunningAgent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: Any) -> Any:
        raise RuntimeError("secret zephyrine@example.com")

    monkeypatch.setattr(Agent, "run", fail)
    result = call(demo, "aap_inventory_search", {})
    assert (result["isError"], result["structuredContent"]["code"]) == (True, "INTERNAL_ERROR")
    assert "secret" not in json.dumps(result) + caplog.text
    assert result["structuredContent"]["error_id"] in caplog.text


def test_a_fault_while_reading_is_no_server_error_and_has_no_text(
    demo: RunningAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("secret")

    monkeypatch.setattr(MCPBinding, "read", fail)
    reply = demo.post(message("ping"), "/mcp", HEADERS)
    assert (reply.status, reply.json()["error"]["code"]) == (200, -32603)
    assert b"secret" not in reply.body


def test_a_store_that_fails_is_a_result_that_may_be_tried_again(
    demo: RunningAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> Any:
        raise StoreError("the database is locked")

    monkeypatch.setattr(Agent, "run", fail)
    told = call(demo, "aap_lead_submit", {})["structuredContent"]
    assert (told["code"], told["retryable"]) == ("SCHEMA_VALIDATION_FAILED", False)
    good = {name: value for name, value in lead().items() if name != "type"}
    told = call(demo, "aap_lead_submit", good)["structuredContent"]
    assert (told["code"], told["retryable"]) == ("INTERNAL_ERROR", True)


@pytest.mark.parametrize("contract", ["1.1", "3.1"])
def test_a_lead_is_the_same_lead_over_another_binding(contract: str, demo: RunningAgent) -> None:
    """The same key and content give the first answer, byte for byte, whatever the binding (CONTRACTS.md section 6)."""
    made = lead(idempotency_key=f"over-two-bindings-{contract}")
    first = call(demo, "aap_lead_submit", made, f"/v{contract}/mcp")
    again = demo.call(made, f"/v{contract}/a2a")["result"]["message"]["parts"][0]["data"]
    assert first["structuredContent"] == again
    texts = {**made, "customer": json.dumps(made["customer"]), "consent": json.dumps(made["consent"])}
    assert call(demo, "aap_lead_submit", texts, f"/v{contract}/mcp")["content"] == first["content"]


def test_many_calls_on_one_connection_are_answered_in_turn(demo: RunningAgent) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", demo.port, timeout=20)
    with contextlib.closing(connection):
        for number in range(5):
            body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"})
            connection.request("POST", "/mcp", body, HEADERS)
            assert json.loads(connection.getresponse().read())["id"] == number
