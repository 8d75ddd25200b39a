"""Rows of cells with a delimiter between them: CSV, TSV, semicolons and bars (FEEDS.md, points 1 and 10)."""

import csv
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from forecourt.feed.encoding import Text
from forecourt.feed.error import FeedError
from forecourt.feed.plan import known_columns
from forecourt.feed.report import Report
from forecourt.feed.row import Row

__all__ = ["ORDER", "recognises", "rows", "split_line"]

ORDER: Final = 90
"""Asked last: any text might be cells."""

_DELIMITERS: Final = ",\t;|"
_HEADER_WITHIN: Final = 10
_HEADER_COLUMNS: Final = 3
_LONGEST_LINE: Final = 8 << 20

_COUNT: Final = "has another number of cells than the header has columns"
_QUOTE: Final = "a quotation mark is opened and not closed"
_EMPTY_CELLS: Final = "empty cells beyond the last column were left off"


def recognises(head: str) -> bool:
    """Tell whether the text does not begin as markup or JSON does."""
    return head.lstrip()[:1] not in ("<", "{", "[")


def rows(text: Text, mapping: Mapping[str, str], report: Report) -> Iterator[Row]:
    """Give the rows below the header, which is the line among the first ten that names most known columns.

    Rows with another number of cells are refused. If a quotation mark that is never closed has swallowed rows, the row
    that opened it is refused and reading goes on with the first line after it that is a row.
    """
    delimiter, columns, before = _header(text.head, mapping)
    lines = _Lines(text.chunks())
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    for _ in range(before + 1):
        next(reader)
    width = len(columns)
    taken = lines.taken
    as_row = Row._make
    while True:
        for line, cells in lines.simple(delimiter, width):
            yield as_row((line, columns, cells))
        taken.clear()
        line = lines.number + 1
        try:
            cells = split_line(next(lines), delimiter) or []
            if not cells:
                lines.give_back(0)
                taken.clear()
                cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            cells = []
            problem = _QUOTE
        else:
            # Blank lines, and the lines of bare delimiters that spreadsheets end with, are no rows.
            if not any(cells):
                continue
            if len(cells) == width and not lines.ended:
                yield Row(line, columns, cells)
                continue
            if len(cells) > width and len(taken) == 1 and not any(map(str.strip, cells[width:])):
                report.add("repaired", line, "", _EMPTY_CELLS)
                yield Row(line, columns, cells[:width])
                continue
            problem = _QUOTE if lines.ended else _COUNT
        report.refuse(line, problem)
        lines.give_back(_first_row(taken, delimiter, width))


def split_line(line: str, delimiter: str) -> list[str] | None:
    """Return the cells of a line that is a row by itself, just as `csv` does, None where that must look at it.

    Looking for quotation marks is several times as fast as looking at every character; most lines are that simple.
    """
    text = line.removesuffix("\n")
    parts = text.split('"')
    if len(parts) == 1:
        return text.split(delimiter)
    if not len(parts) % 2 or (parts[0] and parts[0][-1] != delimiter):
        return None
    cells = parts[0][:-1].split(delimiter) if parts[0] else []
    last = len(parts) - 1
    for at in range(1, last, 2):
        cells.append(parts[at])
        after = parts[at + 1]
        if at + 1 == last:
            if after:
                if after[0] != delimiter:
                    return None
                cells += after[1:].split(delimiter)
        elif after != delimiter:
            if len(after) < len(delimiter) + 1 or after[0] != delimiter or after[-1] != delimiter:
                return None
            cells += after[1:-1].split(delimiter)
    return cells


def _header(head: str, mapping: Mapping[str, str]) -> tuple[str, tuple[str, ...], int]:
    """Return the delimiter, the header's columns, and how many rows stand before it."""
    best = (0, "", (), 0)  # type: tuple[int, str, tuple[str, ...], int]
    for delimiter in _DELIMITERS:
        reader = csv.reader(head.split("\n"), delimiter=delimiter, skipinitialspace=True)
        try:
            for at, cells in enumerate(itertools.islice(reader, _HEADER_WITHIN)):
                known = known_columns(tuple(cells), mapping)
                if known > best[0]:
                    best = (known, delimiter, tuple([cell.strip() for cell in cells]), at)
        except csv.Error:
            continue
    known, delimiter, columns, before = best
    if known < min(_HEADER_COLUMNS, max(len(columns), 2)):
        raise FeedError("no line at the beginning of the file names known columns")
    return delimiter, columns, before


def _first_row(taken: list[str], delimiter: str, width: int) -> int | None:
    """Return which of the lines after the first is a row by itself, None if none is."""
    for at in range(1, len(taken)):
        try:
            cells = next(csv.reader([taken[at]], delimiter=delimiter, skipinitialspace=True), [])
        except csv.Error:
            continue
        if len(cells) == width:
            return at
    return None


class _Lines:
    """The physical lines of a text, counted, of which the last ones can be given back."""

    def __init__(self, chunks: Iterable[str]) -> None:
        self._chunks = iter(chunks)
        self._rest = ""
        self._waiting: list[str] = []
        """Lines without their ends, the next one last."""
        self._is_open = False
        """Whether the last line of the file has no end."""
        self._is_all = False
        """Whether nothing comes after the lines that wait."""
        self.number = 0
        self.taken: list[str] = []
        self.ended = False
        """Whether the last row was ended by the end of the file, not of a line: it is inside of quotation marks."""

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        if not self._waiting and not self._fill():
            self.ended = True
            raise StopIteration
        line = self._waiting.pop()
        if self._waiting or not self._is_all or not self._is_open:
            line += "\n"
        self.number += 1
        self.taken.append(line)
        return line

    def simple(self, delimiter: str, width: int) -> Iterator[tuple[int, list[str]]]:
        """Give the number and the cells of each line that is a row of `width` cells by itself, up to one that is not.

        Nearly all lines are such, and much of the time of a feed goes into finding its lines and cells.
        """
        while self._waiting or self._fill():
            waiting = self._waiting
            while waiting:
                line = waiting[-1]
                cells = split_line(line, delimiter) if '"' in line else line.split(delimiter)
                if cells is None or len(cells) != width or not any(cells):
                    return
                waiting.pop()
                self.number += 1
                yield self.number, cells

    def give_back(self, first: int | None) -> None:
        """Read the taken lines from `first` on again; None: go on after them."""
        self.ended = False
        if first is not None:
            again = self.taken[first:]
            self._waiting.extend([line.removesuffix("\n") for line in reversed(again)])
            self.number -= len(again)

    def _fill(self) -> bool:
        """Get the lines of the next chunks; tell whether there are any."""
        while not self._waiting and not self._is_all:
            chunk = next(self._chunks, None)
            if chunk is None:
                self._is_all = True
                self._is_open = bool(self._rest)
                lines = [self._rest] if self._rest else []
            else:
                lines = (self._rest + chunk).split("\n")
                self._rest = lines.pop()
                if len(self._rest) > _LONGEST_LINE:
                    raise FeedError("a line of the file is longer than any row could be")
            lines.reverse()
            self._waiting = lines
        return bool(self._waiting)
