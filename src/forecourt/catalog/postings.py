"""Many sets of positions, one a code, kept small."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pyroaring import FrozenBitMap

from forecourt.catalog.bitmap import EMPTY, Mask, Positions, bitmap_of, positions_of
from forecourt.catalog.moves import NOWHERE, Moves

__all__ = ["Postings", "PostingsBuilder"]

_HALF: Final = np.uint64(32)

_GROWN: Final = 128
"""Positions of one code in the shared array from which on it is given a bitmap."""


class Postings:
    """For each of many codes the set of positions that carry it.

    Codes on many positions have a bitmap each; the others share one flat array, since a bitmap takes some
    hundred bytes however little it holds. Nothing of a code may be lost by that: a code can have both.
    """

    __slots__ = ("_bitmaps", "_flat", "_heavy", "_starts")

    def __init__(self, bitmaps: dict[int, FrozenBitMap], flat: Positions, starts: npt.NDArray[np.int64]) -> None:
        self._bitmaps = bitmaps
        self._heavy: npt.NDArray[np.int64] = np.array(sorted(bitmaps), dtype=np.int64)
        self._flat = flat
        self._starts = starts

    def of(self, code: int) -> FrozenBitMap:
        """Return the positions of one code."""
        bitmap = self._bitmaps.get(code)
        if not self._flat.size:
            return EMPTY if bitmap is None else bitmap
        light = self._flat[self._starts[code] : self._starts[code + 1]]
        if not light.size:
            return EMPTY if bitmap is None else bitmap
        return bitmap_of(light) if bitmap is None else bitmap | bitmap_of(light)

    def between(self, first: int, end: int) -> FrozenBitMap:
        """Return the positions of every code from `first` up to, not including, `end`."""
        if end - first == 1:
            return self.of(first)
        low, high = np.searchsorted(self._heavy, (first, end)).tolist()
        parts = [self._bitmaps[code] for code in self._heavy[low:high].tolist()]
        light = self._flat[self._starts[first] : self._starts[end]]
        if light.size:
            parts.append(bitmap_of(np.sort(light)))
        if not parts:
            return EMPTY
        return parts[0] if len(parts) == 1 else FrozenBitMap.union(*parts)

    def __len__(self) -> int:
        return self._starts.size - 1

    def pairs(self) -> tuple[npt.NDArray[np.uint32], Positions]:
        """Return each code with each of its positions, in no order."""
        codes, positions = [np.repeat(np.arange(len(self), dtype=np.uint32), np.diff(self._starts))], [self._flat]
        for code, bitmap in self._bitmaps.items():
            positions.append(positions_of(bitmap))
            codes.append(np.full(positions[-1].size, code, dtype=np.uint32))
        return np.concatenate(codes), np.concatenate(positions)

    def followed(
        self, fresh: "Postings", moves: Moves, codes: tuple[Positions, Positions], total: int
    ) -> tuple["Postings", Mask]:
        """Return the postings of a stock that follows, and which of the codes it has; those are numbered anew.

        `codes` says what the codes of the earlier and of the fresh listings are among the `total` of both.
        """
        where = moves.earlier.take(self._flat)
        kept = where != NOWHERE
        held = np.repeat(codes[0], np.diff(self._starts))[kept]
        fresh_codes, fresh_positions = fresh.pairs()
        pairs = np.concatenate((held, codes[1].take(fresh_codes))).astype(np.uint64) << _HALF
        pairs |= np.concatenate((where[kept], moves.fresh.take(fresh_positions)))
        pairs.sort()
        counts = np.bincount((pairs >> _HALF).astype(np.intp), minlength=total)
        ends = np.cumsum(counts)
        positions = pairs.astype(np.uint32)
        bitmaps: dict[int, FrozenBitMap] = {}
        own = np.zeros(total, dtype=np.bool_)
        for code, bitmap in self._bitmaps.items():
            moved, new = moves.bitmap(bitmap, None), int(codes[0][code])
            if moved:
                bitmaps[new], own[new] = moved, True
        # A code that has a bitmap takes its new positions into it, or imports would move it into the array bit by bit.
        heavy = (counts >= _GROWN) | (own & (counts > 0))
        for new in np.flatnonzero(heavy).tolist():
            more = bitmap_of(positions[ends[new] - counts[new] : ends[new]])
            bitmaps[new] = bitmaps[new] | more if new in bitmaps else more
        light = positions[np.repeat(~heavy, counts)]
        alive = own | (counts > 0)
        numbers = (np.cumsum(alive) - 1).tolist()
        starts = np.concatenate(([0], np.cumsum(np.where(heavy, 0, counts)[alive])))
        return Postings({numbers[code]: bitmap for code, bitmap in bitmaps.items()}, light, starts), alive


class PostingsBuilder:
    """Takes (code, position) pairs by the chunk, positions ascending from chunk to chunk, and sorts them out."""

    def __init__(self, *, heavy: int) -> None:
        self._heavy = heavy
        self._parts: dict[int, list[FrozenBitMap]] = {}
        self._codes: list[npt.NDArray[np.uint32]] = []
        self._positions: list[Positions] = []

    def add(self, codes: npt.NDArray[Any], positions: Positions) -> None:
        """Take pairs in any order, some of them perhaps twice.

        A code has its bitmap grown when this chunk holds at least `heavy` of it.
        """
        # One sort of numbers that hold both settles the order and brings together what is there twice.
        pairs = codes.astype(np.uint64) << _HALF
        pairs |= positions
        pairs.sort()
        if pairs.size:
            first = np.empty(pairs.size, dtype=np.bool_)
            first[0] = True
            np.not_equal(pairs[1:], pairs[:-1], out=first[1:])
            if not first.all():
                pairs = pairs[first]
        codes = (pairs >> _HALF).astype(np.uint32)
        positions = pairs.astype(np.uint32)
        del pairs
        starts = np.flatnonzero(np.diff(codes, prepend=codes[:1] + 1 if codes.size else 0))
        counts = np.diff(starts, append=codes.size)
        large = counts >= self._heavy
        distinct = codes[starts]
        for code, start, count in zip(
            distinct[large].tolist(), starts[large].tolist(), counts[large].tolist(), strict=True
        ):
            self._parts.setdefault(code, []).append(bitmap_of(positions[start : start + count]))
        small = np.repeat(~large, counts)
        self._codes.append(codes[small])
        self._positions.append(positions[small])

    def finish(self, renumbered: npt.NDArray[np.uint32] | None, total: int) -> Postings:
        """Return the postings of the codes 0 to `total` - 1, each code replaced by `renumbered[code]`
        first.
        """
        codes = np.concatenate(self._codes) if self._codes else np.empty(0, dtype=np.uint32)
        positions = np.concatenate(self._positions) if self._positions else np.empty(0, dtype=np.uint32)
        bitmaps: dict[int, FrozenBitMap] = {}
        while self._parts:
            code, parts = self._parts.popitem()
            new = code if renumbered is None else int(renumbered[code])
            bitmap = parts[0] if len(parts) == 1 else FrozenBitMap.union(*parts)
            bitmaps[new] = bitmap
        if renumbered is not None:
            codes = renumbered[codes]
        positions = positions[codes.argsort(kind="stable")]
        starts = np.zeros(total + 1, dtype=np.int64)
        np.cumsum(np.bincount(codes, minlength=total), out=starts[1:])
        return Postings(bitmaps, positions, starts)
