"""Who is let in, and what may be fetched of them: never a loopback, private or link-local address, however hidden."""

import asyncio
import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from personal_agent_protocol.errors import DiscoveryError
from personal_agent_protocol.reactor import ApprovedUrl, DiscoveryResponse, MetadataFetch
from tests.server.pap.dealer import PUBLIC, Dealer, agent, open_dealer

from forecourt.server.pap import identity
from forecourt.server.pap.identity import AgentPolicy, BoundedTransport, BusyError, PublicAddresses, SystemResolver

SOMEBODY, OTHER = "https://agent.example.com/agent.json", "https://other.example.com/agent.json"


@pytest.mark.parametrize(
    ("allow", "deny", "let_in"),
    [
        ([], [], {SOMEBODY, OTHER}),
        ([SOMEBODY], [], {SOMEBODY}),
        ([], [SOMEBODY], {OTHER}),
        ([SOMEBODY, OTHER], [SOMEBODY], {OTHER}),
    ],
)
def test_an_agent_is_let_in_unless_denied_and_where_some_are_allowed_only_if_among_them(
    allow: list[str], deny: list[str], let_in: set[str]
) -> None:
    policy = AgentPolicy(allow, deny)
    assert {each for each in (SOMEBODY, OTHER) if policy.admits(each)} == let_in


def test_nothing_is_fetched_of_an_agent_that_is_denied(tmp_path: Path, runner: asyncio.Runner) -> None:
    caller = agent()
    dealer = open_dealer(tmp_path, runner, policy=AgentPolicy((), (caller.agent_id,)))
    dealer.network.publish(caller)
    answer = dealer.ask(caller)
    assert (answer.status, json.loads(answer.body)) == (401, {"error": "invalid_client"})
    assert dealer.network.asked == []
    dealer.close()


def test_an_agent_that_is_denied_later_loses_its_session(tmp_path: Path, runner: asyncio.Runner) -> None:
    from personal_agent_protocol.company import CompanyRequest
    from tests.pap_agent import BASE

    from forecourt.binding import Answer

    caller = agent()
    dealer = open_dealer(tmp_path, runner)
    dealer.network.publish(caller)
    dealer.start(caller)
    dealer.close()
    again = open_dealer(tmp_path, runner, policy=AgentPolicy((), (caller.agent_id,)))
    url = f"{BASE}/api/inventory.search"
    headers = {"authorization": f"DPoP {caller.token}", "dpop": caller.proof("POST", url)}
    answer = runner.run(again.company.caller(CompanyRequest("POST", url, headers)))
    assert isinstance(answer, Answer)
    assert json.loads(answer.body) == {"error": "invalid_token"}
    again.close()


FORBIDDEN = {
    "loopback": "127.0.0.1",
    "loopback of another kind": "127.8.9.10",
    "this host": "0.0.0.0",
    "private": "10.1.2.3",
    "private too": "192.168.1.1",
    "shared": "100.64.0.1",
    "link-local, where clouds keep credentials": "169.254.169.254",
    "multicast": "224.0.0.1",
    "documentation": "192.0.2.1",
    "loopback in IPv6": "::1",
    "mapped loopback": "::ffff:127.0.0.1",
    "mapped private": "::ffff:10.0.0.1",
    "compatible loopback": "::127.0.0.1",
    "NAT64 of loopback": "64:ff9b::7f00:1",
    "NAT64 of link-local": "64:ff9b::a9fe:a9fe",
    "NAT64 for local use": "64:ff9b:1::808:808",
    "6to4 of loopback": "2002:7f00:1::",
    "6to4 of private": "2002:a00:1::1",
    "Teredo": "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "unique local": "fd00::1",
    "link-local in IPv6": "fe80::1",
    "site-local": "fec0::1",
    "multicast in IPv6": "ff02::1",
    "no address": "nowhere",
}


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_nothing_is_fetched_from_an_address_that_is_not_public(kind: str, dealer: Dealer) -> None:
    caller = agent()
    dealer.network.publish(caller)
    for found in ([FORBIDDEN[kind]], [PUBLIC, FORBIDDEN[kind]]):
        dealer.network.addresses["agent.example.com"] = found
        answer = dealer.ask(caller)
        assert (answer.status, json.loads(answer.body)) == (401, {"error": "invalid_client"})
    assert dealer.network.asked == []


@pytest.mark.parametrize(
    "client_id",
    [
        "http://agent.example.com/agent.json",
        "https://agent.example.com:8443/agent.json",
        "https://agent.example.com:x/agent.json",
        "https://agent@agent.example.com/agent.json",
        "https://agent.example.com/agent.json#part",
        "https:///agent.json",
        "file:///etc/passwd",
        "agent",
        "https://[::1]/agent.json",
        "https://\ud800.example.com/agent.json".encode("utf-8", "replace").decode(),
        "https://agent.example.com/" + "x" * 3000,
        "https://agent.example.com/\x00",
    ],
)
def test_nothing_is_fetched_from_an_address_that_is_not_plain_https(client_id: str, dealer: Dealer) -> None:
    dealer.network.addresses["::1"] = ["::1"]
    answer = dealer.ask(agent(client_id))
    assert answer.status in (400, 401), answer
    assert json.loads(answer.body)["error"] in ("invalid_client", "invalid_request")
    assert [each for each in dealer.network.asked if not each.startswith("https://agent.example.com/%00")] == []


