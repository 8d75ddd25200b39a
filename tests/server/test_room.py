"""Room for requests: places, a line that is short in number and time, and who is turned away."""

import asyncio
import time

import pytest

from forecourt.errors import AAPError
from forecourt.server import room as module
from forecourt.server.room import ARRIVED, CROWDED, Room


def test_places_are_given_in_the_order_of_the_line() -> None:
    async def story() -> None:
        words: list[str] = []
        room = Room(2, words.append)
        assert room.enter_now()
        await room.enter()
        assert not room.enter_now()
        order: list[int] = []

        async def come(number: int) -> None:
            await room.enter()
            order.append(number)

        waiting = [asyncio.create_task(come(number)) for number in range(2)]
        await asyncio.sleep(0)
        room.leave()
        await waiting[0]
        assert order == [0]
        room.leave()
        await waiting[1]
        assert order == [0, 1]
        assert not room.enter_now()
        room.leave()
        room.leave()
        assert room.enter_now()
        assert words == []

    asyncio.run(story())


def test_a_line_is_as_long_as_there_are_places_and_whoever_comes_then_is_refused_at_once() -> None:
    async def story() -> None:
        words: list[str] = []
        room = Room(2, words.append)
        for _ in range(2):
            await room.enter()
        line = [asyncio.create_task(room.enter()) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(AAPError) as caught:
            await room.enter()
        assert (caught.value.code, caught.value.retryable, caught.value.retry_after_ms) == ("RATE_LIMITED", True, 1000)
        assert words == ["overload"]
        room.leave()
        room.leave()
        await asyncio.gather(*line)

    asyncio.run(story())


def test_nobody_waits_in_line_for_long_and_no_place_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0.02)

    async def story() -> None:
        words: list[str] = []
        room = Room(1, words.append)
        await room.enter()
        for _ in range(3):
            with pytest.raises(AAPError):
                await room.enter()
        gone = asyncio.create_task(room.enter())
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        # One whose place is given in the moment of its end passes it on.
        late = asyncio.create_task(room.enter())
        await asyncio.sleep(0)
        room.leave()
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        assert room.enter_now()
        assert not room.enter_now()
        assert words == ["overload"] * 3

    asyncio.run(story())


def test_a_request_that_is_begun_late_is_told_to_come_again() -> None:
    words: list[str] = []
    room = Room(1, words.append)
    assert room.refusal({}) is None
    assert room.refusal({ARRIVED: time.monotonic()}) is None
    for scope in ({ARRIVED: time.monotonic() - 5}, {CROWDED: True}):
        error = room.refusal(scope)
        assert error is not None
        assert (error.code, error.retry_after_ms) == ("RATE_LIMITED", 1000)
    assert words == ["overload"]
