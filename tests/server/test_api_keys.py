"""Keys open what they are for, from the moment they are made until shortly after they are revoked."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from forecourt.server.api_keys import PREFIX, KeyRing, new_key
from forecourt.store import APIKey, Store, StoreError, open_store

NOW = datetime(2026, 5, 4, 19, 0, tzinfo=UTC)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class FailingStore:
    """A store that stops answering."""

    def __init__(self, keys: Sequence[APIKey]) -> None:
        self.keys, self.reads, self.fails = keys, 0, False

    async def api_keys(self) -> Sequence[APIKey]:
        self.reads += 1
        if self.fails:
            raise StoreError("gone")
        return self.keys


def test_a_key_is_known_by_its_text_alone_and_the_text_is_not_kept(tmp_path: Path) -> None:
    text, key = new_key("One", NOW)

    async def story() -> None:
        store = open_store(f"sqlite:{tmp_path / 'forecourt.db'}")
        await store.open()
        await store.add_api_key(key)
        ring = KeyRing(store)
        assert await ring.find(text) == key
        assert text.startswith(PREFIX)
        assert text.startswith(key.key_id)
        for wrong in (
            "",
            PREFIX,
            key.key_id,
            key.key_id + ".",
            text[:-1],
            text + "x",
            text.swapcase(),
            "fck_x.y",
            "\xe9",
        ):
            assert await ring.find(wrong) is None
        await store.close()

    asyncio.run(story())
    secret = text.partition(".")[2].encode()
    assert all(secret not in file.read_bytes() for file in tmp_path.iterdir())


def test_no_two_keys_are_alike() -> None:
    assert len({new_key("x", NOW)[0] for _ in range(100)}) == 100


def test_a_revoked_key_opens_nothing_after_two_seconds(tmp_path: Path) -> None:
    async def story() -> None:
        clock = Clock()
        store = open_store(f"sqlite:{tmp_path / 'forecourt.db'}")
        await store.open()
        text, key = new_key("One", NOW)
        await store.add_api_key(key)
        ring = KeyRing(store, clock)
        assert await ring.find(text)
        await store.revoke_api_key(key.key_id, NOW)
        clock.seconds += 2.1
        assert await ring.find(text) is None
        await store.close()

    asyncio.run(story())


def test_keys_go_on_opening_for_a_minute_without_the_database_and_no_longer() -> None:
    async def story() -> None:
        clock = Clock()
        text, key = new_key("One", NOW)
        store = FailingStore([key])
        ring = KeyRing(cast("Store", store), clock)
        assert await ring.find(text)
        store.fails = True
        clock.seconds += 59
        assert await ring.find(text) == key
        clock.seconds += 2
        with pytest.raises(StoreError):
            await ring.find(text)

    asyncio.run(story())


def test_a_database_that_is_gone_without_a_word_holds_up_one_look_and_not_every_call() -> None:
    class SilentStore(FailingStore):
        """A store that does not even say no."""

        async def api_keys(self) -> Sequence[APIKey]:
            if self.fails:
                await asyncio.sleep(3600)
            return await super().api_keys()

    async def story() -> None:
        clock = Clock()
        text, key = new_key("One", NOW)
        store = SilentStore([key])
        ring = KeyRing(cast("Store", store), clock)
        assert await ring.find(text)
        store.fails = True
        clock.seconds += 3
        async with asyncio.timeout(30):
            assert await asyncio.gather(*(ring.find(text) for _ in range(50))) == [key] * 50
        # The look goes on; nobody waits for it any more.
        async with asyncio.timeout(0.5):
            for _ in range(50):
                assert await ring.find(text) == key
        # What was read a minute ago is not believed, however long it takes to read it anew.
        clock.seconds += 60
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await ring.find(text)

    asyncio.run(story())


def test_many_who_ask_at_once_share_one_look() -> None:
    async def story() -> None:
        text, key = new_key("One", NOW)
        store = FailingStore([key])
        ring = KeyRing(cast("Store", store), Clock())
        assert await asyncio.gather(*(ring.find(text) for _ in range(50))) == [key] * 50
        assert store.reads == 1

    asyncio.run(story())
