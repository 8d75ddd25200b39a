"""Where the bodies of the listings are kept: end to end, found by position; in the heap while they are few."""

import mmap
import sys
import tempfile
import weakref
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from forecourt.catalog.bitmap import Positions

__all__ = ["Bodies", "BodiesWriter", "MappedBodies", "runs"]

_READ_BEFORE_LETTING_GO: Final = 256
"""Bodies read from a mapping before its pages are given back: each may have brought fifty pages with it."""

_PIECE: Final = 1 << 20
"""Bytes copied from file to file at a time."""


class Bodies:
    """The bodies by position, in the heap: giving one out copies nothing."""

    __slots__ = ("_bodies", "_heap_limit")

    def __init__(self, bodies: list[bytes], heap_limit: int) -> None:
        self._bodies = bodies
        self._heap_limit = heap_limit

    def __len__(self) -> int:
        return len(self._bodies)

    def __getitem__(self, position: int) -> bytes:
        return self._bodies[position]

    def of(self, positions: Iterable[int]) -> list[bytes]:
        """Return the bodies at these positions, in this order."""
        bodies = self._bodies
        return [bodies[position] for position in positions]

    def let_go(self) -> None:
        """Do nothing: what is in the heap is meant to stay."""

    def reordered(self, positions: Positions) -> "Bodies":
        """Return the bodies at `positions` as 0, 1, 2 and so on."""
        return Bodies(self.of(positions.tolist()), self._heap_limit)

    def followed(self, fresh: "Bodies", source: Positions, directory: Path | None) -> "Bodies":
        """Return the bodies at `source`, where those of `fresh` are counted on from the last of these."""
        both = self._bodies + [fresh[position] for position in range(len(fresh))]
        bodies = [both[position] for position in source.tolist()]
        if sum(map(len, bodies)) <= self._heap_limit:
            return Bodies(bodies, self._heap_limit)
        writer = BodiesWriter(self._heap_limit, directory)
        writer.add(bodies)
        return writer.finish()


