"""Where the bodies and ids of the listings are kept: end to end in one buffer each, found by position."""

import mmap
import sys
import tempfile
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy as np

from forecourt.catalog.bitmap import Positions

__all__ = ["Bodies", "BodiesWriter", "Ids", "MappedBodies"]


class Bodies:
    """The bodies by position, in the heap: giving one out copies nothing."""

    __slots__ = ("_bodies",)

    def __init__(self, bodies: list[bytes]) -> None:
        self._bodies = bodies

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
        return Bodies(self.of(positions.tolist()))


class MappedBodies(Bodies):
    """The bodies by position, mapped from a file, so that they take up no heap."""

    __slots__ = ("_buffer", "_lengths", "_starts")

    def __init__(self, buffer: mmap.mmap, starts: "array[int]", lengths: "array[int]") -> None:
        self._buffer = buffer
        self._starts = starts
        self._lengths = lengths

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, position: int) -> bytes:
        start = self._starts[position]
        return self._buffer[start : start + self._lengths[position]]

    def of(self, positions: Iterable[int]) -> list[bytes]:
        """Return the bodies at these positions, in this order."""
        buffer, starts, lengths = self._buffer, self._starts, self._lengths
        return [buffer[(start := starts[position]) : start + lengths[position]] for position in positions]

    def let_go(self) -> None:
        """Take the pages read so far out of this process's memory; the system reads them again when asked for."""
        if sys.platform != "win32":
            self._buffer.madvise(mmap.MADV_DONTNEED)

    def reordered(self, positions: Positions) -> "Bodies":
        """Return the bodies at `positions` as 0, 1, 2 and so on, over the same buffer."""
        starts = np.frombuffer(self._starts, dtype=np.uint64)[positions]
        lengths = np.frombuffer(self._lengths, dtype=np.uint32)[positions]
        return MappedBodies(self._buffer, array("Q", starts.tobytes()), array("I", lengths.tobytes()))


class BodiesWriter:
    """Takes bodies one after the other: in the heap at first, in an unlinked temporary file once they are
    many.
    """

    def __init__(self, heap_limit: int, directory: Path | None) -> None:
        self._heap: list[bytes] = []
        self._file: IO[bytes] | None = None
        self._heap_limit = heap_limit
        self._directory = directory
        self._length = 0
        self._starts = array("Q")
        self._lengths = array("I")

    def add(self, body: bytes) -> None:
        """Take the next body."""
        self._starts.append(self._length)
        self._lengths.append(len(body))
        self._length += len(body)
        if self._file is not None:
            self._file.write(body)
            return
        self._heap.append(body)
        if self._length > self._heap_limit:
            self._file = tempfile.TemporaryFile(buffering=1 << 20, dir=self._directory)  # noqa: SIM115
            self._file.writelines(self._heap)
            self._heap = []

    def finish(self) -> Bodies:
        """Return the bodies by order of arrival. The file lives as long as its mapping does."""
        if self._file is None:
            return Bodies(self._heap)
        with self._file as file:
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return MappedBodies(mapped, self._starts, self._lengths)

    def discard(self) -> None:
        """Give up what was written."""
        if self._file is not None:
            self._file.close()


class Ids:
    """Listing ids by position, ascending. UTF-8 keeps the order of code points, so bytes are compared."""

    __slots__ = ("_buffer", "_starts")

    def __init__(self, buffer: bytes, starts: "array[int]") -> None:
        self._buffer = buffer
        self._starts = starts

    def __getitem__(self, position: int) -> str:
        return self._encoded(position).decode("utf-8", "surrogatepass")

    def _encoded(self, position: int) -> bytes:
        return self._buffer[self._starts[position] : self._starts[position + 1]]

    def reordered(self, positions: Positions) -> "Ids":
        """Return the ids at `positions`, which ascend, as 0, 1, 2 and so on."""
        starts = array("Q", [0])
        buffer = bytearray()
        for position in positions.tolist():
            buffer += self._encoded(position)
            starts.append(len(buffer))
        return Ids(bytes(buffer), starts)

    def after(self, listing_id: str) -> int:
        """Return how many ids are this one or come before it."""
        encoded = listing_id.encode("utf-8", "surrogatepass")
        return bisect_right(range(len(self._starts) - 1), encoded, key=self._encoded)

    def find(self, listing_id: str) -> int | None:
        """Return the position of an id."""
        encoded = listing_id.encode("utf-8", "surrogatepass")
        position = bisect_left(range(len(self._starts) - 1), encoded, key=self._encoded)
        if position < len(self._starts) - 1 and self._encoded(position) == encoded:
            return position
        return None
