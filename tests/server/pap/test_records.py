"""The package's own checks of a store and of a replay cache, over every store of ours."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from personal_agent_protocol.company.store import CLIENT
from personal_agent_protocol.company.testing import check_replay_cache, check_store
from tests.store.conftest import DATABASES

from forecourt.server.pap.marks import MarkQueue
from forecourt.server.pap.records import AgentRecords, ReplayMarks, replay_digest, stored_key
from forecourt.store import Store, open_store


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture(params=DATABASES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database of every kind in turn."""
    with DATABASES[request.param].fresh(tmp_path) as found:
        yield found


def test_the_packages_check_of_stores_is_passed(address: str) -> None:
    async def check() -> None:
        store = open_store(address)
        await store.open()

        async def fresh() -> AgentRecords:
            return _Apart(store)

        try:
            await check_store(fresh, now=now)
        finally:
            await store.close()

    asyncio.run(check())


class _Apart(AgentRecords):
    """Records in a namespace of their own, so that one database serves for many fresh stores."""

    _count = 0

    def __init__(self, store: Store) -> None:
        super().__init__(store.access, now)
        type(self)._count += 1
        self._space = f"{self._count}-"

    async def get(self, kind, key):  # type: ignore[no-untyped-def]
        return await super().get(self._space + kind, key)

    async def put(self, kind, key, value, *, expires_at=None):  # type: ignore[no-untyped-def]
        await super().put(self._space + kind, key, value, expires_at=expires_at)

    async def create(self, kind, key, value, *, expires_at=None):  # type: ignore[no-untyped-def]
        return await super().create(self._space + kind, key, value, expires_at=expires_at)

    async def replace(self, kind, key, version, value, *, expires_at=None):  # type: ignore[no-untyped-def]
        return await super().replace(self._space + kind, key, version, value, expires_at=expires_at)

    async def take(self, kind, key):  # type: ignore[no-untyped-def]
        return await super().take(self._space + kind, key)

    async def delete(self, kind, key):  # type: ignore[no-untyped-def]
        await super().delete(self._space + kind, key)

    async def records(self, kind):  # type: ignore[no-untyped-def]
        return await super().records(self._space + kind)


def test_the_packages_check_of_replay_caches_is_passed(address: str) -> None:
    async def check() -> None:
        store = open_store(address)
        await store.open()
        try:
            await check_replay_cache(lambda: ReplayMarks(MarkQueue(store.access, now)), concurrency=200)
        finally:
            await store.close()

    asyncio.run(check())


def test_an_identifier_is_used_for_every_process_that_shares_the_store(address: str) -> None:
    async def check() -> None:
        first, second = open_store(address), open_store(address)
        await first.open()
        await second.open()
        until = now() + timedelta(minutes=1)
        try:
            assert await ReplayMarks(MarkQueue(first.access, now)).mark_once("proof", expires_at=until)
            assert not await ReplayMarks(MarkQueue(second.access, now)).mark_once("proof", expires_at=until)
        finally:
            await first.close()
            await second.close()

    asyncio.run(check())


def test_an_agent_that_was_met_is_forgotten_after_a_month(address: str) -> None:
    async def check() -> None:
        store = open_store(address)
        await store.open()
        try:
            await AgentRecords(store.access, now).put(CLIENT, "https://agent.example.com", {"extensions": []})
            for days, there in ((29, True), (31, False)):
                later = AgentRecords(store.access, lambda days=days: now() + timedelta(days=days))  # type: ignore[misc]
                assert (await later.get(CLIENT, "https://agent.example.com") is not None) is there
        finally:
            await store.close()

    asyncio.run(check())


@pytest.mark.parametrize("key", ["a\x00b", "\ud800", "x" * 4000, "https://agent.example.com/ü", "", " "])
def test_any_key_can_be_kept(key: str, address: str) -> None:
    async def check() -> None:
        store = open_store(address)
        await store.open()
        try:
            records = AgentRecords(store.access, now)
            await records.put("session", key, {"n": 1})
            found = await records.get("session", key)
            assert found is not None
            assert found.value == {"n": 1}
        finally:
            await store.close()

    asyncio.run(check())


def test_a_plain_key_is_kept_as_it_is_and_a_long_one_as_its_digest() -> None:
    assert stored_key("ses_abc-1") == "ses_abc-1"
    assert len(stored_key("x" * 129)) == 64
    assert stored_key("x" * 129) != stored_key("x" * 130)


def test_what_may_be_used_once_is_known_by_its_digest_whatever_text_it_is() -> None:
    assert len(replay_digest("\ud800")) == 32
    assert replay_digest("a") != replay_digest("b")
