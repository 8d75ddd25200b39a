"""Sets of positions come out as they went in."""

import numpy as np
import pytest
from pyroaring import FrozenBitMap

from forecourt.catalog.bitmap import bitmap_of, bitmap_of_mask, positions_of


@pytest.mark.parametrize("size", [0, 1, 7, 65_535, 65_536, 65_537, 200_001])
@pytest.mark.parametrize("part", [0.0, 0.0001, 0.05, 0.0625, 0.5, 1.0])
def test_a_mask_as_a_bitmap_holds_exactly_where_it_is_true(size: int, part: float) -> None:
    mask = np.random.default_rng(size).random(size) < part
    bitmap = bitmap_of_mask(mask)
    assert bitmap == FrozenBitMap(np.flatnonzero(mask).tolist())
    assert positions_of(bitmap).tolist() == np.flatnonzero(mask).tolist()


def test_positions_as_a_bitmap_hold_exactly_themselves() -> None:
    positions = np.array([0, 5, 65_536, 4_294_967_295], dtype=np.uint32)
    assert list(bitmap_of(positions)) == positions.tolist()
