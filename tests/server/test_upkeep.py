"""The keys of cursors over a day and between two workers (decision 0017)."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from forecourt.agent import Agent
from forecourt.catalog import Catalog
from forecourt.cursor import Cursors, Standing
from forecourt.model import Capabilities, Place
from forecourt.server import upkeep as module
from forecourt.server.upkeep import CursorUpkeep
from forecourt.store import open_store

NOW: Final = datetime(2026, 5, 4, 19, 0, tzinfo=UTC)
STANDING: Final = Standing(Place("dealer-a/1", 20_000), 3)
SCOPE: Final[dict[str, Any]] = {"request": "f", "tenant": "", "caller": None, "now": NOW.timestamp()}


def test_two_workers_read_each_others_cursors_before_and_after_the_key_is_made_anew(tmp_path: Path) -> None:
    async def run() -> None:
        store = open_store(f"sqlite:{tmp_path / 'forecourt.db'}")
        await store.open()
        moment = NOW
        one, two = (CursorUpkeep(store, lambda: moment) for _ in range(2))
        early = await one.read()
        signed = early.issue(STANDING, **SCOPE)
        assert (await two.read()).resume(signed, **SCOPE) == STANDING
        moment += timedelta(hours=24)
        late = await two.read()
        assert late.resume(signed, **SCOPE) == STANDING
        renewed = late.issue(STANDING, **SCOPE)
        assert early.lacks_key_of(renewed)
        assert (await one.read()).resume(renewed, **SCOPE) == STANDING
        moment += timedelta(hours=2)
        assert (await one.read()).lacks_key_of(signed)
        await store.close()

    asyncio.run(run())


def test_the_cursors_of_a_running_agent_are_exchanged_until_it_is_stopped_though_the_store_fails_at_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.001)

    async def changed(agent: Agent, known: Cursors) -> None:
        for _ in range(10_000):
            if agent.cursors is not known:
                return
            await asyncio.sleep(0.001)
        raise AssertionError("the cursors are not exchanged")

    async def run() -> None:
        store = open_store(f"sqlite:{tmp_path / 'forecourt.db'}")
        await store.open()
        upkeep = CursorUpkeep(store)
        first = await upkeep.read()
        agent = Agent({}, lambda: Catalog.build(()), store, first, Capabilities((), (), ()))
        upkeep.start(agent)
        await changed(agent, first)
        await store.close()
        await asyncio.sleep(0.02)
        await store.open()
        await changed(agent, agent.cursors)
        await upkeep.stop()
        await upkeep.stop()
        await store.close()

    asyncio.run(run())
