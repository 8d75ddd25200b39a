"""Usual short words for what feeds write in a dozen ways (FEEDS.md, point 14); the words are in `word.toml`."""

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Final

from forecourt.feed.normalise.remembered import remembered

__all__ = ["engine_size", "short"]

_SIGNS: Final = re.compile(r"[\W_]+")
_SIZE: Final = re.compile(
    r"([0-9]{1,5}(?:[.,][0-9]{1,3})?)\s*(l|liters?|litres?|cc|cm3|ccm|ci|cid|cu\.? ?in\.?|cubic inches)?", re.IGNORECASE
)
_LITERS_BELOW: Final = 20
_CC_FROM: Final = 49
_CC_MOST: Final = 20_000
_CC_PER_CUBIC_INCH: Final = 16.387064


def _words(text: str) -> str:
    return _SIGNS.sub(" ", text.casefold()).strip()


@cache
def _tables() -> dict[str, tuple[dict[str, str], list[tuple[re.Pattern[str], str]]]]:
    document = tomllib.loads(resources.files("forecourt.feed.normalise").joinpath("word.toml").read_text("utf-8"))
    tables = {}
    for field, entries in document.items():
        same: dict[str, str] = {}
        contained = []
        for word, entry in entries.items():
            for text in entry["same"]:
                same.setdefault(_words(text), word)
            if "contains" in entry:
                either = "|".join([re.escape(_words(text)) for text in entry["contains"]])
                contained.append((re.compile(rf"\b(?:{either})\b"), word))
        tables[field] = same, contained
    return tables


@remembered(16_384)
def short(field: str, text: str) -> tuple[str | None, bool]:
    """Return the usual word for a text, None if there is none, and whether the text says more than the word."""
    same, contained = _tables()[field]
    words = _words(text)
    word = same.get(words)
    if word is not None:
        return word, False
    for pattern, each in contained:
        if pattern.search(words):
            return each, True
    return None, True


@remembered(4096)
def engine_size(text: str) -> int | None:
    """Return an engine's displacement in cubic centimeters, from liters, cubic centimeters or cubic inches.

    A number without a unit is liters up to 20 and cubic centimeters from 49 on; anything else is nothing.
    """
    found = _SIZE.fullmatch(text.strip())
    if not found:
        return None
    value, unit = float(found[1].replace(",", ".")), (found[2] or "").lower()
    if unit.startswith(("ci", "cu")):
        value *= _CC_PER_CUBIC_INCH
    elif unit.startswith("l") or (not unit and value < _LITERS_BELOW):
        value *= 1000
    elif not unit and value < _CC_FROM:
        return None
    return round(value) if 0 < value <= _CC_MOST else None
