"""The columns of the index: values that are counted and filtered by, numbers, and orders to walk along."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
from pyroaring import FrozenBitMap

from forecourt.catalog.bitmap import EMPTY, Positions
from forecourt.catalog.moves import Moves
from forecourt.catalog.postings import Postings
from forecourt.catalog.text import normalise

__all__ = [
    "Codes",
    "NumberColumn",
    "Order",
    "Spelt",
    "TermColumn",
    "compact",
    "followed",
    "living",
    "packed",
    "recoded",
    "renumbered",
    "sorted_positions",
    "united",
]

_BITS: Final = np.uint32(16)
_PACKED_LIMIT: Final = 1 << 63
_LOW: Final = np.uint32(0xFFFF)

Codes = npt.NDArray[Any]
"""One unsigned code a position; the greatest number of its type says that the listing has no value."""


def compact(codes: npt.NDArray[Any], groups: int) -> Codes:
    """Return codes from 0 to `groups` - 1, and -1 for none, in the narrowest type that holds them."""
    return codes.astype(np.uint16 if groups < np.iinfo(np.uint16).max else np.uint32)


def recoded(codes: Codes, table: npt.NDArray[np.int64], groups: int) -> Codes:
    """Return codes with `table[code]`, which is below `groups` or -1 for none, in the place of each."""
    found: Codes = compact(np.append(table, -1), groups).take(np.minimum(codes, codes.dtype.type(table.size)))
    return found


def united(earlier: Sequence[Any], fresh: Sequence[Any]) -> tuple[Sequence[Any], Positions, Positions]:
    """Return what either of two ascending sequences holds, ascending, and the new places of what each of them holds."""
    if isinstance(earlier, array) and isinstance(fresh, array):
        return _arrays_united(np.array(earlier, dtype=np.int64), np.array(fresh, dtype=np.int64))
    places = [bisect_left(earlier, value) for value in fresh]
    new = [place == len(earlier) or earlier[place] != value for place, value in zip(places, fresh, strict=True)]
    values: list[Any] = []
    done = 0
    for place, value, is_new in zip(places, fresh, new, strict=True):
        if is_new:
            values += earlier[done:place]
            values.append(value)
            done = place
    values += earlier[done:]
    return values, *renumbered(len(earlier), np.array(places, dtype=np.int64), np.array(new, dtype=np.bool_))


def _arrays_united(
    earlier: npt.NDArray[np.int64], fresh: npt.NDArray[np.int64]
) -> tuple[Sequence[Any], Positions, Positions]:
    places = np.searchsorted(earlier, fresh)
    new = np.ones(fresh.size, dtype=np.bool_)
    within = places < earlier.size
    new[within] = earlier[places[within]] != fresh[within]
    values = array("q", np.insert(earlier, places[new], fresh[new]).tobytes())
    return values, *renumbered(earlier.size, places, new)


def renumbered(count: int, places: npt.NDArray[np.int64], new: npt.NDArray[np.bool_]) -> tuple[Positions, Positions]:
    """Return the new places of `count` things, and of those that come between them, ascending, `places` of the former
    before each; those that are not `new` are the thing at their place.
    """
    earlier = np.arange(count) + np.searchsorted(places[new], np.arange(count), side="right")
    fresh = places + np.cumsum(new) - new
    return earlier.astype(np.uint32), fresh.astype(np.uint32)


def followed(
    moves: Moves, earlier: Codes, fresh: Codes, tables: tuple[Positions, Positions], total: int
) -> tuple[Codes, npt.NDArray[np.bool_]]:
    """Return the codes of a stock that follows, and which of the `total` values it has; those are numbered anew.

    `tables` says what each earlier and each fresh code is among the values of both.
    """
    codes = moves.column(
        recoded(earlier, tables[0].astype(np.int64), total), recoded(fresh, tables[1].astype(np.int64), total)
    )
    alive = np.bincount(np.minimum(codes, codes.dtype.type(total)), minlength=total)[:total] > 0
    if not alive.all():
        codes = recoded(codes, np.where(alive, np.cumsum(alive) - 1, -1), int(np.count_nonzero(alive)))
    return codes, alive


def living(values: Sequence[Any], alive: npt.NDArray[np.bool_]) -> Sequence[Any]:
    """Return those of the values that are alive."""
    if alive.all():
        return values
    if isinstance(values, array):
        return array("q", np.array(values, dtype=np.int64)[alive].tobytes())
    return [value for value, lives in zip(values, alive.tolist(), strict=True) if lives]


def packed(values: Sequence[int | float]) -> Sequence[int | float]:
    """Return numbers without an object for each, where all of them are whole and not too large."""
    if not isinstance(values, array) and all(type(value) is int and abs(value) < _PACKED_LIMIT for value in values):
        return array("q", values)
    return values


class Spelt(msgspec.Struct):
    """A text member as it is written: its distinct texts, and each position's code among them.

    `ranked` holds (normal form, text), ascending; a text without a normal form is none.
    """

    ranked: Sequence[tuple[str, str]]
    codes: Codes


class TermColumn:
    """A member whose values are counted and matched whole. Spellings with one normal form are one value.

    `values` are the ones shown, ascending; a value's place in it is its code. `codes` finds it by its normal form and
    by the spellings in use. `spelt` says how each listing writes it, None when every value is written in one way.
    """

    __slots__ = ("codes", "postings", "spelt", "values")

    def __init__(
        self,
        values: Sequence[str | int | bool],
        codes: Mapping[str | bool, int],
        postings: Postings,
        spelt: Spelt | None = None,
    ) -> None:
        self.values = values
        self.codes = codes
        self.postings = postings
        self.spelt = spelt

    def matching(self, texts: Sequence[str]) -> FrozenBitMap:
        """Return the positions whose value is one of `texts`."""
        codes = self.codes
        found: FrozenBitMap | None = None
        for text in texts:
            code = codes.get(text)
            if code is None and (code := codes.get(normalise(text))) is None:
                continue
            bitmap = self.postings.of(code)
            found = bitmap if found is None else found | bitmap
        return EMPTY if found is None else found

    def saying(self, flag: bool) -> FrozenBitMap:
        """Return the positions that say exactly `flag`."""
        code = self.codes.get(flag)
        return EMPTY if code is None else self.postings.of(code)


class NumberColumn:
    """A numeric member: its distinct values ascending, and each position's code among them."""

    __slots__ = ("codes", "complete", "values")

    def __init__(self, values: Sequence[int | float], codes: Codes) -> None:
        self.values = values
        self.codes = codes
        self.complete = not bool((codes == np.iinfo(codes.dtype).max).any())

    def span(self, at_least: float | None, at_most: float | None) -> tuple[int, int]:
        """Return the codes, from the first up to the end, whose values lie within the bounds, both included.

        Python compares integers of any size with floats exactly, so no bound is too large; a bound that is
        not a number lets nothing through.
        """
        if at_least != at_least or at_most != at_most:
            return 0, 0
        first = 0 if at_least is None else bisect_left(self.values, at_least)
        end = len(self.values) if at_most is None else bisect_right(self.values, at_most)
        return first, end


