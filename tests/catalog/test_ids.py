"""Ids stay in order and are found, whatever they are made of."""

import numpy as np

from forecourt.catalog.bitmap import Positions
from forecourt.catalog.ids import Ids

NAMES = sorted(["", "a", "ab", "b", "é", "日", "\U0001f697", "z" * 300], key=lambda name: name.encode())


def ids(*names: str) -> Ids:
    return Ids.of([name.encode() for name in names])


def positions(*numbers: int) -> Positions:
    return np.array(numbers, dtype=np.uint32)


def test_each_id_is_found_where_it_is_and_no_other_is() -> None:
    found = ids(*NAMES)
    assert [found.find(name) for name in NAMES] == list(range(len(NAMES)))
    assert [found[position] for position in range(len(found))] == NAMES
    assert found.find("aa") is None
    assert ids().find("a") is None


def test_how_many_come_before_counts_the_id_itself() -> None:
    found = ids("b", "d")
    assert [found.after(name) for name in "abcde"] == [0, 1, 1, 2, 2]


def test_ids_that_follow_come_from_both_in_the_order_asked_for() -> None:
    joined = ids("a", "c", "e").followed(ids("b", "dd"), positions(0, 3, 4, 2))
    assert [joined[position] for position in range(len(joined))] == ["a", "b", "dd", "e"]
    assert len(ids("a").followed(ids(), positions())) == 0
