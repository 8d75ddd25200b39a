"""Positions by code come out as they went in, whichever way they are kept."""

import numpy as np
import pytest

from forecourt.catalog.postings import PostingsBuilder


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
