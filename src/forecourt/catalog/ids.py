"""The ids of the listings by position, ascending."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from forecourt.catalog.bitmap import Positions
from forecourt.catalog.bodies import ends_of, runs

__all__ = ["Ids", "starts_of"]


class Ids:
    """Listing ids in one buffer. UTF-8 keeps the order of code points, so bytes are compared."""

    __slots__ = ("_buffer", "_starts")

    def __init__(self, buffer: bytes, starts: "array[int]") -> None:
        """Take the ids end to end; `starts` says where each begins and, at the end, where the last one ends."""
        self._buffer = buffer
        self._starts = starts

    @classmethod
    def of(cls, encoded: Sequence[bytes]) -> "Ids":
        """Return ids, in UTF-8, as they come."""
        lengths = np.fromiter(map(len, encoded), np.uint32, len(encoded))
        return cls(b"".join(encoded), starts_of(lengths))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, position: int) -> str:
        return self._encoded(position).decode("utf-8", "surrogatepass")

    def _encoded(self, position: int) -> bytes:
        return self._buffer[self._starts[position] : self._starts[position + 1]]

    def reordered(self, positions: Positions) -> "Ids":
        """Return the ids at `positions` as 0, 1, 2 and so on."""
        starts = np.frombuffer(self._starts, dtype=np.uint64)
        lengths = np.diff(starts).astype(np.uint32).take(positions)
        buffer = self._buffer
        joined = b"".join([buffer[first:end] for first, end in runs(starts.take(positions), lengths)])
        return Ids(joined, starts_of(lengths))

    def followed(self, fresh: "Ids", source: Positions) -> "Ids":
        """Return the ids at `source`, where those of `fresh` are counted on from the last of these."""
        offset = len(self._buffer)
        starts = np.frombuffer(fresh._starts, dtype=np.uint64) + np.uint64(offset)
        joined = array("Q", self._starts.tobytes() + starts[1:].tobytes())
        return Ids(self._buffer + fresh._buffer, joined).reordered(source)

    def after(self, listing_id: str) -> int:
        """Return how many ids are this one or come before it."""
        encoded = listing_id.encode("utf-8", "surrogatepass")
        return bisect_right(range(len(self)), encoded, key=self._encoded)

    def find(self, listing_id: str) -> int | None:
        """Return the position of an id."""
        encoded = listing_id.encode("utf-8", "surrogatepass")
        position = bisect_left(range(len(self)), encoded, key=self._encoded)
        return position if position < len(self) and self._encoded(position) == encoded else None


def starts_of(lengths: npt.NDArray[np.uint32]) -> "array[int]":
    return array("Q", np.concatenate(([0], ends_of(lengths))).astype(np.uint64).tobytes())
