"""Rows as XML elements: `<vehicle>`, `<listing>`, `<item>` and the like, each with one element or attribute a value."""

import re
from collections.abc import Iterator, Mapping
from typing import Final
from xml.parsers import expat

from forecourt.feed.encoding import Text
from forecourt.feed.error import FeedError
from forecourt.feed.report import Report
from forecourt.feed.row import Cell, Columns, Row

__all__ = ["ORDER", "recognises", "rows"]

ORDER: Final = 20

_ROWS: Final = frozenset({
    "vehicle", "listing", "item", "car", "auto", "automobile", "unit", "row", "record", "entry", "ad", "advert",
    "product", "offer", "inventoryitem", "inventory_item", "vehicle_record", "vehiclerecord", "stockitem",
})  # fmt: skip
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_LARGEST: Final = 4 << 20
_CELLS: Final = 2000
_DEPTH: Final = 100
_TOO_LARGE: Final = "is larger than any row could be"


def recognises(head: str) -> bool:
    """Tell whether the text begins as markup does."""
    return head.lstrip()[:1] == "<"


def rows(text: Text, mapping: Mapping[str, str], report: Report) -> Iterator[Row]:  # noqa: ARG001
    """Give each outermost element that is called as rows are, with names like `images.image` for what is nested.

    Entities of the file's own are refused (they can expand without end), and nothing outside of it is fetched. Raises
    FeedError where the XML is not well-formed.
    """
    reading = _Reading(report)
    chunks = text.chunks()
    first = True
    try:
        for chunk in chunks:
            if first:
                reading.skip_lines(chunk)
                chunk = chunk.lstrip()
            first = False
            reading.parser.Parse(_FORBIDDEN.sub("", chunk), False)
            yield from reading.take()
        reading.parser.Parse("", True)
    except expat.ExpatError as error:
        raise FeedError(
            f"the XML is not well-formed at line {error.lineno + reading.lines_before}: "
            f"{expat.errors.messages.get(error.code, 'unknown error')}"
        ) from error
    yield from reading.take()


class _Reading:
    """Collects the rows while the parser reports elements."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._columns = Columns()
        self._done: list[Row] = []
        self._depth = 0
        self._line = 0
        self._path: list[str] = []
        self._in_row = False
        self._cells: dict[str, Cell] = {}
        self._text: list[str] = []
        self._size = 0
        self._leaf = False
        self.lines_before = 0
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._entity

    def skip_lines(self, head: str) -> None:
        """Count the blank lines at the beginning, which the parser is not shown: XML must begin with its `<`."""
        self.lines_before = head[: len(head) - len(head.lstrip())].count("\n")

    def take(self) -> list[Row]:
        """Return the rows that are complete."""
        done, self._done = self._done, []
        return done

    def _entity(self, *_: object) -> None:
        raise FeedError("the XML declares entities of its own, which are not expanded")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _DEPTH:
            raise FeedError("the XML is nested too deeply")
        local = name.rsplit(":", 1)[-1]
        if self._in_row:
            self._path.append(local)
        elif self._depth > 1 and local.lower() in _ROWS:
            self._in_row = True
            self._line = self.parser.CurrentLineNumber + self.lines_before
            self._cells = {}
            self._size = 0
        else:
            return
        self._leaf = True
        self._text = []
        for key, value in attributes.items():
            self._add(".".join([*self._path, key.rsplit(":", 1)[-1]]), value)

    def _characters(self, data: str) -> None:
        if self._in_row:
            self._size += len(data)
            if self._size <= _LARGEST:
                self._text.append(data)

    def _end(self, _: str) -> None:
        self._depth -= 1
        if not self._in_row:
            return
        if self._path:
            if self._leaf:
                self._add(".".join(self._path), "".join(self._text).strip())
            self._path.pop()
            self._text = []
            self._leaf = False
            return
        self._in_row = False
        if self._size > _LARGEST or len(self._cells) > _CELLS:
            self._report.refuse(self._line, _TOO_LARGE)
        elif self._cells:
            self._done.append(self._columns.row(self._line, self._cells))

    def _add(self, name: str, value: str) -> None:
        """Keep a value; a name that occurs again makes a list."""
        self._size += len(name)
        if len(self._cells) > _CELLS:
            return
        known = self._cells.get(name)
        if known is None:
            self._cells[name] = value
        elif isinstance(known, list):
            known.append(value)
        else:
            self._cells[name] = [known, value]
