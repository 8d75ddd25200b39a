"""From one stock to the next: where each listing that stays, and each that comes, has its place."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pyroaring import FrozenBitMap

from forecourt.catalog.bitmap import Mask, Positions, bitmap_of, bitmap_of_mask, positions_of

__all__ = ["NOWHERE", "Moves"]

NOWHERE: Final = 0xFFFFFFFF

_DENSE: Final = 16
"""A set of at least one position in this many is faster written as a mask."""


class Moves:
    """How positions change when `fresh` listings come into a stock, some of its own being `gone`.

    A listing that changed is one that is gone and one that is fresh. `places` tells, ascending, for each fresh listing
    how many of the earlier ones, gone or not, have a smaller id.
    """

    def __init__(self, before: int, gone: Mask, places: npt.NDArray[np.int64]) -> None:
        fresh = places.size
        kept = np.flatnonzero(~gone)
        self.before = before
        self.gone: FrozenBitMap = bitmap_of_mask(gone)
        at = np.searchsorted(kept, places)
        self.source: Positions = np.insert(kept, at, np.arange(before, before + fresh)).astype(np.uint32)
        """For each new position where it comes from: an earlier one, or `before` and on for the fresh."""
        where: Positions = np.full(before + fresh, NOWHERE, dtype=np.uint32)
        where[self.source] = np.arange(self.source.size, dtype=np.uint32)
        self.earlier: Positions = where[:before]
        """The new position of each earlier one, or `NOWHERE`."""
        self.fresh: Positions = where[before:]
        self.still = bool((self.earlier[kept] == kept).all())
        """Whether all that stay stay where they are."""

    def __len__(self) -> int:
        return self.source.size

    def column(self, earlier: npt.NDArray[Any], fresh: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a column of the new stock from those of its two sources."""
        return np.concatenate((earlier, fresh)).take(self.source)

    def bitmap(self, earlier: FrozenBitMap, fresh: FrozenBitMap | None) -> FrozenBitMap:
        """Return a set of listings as the new positions."""
        if self.still:
            moved = earlier - self.gone
        else:
            positions = self.earlier.take(positions_of(earlier))
            if self.gone:
                positions = positions[positions != NOWHERE]
            moved = self._bitmap_of(positions)
        return moved | bitmap_of(self.fresh.take(positions_of(fresh))) if fresh else moved

    def _bitmap_of(self, positions: Positions) -> FrozenBitMap:
        if positions.size * _DENSE < len(self):
            return bitmap_of(positions)
        mask = np.zeros(len(self), dtype=np.bool_)
        mask[positions] = True
        return bitmap_of_mask(mask)
