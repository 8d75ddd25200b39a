"""Odometers (FEEDS.md, point 3)."""

import json
import re
from typing import Final

from forecourt.feed.nested import flat
from forecourt.feed.normalise.number import PATTERN, Number, number
from forecourt.feed.normalise.remembered import remembered

__all__ = ["KILOMETERS", "mileage"]

KILOMETERS: Final = "kilometers were converted to miles"
_NOT_A_DISTANCE: Final = "is not a distance"
_NEGATIVE: Final = "is below zero"
_TOO_FAR: Final = "is more than a vehicle can have run"

_READING: Final = re.compile(rf"({PATTERN})\s*([a-z.]*)")
_HAS_DIGIT: Final = re.compile("[0-9]")
_UNITS: Final = {
    **dict.fromkeys(("mi", "mi.", "mile", "miles", "smi", "m", "mls"), "mi"),
    **dict.fromkeys(("km", "km.", "kms", "kmt", "kilometer", "kilometers", "kilometre", "kilometres", "k.m."), "km"),
}
# One international mile is 1.609344 km.
_MICRO: Final = 1_000_000
_MILE: Final = 1_609_344
_MOST: Final = 2_000_000
_PLAIN_DIGITS: Final = 7


@remembered(8192)
def mileage(text: str, unit: str, default: str) -> tuple[int | None, tuple[str, ...]]:
    """Return miles, halves rounded up. A unit beside the number wins over `unit` (a column), that over `default`."""
    if default == "mi" and not unit and text.isascii() and text.isdigit() and len(text) < _PLAIN_DIGITS:
        return int(text), ()
    if text[:1] == "{":
        text, unit = _from_json(text, unit)
    if not _HAS_DIGIT.search(text):
        return None, ()
    found = _READING.fullmatch(text.strip().lower())
    value = number(found[1]) if found else None
    named = _UNITS.get((found[2] if found else "") or unit.lower() or default)
    if value is None or named is None:
        return None, (_NOT_A_DISTANCE,)
    if value.negative:
        return None, (_NEGATIVE,)
    miles = value.rounded() if named == "mi" else _from_kilometers(value)
    if miles > _MOST:
        return None, (_TOO_FAR,)
    return miles, (KILOMETERS,) if named == "km" else ()


def _from_kilometers(value: Number) -> int:
    millionths = value.whole * _MICRO + int(value.fraction[:6].ljust(6, "0"))
    return (2 * millionths + _MILE) // (2 * _MILE)


def _from_json(text: str, unit: str) -> tuple[str, str]:
    """Read `{"value": 28450, "unit": "MI"}`, as the Meta catalog writes it into one cell."""
    try:
        members = flat(json.loads(text))
    except (ValueError, RecursionError, AttributeError):
        return text, unit
    value, own = members.get("value", ""), members.get("unit", "") or members.get("unitCode", "")
    return (value if isinstance(value, str) else text), (own if isinstance(own, str) and own else unit)
