"""Credentials over MCP: what is refused and where a host is sent for a token (RFC 9728), over real sockets."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from tests.server.issuer import bearer, issuer
from tests.server.running import Reply, RunningAgent, lead, running
from tests.server.test_admission import READS, make_key, network

HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
INITIALIZE: Final = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def send(agent: RunningAgent, method: str, params: Any = None, path: str = "/mcp", **headers: str) -> Reply:
    """Send one request; underscores in header names stand for hyphens."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return agent.request("POST", path, body, {**HEADERS, **named})


def tool(agent: RunningAgent, name: str, arguments: Any = None, path: str = "/mcp", **headers: str) -> Reply:
    """Call a tool."""
    return send(agent, "tools/call", {"name": name, "arguments": arguments or {}}, path, **headers)


def metadata_url(reply: Reply) -> str | None:
    """Return where a challenge sends its reader."""
    found = re.search(r'resource_metadata="([^"]*)"', reply.headers["www-authenticate"])
    return found[1] if found else None


@dataclass(frozen=True)
class Guarded:
    """An agent and the issuer whose tokens it takes."""

    agent: RunningAgent
    address: str


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Two sellers, the first with a host name, behind keys and an issuer; nothing is public."""
    folder = tmp_path_factory.mktemp("closed")
    dealers = network(folder)
    dealers[0]["hosts"] = ["a.example.com"]
    with issuer() as address:
        oauth = {"issuer": address, "audience": "dealer", "scopes": {"lead.submit": "leads"}}
        with running(folder, access={"public": [], "keys": True, "oauth": oauth}, dealers=dealers) as agent:
            yield Guarded(agent, address)


@pytest.fixture(scope="module")
def partly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A demo dealer whose reading is open to all and whose leads need a token."""
    with issuer() as address:
        oauth = {"issuer": address, "audience": "dealer", "scopes": {"lead.submit": "leads"}}
        with running(tmp_path_factory.mktemp("partly"), access={"public": READS, "oauth": oauth}) as agent:
            yield Guarded(agent, address)


# Discovery


@pytest.mark.requirement("ERR-PROTOCOL-MCP-DISCOVERY")
@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/mcp", None),
        ("/v3.1/mcp", None),
        ("/v1.1/mcp", None),
        ("/dealers/b/mcp", "Seller b"),
        ("/dealers/b/v1.1/mcp", "Seller b"),
    ],
)
def test_a_host_that_connects_is_led_to_the_issuer(path: str, name: str | None, closed: Guarded) -> None:
    agent = closed.agent
    refused = send(agent, "initialize", INITIALIZE, path)
    assert refused.status == 401
    assert refused.headers["www-authenticate"].startswith("Bearer ")
    assert "result" not in refused.json()
    where = metadata_url(refused)
    assert where == f"{agent.base_url}{WELL_KNOWN}{path}"
    answer = agent.get(where.removeprefix(agent.base_url))
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.headers["access-control-allow-origin"] == "*"
    metadata = answer.json()
    # RFC 9728 section 3.3: the resource is the address that the client asked.
    assert metadata["resource"] == agent.base_url + path
    assert metadata["authorization_servers"] == [closed.address]
    assert metadata["scopes_supported"] == ["leads"]
    assert metadata["bearer_methods_supported"] == ["header"]
    assert metadata["resource_name"] == (name or agent.app.deployment.name)
    assert "result" in send(agent, "initialize", INITIALIZE, path, Authorization=bearer(closed.address)).json()


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/a2a",
        "/nothing/mcp",
        "/v9.9/mcp",
        "/dealers/nobody/mcp",
        "/dealers/a/b/mcp",
        "/dealers//mcp",
        "/dealers/mcp",
        "//mcp",
        "/mcp/",
        ".example.com/mcp",
        "@example.com/mcp",
    ],
)
def test_there_is_metadata_for_endpoints_only(path: str, closed: Guarded) -> None:
    assert closed.agent.get(WELL_KNOWN + path).status == 404


@pytest.mark.parametrize("host", ["a.example.com", "A.Example.com:8443", "a.example.com."])
def test_at_a_sellers_host_name_there_is_only_that_seller(host: str, closed: Guarded) -> None:
    agent = closed.agent
    refused = send(agent, "initialize", INITIALIZE, Host=host)
    assert refused.status == 401
    assert metadata_url(refused) == f"http://{host.lower()}{WELL_KNOWN}/mcp"
    metadata = agent.get(f"{WELL_KNOWN}/mcp", Host=host.lower()).json()
    assert metadata["resource"] == f"http://{host.lower()}/mcp"
    assert metadata["resource_name"] == "Seller a"
    assert agent.get(f"{WELL_KNOWN}/dealers/a/mcp", Host=host).status == 404


