"""Sets of positions: from NumPy arrays to Roaring bitmaps and back, and many sets kept small."""

import struct
from array import array
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pyroaring import FrozenBitMap

__all__ = [
    "EMPTY",
    "Mask",
    "Positions",
    "Postings",
    "PostingsBuilder",
    "bitmap_of",
    "bitmap_of_mask",
    "positions_of",
]

Positions = npt.NDArray[np.uint32]
Mask = npt.NDArray[np.bool_]

EMPTY: Final = FrozenBitMap()

_CONTAINER: Final = 1 << 16
_ARRAY_LIMIT: Final = 4096
_NO_RUNS: Final = 12346
_HALF: Final = np.uint64(32)


def bitmap_of(positions: Positions) -> FrozenBitMap:
    """Return ascending positions as a bitmap; by way of `array`, which pyroaring takes without boxing
    numbers.
    """
    return FrozenBitMap(array("I", positions.astype(np.uint32, copy=False).tobytes()))


def positions_of(bitmap: FrozenBitMap) -> Positions:
    """Return the members of a bitmap, ascending."""
    if not bitmap:
        return np.empty(0, dtype=np.uint32)
    return np.frombuffer(bitmap.to_array(), dtype=np.uint32)


def bitmap_of_mask(mask: Mask) -> FrozenBitMap:
    """Return where `mask` is true as a bitmap.

    Written in Roaring's portable form and read back: the packed bits are the containers, which takes a tenth
    of the time of adding the members (source: the Roaring format specification, "No run containers").
    """
    bits = np.packbits(mask, bitorder="little")
    keys: list[bytes] = []
    payloads: list[bytes] = []
    for key, start in enumerate(range(0, mask.size, _CONTAINER)):
        part = mask[start : start + _CONTAINER]
        count = int(np.count_nonzero(part))
        if not count:
            continue
        keys.append(struct.pack("<HH", key, count - 1))
        if count > _ARRAY_LIMIT:
            packed = bits[start // 8 : (start + _CONTAINER) // 8].tobytes()
            payloads.append(packed.ljust(_CONTAINER // 8, b"\0"))
        else:
            payloads.append(np.flatnonzero(part).astype("<u2").tobytes())
    offsets: list[int] = []
    offset = 8 + 8 * len(keys)
    for payload in payloads:
        offsets.append(offset)
        offset += len(payload)
    header = [struct.pack("<II", _NO_RUNS, len(keys)), *keys, struct.pack(f"<{len(offsets)}I", *offsets)]
    return FrozenBitMap.deserialize(b"".join(header + payloads))


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

    def bitmaps(self) -> Mapping[int, FrozenBitMap]:
        """Return the bitmaps of the codes that have one, which need not hold all their positions."""
        return self._bitmaps

    def pairs(self) -> tuple[npt.NDArray[np.uint32], Positions]:
        """Return the codes and positions that are in no bitmap, ordered by code."""
        codes = np.arange(self._starts.size - 1, dtype=np.uint32)
        return np.repeat(codes, np.diff(self._starts)), self._flat

    @classmethod
    def of_pairs(
        cls, codes: npt.NDArray[np.uint32], positions: Positions, total: int, bitmaps: dict[int, FrozenBitMap]
    ) -> "Postings":
        """Return postings of codes below `total` from pairs, each there once, and bitmaps beside them."""
        pairs = codes.astype(np.uint64) << _HALF
        pairs |= positions
        pairs.sort()
        starts = np.zeros(total + 1, dtype=np.int64)
        np.cumsum(np.bincount(codes, minlength=total), out=starts[1:])
        return cls(bitmaps, pairs.astype(np.uint32), starts)


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
