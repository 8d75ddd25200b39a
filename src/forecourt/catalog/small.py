"""Searching a stock of the size that one dealer has: sets of listings as the bits of one integer.

For some hundred listings Python's own integers are much faster than anything that has to be called: a filter is one
`&`, the total one `bit_count`. It answers what `Catalog.search` answers, from the same columns.
"""

from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from pyroaring import FrozenBitMap

from forecourt.catalog.bitmap import positions_of
from forecourt.catalog.column import NumberColumn, Order, TermColumn
from forecourt.catalog.parts import Parts
from forecourt.catalog.text import normalise
from forecourt.model import Filters

__all__ = ["SMALL_STOCK", "SmallSearch"]

SMALL_STOCK: Final = 2048
"""Up to how many listings it is used; the sets for ranges of numbers take some 4 MB then."""

_PICKED: Final = 5
"""What a match costs that is picked and sorted, in steps along the order; it only picks the way."""


class SmallSearch:
    """Finds which listings match, and the part of them that a page shows, by position."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._count = len(parts.bodies)
        self._all = (1 << self._count) - 1
        self._terms = {member: _TermBits(column, self._count) for member, column in parts.terms.items()}
        self._numbers = {member: _NumberBits(column, self._count) for member, column in parts.numbers.items()}
        self._features = {code: bits_of(bitmap, self._count) for code, bitmap in parts.features.items()}
        self._ways = {field: _Ways(order) for field, order in parts.orders.items()}
        self._by_id = _Way(range(self._count))

    def matching(self, filters: Filters, within: FrozenBitMap | None) -> int:
        """Return the set of listings that meet every condition, of those in `within` (None: of all)."""
        found = self._all if within is None else bits_of(within, self._count)
        for member, texts in filters.terms.items():
            if texts:
                found &= self._terms[member].matching(texts)
        for member, flag in filters.flags.items():
            found &= self._terms[member].saying(flag)
        at_least, at_most = filters.at_least, filters.at_most
        for member, bound in at_least.items():
            found &= self._numbers[member].between(bound, at_most.get(member))
        for member, bound in at_most.items():
            if member not in at_least:
                found &= self._numbers[member].between(None, bound)
        if filters.vin is not None:
            found &= _bits_at(self._parts.identifiers["vin"].find(filters.vin).tolist())
        if filters.stock is not None:
            found &= _bits_at(self._parts.identifiers["stock"].find(filters.stock).tolist())
        features = self._features
        for code in filters.features_all:
            found &= features.get(code, 0)
        if filters.features_any:
            carrying = 0
            for code in filters.features_any:
                carrying |= features.get(code, 0)
            found &= carrying
        for code in filters.features_none:
            found &= ~features.get(code, 0)
        if filters.text is not None:
            words = self._parts.words.matching(filters.text)
            if words is not None:
                found &= bits_of(words, self._count)
        return found

    def page(
        self, found: int, total: int, field: str | None, *, descending: bool, start: int, skip: int, wanted: int
    ) -> list[int]:
        """Return matches `skip` to `wanted` of the part from `start` on, in the order of `field` (None: of ids)."""
        way = self._by_id if field is None else self._ways[field].of(descending=descending)
        if total * total * _PICKED <= wanted * self._count:
            ranks = way.ranks
            picked = sorted(rank for rank in [ranks[position] for position in _positions(found)] if rank >= start)
            return [way.steps[rank] for rank in picked[skip:wanted]]
        steps = way.steps[start:] if start else way.steps
        page: list[int] = []
        for position in steps:
            if found >> position & 1:
                page.append(position)
                if len(page) == wanted:
                    break
        return page[skip:]

    def key(self, field: str, position: int) -> Any:
        """Return the sort key of a position, None when it has no value."""
        return self._ways[field].key(position)


class _TermBits:
    """A member's values, each with the set of listings that have it."""

    def __init__(self, column: TermColumn, count: int) -> None:
        self._codes = column.codes
        self._bits = [bits_of(column.postings.of(code), count) for code in range(len(column.values))]

    def matching(self, texts: Sequence[str]) -> int:
        codes, found = self._codes, 0
        for text in texts:
            code = codes.get(text)
            if code is None:
                code = codes.get(normalise(text))
            if code is not None:
                found |= self._bits[code]
        return found

    def saying(self, flag: bool) -> int:
        code = self._codes.get(flag)
        return 0 if code is None else self._bits[code]


class _NumberBits:
    """A numeric member: for each of its values the set of listings below it, so that a range is a difference."""

    def __init__(self, column: NumberColumn, count: int) -> None:
        self._column = column
        self._count = count

    @cached_property
    def _below(self) -> list[int]:
        values = [0] * len(self._column.values)
        for position, code in enumerate(self._column.codes.tolist()):
            if code < len(values):
                values[code] |= 1 << position
        below = [0]
        for bits in values:
            below.append(below[-1] | bits)
        return below

    def between(self, at_least: float | None, at_most: float | None) -> int:
        first, end = self._column.span(at_least, at_most)
        return self._below[end] ^ self._below[first] if first < end else 0


class _Way:
    """An order in one direction: `steps` holds the positions along it, `ranks` where each of them comes in it."""

    def __init__(self, positions: Iterable[int]) -> None:
        self.steps = array("H", positions)
        self.ranks = array("H", bytes(2 * len(self.steps)))
        for rank, position in enumerate(self.steps):
            self.ranks[position] = rank


class _Ways:
    """One order, in both directions."""

    def __init__(self, order: Order) -> None:
        self._order = order
        # Where one number at a time is looked up, an array of Python's is nearer at hand than NumPy's.
        self._codes = array("I", order.codes.astype(np.uint32).tobytes())

    def key(self, position: int) -> Any:
        code = self._codes[position]
        return self._order.values[code] if code < len(self._order.values) else None

    def of(self, *, descending: bool) -> _Way:
        return self._down if descending else self._up

    @cached_property
    def _up(self) -> _Way:
        return _Way(self._order.ascending.tolist())

    @cached_property
    def _down(self) -> _Way:
        return _Way(self._order.steps(0, len(self._order), descending=True).tolist())


def bits_of(bitmap: FrozenBitMap, count: int) -> int:
    """Return a set of positions below `count` as the bits of an integer."""
    mask = np.zeros(count, dtype=np.bool_)
    mask[positions_of(bitmap)] = True
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


def _bits_at(positions: Iterable[int]) -> int:
    bits = 0
    for position in positions:
        bits |= 1 << position
    return bits


def _positions(bits: int) -> list[int]:
    positions = []
    while bits:
        lowest = bits & -bits
        positions.append(lowest.bit_length() - 1)
        bits ^= lowest
    return positions
