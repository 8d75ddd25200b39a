"""Where listings have their places when some go and others come."""

import numpy as np
import pytest
from pyroaring import FrozenBitMap

from forecourt.catalog import moves as moves_module
from forecourt.catalog.moves import NOWHERE, Moves


def moves(gone: list[int], places: list[int], before: int = 4) -> Moves:
    mask = np.zeros(before, dtype=np.bool_)
    mask[gone] = True
    return Moves(before, mask, np.array(places, dtype=np.int64))


def test_what_goes_has_no_place_and_what_comes_stands_before_as_many_as_it_did() -> None:
    made = moves(gone=[1], places=[0, 2, 2, 4])
    assert made.source.tolist() == [4, 0, 5, 6, 2, 3, 7]
    assert made.earlier.tolist() == [1, NOWHERE, 4, 5]
    assert made.fresh.tolist() == [0, 2, 3, 6]
    assert not made.still
    column = made.column(np.array([10, 11, 12, 13]), np.array([20, 21, 22, 23]))
    assert column.tolist() == [20, 10, 21, 22, 12, 13, 23]


def test_a_listing_that_changes_in_its_place_moves_nothing() -> None:
    made = moves(gone=[1], places=[1])
    assert made.still
    assert made.source.tolist() == [0, 4, 2, 3]


@pytest.mark.parametrize("dense", [1, 1000])
@pytest.mark.parametrize(("gone", "places"), [([1], [1]), ([1, 3], [0, 4]), ([], []), ([0, 1, 2, 3], []), ([], [4])])
def test_a_set_moves_as_its_members_do(
    monkeypatch: pytest.MonkeyPatch, dense: int, gone: list[int], places: list[int]
) -> None:
    monkeypatch.setattr(moves_module, "_DENSE", dense)
    made = moves(gone, places)
    fresh = FrozenBitMap(range(len(places)))
    wanted = {int(made.earlier[each]) for each in (0, 1, 3) if each not in gone} | set(made.fresh.tolist())
    assert set(made.bitmap(FrozenBitMap([0, 1, 3]), fresh)) == wanted
    assert set(made.bitmap(FrozenBitMap(), None)) == set()
