"""How often one client may call ("Errors and retries", section "Retry without changing the outcome")."""

import asyncio
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from tests.server.redis_server import REDIS, needs_redis, own_prefix
from tests.server.running import RunningAgent, aap_error, envelope, running, search

from forecourt.errors import AAPError
from forecourt.server import ConfigError, create_app, load
from forecourt.server.config import Limits, Rate
from forecourt.server.limit import ClientLimit


@pytest.mark.requirement("ERR-RETRY-AFTER-MS", "ERR-OBJECT-DETAILS-TIMING")
def test_a_client_beyond_its_limit_is_told_how_long_to_wait_and_served_after_that(tmp_path: Path) -> None:
    with running(tmp_path, limits={"requests": 2, "seconds": 1}) as agent:
        for number, path in ((-32000, "/v3.1/a2a"), (-32002, "/v1.1/a2a")):
            answer = agent.call(search(), path)
            while "result" in answer:
                answer = agent.call(search(), path)
            assert answer["error"]["code"] == number
            error = aap_error(answer)
            assert (error["code"], error["retryable"]) == ("RATE_LIMITED", True)
            wait = error["details"]["retry_after_ms"]
            assert type(wait) is int
            assert 1 <= wait <= 1000
            time.sleep(wait / 1000)
            assert "result" in agent.call(search())
        assert agent.get("/healthz").status == 200


def test_whatever_a_client_sends_counts_and_is_refused_in_its_own_form(tmp_path: Path) -> None:
    with running(tmp_path, limits={"requests": 2, "seconds": 60}) as agent:
        assert agent.post(b"{").json()["error"]["code"] == -32700
        assert agent.post(b"[]").json()["error"]["code"] == -32600
        for body, request_id in (
            (json.dumps(envelope(search(), "mine")).encode(), "mine"),
            (json.dumps(envelope(search(), 7)).encode(), 7),
            (b"{", None),
            (b'{"id":{}}', None),
        ):
            answer = agent.post(body).json()
            assert answer["id"] == request_id
            assert aap_error(answer)["code"] == "RATE_LIMITED"
            assert 0 < aap_error(answer)["details"]["retry_after_ms"] <= 60_000
        # A notification has no answer, and a long body is not waited for.
        assert agent.post(b'{"jsonrpc":"2.0","method":"SendMessage"}').status == 204
        head = b"POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n{"
        reply = agent.exchange(head)
        assert (reply.json()["id"], aap_error(reply.json())["code"]) == (None, "RATE_LIMITED")
        assert reply.headers["connection"] == "close"
        assert agent.get("/healthz").status == 200


def test_pages_are_counted_beside_calls_and_what_tells_of_the_process_is_not(tmp_path: Path) -> None:
    with running(tmp_path, limits={"requests": 3, "seconds": 60}) as agent:
        # Five times the limit is less than the least.
        found = [agent.get(path).status for path in ("/", "/nothing") * 50]
        assert found == [200, 404] * 50
        assert agent.get("/.well-known/agent-card.json").status == 429
        refused = agent.request("POST", "/nothing", b"x" * 100)
        assert refused.status == 429
        assert 0 < int(refused.headers["retry-after"]) <= 60
        assert [agent.get(path).status for path in ("/healthz", "/readyz", "/metrics") * 2] == [200] * 6
        assert "result" in agent.call(search())


def test_clients_are_counted_apart() -> None:
    async def calls() -> None:
        limit = ClientLimit(Limits(requests=1, seconds=60))
        await limit.check("one")
        await limit.check("other")
        with pytest.raises(AAPError) as caught:
            await limit.check("one")
        assert caught.value.code == "RATE_LIMITED"
        assert caught.value.retry_after_ms is not None
        assert 0 < caught.value.retry_after_ms <= 60_000

    asyncio.run(calls())


def test_the_demo_has_no_limit(demo: RunningAgent) -> None:
    assert not demo.app.deployment.admission.is_needed


def refused(error: AAPError) -> int:
    """Return the wait of a refusal."""
    assert error.code == "RATE_LIMITED"
    assert error.retry_after_ms is not None
    return error.retry_after_ms


