"""The mixed traffic: its shares, and which rate counts as sustained."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from benchmarks.open_loop import Seen
from benchmarks.traffic import BINDINGS, SHARES, Mix, Requests, is_sustained, sustained

GOOD = Seen(
    offered=1000.0,
    seconds=1.0,
    latencies_ms=np.full(1000, 5.0),
    answered=1000,
    failures=0,
    gave_up=False,
    lag_ms=0.5,
    busy=0.3,
)


def test_shares_are_of_a_hundred() -> None:
    assert sum(SHARES.values()) == sum(BINDINGS.values()) == 100


def test_requests_are_of_every_kind_for_sellers_that_there_are() -> None:
    mix = Mix(("dealer-0000", "dealer-0001"), 100)
    made = Requests(mix, seed=3).make(2000)
    paths = Counter(due.wire.split(b" ", 2)[1].decode() for due in made)
    assert set(paths) == {
        f"{prefix}/{at}" for prefix in ("", *(f"/dealers/{s}" for s in mix.sellers)) for at in ("a2a", "mcp")
    }
    marks = Counter(due.mark for due in made)
    assert marks[b"lead.submit.response"] == pytest.approx(80, abs=40)
    assert marks[b"inventory.search.response"] == pytest.approx(1080, abs=100)
    assert marks[b"SCHEMA_VALIDATION_FAILED"] > 0 < marks[b"VEHICLE_NOT_FOUND"]
    leads = [due.wire for due in made if due.mark == b"lead.submit.response"]
    assert len(set(leads)) == len(leads), "two leads are the same"


def test_half_of_the_searches_are_unlike_any_other() -> None:
    made = Requests(Mix(("dealer-0000",), 100), seed=3).make(3000)
    times = Counter(due.wire for due in made if due.mark == b"inventory.search.response")
    once = sum(1 for count in times.values() if count == 1)
    assert once == pytest.approx(sum(times.values()) / 2, rel=0.15)


@pytest.mark.parametrize(
    "worse",
    [
        {"latencies_ms": np.array([5.0] * 980 + [60.0] * 20)},
        {"failures": 2},
        {"answered": 900},
        {"gave_up": True},
        {"busy": 0.95},
        {"lag_ms": 20.0},
    ],
)
def test_a_rate_is_sustained_by_latency_answers_and_a_generator_that_keeps_up(worse: dict[str, Any]) -> None:
    assert is_sustained(GOOD, 50.0)
    assert is_sustained(replace(GOOD, latencies_ms=np.array([5.0] * 995 + [60.0] * 5)), 50.0)
    assert not is_sustained(replace(GOOD, **worse), 50.0)


class Steps:
    """A generator whose server bears so many requests a second, and has a bad moment once."""

    def __init__(self, most: float, bad_moment: int) -> None:
        self.most, self._bad_moment = most, bad_moment
        self.asked: list[float] = []

    def step(self, rate: float, _: float) -> Seen:
        self.asked.append(rate)
        bad = rate > self.most or len(self.asked) == self._bad_moment
        return replace(GOOD, latencies_ms=np.full(1000, 80.0 if bad else 5.0))


def test_the_highest_rate_is_found_and_one_bad_moment_is_tried_again() -> None:
    steps: Any = Steps(most=350, bad_moment=2)
    best, seen = sustained(steps, [100, 200, 300, 400, 500], 1.0, 50.0, lambda _: None)
    assert (best, seen is not None) == (300, True)
    assert steps.asked == [100, 200, 200, 300, 400, 400]
    assert sustained(Steps(most=50, bad_moment=0), [100, 200], 1.0, 50.0, lambda _: None) == (0.0, None)  # type: ignore[arg-type]
