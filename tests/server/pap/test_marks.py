"""Marks wait for one commit together, and nothing is let through before it."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from forecourt.server.pap import marks as module
from forecourt.server.pap.marks import MarkQueue
from forecourt.store import Admission, Mark, StoreError

NOW = datetime(2026, 5, 1, tzinfo=UTC)


class Recording:
    """The part of a store that a queue asks, answering when it is let."""

    def __init__(self) -> None:
        self.batches: list[list[Mark]] = []
        self.forgotten: list[int] = []
        self.go = asyncio.Event()
        self.reached = asyncio.Event()
        self.error: Exception | None = None

    async def admit(self, marks: Sequence[Mark], now: datetime) -> list[Admission]:
        assert now == NOW
        self.batches.append(list(marks))
        self.reached.set()
        await self.go.wait()
        if self.error is not None:
            raise self.error
        return [Admission(True, "v1")] * len(marks)

    async def forget_expired(self, before: datetime, limit: int) -> int:
        assert before < NOW
        self.forgotten.append(limit)
        return 0


def mark(number: int) -> Mark:
    return Mark(number.to_bytes(32), 1)


def queue_of(store: Recording) -> MarkQueue:
    return MarkQueue(store, lambda: NOW)  # type: ignore[arg-type]


def run(work: Any) -> None:
    async def within() -> None:
        async with asyncio.timeout(20):
            await work()

    asyncio.run(within())


def test_those_that_wait_go_together_and_none_is_told_before_they_are_kept() -> None:
    async def work() -> None:
        store = Recording()
        queue = queue_of(store)
        first = [asyncio.create_task(queue.admit(mark(number))) for number in range(3)]
        await store.reached.wait()
        later = [asyncio.create_task(queue.admit(mark(number))) for number in range(3, 8)]
        for _ in range(10):
            await asyncio.sleep(0)
        assert [len(batch) for batch in store.batches] == [3]
        assert not any(task.done() for task in (*first, *later))
        store.go.set()
        assert all(found.first for found in await asyncio.gather(*first, *later))
        assert [len(batch) for batch in store.batches] == [3, 5]

    run(work)


def test_a_digest_that_was_seen_is_used_without_asking_the_store() -> None:
    async def work() -> None:
        store = Recording()
        store.go.set()
        queue = queue_of(store)
        assert (await queue.admit(mark(1))).first
        assert not (await queue.admit(mark(1))).first
        assert len(store.batches) == 1

    run(work)


def test_the_second_of_two_at_once_is_used_though_the_first_still_waits() -> None:
    async def work() -> None:
        store = Recording()
        queue = queue_of(store)
        first = asyncio.create_task(queue.admit(mark(1)))
        await asyncio.sleep(0)
        assert not (await queue.admit(mark(1))).first
        store.go.set()
        assert (await first).first

    run(work)


def test_where_the_store_fails_nobody_goes_on_and_the_digest_stays_used() -> None:
    async def work() -> None:
        store = Recording()
        store.error = StoreError("gone")
        store.go.set()
        queue = queue_of(store)
        with pytest.raises(StoreError):
            await queue.admit(mark(1))
        store.error = None
        assert not (await queue.admit(mark(1))).first
        assert (await queue.admit(mark(2))).first

    run(work)


def test_no_more_than_so_many_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAITING", 2)

    async def work() -> None:
        store = Recording()
        queue = queue_of(store)
        waiting = [asyncio.create_task(queue.admit(mark(number))) for number in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(StoreError):
            await queue.admit(mark(9))
        store.go.set()
        await asyncio.gather(*waiting)
        assert (await queue.admit(mark(9))).first

    run(work)


def test_a_batch_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BATCH", 4)

    async def work() -> None:
        store = Recording()
        store.go.set()
        queue = queue_of(store)
        await asyncio.gather(*(queue.admit(mark(number)) for number in range(10)))
        assert [len(batch) for batch in store.batches] == [4, 4, 2]

    run(work)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LATELY", 5)

    async def work() -> None:
        store = Recording()
        store.go.set()
        queue = queue_of(store)
        for number in range(50):
            await queue.admit(mark(number))
        assert len(queue._seen) + len(queue._seen_before) <= 10
        assert not (await queue.admit(mark(49))).first

    run(work)


def test_one_that_is_given_up_leaves_the_others_whole() -> None:
    async def work() -> None:
        store = Recording()
        queue = queue_of(store)
        gone, stays = (asyncio.create_task(queue.admit(mark(number))) for number in range(2))
        await store.reached.wait()
        gone.cancel()
        store.go.set()
        assert (await stays).first
        await queue.close()

    run(work)


def test_more_is_forgotten_than_was_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SWEEP_EVERY", 2)

    async def work() -> None:
        store = Recording()
        store.go.set()
        queue = queue_of(store)
        for number in range(6):
            await queue.admit(mark(number))
        await queue.close()
        assert len(store.forgotten) == 3
        assert min(store.forgotten) > 2

    run(work)