class MappedBodies(Bodies):
    """The bodies by position, mapped from a file, so that they take up no heap.

    A later catalog writes what is new behind the last byte of the same file, which no earlier one looks at.
    """

    __slots__ = ("_buffer", "_file", "_lengths", "_read", "_starts")

    def __init__(
        self, file: "_BodyFile", starts: npt.NDArray[np.uint64], lengths: npt.NDArray[np.uint32], heap_limit: int
    ) -> None:
        self._file = file
        self._heap_limit = heap_limit
        self._buffer = file.mapped()
        # Where one number at a time is looked up, an array of Python's is nearer at hand than NumPy's.
        self._starts = array("Q", starts.tobytes())
        self._lengths = array("I", lengths.tobytes())
        self._read = 0

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, position: int) -> bytes:
        self._count_read()
        start = self._starts[position]
        return self._buffer[start : start + self._lengths[position]]

    def of(self, positions: Iterable[int]) -> list[bytes]:
        """Return the bodies at these positions, in this order."""
        buffer, starts, lengths = self._buffer, self._starts, self._lengths
        bodies = [buffer[(start := starts[position]) : start + lengths[position]] for position in positions]
        self._count_read(len(bodies))
        return bodies

    def _count_read(self, bodies: int = 1) -> None:
        self._read += bodies
        if self._read > _READ_BEFORE_LETTING_GO:
            self.let_go()

    def let_go(self) -> None:
        """Take the pages read so far out of this process's memory; the system reads them again when asked for."""
        self._read = 0
        if sys.platform != "win32":
            self._buffer.madvise(mmap.MADV_DONTNEED)

    def _extents(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
        return np.frombuffer(self._starts, dtype=np.uint64), np.frombuffer(self._lengths, dtype=np.uint32)

    def reordered(self, positions: Positions) -> "Bodies":
        """Return the bodies at `positions` as 0, 1, 2 and so on, over the same file."""
        starts, lengths = self._extents()
        return MappedBodies(self._file, starts.take(positions), lengths.take(positions), self._heap_limit)

    def followed(self, fresh: Bodies, source: Positions, directory: Path | None) -> "Bodies":
        """Write the fresh bodies behind these; all into a new file when more than half of this one is of no use."""
        starts, lengths = self._extents()
        added = [fresh[position] for position in range(len(fresh))]
        added_lengths = np.fromiter(map(len, added), np.uint32, len(added))
        kept = source[source < len(self)]
        live = int(lengths.take(kept).sum(dtype=np.int64))
        file, coming = self._file, int(added_lengths.sum(dtype=np.int64))
        if file.size > 2 * (live + coming):
            if live + coming <= self._heap_limit:
                count = len(self)
                bodies = [self[each] if each < count else added[each - count] for each in source.tolist()]
                return Bodies(bodies, self._heap_limit)
            file = _BodyFile(directory)
            offsets = np.zeros(len(self), dtype=np.uint64)
            offsets[kept] = ends_of(lengths.take(kept)) - lengths.take(kept)
            # In the order of positions bodies often lie one after the other and are copied together.
            for first, end in runs(starts.take(kept), lengths.take(kept)):
                for start in range(first, end, _PIECE):
                    file.append([self._buffer[start : min(start + _PIECE, end)]])
                    self._count_read()
            starts = offsets
        begin = file.append(added)
        added_starts = begin + ends_of(added_lengths) - added_lengths
        return MappedBodies(
            file,
            np.concatenate((starts, added_starts.astype(np.uint64))).take(source),
            np.concatenate((lengths, added_lengths)).take(source),
            self._heap_limit,
        )


class _BodyFile:
    """An unlinked temporary file that only grows, and lives as long as anybody has it."""

    def __init__(self, directory: Path | None) -> None:
        self._file = tempfile.TemporaryFile(buffering=1 << 20, dir=directory)  # noqa: SIM115
        self._lock = Lock()
        self.size = 0
        self.close = weakref.finalize(self, self._file.close)

    def append(self, bodies: Iterable[bytes]) -> int:
        """Write bodies behind the last one; return where the first begins."""
        with self._lock:
            begin = self.size
            self._file.writelines(bodies)
            self._file.flush()
            self.size = self._file.tell()
            return begin

    def mapped(self) -> mmap.mmap:
        """Return what the file holds by now."""
        self._file.flush()
        return mmap.mmap(self._file.fileno(), self.size, access=mmap.ACCESS_READ)


class BodiesWriter:
    """Takes bodies one after the other: in the heap at first, in an unlinked temporary file once they are
    many.
    """

    def __init__(self, heap_limit: int, directory: Path | None) -> None:
        self._heap: list[bytes] = []
        self._file: _BodyFile | None = None
        self._heap_limit = heap_limit
        self._directory = directory
        self._length = 0
        self._lengths = array("I")

    def add(self, bodies: Sequence[bytes]) -> None:
        """Take the next bodies."""
        self._lengths.extend(map(len, bodies))
        if self._file is not None:
            self._file.append(bodies)
            return
        self._heap += bodies
        self._length += sum(self._lengths[-len(bodies) :])
        if self._length > self._heap_limit:
            self._file = _BodyFile(self._directory)
            self._file.append(self._heap)
            self._heap = []

    def finish(self) -> Bodies:
        """Return the bodies by order of arrival. The file lives as long as they do."""
        if self._file is None:
            return Bodies(self._heap, self._heap_limit)
        lengths = np.frombuffer(self._lengths, dtype=np.uint32)
        return MappedBodies(self._file, (ends_of(lengths) - lengths).astype(np.uint64), lengths, self._heap_limit)

    def discard(self) -> None:
        """Give up what was written."""
        if self._file is not None:
            self._file.close()


def ends_of(lengths: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """Return where each of what lies end to end ends."""
    return np.cumsum(lengths, dtype=np.int64)


def runs(starts: npt.NDArray[Any], lengths: npt.NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Yield the extents as (start, end), those joined that follow each other without a gap."""
    if not starts.size:
        return
    starts = starts.astype(np.int64)
    ends = starts + lengths
    breaks = np.flatnonzero(starts[1:] != ends[:-1])
    firsts = starts[np.append(0, breaks + 1)].tolist()
    yield from zip(firsts, ends[np.append(breaks, starts.size - 1)].tolist(), strict=True)
