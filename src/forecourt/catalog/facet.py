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

from forecourt.catalog.bitmap import Positions, bitmap_of
from forecourt.catalog.column import Codes, NumberColumn, TermColumn
from forecourt.model import Facets

__all__ = ["FacetTable"]

_LISTINGS_A_COMBINATION: Final = 200
"""Members share a cell while their combinations are at most this part of the listings."""

_FEATURES_A_CELL: Final = 8
_CELL_FEATURES_LIMIT: Final = 256
"""Feature codes beyond this number are only kept as bitmaps."""

_DENSE: Final = 10
"""Where at least one listing in this many matches, bitmaps count features faster than cells do."""

_FEW: Final = 8192
"""In catalogs up to this size a bitmap a feature is always faster."""

_BLOCK: Final = 1 << 16
"""Rows counted at a time: NumPy makes a wider copy of what it counts, which is to stay small."""

_WIDEST: Final = (1 << 16) - 1
_RANKS_A_CELL: Final = (1 << 16) - 1

Counts = npt.NDArray[np.intp]


class FacetTable:
    """The counted values of every listing, a row each.

    Values are numbered over all members, each member's ascending and then one for having none. A row's cells hold
    (1) combinations of values, numbered over all cells, (2) which features, eight to a cell, (3) ranks of numbers,
    without their lowest bits where there are too many.
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
        in_cells = count > _FEW and len(features) <= _CELL_FEATURES_LIMIT
        self._bytes = -(-len(features) // _FEATURES_A_CELL) if in_cells else 0
        combinations = sum(prod(len(terms[index][1].values) + 1 for index in pack) for pack in packs)
        kind = np.uint16 if combinations <= _WIDEST else np.uint32
        self._rows: npt.NDArray[np.uint16 | np.uint32] = np.zeros(
            (count, self._packs + self._bytes + len(self._ranges)), dtype=kind
        )
        self._fill_combinations(terms, packs)
        for index, (_, carrying) in enumerate(self._features[: self._bytes * _FEATURES_A_CELL]):
            cell, bit = divmod(index, _FEATURES_A_CELL)
            self._rows[np.fromiter(carrying, np.intp, len(carrying)), self._packs + cell] |= 1 << bit
        self._bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
        self._byte_bases = np.arange(self._bytes, dtype=np.intp) * 256
        self._shifts: list[int] = []
        for index, (_, values, codes) in enumerate(self._ranges, self._packs + self._bytes):
            shift = 0
            while kind is np.uint16 and (len(values) - 1 >> shift) >= _RANKS_A_CELL:
                shift += 1
            self._shifts.append(shift)
            lacking = codes == np.iinfo(codes.dtype).max
            # 0 says "none"; the ranks begin at 1 and stay in order without their lowest bits.
            self._rows[:, index] = np.where(lacking, 0, (codes.astype(np.int64) >> shift) + 1)

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
        for cell, pack in enumerate(packs):
            sizes = [len(terms[index][1].values) + 1 for index in pack]
            number = np.zeros(self._count, dtype=np.int64)
            for index, size in zip(pack, sizes, strict=True):
                number = number * size + np.minimum(terms[index][2], size - 1)
            self._rows[:, cell] = total + number
            for index, codes in zip(pack, np.indices(sizes).reshape(len(sizes), -1), strict=True):
                values.append(bases[index] + codes)
                sources.append(np.arange(total, total + codes.size))
            total += prod(sizes)
        self._combinations = total
        self._shared = len(packs) < len(terms)
        self._combined_values = np.concatenate(values)
        self._combined_sources = np.concatenate(sources)

    def count(self, bitmap: FrozenBitMap | None, positions: Positions) -> Facets:
        """Count the listings at `positions`; `bitmap` holds the same ones where it is at hand."""
        if not positions.size:
            return Facets()
        rows = self._rows.take(positions, axis=0)
        terms = self._ranked(self._counted(rows))
        coded = self._features_counted(rows, bitmap, positions)
        if coded:
            terms["feature_codes"] = coded
        return Facets(terms, self._spread(rows, positions))

    def _counted(self, rows: npt.NDArray[Any]) -> Counts:
        """Return how often each value occurs."""
        counts: Counts = np.bincount(rows[:_BLOCK, : self._packs].ravel(), minlength=self._combinations)
        for start in range(_BLOCK, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK, : self._packs]
            counts += np.bincount(block.ravel(), minlength=self._combinations)
        if self._shared:
            weights = counts.take(self._combined_sources)
            counts = np.bincount(self._combined_values, weights, minlength=len(self._values)).astype(np.intp)
        return counts

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

    def _features_counted(
        self, rows: npt.NDArray[Any], bitmap: FrozenBitMap | None, positions: Positions
    ) -> Sequence[tuple[str | int | bool, int]]:
        if self._bytes and (bitmap is None or positions.size * _DENSE < self._count):
            cells = rows[:, self._packs : self._packs + self._bytes] + self._byte_bases
            counted = np.bincount(cells.ravel(), minlength=256 * self._bytes).reshape(self._bytes, 256)
            shared = (counted @ self._bits).ravel().tolist()
        else:
            bitmap = bitmap_of(positions) if bitmap is None else bitmap
            shared = [bitmap.intersection_cardinality(carrying) for _, carrying in self._features]
        named: list[tuple[str | int | bool, int]] = [
            (code, count) for (code, _), count in zip(self._features, shared, strict=False) if count
        ]
        named.sort(key=_frequency)  # stable, and the codes come in their order
        return named

    def _spread(self, rows: npt.NDArray[Any], positions: Positions) -> dict[str, tuple[float, float]]:
        """Return the lowest and highest value of each number that occurs."""
        ranks = np.ascontiguousarray(rows[:, self._packs + self._bytes :].T)
        highest = ranks.max(axis=1).tolist()
        lowest = (ranks - 1).min(axis=1).tolist()  # "none" wraps round to the top
        spread: dict[str, tuple[float, float]] = {}
        for index, (name, values, codes) in enumerate(self._ranges):
            low, high = lowest[index], highest[index] - 1
            if high < 0:
                continue
            if self._shifts[index]:
                low = int(codes.take(positions[ranks[index] == low + 1]).min())
                high = int(codes.take(positions[ranks[index] == high + 1]).max())
            spread[name] = (values[low], values[high])
        return spread


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