def test_behind_a_public_address_with_a_path_that_address_is_named(tmp_path: Path) -> None:
    dealers = network(tmp_path)
    dealers[0]["hosts"] = ["a.example.com"]
    with issuer() as address:
        access = {"public": [], "oauth": {"issuer": address, "audience": "dealer"}}
        server = {"public_url": "https://example.com/de"}
        with running(tmp_path, access=access, server=server, dealers=dealers) as agent:
            for path in ("/mcp", "/dealers/b/v1.1/mcp"):
                refused = send(agent, "initialize", INITIALIZE, path, Host="example.com")
                assert metadata_url(refused) == f"https://example.com{WELL_KNOWN}/de{path}"
                # Whether or not a proxy took the path off.
                for place in (f"/de{path}", path):
                    metadata = agent.get(WELL_KNOWN + place, Host="example.com").json()
                    assert metadata["resource"] == f"https://example.com/de{path}"
                    # RFC 9728 section 3.2: what has no elements is left out.
                    assert "scopes_supported" not in metadata
            refused = send(agent, "initialize", INITIALIZE, Host="A.example.com")
            assert metadata_url(refused) == f"https://a.example.com{WELL_KNOWN}/mcp"
            assert agent.get(f"{WELL_KNOWN}/mcp", Host="a.example.com").json()["resource"] == (
                "https://a.example.com/mcp"
            )


