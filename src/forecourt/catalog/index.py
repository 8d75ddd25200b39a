"""The catalog: search, facets and look-ups over one immutable set of listings."""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from pyroaring import FrozenBitMap

from forecourt.catalog.bitmap import Positions, positions_of
from forecourt.catalog.build import give_back, read
from forecourt.catalog.column import Order
from forecourt.catalog.follow import following
from forecourt.catalog.listing import DEFAULT_TEXT_FIELDS, Listing
from forecourt.catalog.matching import Matching
from forecourt.catalog.paging import by_id, in_order
from forecourt.catalog.parts import Parts, assembled
from forecourt.catalog.small import SMALL_STOCK, SmallSearch
from forecourt.catalog.text import normalise
from forecourt.model import Facets, Filters, Page, Place, Sort, VehicleReference

__all__ = ["Catalog", "sort_key"]

_HEAP_LIMIT: Final = 64 << 20
_TEXT_SORTS: Final = frozenset({"make", "model", "stock"})

_SMALL: Final = 8192

_LISTINGS_BETWEEN: Final = 128 << 20
"""Questions times listings after which freed memory is given back: the sets that are made for a moment are of a size
that glibc leaves holes for, and with every question a little more (a third of the index over a thousand questions)."""


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
        self._orders = parts.orders
        self._count = len(parts.bodies)
        self._small = SmallSearch(parts) if self._count <= SMALL_STOCK else None
        self._matching = Matching(parts)
        self._questions = 0
        self._questions_between = _LISTINGS_BETWEEN // (self._count + 1)
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
        self._count_question()
        order = None if sort is None else self._orders[sort.field]
        descending = sort is not None and sort.descending
        bitmap = self._matching.bitmap(filters, dealers)
        spans = self._matching.spans(filters)
        start = 0 if after is None else self._rank(after, sort, order)
        if bitmap is None and spans is not None and len(spans) == 1 and order is not None:
            member, first, end = spans[0]
            if sort is not None and member == sort.field:
                return self._stretch(order, sort, first, end, start, skip, limit)
        matched = self._matching.narrowed(bitmap, spans)
        total = self._count if matched is None else len(matched)
        wanted = skip + limit + 1
        if order is None:
            found = by_id(matched, self._count, start, skip, wanted)
        elif matched is None:
            found = order.steps(start + skip, start + wanted, descending=descending).tolist()
        else:
            found = in_order(order, descending, matched, total, start, skip, wanted)
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
        found = small.matching(filters, None if dealers is None else self._matching.sellers(dealers))
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
        self._count_question()
        matched = self._matching.matched(filters, dealers)
        if matched is None:
            return self._all_facets
        if isinstance(matched, FrozenBitMap):
            return self._parts.facets.count(matched, positions_of(matched))
        return self._parts.facets.count(None, matched)

    def _count_question(self) -> None:
        self._questions += 1
        if self._questions > self._questions_between:
            self._questions = 0
            give_back()

    @cached_property
    def _all_facets(self) -> Facets:
        return self._parts.facets.count(None, np.arange(self._count, dtype=np.uint32))

    def find(self, reference: VehicleReference, *, dealers: Collection[str] | None = None) -> bytes | None:
        """Return the one listing that is named, None when there is none.

        The most specific identifier decides (vin, then vehicle_id, then stock); the others must fit the same
        listing unless no listing has them. Of several that fit, such as one vehicle at two rooftops, it is
        the first by id.
        """
        allowed = None if dealers is None else self._matching.sellers(dealers)
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
        matched = self._matching.matched(filters, dealers)
        if matched is None:
            return np.arange(self._count, dtype=np.uint32)
        return positions_of(matched) if isinstance(matched, FrozenBitMap) else matched

    def following(self, positions: Positions, sort: Sort | None, after: Place, wanted: int) -> list[int]:
        """Return the first `wanted` of ascending `positions` that come after a place in the order of `sort`."""
        order = None if sort is None else self._orders[sort.field]
        start = self._rank(after, sort, order)
        if sort is None or order is None:
            return by_id(positions, self._count, start, 0, wanted)
        return in_order(order, sort.descending, positions, positions.size, start, 0, wanted)

    def place(self, position: int, sort: Sort | None) -> Place:
        """Return the place of a listing in the order of `sort`."""
        return self._place(position, None if sort is None else self._orders[sort.field].key(position))

    def bodies(self, positions: Iterable[int]) -> Sequence[bytes]:
        """Return the listings at these positions, in this order."""
        return self._bodies.of(positions)

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

    def _page(self, total: int, found: list[int], limit: int, order: Order | None) -> Page:
        """Return the page of `found`, which holds one position more than the page when the result goes on."""
        last: Place | None = None
        if len(found) > limit:
            del found[limit:]
            if found:
                last = self._place(found[-1], None if order is None else order.key(found[-1]))
        return Page(total, self._bodies.of(found), last)


def sort_key(member: str, value: str | float | None) -> Any:
    """Return the sort key of a place's value; one of the wrong type counts as none."""
    if member in _TEXT_SORTS:
        return (normalise(value), value) if isinstance(value, str) else None
    return value if isinstance(value, int | float) else None
