"""Counting: how often each value occurs in a set of listings, and the lowest and highest of its numbers.

Reading a listing's row costs more than anything done with it, since the rows of a result lie far apart in memory. So
all that is counted of a listing stands in one short row, and in large catalogs members of few values share a cell.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pyroaring import FrozenBitMap

from forecourt.catalog.bitmap import Positions, bitmap_of, positions_of
from forecourt.catalog.column import Codes, NumberColumn, TermColumn, recoded
from forecourt.model import Facets

__all__ = ["FacetTable"]

_LISTINGS_A_COMBINATION: Final = 200
"""Members share a cell while their combinations are at most this part of the listings."""

_CELL_FEATURES_LIMIT: Final = 256
"""Feature codes beyond this number are only kept as bitmaps."""

_DENSE: Final = 10
"""Where at least one listing in this many matches, bitmaps count features faster than cells do."""

_FEW: Final = 8192
"""In catalogs up to this size a bitmap a feature is always faster."""

_BLOCK: Final = 1 << 13
"""Rows counted at a time: copies of them, and of what is counted in a wider type, stay in the processor's cache."""

_WIDEST: Final = (1 << 16) - 1
_RANKS_A_CELL: Final = (1 << 16) - 1

Counts = npt.NDArray[np.intp]


class FacetTable:
    """The counted values of every listing, a row each.

    Values are numbered over all members, each member's ascending and then one for having none. A row's cells hold
    (1) combinations of values, numbered over all cells, (2) which features, a bit each, (3) ranks of numbers, without
    their lowest bits where there are too many.
    """

    def __init__(
        self,
        count: int,
        terms: Sequence[tuple[str, TermColumn, Codes]],
        features: Mapping[str, FrozenBitMap],
        ranges: Sequence[tuple[str, NumberColumn]],
    ) -> None:
        self._count = count
        self._features = tuple(features.items())
        self._number_terms(terms)
        packs = _packed([len(column.values) + 1 for _, column, _ in terms], count // _LISTINGS_A_COMBINATION)
        self._packs = len(packs)
        self._ranges = [(name, column.values, column.codes) for name, column in ranges if column.values]
        combinations = sum(prod(len(terms[index][1].values) + 1 for index in pack) for pack in packs)
        # Of a fixed byte order, since the bits of features are counted by the byte.
        kind = np.dtype("<u2" if combinations <= _WIDEST else "<u4")
        in_cells = count > _FEW and len(features) <= _CELL_FEATURES_LIMIT
        self._feature_cells = -(-len(features) // (8 * kind.itemsize)) if in_cells else 0
        self._rows: npt.NDArray[Any] = np.zeros(
            (count, self._packs + self._feature_cells + len(self._ranges)), dtype=kind
        )
        self._fill_combinations(terms, packs)
        for index, (_, carrying) in enumerate(self._features if in_cells else ()):
            cell, bit = divmod(index, 8 * kind.itemsize)
            self._rows[positions_of(carrying), self._packs + cell] |= kind.type(1 << bit)
        self._bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
        self._byte_bases = np.arange(self._feature_cells * kind.itemsize, dtype=np.intp) * 256
        self._shifts: list[int] = []
        for index, (_, values, codes) in enumerate(self._ranges, self._packs + self._feature_cells):
            shift = 0
            while kind.itemsize == 2 and (len(values) - 1 >> shift) >= _RANKS_A_CELL:
                shift += 1
            self._shifts.append(shift)
            lacking = codes == np.iinfo(codes.dtype).max
            # 0 says "none"; the ranks begin at 1 and stay in order without their lowest bits.
            ranks = codes >> codes.dtype.type(shift)
            ranks += codes.dtype.type(1)
            ranks[lacking] = 0
            self._rows[:, index] = ranks

    def _number_terms(self, terms: Sequence[tuple[str, TermColumn, Codes]]) -> None:
        self._names = [name for name, _, _ in terms]
        self._values: list[str | int | bool] = []
        members: list[int] = []
        lacking: list[int] = []
        for index, (_, column, _) in enumerate(terms):
            self._values += [*column.values, ""]
            lacking.append(len(self._values) - 1)
            members += [index] * (len(column.values) + 1)
        self._lacking = np.array(lacking, dtype=np.intp)
        self._members: npt.NDArray[np.int64] = np.array(members, dtype=np.int64)
        self._bounds = np.arange(len(terms) + 1)

    def _fill_combinations(
        self, terms: Sequence[tuple[str, TermColumn, Codes]], packs: Sequence[Sequence[int]]
    ) -> None:
        """Write the combinations, and note which values each stands for."""
        bases = np.searchsorted(self._members, self._bounds)
        values: list[npt.NDArray[np.intp]] = []
        sources: list[npt.NDArray[np.intp]] = []
        total = 0
        self._written: dict[str, tuple[int, int, int, int]] = {}
        for cell, pack in enumerate(packs):
            sizes = [len(terms[index][1].values) + 1 for index in pack]
            number = np.zeros(self._count, dtype=np.uint32)
            for index, size in zip(pack, sizes, strict=True):
                number *= np.uint32(size)
                codes = terms[index][2]
                number += np.minimum(codes, codes.dtype.type(size - 1))
            number += np.uint32(total)
            self._rows[:, cell] = number
            for place, (index, column) in enumerate(zip(pack, np.indices(sizes).reshape(len(sizes), -1), strict=True)):
                values.append(bases[index] + column)
                sources.append(np.arange(total, total + column.size))
                self._written[terms[index][0]] = (cell, total, prod(sizes[place + 1 :]), sizes[place])
            total += prod(sizes)
        self._combinations = total
        self._shared = len(packs) < len(terms)
        self._combined_values = np.concatenate(values)
        self._combined_sources = np.concatenate(sources)

    def codes(self, member: str) -> Codes:
        """Return a member's code at each position, as the table was made from."""
        cell, total, places, size = self._written[member]
        numbers = self._rows[:, cell].astype(np.uint32)
        numbers -= np.uint32(total)
        numbers //= np.uint32(places)
        numbers %= np.uint32(size)
        return recoded(numbers, np.arange(size - 1), size - 1)

    def count(self, bitmap: FrozenBitMap | None, positions: Positions) -> Facets:
        """Count the listings at `positions`; `bitmap` holds the same ones where it is at hand."""
        if not positions.size:
            return Facets()
        by_cell = self._feature_cells > 0 and (bitmap is None or positions.size * _DENSE < self._count)
        terms: Counts = np.zeros(self._combinations, dtype=np.intp)
        bytes_: Counts = np.zeros(self._byte_bases.size * 256, dtype=np.intp)
        extremes = [_Extremes(codes, shift) for (_, _, codes), shift in zip(self._ranges, self._shifts, strict=True)]
        features_end = self._packs + self._feature_cells
        for start in range(0, positions.size, _BLOCK):
            block = positions[start : start + _BLOCK]
            rows = self._rows.take(block, axis=0)
            terms += np.bincount(rows[:, : self._packs].astype(np.intp).ravel(), minlength=terms.size)
            if by_cell:
                cells = np.ascontiguousarray(rows[:, self._packs : features_end]).view(np.uint8) + self._byte_bases
                bytes_ += np.bincount(cells.ravel(), minlength=bytes_.size)
            ranks = np.ascontiguousarray(rows[:, features_end:].T)
            highest = ranks.max(axis=1).tolist()
            lowest = (ranks - ranks.dtype.type(1)).min(axis=1).tolist()  # "none" wraps round to the top
            for each, column, low, high in zip(extremes, ranks, lowest, highest, strict=True):
                each.take(block, column, low, high - 1)
        if self._shared:
            weights = terms.take(self._combined_sources)
            terms = np.bincount(self._combined_values, weights, minlength=len(self._values)).astype(np.intp)
        counted = self._ranked(terms)
        if by_cell:
            shared = (bytes_.reshape(-1, 256) @ self._bits).ravel().tolist()
        else:
            bitmap = bitmap_of(positions) if bitmap is None else bitmap
            shared = [bitmap.intersection_cardinality(carrying) for _, carrying in self._features]
        coded: list[tuple[str | int | bool, int]] = [
            (code, count) for (code, _), count in zip(self._features, shared, strict=False) if count
        ]
        if coded:
            coded.sort(key=_frequency)  # stable, and the codes come in their order
            counted["feature_codes"] = coded
        spread = {
            name: (values[each.lowest()], values[each.highest()])
            for (name, values, _), each in zip(self._ranges, extremes, strict=True)
            if each.found
        }
        return Facets(counted, spread)

    def _ranked(self, counts: Counts) -> dict[str, Sequence[tuple[str | int | bool, int]]]:
        """Split counts by member, most frequent first; ties keep the order of the numbers, that of the values."""
        counts[self._lacking] = 0
        found = counts.nonzero()[0]
        counts = counts.take(found)
        members = self._members.take(found)
        bounds = members.searchsorted(self._bounds).tolist()
        order = (members * (self._count + 1) - counts).argsort(kind="stable")
        named = map(self._values.__getitem__, found.take(order).tolist())
        pairs = list(zip(named, counts.take(order).tolist(), strict=True))
        return {
            name: pairs[start:end]
            for name, (start, end) in zip(self._names, pairwise(bounds), strict=True)
            if start < end
        }


class _Extremes:
    """The lowest and the highest code of a number, from blocks of ranks that may lack their lowest bits."""

    __slots__ = ("_at_high", "_at_low", "_codes", "_high", "_low", "_shift")

    def __init__(self, codes: Codes, shift: int) -> None:
        self._codes = codes
        self._shift = shift
        self._low: int = 1 << 32
        self._high = -1
        self._at_low: list[Positions] = []
        self._at_high: list[Positions] = []

    def take(self, block: Positions, ranks: npt.NDArray[Any], low: int, high: int) -> None:
        """Take the next positions, each one's rank counted from 1, with the lowest and the highest, from 0, of them."""
        if high < 0:
            return
        if low < self._low:
            self._low = low
            self._at_low.clear()
        if high > self._high:
            self._high = high
            self._at_high.clear()
        if self._shift:
            if low == self._low:
                self._at_low.append(block[ranks == low + 1])
            if high == self._high:
                self._at_high.append(block[ranks == high + 1])

    @property
    def found(self) -> bool:
        """Whether any listing has the number."""
        return self._high >= 0

    def lowest(self) -> int:
        """Return the lowest code."""
        return int(self._codes.take(np.concatenate(self._at_low)).min()) if self._shift else self._low

    def highest(self) -> int:
        """Return the highest code."""
        return int(self._codes.take(np.concatenate(self._at_high)).max()) if self._shift else self._high


def _frequency(entry: tuple[str | int | bool, int]) -> int:
    return -entry[1]


def _packed(sizes: Sequence[int], limit: int) -> list[list[int]]:
    """Return which members share a cell: the smallest first, while their combinations stay within `limit`."""
    packs: list[list[int]] = []
    width = 0
    for index in sorted(range(len(sizes)), key=sizes.__getitem__):
        if packs and width * sizes[index] <= limit:
            packs[-1].append(index)
            width *= sizes[index]
        else:
            packs.append([index])
            width = sizes[index]
    return packs if len(packs) < len(sizes) else [[index] for index in range(len(sizes))]
