"""Texts and lists of texts: trimmed, without control characters, and nothing where a spreadsheet says "nothing"."""

import json
import re
from typing import Final

from forecourt.feed.nested import flat, scalar
from forecourt.feed.row import Cell

__all__ = ["LONGEST_NOTHING", "NOTHING", "flag", "is_clean", "items", "text"]

_WORDS: Final = frozenset({
    "", "#n/a", "#n/a n/a", "#na", "n/a", "n.a.", "na", "nan", "null", "(null)", "none", "nil", "undefined",
    "-", "--", "---", "\u2013", "\u2014", ".", "?", "#ref!", "#value!", "#null!", "#name?", "#div/0!", "#num!", "\\n",
    "unknown", "not specified", "tbd",
})  # fmt: skip
NOTHING: Final = frozenset({
    written for word in _WORDS for written in (word, word.upper(), word.title(), word.capitalize(), "NaN")
})  # fmt: skip
"""What stands in a cell that has no value (FEEDS.md, point 4)."""

LONGEST_NOTHING: Final = max(map(len, NOTHING))
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff\ufffe\uffff\ud800-\udfff]")
_CONTROL_BYTES: Final = bytes(code for code in range(128) if _CONTROL.match(chr(code)))
_COMMA: Final = re.compile(r"(?:(?<!\d),|,(?!\d{3}(?!\d)))(?![^()]*\))")
_ITEMS: Final = 500
_TRUE: Final = frozenset({"1", "y", "yes", "true", "t", "x", "certified", "cpo", "c"})
_FALSE: Final = frozenset({
    "0", "n", "no", "false", "f", "not certified", "non-certified", "noncertified", "uncertified",
})  # fmt: skip


def text(cell: Cell) -> str:
    """Return the text of a cell, empty where there is nothing; of a list, its first text."""
    if isinstance(cell, list):
        return next((found for item in cell if (found := text(item))), "")
    found = cell.strip()
    if len(found) <= LONGEST_NOTHING and found in NOTHING:
        return ""
    if not found.isprintable() and _CONTROL.search(found):
        return text(_CONTROL.sub("", found))
    return found


def is_clean(found: str) -> bool:
    """Tell whether a text has no control characters; may say no to one that has none.

    Of a description that is most of the time that reading it takes, and bytes are looked through the fastest.
    """
    if found.isascii():
        return len(found.encode("ascii").translate(None, _CONTROL_BYTES)) == len(found)
    return found.isprintable()


def flag(value: str) -> bool | None:
    """Return what a yes-or-no column says, None for nothing or for something else."""
    low = value.lower()
    return True if low in _TRUE else False if low in _FALSE else None


def items(cell: Cell) -> tuple[str, ...]:
    """Return the texts of a list: of JSON, or split on `|`, else `;`, else line ends, else commas, and each once.

    Commas within brackets or numbers do not split.
    """
    if isinstance(cell, list):
        return _unique([text(item) for item in cell])
    return _split(cell)


def _split(cell: str) -> tuple[str, ...]:
    if cell.lstrip()[:1] == "[":
        parsed = parsed_list(cell)
        if parsed is not None:
            return _unique([text(item) for item in parsed])
    for separator in "|;\n":
        if separator in cell:
            return _unique([text(item) for item in cell.split(separator)])
    return _unique([text(item) for item in _COMMA.split(cell)])


def _unique(texts: list[str]) -> tuple[str, ...]:
    return tuple({found.lower(): found for found in reversed(texts) if found}.values())[::-1][:_ITEMS]


def parsed_list(cell: str) -> list[str] | None:
    """Return the texts of a cell that holds JSON, None if it does not."""
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return None
    found = flat({"list": value}).get("list", [])
    if isinstance(found, list):
        return found
    return [scalar(found)]
