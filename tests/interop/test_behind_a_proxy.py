"""Two processes behind nginx and behind Caddy, with the configurations that `deploy/` ships, from outside, over TLS."""

import asyncio
import contextlib
import json
import signal
import socket
import threading
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final, cast

import pytest
from tests.interop.front import NAME, PROXIES, Front, Upstream, front, until, upstreams
from tests.pap_agent import BASE, PAPAgent
from tests.server.running import JSON, Reply, aap_error, envelope, lead, search
from tests.server_process import ServerProcess

EXTENSION: Final = "https://autoagentprotocol.org/extensions/aap/v3.1"
ACTIVE: Final = {**JSON, "A2A-Extensions": EXTENSION}
SHOPPERS: Final = {"caddy": ("127.0.0.3", "127.0.0.4"), "nginx": ("127.0.0.5", "127.0.0.6")}
"""Two addresses each, since both proxies stand before the same processes, which count."""
LIMIT: Final = 1024 * 1024
"""The shipped configuration keeps the default of server.max_body_bytes."""


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Upstream]]:
    with upstreams(tmp_path_factory.mktemp("upstreams")) as made:
        yield made


@pytest.fixture(scope="module", params=sorted(PROXIES))
def proxy(
    request: pytest.FixtureRequest, behind: list[Upstream], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    with front(request.param, tmp_path_factory.mktemp(request.param), behind, request.config) as made:
        made.restore()
        yield made


def _post(proxy: Front, payload: Any, source: str = "127.0.0.2", **headers: str) -> Reply:
    body = json.dumps(envelope(payload)).encode()
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return proxy.request("POST", "/a2a", body, {**ACTIVE, **given}, source)


def test_it_speaks_http_2_and_tls_of_this_decade(proxy: Front) -> None:
    trusted = proxy.trusted()
    trusted.set_alpn_protocols(["h2", "http/1.1"])
    with (
        socket.create_connection(("127.0.0.1", proxy.port), 20) as plain,
        trusted.wrap_socket(plain, server_hostname=NAME) as secure,
    ):
        assert secure.selected_alpn_protocol() == "h2"
        assert secure.version() in ("TLSv1.2", "TLSv1.3")


def test_the_card_names_the_public_address(proxy: Front) -> None:
    reply = proxy.request("GET", "/.well-known/agent-card.json")
    card = reply.json()
    assert {interface["url"] for interface in card["supportedInterfaces"]} == {f"https://{NAME}/a2a"}
    assert reply.headers["strict-transport-security"] == "max-age=31536000"


def test_a_card_that_has_not_changed_is_not_sent_again(proxy: Front) -> None:
    path = "/.well-known/agent-card.json"
    first = proxy.request("GET", path, headers={"Accept-Encoding": "gzip"})
    assert first.headers["content-encoding"] == "gzip"
    again = proxy.request("GET", path, headers={"Accept-Encoding": "gzip", "If-None-Match": first.headers["etag"]})
    assert again.status == HTTPStatus.NOT_MODIFIED


def test_a2a_goes_through_with_its_headers(proxy: Front) -> None:
    reply = _post(proxy, search())
    assert reply.status == 200
    assert reply.headers["a2a-extensions"] == EXTENSION
    assert reply.headers["content-type"] == "application/json"
    data = reply.json()["result"]["message"]["parts"][0]["data"]
    assert data["data"]["total"] == 2
    old = proxy.request("POST", "/v1.1/a2a", json.dumps(envelope(search())).encode(), {**JSON, "A2A-Version": "2.0"})
    assert old.json()["error"]["code"] == -32009


def test_the_caller_learns_the_id_under_which_its_request_is_logged(proxy: Front) -> None:
    told = _post(proxy, search(), X_Request_ID="of-the-callers-own").headers["x-request-id"]
    assert told != "of-the-callers-own"
    # The line is written when the answer is on its way.
    until(lambda: any(told in upstream.log for upstream in proxy.upstreams))


def test_a_lead_that_comes_again_by_the_other_process_gets_the_same_answer(proxy: Front) -> None:
    payload = lead(idempotency_key=f"behind-{proxy.proxy}")
    answers = {json.dumps(_post(proxy, payload).json()["result"]["message"]["parts"], sort_keys=True) for _ in range(4)}
    assert len(answers) == 1
    assert '"lead_id"' in answers.pop()


def test_the_official_mcp_client_works(proxy: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    mcp = pytest.importorskip("mcp.client.client", reason="mcp is not installed (it comes with the extra 'dev')")
    found = socket.getaddrinfo

    def resolve(host: Any, *rest: Any, **more: Any) -> Any:
        return found("127.0.0.1" if host in (NAME, NAME.encode()) else host, *rest, **more)

    # The one thing that a test has no real one of is the DNS.
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setenv("SSL_CERT_FILE", str(proxy.authority))

    async def session() -> None:
        async with mcp.Client(f"https://{NAME}:{proxy.port}/mcp", read_timeout_seconds=20) as client:
            assert client.session.protocol_version == "2026-07-28"
            assert len((await client.list_tools()).tools) == 5
            result = await client.call_tool("aap_inventory_search", {"filters": {"make": ["Honda"]}})
            assert result.structured_content["data"]["total"] == 1

    asyncio.run(session())


def test_a_page_of_another_site_cannot_call_mcp(proxy: Front) -> None:
    headers = {**JSON, "Accept": "application/json", "Origin": "https://elsewhere.example.com"}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    assert proxy.request("POST", "/mcp", body, headers).status == HTTPStatus.FORBIDDEN
    assert proxy.request("POST", "/mcp", body, {**headers, "Origin": f"https://{NAME}"}).status == HTTPStatus.OK


def test_a_personal_agent_shops_by_pap(proxy: Front) -> None:
    found = proxy.request("GET", "/.well-known/poppy.json")
    assert found.status == 200
    # The agent asks only for connections and for the folder of the demonstration's keys.
    agent = PAPAgent(cast("ServerProcess", proxy))
    for _ in range(4):
        # Each with a proof of its own, at whichever process it comes to.
        answer = agent.call({"type": "inventory.search.request"})
        assert (answer.status, answer.json["data"]["total"]) == (200, 2)
    path = "/api/inventory.search"
    once = agent.proof("POST", BASE + path)
    assert [agent.call({"type": "inventory.search.request"}, path, proof=once).status for _ in range(3)] == [
        200,
        401,
        401,
    ]


def test_limits_count_by_the_shoppers_address_and_a_forged_one_is_not_believed(proxy: Front) -> None:
    ask = {"type": "dealer.information.request"}

    def refused(source: str, forged: str) -> bool:
        answer = _post(proxy, ask, source, X_Forwarded_For=forged, Forwarded=f"for={forged}").json()
        return "error" in answer and aap_error(answer)["code"] == "RATE_LIMITED"

    one, another = SHOPPERS[proxy.proxy]
    # Four each process. Whoever could choose an address would never come to an end.
    assert sum(refused(one, f"203.0.113.{number}") for number in range(14)) >= 6
    assert not refused(another, one)


def test_a_body_that_is_somewhat_too_long_gets_our_own_answer(proxy: Front) -> None:
    reply = proxy.request("POST", "/a2a", b" " * (LIMIT + LIMIT // 2), ACTIVE)
    assert reply.status == 200
    assert reply.json()["error"]["code"] == -32600
    assert str(LIMIT) in reply.json()["error"]["message"]


def test_a_body_that_is_far_too_long_is_refused_in_words_of_json_rpc(proxy: Front) -> None:
    reply = proxy.request("POST", "/a2a", b" " * (3 * LIMIT), ACTIVE)
    # nginx says so itself, without sending it on.
    assert reply.status == (HTTPStatus.REQUEST_ENTITY_TOO_LARGE if proxy.proxy == "nginx" else HTTPStatus.OK)
    assert reply.headers["content-type"] == "application/json"
    error = reply.json()["error"]
    assert error["code"] == -32600
    assert "body" in error["message"]


@pytest.mark.parametrize("path", ["/metrics", "//metrics", "/%6detrics", "/metrics/", "/x/../metrics", "/readyz"])
def test_what_the_operator_looks_at_is_not_shown_outside(path: str, proxy: Front) -> None:
    reply = proxy.request("GET", path)
    assert reply.status in (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST)
    assert b"forecourt_" not in reply.body
    assert b"listings" not in reply.body


def test_long_headers_of_tokens_go_through(proxy: Front) -> None:
    assert _post(proxy, search(), X_Long="t" * 9000).status == 200


def test_nothing_is_lost_when_a_process_ends_in_order(proxy: Front) -> None:
    proxy.restore()
    statuses: list[int] = []
    done = threading.Event()

    def ask() -> None:
        body = json.dumps(envelope(search())).encode()
        # From an address of its own: the shipped limits count it.
        with contextlib.closing(proxy.connect(source="127.0.0.77")) as connection:
            while not done.is_set():
                connection.request("POST", "/a2a", body, ACTIVE)
                answer = connection.getresponse()
                answer.read()
                statuses.append(answer.status)

    shoppers = [threading.Thread(target=ask) for _ in range(4)]
    for shopper in shoppers:
        shopper.start()
    try:
        until(lambda: len(statuses) > 20)
        proxy.upstreams[0].end(signal.SIGTERM)
        asked = len(statuses)
        until(lambda: len(statuses) > asked + 20)
    finally:
        done.set()
        for shopper in shoppers:
            shopper.join(20)
    lost = [status for status in statuses if status != HTTPStatus.OK]
    assert not lost


def test_requests_are_answered_while_one_process_is_dead(proxy: Front) -> None:
    # Ended by the test before, or now.
    if proxy.upstreams[0].process.poll() is None:
        proxy.upstreams[0].end(signal.SIGKILL)
    replies = [_post(proxy, search()) for _ in range(12)]
    assert [reply.status for reply in replies] == [200] * 12
    assert all("result" in reply.json() for reply in replies)
