"""Which part of what matches a page shows: the first listings after a place, in an order."""

from typing import Final

import numpy as np
from pyroaring import FrozenBitMap

from forecourt.catalog.bitmap import Positions, positions_of
from forecourt.catalog.column import Order
from forecourt.catalog.matching import Matched

__all__ = ["by_id", "in_order"]

# What one step of each way costs here, in nanoseconds; only their proportion matters, and it only picks the
# way.
_STEP: Final = 65
_RANKED: Final = 12
_RANKED_ONCE: Final = 12_000

_SMALL: Final = 8192


def in_order(
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
        if wanted * len(order) < afford * total:
            walked = _walk(order, descending, matched, start, wanted, wanted * len(order) // total, afford)
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


def by_id(matched: Matched, count: int, start: int, skip: int, wanted: int) -> list[int]:
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
