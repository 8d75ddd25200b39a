"""The catalog: search, facets and look-ups over one immutable set of listings."""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from pyroaring import FrozenBitMap

from forecourt.catalog.bitmap import EMPTY, Mask, Positions, bitmap_of, bitmap_of_mask, positions_of
from forecourt.catalog.build import give_back, read
from forecourt.catalog.column import Codes, Order
from forecourt.catalog.follow import following
from forecourt.catalog.listing import DEFAULT_TEXT_FIELDS, Listing
from forecourt.catalog.parts import Parts, assembled
from forecourt.catalog.small import SMALL_STOCK, SmallSearch
from forecourt.catalog.text import normalise
from forecourt.model import Facets, Filters, Page, Place, Sort, VehicleReference

__all__ = ["Catalog", "sort_key"]

_HEAP_LIMIT: Final = 64 << 20
_TEXT_SORTS: Final = frozenset({"make", "model", "stock"})

# What one step of each way costs here, in nanoseconds; only their proportion matters, and it only picks the
# way.
_STEP: Final = 65
_RANKED: Final = 12
_RANKED_ONCE: Final = 12_000

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


class Catalog:
    """An immutable search index over the listings of a set of sellers; see `build`.

    `dealers` limits any question to these sellers' listings; None means every seller of the catalog. Nothing
    of another seller shows in the answer. An empty list in a filter sets no condition (ours: buyer agents
    send them).
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._bodies = parts.bodies
        self._ids = parts.ids
        self._terms = parts.terms
        self._numbers = parts.numbers
        self._orders = parts.orders
        self._count = len(parts.bodies)
        self._dealers = parts.listings_of
        self._small = SmallSearch(parts) if self._count <= SMALL_STOCK else None
        self._remembered: dict[Span, FrozenBitMap] = {}
        self._remembered_limit = min(_REMEMBERED // (self._count // 8 + 1), 1024)
        self.generation = 0
        """The generation of the inventory that this is the catalog of; set once by whoever read it from a store."""

    @classmethod
    def build(
        cls,
        listings: Iterable[Listing],
        *,
        text_fields: Sequence[str] = DEFAULT_TEXT_FIELDS,
        heap_limit: int = _HEAP_LIMIT,
        directory: Path | None = None,
    ) -> "Catalog":
        """Return the catalog of those of `listings` that may be offered; the others leave no trace.

        They are read once, in any order, fastest in the order of their ids. `text_fields` are the members
        that the text query looks into. Bodies beyond `heap_limit` bytes go to an unlinked temporary file in
        `directory` (default: the system's) that is mapped into memory. Raises ValueError when two listings
        share an id.
        """
        columns = read(listings, text_fields=text_fields, heap_limit=heap_limit, directory=directory)
        catalog = cls(assembled(columns, text_fields=text_fields, heap_limit=heap_limit, directory=directory))
        del columns
        return catalog._settled()

    def followed(self, changed: Iterable[Listing], removed: Collection[str] = ()) -> "Catalog":
        """Return the catalog of the stock in which `changed` are new or as they are now and `removed` are no more.

        It answers as one built of the whole stock does, takes the time of reading what has changed and of going
        through the columns of the rest once, and shares this one's file of bodies. This one stays as it is. Raises
        ValueError when two of `changed` share an id.
        """
        return Catalog(following(self._parts, changed, removed))._settled()

    def _settled(self) -> "Catalog":
        """Do now, where nobody waits, what the first request would have to, and give back what building took."""
        if self._count > _SMALL:
            self._all_facets  # noqa: B018 - computed once
            self._bodies.let_go()
            give_back()
        return self

    def __len__(self) -> int:
        return self._count

    def __contains__(self, listing_id: str) -> bool:
        return self._ids.find(listing_id) is not None

    def search(
        self,
        filters: Filters,
        sort: Sort | None = None,
        *,
        skip: int = 0,
        limit: int,
        after: Place | None = None,
        dealers: Collection[str] | None = None,
    ) -> Page:
        """Return a page of what matches, in the order of `sort` (none: by listing id).

        The page begins `skip` listings after the first, or after the place `after`, which need not exist any
        more. Raises KeyError for a sort field that is not in `model.SORT_FIELDS`.
        """
        skip = min(max(skip, 0), self._count)
        limit = min(max(limit, 0), self._count)
        if self._small is not None:
            return self._search_small(self._small, filters, sort, skip, limit, after, dealers)
        order = None if sort is None else self._orders[sort.field]
        descending = sort is not None and sort.descending
        bitmap = self._bitmap(filters, dealers)
        spans = self._spans(filters)
        start = 0 if after is None else self._rank(after, sort, order)
        if bitmap is None and spans is not None and len(spans) == 1 and order is not None:
            member, first, end = spans[0]
            if sort is not None and member == sort.field:
                return self._stretch(order, sort, first, end, start, skip, limit)
        matched = self._matched(bitmap, spans)
        total = self._count if matched is None else len(matched)
        wanted = skip + limit + 1
        if order is None:
            found = _by_id(matched, self._count, start, skip, wanted)
        elif matched is None:
            found = order.steps(start + skip, start + wanted, descending=descending).tolist()
        else:
            found = self._sorted(order, descending, matched, total, start, skip, wanted)
        return self._page(total, found, limit, order)

    def _search_small(
        self,
        small: SmallSearch,
        filters: Filters,
        sort: Sort | None,
        skip: int,
        limit: int,
        after: Place | None,
        dealers: Collection[str] | None,
    ) -> Page:
        found = small.matching(filters, None if dealers is None else self._sellers(dealers))
        total = found.bit_count()
        field, descending = (None, False) if sort is None else (sort.field, sort.descending)
        start = 0
        if after is not None:
            start = self._rank(after, sort, None if field is None else self._orders[field])
        page = small.page(found, total, field, descending=descending, start=start, skip=skip, wanted=skip + limit + 1)
        last = None
        if len(page) > limit:
            del page[limit:]
            if page:
                last = self._place(page[-1], None if field is None else small.key(field, page[-1]))
        return Page(total, self._bodies.of(page), last)

    def _place(self, position: int, key: Any) -> Place:
        return Place(self._ids[position], key[1] if isinstance(key, tuple) else key)

    def facets(self, filters: Filters, *, dealers: Collection[str] | None = None) -> Facets:
        """Return the counts and ranges over what matches (CONTRACTS.md section 5, facets).

        Spellings of one value are counted together and shown as the sellers that are asked most often write it, ties
        by the smaller text; how other sellers write it does not show.
        """
        counted = self._counted(filters, dealers)
        return counted if dealers is None else self._parts.spellings.shown(counted, dealers)

    def _counted(self, filters: Filters, dealers: Collection[str] | None) -> Facets:
        matched = self._matched(self._bitmap(filters, dealers), self._spans(filters))
        if matched is None:
            return self._all_facets
        if isinstance(matched, FrozenBitMap):
            return self._parts.facets.count(matched, positions_of(matched))
        return self._parts.facets.count(None, matched)

    @cached_property
    def _all_facets(self) -> Facets:
        return self._parts.facets.count(None, np.arange(self._count, dtype=np.uint32))

    def find(self, reference: VehicleReference, *, dealers: Collection[str] | None = None) -> bytes | None:
        """Return the one listing that is named, None when there is none.

        The most specific identifier decides (vin, then vehicle_id, then stock); the others must fit the same
        listing unless no listing has them. Of several that fit, such as one vehicle at two rooftops, it is
        the first by id.
        """
        allowed = None if dealers is None else self._sellers(dealers)
        candidates: Positions | None = None
        for member in ("vin", "vehicle_id", "stock"):
            text = getattr(reference, member)
            if text is None:
                continue
            positions = self._parts.identifiers[member].find(text)
            if allowed is not None:
                positions = np.array([each for each in positions.tolist() if each in allowed], dtype=np.uint32)
            if candidates is None:
                candidates = positions
            elif positions.size:
                candidates = np.intersect1d(candidates, positions, assume_unique=True)
            if not candidates.size:
                return None
        return None if candidates is None else self._bodies[int(candidates[0])]

    # What a walk through an earlier order is put together from (walk.py). A position is a listing's number here.

    def position(self, listing_id: str) -> int | None:
        """Return where a listing stands, None when it is not in the catalog."""
        return self._ids.find(listing_id)

    def matches(self, filters: Filters, dealers: Collection[str] | None) -> Positions:
        """Return the positions of what a search finds, ascending."""
        matched = self._matched(self._bitmap(filters, dealers), self._spans(filters))
        if matched is None:
            return np.arange(self._count, dtype=np.uint32)
        return positions_of(matched) if isinstance(matched, FrozenBitMap) else matched

    def following(self, positions: Positions, sort: Sort | None, after: Place, wanted: int) -> list[int]:
        """Return the first `wanted` of ascending `positions` that come after a place in the order of `sort`."""
        order = None if sort is None else self._orders[sort.field]
        start = self._rank(after, sort, order)
        if sort is None or order is None:
            return _by_id(positions, self._count, start, 0, wanted)
        return self._sorted(order, sort.descending, positions, positions.size, start, 0, wanted)

    def place(self, position: int, sort: Sort | None) -> Place:
        """Return the place of a listing in the order of `sort`."""
        return self._place(position, None if sort is None else self._orders[sort.field].key(position))

    def bodies(self, positions: Iterable[int]) -> Sequence[bytes]:
        """Return the listings at these positions, in this order."""
        return self._bodies.of(positions)

    def _sellers(self, dealers: Collection[str]) -> FrozenBitMap:
        found = EMPTY
        for name in dealers:
            bitmap = self._dealers.get(name)
            if bitmap is not None:
                found = found | bitmap if found else bitmap
        return found

    def _bitmap(self, filters: Filters, dealers: Collection[str] | None) -> FrozenBitMap | None:
        """Return what meets every condition but those on numbers, None when there is no such condition."""
        found: FrozenBitMap | None = None if dealers is None else self._sellers(dealers)
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

    def _spans(self, filters: Filters) -> list[Span] | None:
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

    def _matched(self, bitmap: FrozenBitMap | None, spans: list[Span] | None) -> Matched:
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

    def _rank(self, place: Place, sort: Sort | None, order: Order | None) -> int:
        """Return how many listings of the whole order lie at or before a place."""
        following = self._ids.after(place.listing_id)
        if sort is None or order is None:
            return following
        return order.rank(sort_key(sort.field, place.value), following, descending=sort.descending)

    def _stretch(
        self, order: Order, sort: Sort | None, first: int, end: int, start: int, skip: int, limit: int
    ) -> Page:
        """Answer a search whose only condition is on the member that it sorts by: its matches stand
        together.
        """
        descending = sort is not None and sort.descending
        low, high = int(order.starts[first]), int(order.starts[end])
        total = high - low
        if descending:
            low, high = order.present - high, order.present - low
        low = max(low, start) + skip
        found = order.steps(low, min(high, low + limit + 1), descending=descending).tolist()
        return self._page(total, found, limit, order)

    def _sorted(
        self,
        order: Order,
        descending: bool,
        matched: FrozenBitMap | Positions,
        total: int,
        start: int,
        skip: int,
        wanted: int,
    ) -> list[int]:
        """Return the matches from `skip` to `wanted` of the order's part from `start` on."""
        if total and isinstance(matched, FrozenBitMap):
            afford = (_RANKED_ONCE + total * _RANKED) // _STEP
            if wanted * self._count < afford * total:
                walked = _walk(order, descending, matched, start, wanted, wanted * self._count // total, afford)
                if walked is not None:
                    return walked[skip:]
        positions = positions_of(matched) if isinstance(matched, FrozenBitMap) else matched
        keys = order.codes.take(positions)
        if descending:
            keys = order.descending_codes(keys)
        if start:
            if start >= len(order):
                return []
            next_position = order.steps(start, start + 1, descending=descending)[0]
            bound = order.codes[next_position : next_position + 1]
            if descending:
                bound = order.descending_codes(bound)
            following = (keys > bound) | ((keys == bound) & (positions >= next_position))
            positions, keys = positions[following], keys[following]
        if keys.size > _SMALL and wanted < keys.size:
            near = (keys <= np.partition(keys, wanted - 1)[wanted - 1]).nonzero()[0]
            positions, keys = positions[near], keys[near]
        found: list[int] = positions[keys.argsort(kind="stable")[skip:wanted]].tolist()
        return found

    def _page(self, total: int, found: list[int], limit: int, order: Order | None) -> Page:
        """Return the page of `found`, which holds one position more than the page when the result goes on."""
        last: Place | None = None
        if len(found) > limit:
            del found[limit:]
            if found:
                last = self._place(found[-1], None if order is None else order.key(found[-1]))
        return Page(total, self._bodies.of(found), last)


def _both(found: FrozenBitMap | None, other: FrozenBitMap) -> FrozenBitMap:
    return other if found is None else found & other


def _within(codes: Codes, first: int, end: int) -> Any:
    """Tell which codes lie in a span; one comparison, since what is below wraps round to the top."""
    kind = codes.dtype.type
    return codes - kind(first) < kind(end - first) if first else codes < kind(end)


def sort_key(member: str, value: str | float | None) -> Any:
    """Return the sort key of a place's value; one of the wrong type counts as none."""
    if member in _TEXT_SORTS:
        return (normalise(value), value) if isinstance(value, str) else None
    return value if isinstance(value, int | float) else None


def _by_id(matched: Matched, count: int, start: int, skip: int, wanted: int) -> list[int]:
    """Return matches in the order of ids, which is that of positions."""
    if matched is None:
        return list(range(start + skip, min(start + wanted, count)))
    if isinstance(matched, FrozenBitMap):
        before = matched.rank(start - 1) if start else 0
        return list(matched[before + skip : before + wanted])
    before = int(np.searchsorted(matched, start)) if start else 0
    found: list[int] = matched[before + skip : before + wanted].tolist()
    return found


def _walk(
    order: Order, descending: bool, matched: FrozenBitMap, start: int, wanted: int, expected: int, afford: int
) -> list[int] | None:
    """Go along the order and pick what matches; None when that took more steps than it may.

    `expected` is how many steps it takes if the matches lie evenly in the order.
    """
    found: list[int] = []
    block = expected + expected // 4 + 16
    end = start + afford
    while start < len(order):
        if start > end:
            return None
        steps = order.steps(start, start + block, descending=descending).tolist()
        found += [position for position in steps if position in matched]
        if len(found) >= wanted:
            return found[:wanted]
        start += block
        block = min(2 * block, 4096)
    return found
