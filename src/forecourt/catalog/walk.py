"""Going on with a search in the order that its listings had when it began, though the stock has changed since.

A cursor is a place in an order: after this price and this id. When an import makes a listing cheaper while somebody
walks from cheap to dear, it moves from what is ahead to what is behind and would never be seen; one that becomes dearer
would be seen twice. So the order of a walk stays that of the generation at which it began: whatever has not been
written since stands where it stood, and for the rest a small catalog is made of what it was then. The two are merged.
What is shown is always what a listing is now, and only if it is still in stock and still matches.
"""

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from forecourt.catalog.bitmap import Mask, Positions
from forecourt.catalog.index import Catalog, sort_key
from forecourt.catalog.listing import Listing
from forecourt.model import Filters, Page, Place, Sort

__all__ = ["Walk"]


class Walk:
    """The current stock in the order of an earlier generation."""

    def __init__(self, current: Catalog, changed: Iterable[tuple[str, Listing | None]]) -> None:
        """Read what has been written since: ids, each with what the listing was then, None if it was not in stock.

        An id may come several times, at most once with a listing; what is not in `current` is passed over.
        """
        self._current = current
        self._unchanged: Mask = np.ones(len(current), dtype=np.bool_)
        self._past = Catalog.build(self._still_here(changed))
        """What the listings that were written since, and are still here, were then."""
        self._now = np.zeros(len(self._past), dtype=np.uint32)
        for position in np.flatnonzero(~self._unchanged).tolist():
            then = self._past.position(current.place(position, None).listing_id)
            if then is not None:
                self._now[then] = position

    def _still_here(self, changed: Iterable[tuple[str, Listing | None]]) -> Iterable[Listing]:
        for listing_id, then in changed:
            position = self._current.position(listing_id)
            if position is not None:
                self._unchanged[position] = False
                if then is not None:
                    yield then

    def __len__(self) -> int:
        return len(self._past)

    def search(
        self, filters: Filters, sort: Sort | None, *, limit: int, after: Place, dealers: Collection[str] | None
    ) -> Page:
        """Return the page after a place of the walk; `total` counts what matches now."""
        current, past = self._current, self._past
        found = current.matches(filters, dealers)
        is_found: Mask = np.zeros(len(current), dtype=np.bool_)
        is_found[found] = True
        moved: Positions = past.matches(filters, dealers)
        moved = moved[is_found[self._now[moved]]]
        wanted = limit + 1
        steps = [
            (current.place(position, sort), position)
            for position in current.following(found[self._unchanged[found]], sort, after, wanted)
        ]
        steps += [
            (past.place(position, sort), int(self._now[position]))
            for position in past.following(moved, sort, after, wanted)
        ]
        page = _in_order(steps, sort)[:wanted]
        last = page[limit - 1][0] if 0 < limit < len(page) else None
        return Page(int(found.size), current.bodies([position for _, position in page[:limit]]), last)


def _in_order(steps: list[tuple[Place, int]], sort: Sort | None) -> list[tuple[Place, int]]:
    """Return steps as a search orders them: without a value last both ways, ties by listing id."""
    steps.sort(key=lambda step: step[0].listing_id)
    if sort is None:
        return steps
    keyed: list[tuple[Any, tuple[Place, int]]] = [(sort_key(sort.field, step[0].value), step) for step in steps]
    valued = [pair for pair in keyed if pair[0] is not None]
    valued.sort(key=lambda pair: pair[0], reverse=sort.descending)
    return [step for _, step in valued] + [step for key, step in keyed if key is None]
