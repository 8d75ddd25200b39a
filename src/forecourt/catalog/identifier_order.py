"""Identifiers: nearly every listing has its own, so their texts stay in the bodies and only an order is
kept.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Final, overload

import msgspec
import numpy as np

from forecourt.catalog.bitmap import Positions
from forecourt.catalog.bodies import Bodies
from forecourt.catalog.column import Codes, Order, compact, followed, renumbered
from forecourt.catalog.moves import NOWHERE, Moves
from forecourt.catalog.text import normalise

__all__ = ["IdentifierIntake", "Identifiers", "StockKeys", "stock_followed"]

_FINDER_STEP: Final = 64

_ODD = re.compile(r"[\0-\x09\x0b-\x20]")
"""What the normal form of an ASCII text changes apart from case; a newline parts the texts that are looked at."""

_KEY_LIMIT = 64
"""Bytes of a key that NumPy sorts by; what is longer is put right afterwards, so one long text costs
little.
"""


class Identifiers:
    """Positions ordered by the normal form of an identifying member; finding one reads some twenty bodies."""

    __slots__ = ("_bodies", "_decode", "_member", "_order")

    def __init__(self, member: str, order: Positions, bodies: Bodies) -> None:
        self._member = member
        self._order = order
        self._bodies = bodies
        self._decode = reader(member)

    def find(self, text: str) -> Positions:
        """Return the positions, ascending, whose identifier has the normal form of `text`."""
        wanted = normalise(text)
        ranks = range(self._order.size)
        first = bisect_left(ranks, wanted, key=self._normal)
        end = bisect_right(ranks, wanted, lo=first, key=self._normal)
        return np.sort(self._order[first:end])

    def followed(self, fresh: "Identifiers", moves: Moves, replaced: Positions, bodies: Bodies) -> "Identifiers":
        """Return the order of a stock that follows; `bodies` are its. Only the fresh identifiers are looked for.

        `replaced` says for each fresh listing where the earlier one with its id was, `NOWHERE` if there was none.
        """
        ranks: Positions = np.full(moves.before + 1, NOWHERE, dtype=np.uint32)
        ranks[self._order] = np.arange(self._order.size, dtype=np.uint32)
        known = ranks.take(np.minimum(replaced.take(fresh._order), np.uint32(moves.before)))
        finder = Finder(self._order.size, self._normal, fresh._order.size)
        places: list[int] = []
        for rank, at in enumerate(known.tolist()):
            wanted = fresh._normal(rank)
            places.append(at if at != NOWHERE and self._normal(at) == wanted else finder.first(wanted))
        where = moves.earlier.take(self._order)
        kept = where != NOWHERE
        kept_before = np.concatenate(([0], np.cumsum(kept)))
        order = np.insert(where[kept], kept_before[np.array(places, dtype=np.intp)], moves.fresh.take(fresh._order))
        return Identifiers(self._member, order, bodies)

    def _normal(self, rank: int) -> str:
        return normalise(self._decode(self._bodies[int(self._order[rank])]))


class Finder:
    """Finds places in an order whose keys have to be read from bodies; when asked for many, it keeps some of them."""

    def __init__(self, count: int, key: Callable[[int], Any], asked: int) -> None:
        self._ranks = range(count)
        self._key = key
        self._some: list[Any] | None = None
        if asked > count // _FINDER_STEP // 8:
            self._some = [key(rank) for rank in range(0, count, _FINDER_STEP)]

    def first(self, wanted: Any) -> int:
        """Return the first place whose key is not below `wanted`."""
        if self._some is None:
            return bisect_left(self._ranks, wanted, key=self._key)
        end = bisect_left(self._some, wanted) * _FINDER_STEP
        start = max(end - _FINDER_STEP + 1, 0)
        return bisect_left(self._ranks, wanted, lo=start, hi=min(end, len(self._ranks)), key=self._key)


class StockKeys(Sequence[tuple[str, str]]):
    """The distinct sort keys of an identifier, read from the first body of each group when they are asked
    for.
    """

    __slots__ = ("_bodies", "_decode", "_firsts")

    def __init__(self, member: str, firsts: Positions, bodies: Bodies) -> None:
        self._firsts = firsts
        self._bodies = bodies
        self._decode = reader(member)

    def __len__(self) -> int:
        return int(self._firsts.size)

    @overload
    def __getitem__(self, group: int) -> tuple[str, str]: ...
    @overload
    def __getitem__(self, group: slice) -> list[tuple[str, str]]: ...
    def __getitem__(self, group: int | slice) -> tuple[str, str] | list[tuple[str, str]]:
        if isinstance(group, slice):
            return [self[each] for each in range(*group.indices(len(self)))]
        text = self._decode(self._bodies[int(self._firsts[group])])
        return normalise(text), text


def stock_followed(earlier: Order, fresh: Order, moves: Moves, replaced: Positions, bodies: Bodies) -> Order:
    """Return the order by stock number of a stock that follows; `bodies` are its. `replaced` as for `Identifiers`."""
    keys: Sequence[tuple[str, str]] = earlier.values
    finder = Finder(len(keys), keys.__getitem__, len(fresh.values))
    former = replaced.take(fresh.ascending.take(fresh.starts[:-1])).tolist()
    places: list[int] = []
    new: list[bool] = []
    for key, position in zip(fresh.values, former, strict=True):
        place = len(keys) if position == NOWHERE else int(earlier.codes[position])
        if place >= len(keys) or keys[place] != key:
            place = finder.first(key)
        places.append(place)
        new.append(place == len(keys) or keys[place] != key)
    is_new = np.array(new, dtype=np.bool_)
    tables = renumbered(len(keys), np.array(places, dtype=np.int64), is_new)
    codes, alive = followed(moves, earlier.codes, fresh.codes, tables, len(keys) + int(np.count_nonzero(is_new)))
    groups = int(np.count_nonzero(alive))
    firsts = np.zeros(groups + 1, dtype=np.uint32)
    # Of several values for one place the last stays, which is the first of its group.
    firsts[np.minimum(codes, codes.dtype.type(groups))[::-1]] = np.arange(len(moves), dtype=np.uint32)[::-1]
    return Order(StockKeys("stock", firsts[:-1], bodies), codes)


class _Reader:
    """Reads one text member of a body and skips the others."""

    __slots__ = ("_decoder", "_member")

    def __init__(self, member: str) -> None:
        self._member = member
        self._decoder = msgspec.json.Decoder(msgspec.defstruct("Member", [(member, str)]))

    def __call__(self, body: bytes) -> str:
        text: str = getattr(self._decoder.decode(body), self._member)
        return text


def reader(member: str) -> _Reader:
    """Return what reads one text member of a body that is known to have it."""
    return _Reader(member)


class IdentifierIntake:
    """Gathers one identifying member and sorts the positions by (normal form, text as written)."""

    def __init__(self, member: str) -> None:
        self._member = member
        self._decode = reader(member)
        self._keys: list[bytes | str] = []
        self._positions: list[int] = []
        self._key_chunks: list[np.ndarray[Any, np.dtype[np.bytes_]]] = []
        self._position_chunks: list[Positions] = []
        self._long = array("I")

    def take(self, first: int, column: Sequence[str | None]) -> None:
        """Take the texts of the positions from `first` on; a blank one is none."""
        texts = [text for text in column if text]
        joined = "\n".join(texts)
        if joined and joined.isascii() and not _ODD.search(joined) and joined.count("\n") == len(texts) - 1:
            normals = joined.lower().split("\n")
            keys = [f"{normal}\0{text}" for normal, text in zip(normals, texts, strict=True)]
            positions = [position for position, text in enumerate(column, first) if text]
            if 2 * max(map(len, texts)) >= _KEY_LIMIT:
                self._long.extend(
                    position for position, key in zip(positions, keys, strict=True) if len(key) > _KEY_LIMIT
                )
                keys = [key[:_KEY_LIMIT] for key in keys]
            self._keys += keys
            self._positions += positions
            return
        for position, text in enumerate(column, first):
            if text:
                self._add(position, text)

    def _add(self, position: int, text: str) -> None:
        normal = normalise(text)
        if not normal:
            return
        key = f"{normal}\0{text}".encode("utf-8", "surrogatepass")
        if len(key) > _KEY_LIMIT or "\0" in text:
            self._long.append(position)
            key = key[:_KEY_LIMIT]
        self._keys.append(key)
        self._positions.append(position)

    def close_chunk(self) -> None:
        """Pack what came since the last time."""
        if self._keys:
            keys = [key.encode() if isinstance(key, str) else key for key in self._keys]
            self._key_chunks.append(np.array(keys, dtype=np.bytes_))
            self._position_chunks.append(np.array(self._positions, dtype=np.uint32))
            self._keys, self._positions = [], []

    def finish(self, bodies: Bodies) -> tuple[Positions, Positions]:
        """Return the positions in order, and the rank at which each run of equal keys begins."""
        self.close_chunk()
        if not self._key_chunks:
            return np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.uint32)
        keys = np.concatenate(self._key_chunks)
        positions = np.concatenate(self._position_chunks)
        self._key_chunks, self._position_chunks = [], []
        order = keys.argsort(kind="stable")
        keys = keys[order]
        positions = positions[order]
        changes = np.empty(keys.size, dtype=np.bool_)
        changes[0] = True
        np.not_equal(keys[1:], keys[:-1], out=changes[1:])
        if self._long:
            self._settle(positions, changes, bodies)
        return positions, np.flatnonzero(changes).astype(np.uint32)

    def _settle(self, positions: Positions, changes: np.ndarray[Any, np.dtype[np.bool_]], bodies: Bodies) -> None:
        """Order by their whole keys the runs that a cut key made equal; one that is equal to no other is in order."""
        starts = np.flatnonzero(changes)
        ends = np.append(starts[1:], positions.size)
        cut = np.flatnonzero(np.isin(positions, np.frombuffer(self._long, dtype=np.uint32)))
        runs = np.unique(np.searchsorted(starts, cut, side="right") - 1)
        runs = runs[ends[runs] - starts[runs] > 1]
        for start, end in zip(starts[runs].tolist(), ends[runs].tolist(), strict=True):
            entries = []
            for position in positions[start:end].tolist():
                text = self._decode(bodies[position])
                entries.append((normalise(text), text, position))
            entries.sort()
            for rank, entry in enumerate(entries, start):
                positions[rank] = entry[2]
                changes[rank] = rank == start or entry[:2] != entries[rank - start - 1][:2]

    def codes(self, order: Positions, starts: Positions, count: int) -> Codes:
        """Return each position's group among the equal keys, -1 for those without the member."""
        groups = np.full(count, -1, dtype=np.int64)
        if order.size:
            lengths = np.diff(starts, append=np.uint32(order.size))
            groups[order] = np.repeat(np.arange(starts.size), lengths)
        return compact(groups, starts.size)