@pytest.mark.parametrize(
    "target", ["http://agent.example.com/elsewhere", "https://127.0.0.1/x", "https://b.example.com/"]
)
def test_metadata_are_not_looked_for_where_a_redirect_leads(target: str, dealer: Dealer) -> None:
    caller = agent()
    dealer.network.publish(caller)
    dealer.network.documents[caller.agent_id] = httpx.Response(302, headers={"location": target})
    assert dealer.ask(caller).status == 401
    assert dealer.network.asked == [caller.agent_id]


@pytest.mark.parametrize(
    "target", ["http://agent.example.com/keys", "https://127.0.0.1/keys", "https://b.example.com/k"]
)
def test_keys_are_not_looked_for_where_a_redirect_leaves_the_agents_host_or_https(target: str, dealer: Dealer) -> None:
    caller = agent()
    dealer.network.publish(caller)
    keys = "https://agent.example.com/jwks.json"
    dealer.network.documents[keys] = httpx.Response(302, headers={"location": target})
    assert dealer.ask(caller).status in (400, 401)
    assert dealer.network.asked == [caller.agent_id, keys]


def test_what_a_name_led_to_is_looked_at_again_before_every_fetch(dealer: Dealer) -> None:
    caller = agent()
    dealer.network.publish(caller)
    looked_up = iter([[PUBLIC], ["127.0.0.1"]])

    async def resolve(_: str) -> list[str]:
        return next(looked_up)

    from personal_agent_protocol.reactor import URL_SAFETY_POLICIES, first_contribution

    policy = first_contribution(dealer.company.reactor, URL_SAFETY_POLICIES, "policy")
    policy._policy._resolver = resolve  # type: ignore[attr-defined]
    assert dealer.ask(caller).status in (400, 401)
    assert dealer.network.asked == [caller.agent_id]


def test_no_more_than_so_many_fetches_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "_FETCHES", 2)

    async def run() -> None:
        go = asyncio.Event()

        class Slow:
            async def get(self, url: str, *, fetch: MetadataFetch) -> DiscoveryResponse:  # noqa: ARG002 - the name that it is called by
                await go.wait()
                return DiscoveryResponse(url=url, status_code=200, headers={}, content=b"{}")

        transport = BoundedTransport(Slow())
        fetch = MetadataFetch(approved=ApprovedUrl(url="u", host="h", addresses=("1.1.1.1",)), max_bytes=1, timeout=1)
        waiting = [asyncio.create_task(transport.get("u", fetch=fetch)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError):
            await transport.get("u", fetch=fetch)
        go.set()
        await asyncio.gather(*waiting)
        await transport.get("u", fetch=fetch)

    asyncio.run(run())


def test_an_agent_that_comes_while_too_much_is_fetched_is_asked_to_wait(
    dealer: Dealer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "_FETCHES", 0)
    caller = agent()
    dealer.network.publish(caller)
    answer = dealer.ask(caller)
    assert (answer.status, json.loads(answer.body)) == (503, {"error": "temporarily_unavailable"})
    assert (b"retry-after", b"5") in answer.headers


def test_a_name_that_nobody_has_is_a_failed_look_up() -> None:
    async def run() -> None:
        resolver = SystemResolver()
        try:
            assert "127.0.0.1" in await resolver("localhost")
            for name in ("nobody.invalid", "a" * 70 + ".invalid", "x\x00y"):
                with pytest.raises(DiscoveryError):
                    await resolver(name)
        finally:
            resolver.close()

    asyncio.run(run())


def test_private_addresses_are_let_through_when_a_test_says_so() -> None:
    async def resolve(_: str) -> list[str]:
        return ["127.0.0.1"]

    url = "https://agent.example.com:8443/agent.json"
    approved = asyncio.run(PublicAddresses(resolve, private=True).assert_safe(url))
    assert approved.addresses == ("127.0.0.1",)
    with pytest.raises(DiscoveryError):
        asyncio.run(PublicAddresses(resolve).assert_safe(url))


@pytest.fixture
def website() -> Iterator[tuple[int, dict[str, Any], ssl.SSLContext]]:
    """A website over TLS at a port of this machine: its documents by path, and what trusts it."""
    authority = trustme.CA()
    documents: dict[str, Any] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(documents.get(self.path)).encode()
            self.send_response(200 if self.path in documents else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the class has
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("agent.example.com").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    try:
        yield server.server_address[1], documents, trusting
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_agents_metadata_are_fetched_over_tls_from_the_address_that_was_checked(
    website: tuple[int, dict[str, Any], ssl.SSLContext], tmp_path: Path, runner: asyncio.Runner
) -> None:
    port, documents, trusting = website
    caller = agent(f"https://agent.example.com:{port}/agent.json")
    dealer = open_dealer(tmp_path, runner, private=True, http=httpx.AsyncClient(verify=trusting, trust_env=False))
    dealer.network.addresses["agent.example.com"] = ["127.0.0.1"]
    dealer.network.publish(caller)
    for url, response in dealer.network.documents.items():
        documents["/" + url.rpartition("/")[2]] = response.json()
    dealer.start(caller)
    assert caller.session_id.startswith("ses_")
    assert dealer.network.asked == []
    dealer.close()