def test_with_keys_alone_no_challenge_leads_anywhere(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    with running(tmp_path, access={"public": [], "keys": True}) as agent:
        refused = send(agent, "initialize", INITIALIZE)
        assert refused.status == 401
        assert refused.headers["www-authenticate"] == 'Bearer realm="forecourt"'
        assert agent.get(f"{WELL_KNOWN}/mcp").status == 404
        for headers in ({"X_API_Key": key}, {"Authorization": f"Bearer {key}"}):
            assert "result" in send(agent, "initialize", INITIALIZE, **headers).json()


def test_an_open_agent_has_no_metadata(demo: RunningAgent) -> None:
    assert demo.get(f"{WELL_KNOWN}/mcp").status == 404
    assert "result" in send(demo, "initialize", INITIALIZE, Authorization="Bearer x").json()


@pytest.mark.parametrize(("host", "status"), [(None, 401), ("", 401), ('x",evil="y', 400), ("x/y", 400)])
def test_a_host_that_cannot_be_named_is_not_named(host: str | None, status: int, tmp_path: Path) -> None:
    with issuer() as address:
        access = {"public": [], "oauth": {"issuer": address, "audience": "dealer"}}
        with running(tmp_path, access=access, server={"host": "0.0.0.0"}) as agent:
            line = "" if host is None else f"Host: {host}\r\n"
            refused = agent.exchange(
                f"POST /mcp HTTP/1.0\r\n{line}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}".encode()
            )
            assert refused.status == status
            assert refused.headers.get("www-authenticate") == ('Bearer realm="forecourt"' if status == 401 else None)
            within = send(agent, "initialize", INITIALIZE, Host="dealer_agent:8000")
            assert metadata_url(within) == f"http://dealer_agent:8000{WELL_KNOWN}/mcp"


# What a credential opens


def test_where_reading_is_public_only_the_lead_asks_for_a_token(partly: Guarded) -> None:
    agent = partly.agent
    for method, params in (("initialize", INITIALIZE), ("tools/list", None), ("resources/list", None)):
        assert "result" in send(agent, method, params).json()
    assert tool(agent, "aap_inventory_search").json()["result"]["isError"] is False
    refused = tool(agent, "aap_lead_submit", lead())
    assert refused.status == 401
    assert 'scope="leads"' in refused.headers["www-authenticate"]
    assert metadata_url(refused) == f"{agent.base_url}{WELL_KNOWN}/mcp"
    assert "aap.error" not in refused.body.decode()
    assert agent.get(f"{WELL_KNOWN}/mcp").status == 200


def test_a_token_without_the_scope_is_told_which_it_lacks(partly: Guarded) -> None:
    agent = partly.agent
    refused = tool(agent, "aap_lead_submit", lead(), Authorization=bearer(partly.address, scope="cars"))
    assert refused.status == 403
    challenge = refused.headers["www-authenticate"]
    assert 'error="insufficient_scope", scope="leads"' in challenge
    assert metadata_url(refused) == f"{agent.base_url}{WELL_KNOWN}/mcp"
    answer = tool(agent, "aap_lead_submit", lead(), Authorization=bearer(partly.address, scope="cars leads"))
    assert answer.json()["result"]["isError"] is False


@pytest.mark.parametrize("method", ["initialize", "ping", "tools/list", "resources/list", "nonsense"])
def test_a_credential_that_is_not_good_is_refused_whatever_is_asked(method: str, partly: Guarded) -> None:
    expired = bearer(partly.address, exp=1)
    for headers in ({"Authorization": expired}, {"Authorization": "Basic eDp5"}, {"X_API_Key": "fck_guess"}):
        refused = send(partly.agent, method, INITIALIZE if method == "initialize" else None, **headers)
        assert refused.status == 401
        assert metadata_url(refused) == f"{partly.agent.base_url}{WELL_KNOWN}/mcp"
        assert expired.removeprefix("Bearer ") not in refused.body.decode()


def test_a_key_for_one_seller_reaches_that_seller_alone(closed: Guarded) -> None:
    agent = closed.agent
    key = make_key(agent.folder, sellers=("a",))
    found = tool(agent, "aap_dealer_information", X_API_Key=key).json()["result"]
    assert found["structuredContent"]["data"]["name"] == "Seller a"
    for dealer_id in ("b", "nobody"):
        failed = tool(agent, "aap_dealer_information", {"dealer_id": dealer_id}, X_API_Key=key).json()["result"]
        assert failed["structuredContent"]["code"] == "DEALER_NOT_FOUND"
    assert tool(agent, "aap_dealer_information", path="/dealers/a/mcp", X_API_Key=key).status == 200
    # Lists and resources are as if there were no other seller.
    listed = [each["uri"] for each in send(agent, "resources/list", X_API_Key=key).json()["result"]["resources"]]
    assert "aap://dealer/profile" in listed
    assert "aap://dealers" not in listed
    for uri, known in (("aap://dealer/profile", True), ("aap://dealers", False), ("aap://dealers/b/profile", False)):
        read = send(agent, "resources/read", {"uri": uri}, X_API_Key=key)
        assert ("result" in read.json()) == known
        assert "Seller b" not in read.body.decode()
    assert "Seller b" not in send(agent, "initialize", INITIALIZE, X_API_Key=key).body.decode()
    assert send(agent, "initialize", INITIALIZE, "/dealers/b/mcp", X_API_Key=key).status == 403
    elsewhere = tool(agent, "aap_dealer_information", path="/dealers/b/mcp", X_API_Key=key)
    assert elsewhere.status == 403
    assert "www-authenticate" not in elsewhere.headers


def test_guesses_are_counted_before_any_message_is_read(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    limits = {"requests": 2, "seconds": 60}
    with running(tmp_path, access={"public": [], "keys": True}, limits=limits) as agent:
        assert send(agent, "initialize", INITIALIZE).status == 401
        assert send(agent, "initialize", INITIALIZE, X_API_Key="fck_guess").status == 401
        refused = send(agent, "initialize", INITIALIZE, X_API_Key="fck_guess")
        assert refused.status == 429
        assert 0 < int(refused.headers["retry-after"]) <= 60
        counted = agent.get("/metrics").body.decode()
        for outcome, count in (("RATE_LIMITED", 1), ("invalid_request", 2)):
            assert re.search(rf'forecourt_requests_total\{{[^}}]*"{outcome}"[^}}]*\}} {count}(\.0)?\n', counted), (
                counted
            )
        # Others at that address who have a key are not kept out.
        assert "result" in send(agent, "initialize", INITIALIZE, X_API_Key=key).json()


def test_pages_in_a_browser_may_send_credentials_and_read_the_challenge(closed: Guarded) -> None:
    agent = closed.agent
    origin = {"Origin": agent.base_url}
    preflight = agent.request("OPTIONS", "/mcp", headers={**origin, "Access-Control-Request-Method": "POST"})
    assert preflight.status == 204
    allowed = preflight.headers["access-control-allow-headers"].split(", ")
    assert {"authorization", "x-api-key"} <= set(allowed)
    refused = send(agent, "initialize", INITIALIZE, **origin)
    assert refused.status == 401
    assert refused.headers["access-control-expose-headers"] == "www-authenticate"
