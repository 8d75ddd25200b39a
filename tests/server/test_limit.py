"""How often one client may call ("Errors and retries", section "Retry without changing the outcome")."""

import asyncio
import time
from pathlib import Path

import pytest
from tests.server.running import RunningAgent, aap_error, running, search

from forecourt.errors import AAPError
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
        assert agent.post(b"{").json()["error"]["code"] == -32700


def test_clients_are_counted_apart() -> None:
    async def calls() -> None:
        limit = ClientLimit(1, 60)
        await limit.check("one")
        await limit.check("other")
        with pytest.raises(AAPError) as caught:
            await limit.check("one")
        assert caught.value.code == "RATE_LIMITED"
        assert caught.value.retry_after_ms is not None
        assert 0 < caught.value.retry_after_ms <= 60_000

    asyncio.run(calls())


def test_the_demo_has_no_limit(demo: RunningAgent) -> None:
    assert demo.app.deployment.limit is None
