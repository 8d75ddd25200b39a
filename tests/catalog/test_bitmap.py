"""Sets of positions come out as they went in."""

import numpy as np
import pytest
from pyroaring import FrozenBitMap

from forecourt.catalog.bitmap import PostingsBuilder, bitmap_of, bitmap_of_mask, positions_of


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


@pytest.mark.parametrize("heavy", [1, 2, 3, 100])
def test_postings_are_the_same_however_they_are_kept(heavy: int) -> None:
    chance = np.random.default_rng(heavy)
    codes = chance.integers(0, 9, 60).astype(np.uint32)
    builder = PostingsBuilder(heavy=heavy)
    for start in range(0, 60, 20):
        builder.add(codes[start : start + 20], np.arange(start, start + 20, dtype=np.uint32))
    renumbered = np.arange(10, dtype=np.uint32)[::-1].copy()
    postings = builder.finish(renumbered, 10)
    for code in range(10):
        assert list(postings.of(9 - code)) == np.flatnonzero(codes == code).tolist()
    for first, end in ((0, 10), (2, 5), (3, 4), (9, 10), (4, 4)):
        wanted = np.flatnonzero((9 - codes >= first) & (9 - codes < end)).tolist()
        assert list(postings.between(first, end)) == wanted
