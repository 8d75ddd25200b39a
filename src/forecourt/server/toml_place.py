"""Where a key stands in a TOML text: `tomllib` reads the values and forgets the lines.

TOML 1.0, sections "Table", "Array of Tables", "String" and "Array". The text has been read by `tomllib` before, so it
is known to be right; what is found here only serves to name a line.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, Final

__all__ = ["Key", "line_of", "spelled"]

Key = tuple[str | int, ...]
"""The way to a value: names of keys, and numbers from 0 in lists."""

_HEADER: Final = re.compile(r"\s*(\[\[?)(.+?)\]\]?\s*(?:#.*)?$")
_OPENING: Final = re.compile(r'"""|\'\'\'|"(?:\\.|[^"\\])*"|\'[^\']*\'|#.*|[\[{\]}]')


def spelled(key: Sequence[str | int]) -> str:
    """Return a key as people write it, with lists counted from 1: `dealers[2].hosts`."""
    text = ""
    for part in key:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def line_of(text: str, key: Sequence[str | int]) -> int | None:
    """Return the line, from 1, where `key` is set, else where the nearest thing around it is; None for none of it."""
    best: tuple[int, int] | None = None
    for line, place in _places(text):
        shared = _shared(place, key)
        # A longer common way is nearer; of several equally near, the first says where it begins.
        if shared and (best is None or shared > best[0]):
            best = (shared, line)
    return best[1] if best else None


def _shared(place: Key, key: Sequence[str | int]) -> int:
    """Return how much of `key` stands at `place`: nothing unless one of the two begins with the other."""
    length = min(len(place), len(key))
    return length if tuple(place[:length]) == tuple(key[:length]) else 0


def _places(text: str) -> Iterator[tuple[int, Key]]:
    """Yield each header and each statement with the line it begins at."""
    table: Key = ()
    counts: dict[Key, int] = {}
    for line, statement in _statements(text):
        header = _HEADER.match(statement)
        if header and "=" not in statement.split("#")[0].split("]")[-1]:
            names = _names(header[2])
            if names is None:
                continue
            table = _entered(names, counts, appends=header[1] == "[[")
            yield line, table
            continue
        name, equals, value = _split(statement)
        names = _names(name) if equals else None
        if names is not None:
            yield line, table + names
            for number, inner in _inside(value, table + names):
                yield line + number, inner


def _entered(names: Key, counts: dict[Key, int], *, appends: bool) -> Key:
    """Return the whole way to a table, with the number of the last entry of every list on it."""
    way: Key = ()
    for place, name in enumerate(names):
        way = (*way, name)
        if place == len(names) - 1 and appends:
            counts[way] = counts.get(way, -1) + 1
        if way in counts:
            way = (*way, counts[way])
    return way


def _inside(value: str, key: Key) -> Iterator[tuple[int, Key]]:
    """Yield the entries of a list that is written over several lines, each with its distance from the first line."""
    if "\n" not in value or not value.lstrip().startswith("["):
        return
    number = depth = 0
    for distance, line in enumerate(value.split("\n")):
        for match in _OPENING.finditer(line):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        entry = line.split("#")[0].strip()
        if entry and entry not in "[]," and depth <= 2:
            yield distance, (*key, number)
        # An entry a line, as people write such lists; anything else is found by its first line.
        number += entry.endswith(",") and depth == 1


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield headers and `key = value` with the line they begin at, however many lines the value takes."""
    begun, depth, quote = 0, 0, ""
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not lines and (not line.strip() or line.lstrip().startswith("#")):
            continue
        if not lines:
            begun = number
        lines.append(line)
        header = len(lines) == 1 and line.lstrip().startswith("[")
        if not header:
            depth, quote = _after(line, depth, quote)
        if header or (depth <= 0 and not quote):
            yield begun, "\n".join(lines)
            lines, depth, quote = [], 0, ""


def _after(line: str, depth: int, quote: str) -> tuple[int, str]:
    """Return how many brackets, and which long text, are still open at the end of a line."""
    position = 0
    while position < len(line):
        if quote:
            end = line.find(quote, position)
            if end < 0:
                return depth, quote
            position, quote = end + 3, ""
            continue
        match = _OPENING.search(line, position)
        if match is None:
            break
        position = match.end()
        if match[0] in ('"""', "'''"):
            quote = match[0]
        elif match[0] in "[{":
            depth += 1
        elif match[0] in "]}":
            depth -= 1
    return depth, quote


def _split(statement: str) -> tuple[str, str, str]:
    """Split at the first equals sign that is not inside a quoted key."""
    position = 0
    while position < len(statement) and statement[position] != "=":
        match = re.compile(r'"(?:\\.|[^"\\])*"|\'[^\']*\'').match(statement, position)
        position = match.end() if match else position + 1
    return statement[:position], statement[position : position + 1], statement[position + 1 :]


def _names(written: str) -> Key | None:
    """Return the parts of a key as written, dotted and quoted; None for what is none."""
    try:
        value: Any = tomllib.loads(f"{written.strip()} = 0")
    except tomllib.TOMLDecodeError:
        return None
    names: list[str] = []
    while isinstance(value, dict):
        name, value = next(iter(value.items()))
        names.append(name)
    return tuple(names)
