"""Reading listings column by column: what is done a value at a time is done by C, and each distinct value is looked
at once.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from forecourt.catalog.bitmap import Positions
from forecourt.catalog.column import Codes, compact
from forecourt.catalog.listing import instant, number
from forecourt.catalog.postings import PostingsBuilder

__all__ = [
    "MISSING",
    "NO_TIME",
    "FeatureIntake",
    "Flags",
    "Numbering",
    "Numbers",
    "Texts",
    "Times",
    "ValueIntake",
    "flattened",
    "spread",
    "texts_of",
    "words_of",
]

MISSING: Final = 0xFFFFFFFF
NO_TIME: Final = -(1 << 63)

Read = TypeVar("Read", str, bool, "int | float")

_TEXT_OR_NONE: Final = frozenset({str, type(None)})
_WHOLE_OR_NONE: Final = frozenset({int, type(None)})


class Numbering(dict[Any, int]):
    """Numbers hashable values from 0 on by first appearance; None has the number `MISSING`."""

    def __init__(self) -> None:
        super().__init__({None: MISSING})

    def __missing__(self, value: Any) -> int:
        code = self[value] = len(self) - 1
        return code

    def codes(self, values: Sequence[Any]) -> npt.NDArray[np.uint32]:
        """Return the number of each value."""
        return np.fromiter(map(self.__getitem__, values), np.uint32, len(values))

    def in_order(self) -> list[Any]:
        """Return the values by their numbers."""
        return list(self)[1:]


class ValueIntake(Generic[Read]):
    """One member's values, position after position, as numbers."""

    def __init__(self) -> None:
        self._numbering = Numbering()
        self._chunks: list[npt.NDArray[np.uint32]] = []

    def add(self, values: Sequence[Any]) -> None:
        """Take the values of the next positions, None where there is none."""
        self._chunks.append(self._numbering.codes(values))

    @property
    def seen(self) -> list[Read]:
        """The distinct values by their codes."""
        return self._numbering.in_order()

    def codes(self) -> npt.NDArray[np.uint32]:
        """Return each position's code, `MISSING` for none."""
        if len(self._chunks) != 1:
            self._chunks = [np.concatenate(self._chunks) if self._chunks else np.empty(0, dtype=np.uint32)]
        return self._chunks[0]

    def renumbered(self, numbers: Sequence[int], groups: int) -> Codes:
        """Return the codes with `numbers` for the values in order of appearance, -1 meaning none."""
        table = compact(np.array([*numbers, -1], dtype=np.int64), groups)
        return table[np.minimum(self.codes(), len(numbers))]


class Texts(ValueIntake[str]):
    """A member that is a text."""


class Flags(ValueIntake[bool]):
    """A member that is true or false."""

    def take(self, column: Sequence[Any]) -> None:
        """Take a column; whatever is no truth value is none."""
        self.add([value if type(value) is bool else None for value in column])


class Numbers(ValueIntake["int | float"]):
    """A member that is a number; `whole` lets only whole numbers count."""

    def __init__(self, *, whole: bool) -> None:
        super().__init__()
        self._whole = whole

    def take(self, column: Sequence[Any]) -> Sequence[int | float | None]:
        """Take a column and return it as it was taken."""
        if not _WHOLE_OR_NONE.issuperset(map(type, column)):
            column = [number(value) for value in column]
            if self._whole:
                column = [None if type(value) is float else value for value in column]
        self.add(column)
        return column


def texts_of(column: Sequence[Any]) -> Sequence[str | None]:
    """Return a column with None for whatever is no text."""
    if _TEXT_OR_NONE.issuperset(map(type, column)):
        return column
    return [value if type(value) is str else None for value in column]


class Times:
    """A member that is an instant, in microseconds since 1970."""

    def __init__(self) -> None:
        self._chunks: list[npt.NDArray[np.int64]] = []

    def take(self, column: Sequence[Any]) -> None:
        """Take a column of texts; one that is no time is none."""
        # An import stamps many listings with one time.
        read = {text: NO_TIME if (moment := instant(text)) is None else moment for text in set(column)}
        self._chunks.append(np.fromiter(map(read.__getitem__, column), np.int64, len(column)))

    def moments(self) -> npt.NDArray[np.int64]:
        """Return each position's instant, `NO_TIME` for none."""
        return np.concatenate(self._chunks) if self._chunks else np.empty(0, dtype=np.int64)


class FeatureIntake:
    """Feature codes, of which a listing has any number."""

    def __init__(self) -> None:
        self._numbering = Numbering()
        self._builder = PostingsBuilder(heavy=1)
        self._codes: list[npt.NDArray[np.uint32]] = []
        self._positions: list[Positions] = []

    def take(self, first: int, column: Sequence[Any]) -> None:
        """Take the lists of the positions from `first` on."""
        flat, positions = flattened(first, column)
        self._codes.append(self._numbering.codes(flat))
        self._positions.append(positions)

    def close_chunk(self) -> None:
        """Sort in what came since the last time."""
        if self._codes:
            codes, positions = np.concatenate(self._codes), np.concatenate(self._positions)
            held = codes != MISSING
            self._builder.add(codes[held], positions[held])
            self._codes, self._positions = [], []

    def finish(self) -> dict[str, Any]:
        """Return the bitmap of each code, by code."""
        self.close_chunk()
        seen: list[str] = self._numbering.in_order()
        postings = self._builder.finish(None, len(seen))
        return {seen[code]: postings.of(code) for code in sorted(range(len(seen)), key=seen.__getitem__)}


def flattened(first: int, column: Sequence[Sequence[str] | None]) -> tuple[Sequence[str], Positions]:
    """Return the texts of a column of lists, and the position that each belongs to."""
    return spread(first, [value or () for value in column])


def spread(first: int, lists: Sequence[Sequence[Any]]) -> tuple[list[Any], Positions]:
    """Return the entries of the lists end to end, and the position, from `first` on, that each belongs to."""
    lengths = np.fromiter(map(len, lists), np.intp, len(lists))
    positions = np.repeat(np.arange(first, first + len(lists), dtype=np.uint32), lengths)
    return list(chain.from_iterable(lists)), positions


def words_of(texts: Iterable[str | None]) -> list[list[str]]:
    """Return the words of each text, as spaces part them."""
    return [text.split() if text else [] for text in texts]
