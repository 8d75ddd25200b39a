"""Rows as JSON objects: an array, an array somewhere inside of an object, JSON Lines, or schema.org JSON-LD in a file.

The file is split into its rows without ever being held as a whole.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from forecourt.feed.alias import meanings
from forecourt.feed.encoding import Text
from forecourt.feed.error import FeedError
from forecourt.feed.linked_data import is_vehicle, vehicles
from forecourt.feed.nested import flat
from forecourt.feed.report import Report
from forecourt.feed.row import Columns, Row

__all__ = ["ORDER", "recognises", "rows"]

ORDER: Final = 30

_LARGEST: Final = 4 << 20
_FIRST_LOOK: Final = 1 << 18
_DEPTH: Final = 8
_BROKEN: Final = "is not valid JSON"

_SPACE: Final = re.compile(r"[\s,]*")
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_NEXT_LINE: Final = re.compile(r"\n\s*(?=\{)")
_OBJECTS_UNDER: Final = re.compile(r'"([^"\\]{1,80})"\s*:\s*\[\s*\{')
_DECODER: Final = json.JSONDecoder(strict=False)


def recognises(head: str) -> bool:
    """Tell whether the text begins as JSON does."""
    return head.lstrip()[:1] in ("{", "[")


def rows(text: Text, mapping: Mapping[str, str], report: Report) -> Iterator[Row]:
    """Give every object that is a vehicle, nested members as dotted names. An object that is not JSON is refused.

    Raises FeedError where the file ends inside of an array or is no JSON around its rows.
    """
    return _Reading(_Characters(text.chunks()), mapping, report).document()


class _Characters:
    """A window on the text: `text[at:]` is what comes next, `line` the line that `at` is on."""

    def __init__(self, chunks: Iterator[str]) -> None:
        self._chunks = chunks
        self.text = ""
        self.at = 0
        self.line = 1

    def more(self, size: int = 1) -> bool:
        """Read on by at least `size` characters if there are any, and forget what was passed."""
        parts = [self.text[self.at :]]
        for chunk in self._chunks:
            parts.append(chunk)
            size -= len(chunk)
            if size <= 0:
                break
        self.text, self.at = "".join(parts), 0
        return len(parts) > 1

    def advance(self, to: int) -> None:
        """Go forward to a place in the window."""
        self.line += self.text.count("\n", self.at, to)
        self.at = to

    def peek(self) -> str:
        """Skip spaces and commas, and return the next character, nothing at the end."""
        while True:
            found = _SPACE.match(self.text, self.at)
            self.advance(found.end() if found else self.at)
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def end_of_value(self) -> int | None:
        """Return where the object or array that begins here ends, reading on for it; None if it does not."""
        while True:
            depth = 0
            for token in _TOKEN.finditer(self.text, self.at):
                sign = token[0]
                if sign in ("{", "["):
                    depth += 1
                elif sign in ("}", "]"):
                    depth -= 1
                    if not depth:
                        return token.end()
            size = len(self.text) - self.at
            if size > _LARGEST or not self.more(size):
                return None


class _Reading:
    def __init__(self, characters: _Characters, mapping: Mapping[str, str], report: Report) -> None:
        self._characters = characters
        self._mapped = frozenset(mapping.values())
        self._report = report
        self._columns = Columns()

    def document(self) -> Iterator[Row]:
        """Read the values at the top, one or one a line."""
        characters = self._characters
        while sign := characters.peek():
            if sign == "[":
                yield from self._array()
            elif sign == "{":
                yield from self._object(0)
            else:
                self._broken_line()

    def _array(self) -> Iterator[Row]:
        characters = self._characters
        characters.advance(characters.at + 1)
        while (sign := characters.peek()) != "]":
            if not sign:
                raise FeedError("the file ends in the middle")
            line = characters.line
            value = self._value()
            if value is _NONE:
                self._report.refuse(line, _BROKEN)
            elif isinstance(value, dict):
                yield from self._rows(value, line)
        characters.advance(characters.at + 1)

    def _object(self, depth: int) -> Iterator[Row]:
        """Read an object that is a row, or has rows inside of it."""
        characters = self._characters
        missing = _FIRST_LOOK - (len(characters.text) - characters.at)
        if missing > 0:
            characters.more(missing)
        line = characters.line
        try:
            value, end = _DECODER.raw_decode(characters.text, characters.at)
        except (ValueError, RecursionError):
            found = self._next_line() if depth == 0 else None
            if found is None and len(characters.text) - characters.at <= _FIRST_LOOK:
                closed = characters.end_of_value()
                found = None if closed is None or self._holds_rows(closed) else closed
            if found is not None:
                self._report.refuse(line, _BROKEN)
                characters.advance(found)
                return
        else:
            if is_vehicle(value, self._mapped) or not any(isinstance(each, dict | list) for each in value.values()):
                characters.advance(end)
                yield from self._rows(value, line)
                return
        if depth >= _DEPTH:
            raise FeedError("the JSON is nested too deeply")
        yield from self._members(depth)

    def _members(self, depth: int) -> Iterator[Row]:
        characters = self._characters
        characters.advance(characters.at + 1)
        while (sign := characters.peek()) != "}":
            if sign != '"' or not isinstance(self._value(), str) or characters.peek() != ":":
                raise FeedError("the file ends in the middle" if not sign else f"{_BROKEN} at line {characters.line}")
            characters.advance(characters.at + 1)
            sign = characters.peek()
            if sign == "[":
                yield from self._array()
            elif sign == "{":
                yield from self._object(depth + 1)
            elif self._value() is _NONE:
                raise FeedError(f"the file {_BROKEN} at line {characters.line}")
        characters.advance(characters.at + 1)

    def _value(self) -> Any:
        """Read a value, and go past it; `_NONE` for one that is not valid, which is gone past too."""
        characters = self._characters
        while True:
            try:
                value, end = _DECODER.raw_decode(characters.text, characters.at)
            except (ValueError, RecursionError):
                pass
            else:
                # A number or a word may go on in the next chunk.
                length = end - characters.at
                if end < len(characters.text) or not characters.more():
                    characters.advance(characters.at + length)
                    return value
                continue
            if characters.text.startswith(("{", "["), characters.at):
                closed = characters.end_of_value()
                if closed is None:
                    raise FeedError("the file ends in the middle, or a value in it is never closed")
                try:
                    value = _DECODER.decode(characters.text[characters.at : closed])
                except (ValueError, RecursionError):
                    value = _NONE
                characters.advance(closed)
                return value
            if len(characters.text) - characters.at > _LARGEST or not characters.more():
                raise FeedError(f"the file {_BROKEN} at line {characters.line}")

    def _holds_rows(self, end: int) -> bool:
        """Tell whether an object that is not valid has rows inside of it, rather than being one."""
        found = _OBJECTS_UNDER.search(self._characters.text, self._characters.at, end)
        return bool(found) and not meanings(found[1] if found else "")

    def _next_line(self) -> int | None:
        """Return where the next line begins if this is JSON Lines: an object a line, and no line ends within one."""
        text, at = self._characters.text, self._characters.at
        end = text.find("\n", at)
        found = _NEXT_LINE.match(text, end) if end >= 0 else None
        return found.end() if found and text[at:end].rstrip()[-1:] not in ("[", "{", ",", ":") else None

    def _broken_line(self) -> None:
        characters = self._characters
        if self._report.rows == 0:
            raise FeedError(f"the file {_BROKEN} at line {characters.line}")
        self._report.refuse(characters.line, _BROKEN)
        while (end := characters.text.find("\n", characters.at)) < 0:
            characters.advance(len(characters.text))
            if not characters.more():
                return
        characters.advance(end)

    def _rows(self, value: dict[str, Any], line: int) -> Iterator[Row]:
        found = [value] if is_vehicle(value, self._mapped) else list(vehicles(value))
        if not found and "@type" not in value:
            found = [value]
        for each in found:
            yield self._columns.row(line, flat(each))


_NONE: Final = object()