def limits(shared: bool, **settings: Any) -> ClientLimit:
    """Return a limit that counts in this process, or in the tests' Redis."""
    return ClientLimit(Limits(**settings, store=REDIS if shared else None))


kinds = pytest.mark.parametrize("shared", [False, pytest.param(True, marks=needs_redis)], ids=["memory", "redis"])


@kinds
def test_the_wait_is_true_to_the_millisecond(shared: bool) -> None:
    async def story() -> None:
        limit, client = limits(shared, requests=1, seconds=1), own_prefix()
        await limit.check(client)
        await asyncio.sleep(0.3)
        with pytest.raises(AAPError) as caught:
            await limit.check(client)
        wait = refused(caught.value)
        assert 500 <= wait <= 700
        # Ten milliseconds before its end the call is still refused, at its end it is served.
        await asyncio.sleep(wait / 1000 - 0.010)
        with pytest.raises(AAPError) as caught:
            await limit.check(client)
        assert refused(caught.value) <= 10 + 1
        await asyncio.sleep(refused(caught.value) / 1000)
        await limit.check(client)
        await limit.close()

    asyncio.run(story())


@kinds
def test_a_skill_has_a_limit_of_its_own_beside_the_general_one(shared: bool) -> None:
    async def story() -> None:
        skills = {"lead.submit": Rate(requests=1, seconds=60)}
        limit, client = limits(shared, requests=3, seconds=30, skills=skills), own_prefix()
        await limit.check(client, "lead.submit")
        for _ in range(5):
            with pytest.raises(AAPError) as caught:
                await limit.check(client, "lead.submit")
            assert 30_000 < refused(caught.value) <= 60_000
        # What was refused did not count to the general limit.
        await limit.check(client, "inventory.search")
        await limit.check(client, "inventory.search")
        with pytest.raises(AAPError) as caught:
            await limit.check(client, "inventory.search")
        assert refused(caught.value) <= 30_000
        await limit.close()

    asyncio.run(story())


@kinds
def test_a_clients_own_limit_stands_in_for_the_general_one(shared: bool) -> None:
    async def story() -> None:
        limit, client = limits(shared, requests=1, seconds=60), own_prefix()
        for _ in range(3):
            await limit.check(client, own=(3, 60))
        with pytest.raises(AAPError):
            await limit.check(client, own=(3, 60))
        await limit.close()

    asyncio.run(story())


@needs_redis
def test_processes_count_together() -> None:
    async def story() -> None:
        one, other, client = limits(True, requests=4), limits(True, requests=4), own_prefix()
        for limit in (one, other, one, other):
            await limit.check(client)
        for limit in (one, other):
            with pytest.raises(AAPError):
                await limit.check(client)
            await limit.close()

    asyncio.run(story())


def test_calls_are_served_and_counted_here_while_the_shared_count_is_away() -> None:
    async def story() -> None:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        limit = ClientLimit(Limits(requests=2, seconds=60, store=f"redis://127.0.0.1:{port}/0"))
        assert not limit.outage
        await limit.check("client")
        assert limit.outage
        await limit.check("client")
        with pytest.raises(AAPError):
            await limit.check("client")
        await limit.close()

    asyncio.run(story())


def test_a_shared_count_that_hangs_slows_one_call_and_no_more() -> None:
    async def story() -> None:
        async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(hang, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        limit = ClientLimit(Limits(requests=1000, seconds=60, store=f"redis://127.0.0.1:{port}/0"))
        began = time.monotonic()
        for _ in range(100):
            await limit.check("client")
        assert time.monotonic() - began < 5
        assert limit.outage
        await limit.close()
        server.close()

    asyncio.run(story())


@pytest.mark.parametrize("store", ["memcached://h", "redis://h:port"])
def test_an_address_that_is_none_is_a_mistake_of_the_configuration(store: str) -> None:
    with pytest.raises(ConfigError, match=r"limits\.store: "):
        create_app(load(None, environment={}, limits={"requests": 1, "store": store}))
