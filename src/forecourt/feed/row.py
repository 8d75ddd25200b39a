"""What every reader makes of a file: rows of named texts."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["Cell", "Columns", "Row"]

Cell = str | list[str]
"""A value as the file has it: a text, or a list of texts where the format knows lists. Absent is an empty text."""


class Row(NamedTuple):
    """One row. `line` is the physical line at which it begins, counted from 1.

    `columns` is the same object for as long as the names do not change, so that what was made of them is found again
    without comparing.
    """

    line: int
    columns: tuple[str, ...]
    values: Sequence[Cell]


class Columns:
    """Gives rows with the same names the same `columns` object, for formats in which every row brings its names."""

    _MOST = 256

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], tuple[str, ...]] = {}

    def row(self, line: int, cells: Mapping[str, Cell]) -> Row:
        """Return a row of these cells."""
        names = tuple(cells)
        if len(self._known) >= self._MOST:
            self._known.clear()
        return Row(line, self._known.setdefault(names, names), tuple(cells.values()))
