"""What matches: the conditions of a question as sets of positions."""

from collections.abc import Collection
from functools import cached_property
from typing import Any, Final

import numpy as np
from pyroaring import FrozenBitMap

from forecourt.catalog.bitmap import EMPTY, Mask, Positions, bitmap_of, bitmap_of_mask, positions_of
from forecourt.catalog.column import Codes
from forecourt.catalog.parts import Parts
from forecourt.model import Filters

__all__ = ["Matched", "Matching"]

_SMALL: Final = 8192
_SPARSE: Final = 24

_BLOCK: Final = 1 << 16
"""Codes compared at a time, so that what comes between stays in the processor's cache and takes no memory for long."""

_REMEMBERED: Final = 16 << 20
"""Bytes, at most, of remembered spans: the bounds that shoppers ask for are round and come again."""

Span = tuple[str, int, int]
"""A numeric member, and the first and the end of the codes that it may have."""

Matched = FrozenBitMap | Positions | None
"""A set of positions as a bitmap, as an ascending array, or None for every listing."""


class Matching:
    """Finds the listings that meet conditions."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._terms = parts.terms
        self._numbers = parts.numbers
        self._count = len(parts.bodies)
        self._remembered: dict[Span, FrozenBitMap] = {}
        self._remembered_limit = min(_REMEMBERED // (self._count // 8 + 1), 1024)

    def matched(self, filters: Filters, dealers: Collection[str] | None) -> Matched:
        """Return what meets every condition."""
        return self.narrowed(self.bitmap(filters, dealers), self.spans(filters))

    def sellers(self, dealers: Collection[str]) -> FrozenBitMap:
        """Return the listings of these sellers."""
        found = EMPTY
        for name in dealers:
            bitmap = self._parts.listings_of.get(name)
            if bitmap is not None:
                found = found | bitmap if found else bitmap
        return found

    def bitmap(self, filters: Filters, dealers: Collection[str] | None) -> FrozenBitMap | None:
        """Return what meets every condition but those on numbers, None when there is no such condition."""
        found: FrozenBitMap | None = None if dealers is None else self.sellers(dealers)
        for member, texts in filters.terms.items():
            if texts:
                matching = self._terms[member].matching(texts)
                found = matching if found is None else found & matching
        for member, flag in filters.flags.items():
            matching = self._terms[member].saying(flag)
            found = matching if found is None else found & matching
        if filters.vin is not None:
            found = _both(found, bitmap_of(self._parts.identifiers["vin"].find(filters.vin)))
        if filters.stock is not None:
            found = _both(found, bitmap_of(self._parts.identifiers["stock"].find(filters.stock)))
        features = self._parts.features
        for code in filters.features_all:
            found = _both(found, features.get(code, EMPTY))
        if filters.features_any:
            carrying = [features.get(code, EMPTY) for code in filters.features_any]
            found = _both(found, FrozenBitMap.union(EMPTY, *carrying))
        if filters.text is not None:
            matching_words = self._parts.words.matching(filters.text)
            if matching_words is not None:
                found = _both(found, matching_words)
        for code in filters.features_none:
            if code in features:
                found = (self._everything if found is None else found) - features[code]
        return found

    @cached_property
    def _everything(self) -> FrozenBitMap:
        return FrozenBitMap(range(self._count))

    def spans(self, filters: Filters) -> list[Span] | None:
        """Return the conditions on numbers as spans of codes; None when one of them lets nothing through."""
        at_least, at_most = filters.at_least, filters.at_most
        if not at_least and not at_most:
            return []
        spans: list[Span] = []
        for member in at_least.keys() | at_most.keys():
            column = self._numbers[member]
            first, end = column.span(at_least.get(member), at_most.get(member))
            if first >= end:
                return None
            if not (column.complete and first == 0 and end == len(column.values)):
                spans.append((member, first, end))
        return spans

    def narrowed(self, bitmap: FrozenBitMap | None, spans: list[Span] | None) -> Matched:
        """Narrow the bitmap by the spans: over its members when few, over whole columns otherwise."""
        if spans is None:
            return EMPTY
        late: list[Span] = []
        for span in spans:
            known = self._remembered.get(span)
            if known is None:
                late.append(span)
            else:
                bitmap = known if bitmap is None else bitmap & known
        if not late:
            return bitmap
        if bitmap is not None and self._count > _SMALL and len(bitmap) * _SPARSE < self._count:
            positions = positions_of(bitmap)
            for member, first, end in late:
                positions = positions[_within(self._numbers[member].codes.take(positions), first, end)]
            return positions
        for span in late:
            bitmap = _both(bitmap, self._learn(span))
        return bitmap

    def _learn(self, span: Span) -> FrozenBitMap:
        """Return where a span holds, and remember it."""
        member, first, end = span
        codes = self._numbers[member].codes
        mask: Mask = np.empty(codes.size, dtype=np.bool_)
        for start in range(0, codes.size, _BLOCK):
            mask[start : start + _BLOCK] = _within(codes[start : start + _BLOCK], first, end)
        bitmap = bitmap_of_mask(mask)
        if len(self._remembered) >= self._remembered_limit:
            self._remembered.clear()
        self._remembered[span] = bitmap
        return bitmap


def _both(found: FrozenBitMap | None, other: FrozenBitMap) -> FrozenBitMap:
    return other if found is None else found & other


def _within(codes: Codes, first: int, end: int) -> Any:
    """Tell which codes lie in a span; one comparison, since what is below wraps round to the top."""
    kind = codes.dtype.type
    return codes - kind(first) < kind(end - first) if first else codes < kind(end)
