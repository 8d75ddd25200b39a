"""The files that samples are written into, row by row, and what a finished sample says about itself."""

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["Delimited", "Lines", "Sample", "Sheet"]


@dataclass
class Sample:
    """One file, and what its report has to say: (kind, line, field, reason), nothing more and nothing less."""

    name: str
    data: bytes
    rows: int
    faults: list[tuple[str, int, str, str]]
    format: str
    warnings: list[str] = field(default_factory=list)
    unmapped: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


class Sheet(Protocol):
    """A file that grows by rows; `write` returns the line on which the row begins."""

    def write(self, row: Mapping[str, Any]) -> int: ...

    def data(self) -> bytes: ...


class Delimited:
    """Cells with a delimiter between them."""

    def __init__(self, columns: list[str], delimiter: str = ",", newline: str = "\n", encoding: str = "utf-8") -> None:
        self._columns, self._encoding = columns, encoding
        self._text = io.StringIO(newline="")
        self._writer = csv.writer(self._text, delimiter=delimiter, lineterminator=newline)
        self._line = 1
        self._put(columns)

    def _put(self, cells: list[str]) -> int:
        line = self._line
        before = self._text.tell()
        self._writer.writerow(cells)
        self._text.seek(before)
        self._line += self._text.read().count("\n")
        return line

    def write(self, row: Mapping[str, Any]) -> int:
        return self._put([str(row.get(column, "")) for column in self._columns])

    def short(self, row: Mapping[str, Any]) -> int:
        """Write a row that lacks its last cell."""
        return self._put([str(row.get(column, "")) for column in self._columns[:-1]])

    def data(self) -> bytes:
        return self._text.getvalue().encode(self._encoding, "ignore")


class Lines:
    """Text in which a row takes several lines: XML, JSON, HTML."""

    def __init__(self, head: str, tail: str, render: Callable[[Mapping[str, Any]], str], between: str = "") -> None:
        self._parts = [head]
        self._tail, self._render, self._between = tail, render, between
        self._line = 1 + head.count("\n")
        self._first = True

    def write(self, row: Mapping[str, Any]) -> int:
        if not self._first:
            self._parts.append(self._between)
            self._line += self._between.count("\n")
        self._first = False
        text = self._render(row)
        line = self._line
        self._parts.append(text)
        self._line += text.count("\n")
        return line

    def data(self) -> bytes:
        return ("".join(self._parts) + self._tail).encode()