class Order:
    """The positions sorted by one member, both ways. Those without a value come last in both, ties by
    position.

    `values` holds the distinct sort keys ascending, `codes` each position's group among them, `starts` where each
    group begins in `ascending` (and, at the end, where those without a value begin). Only the one direction is held:
    descending, the groups come the other way round, and each is the same within.
    """

    __slots__ = ("ascending", "codes", "present", "starts", "values")

    def __init__(self, values: Sequence[Any], codes: Codes) -> None:
        self.values = values
        self.codes = codes
        groups = len(values)
        counts = np.bincount(codes[codes != np.iinfo(codes.dtype).max], minlength=groups)
        self.starts: npt.NDArray[np.uint32] = np.zeros(groups + 1, dtype=np.uint32)
        np.cumsum(counts, out=self.starts[1:])
        self.present = int(self.starts[-1])
        self.ascending: Positions = sorted_positions(codes)

    def __len__(self) -> int:
        return self.ascending.size

    def steps(self, first: int, end: int, *, descending: bool) -> Positions:
        """Return the positions of the ranks from `first` up to, not including, `end`."""
        if not descending:
            return self.ascending[first:end]
        ranks = np.arange(first, min(end, self.present), dtype=np.int64)
        # The ascending rank with as many before it as this one has after it is of the same group.
        groups = self.codes.take(self.ascending.take(self.present - 1 - ranks))
        ranks += self.starts.take(groups)
        ranks += self.starts.take(groups.astype(np.int64) + 1)
        ranks -= self.present
        valued = self.ascending.take(ranks)
        if end <= self.present:
            return valued
        return np.concatenate((valued, self.ascending[max(first, self.present) : end]))

    def descending_codes(self, codes: Codes) -> Codes:
        """Return codes that ascend where the order descends; unsigned wrapping keeps "no value" last."""
        flipped: Codes = codes.dtype.type(max(len(self.values) - 1, 0)) - codes
        if not self.values:
            flipped = codes
        return flipped

    def rank(self, key: Any, following: int, *, descending: bool) -> int:
        """Return how much of the order lies at or before a place.

        `key` is the place's sort key, None for no value; `following` is the first position with a greater id.
        """
        if key is None:
            lacking = self.ascending[self.present :]
            return self.present + int(np.searchsorted(lacking, following))
        group = bisect_left(self.values, key)
        start = int(self.starts[group])
        if group == len(self.values) or self.values[group] != key:
            return self.present - start if descending else start
        end = int(self.starts[group + 1])
        passed = int(np.searchsorted(self.ascending[start:end], following))
        return self.present - end + passed if descending else start + passed

    def key(self, position: int) -> Any:
        """Return the sort key of a position, None when it has no value."""
        code = int(self.codes[position])
        return self.values[code] if code < len(self.values) else None


def sorted_positions(codes: Codes) -> Positions:
    """Return the positions in the order of their codes, ties by position; 16 bits at a time, which is by far faster."""
    if codes.dtype.itemsize <= 2:
        return codes.argsort(kind="stable").astype(np.uint32)
    order = (codes & _LOW).astype(np.uint16).argsort(kind="stable").astype(np.uint32)
    high = (codes >> _BITS).astype(np.uint16).take(order)
    return order.take(high.argsort(kind="stable"))
