"""Nested values, of JSON or of cells that hold JSON, as flat columns and texts."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from forecourt.feed.row import Cell

__all__ = ["flat", "scalar"]

_DEPTH: Final = 6
_COLUMNS: Final = 2000
_FIRST_ONLY: Final = frozenset({"offers", "vehicleengine", "brand", "manufacturer", "model", "mileagefromodometer"})
_SCHEMA_ORG: Final = ("https://schema.org/", "http://schema.org/")
_SPOKEN: Final = ("url", "contentUrl", "src", "href", "link", "value", "name", "label", "description", "text")


def scalar(value: Any) -> str:
    """Return a text for a text, a number or a truth value; nothing for anything else. Of a schema.org word, its name.

    A number keeps two decimals, so that it cannot be taken for one with thousands: 12.345 is not 12,345.
    """
    if isinstance(value, str):
        return value.rsplit("/", 1)[-1] if value.startswith(_SCHEMA_ORG) else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() else f"{value:.2f}"
    return ""


def flat(value: Mapping[str, Any]) -> dict[str, Cell]:
    """Return a nested object as columns with dotted names; lists become lists of texts.

    Of an object in a list, the member that says it best is taken (its `url`, its `value`, its `name`). At most 2000
    columns and six levels are looked at.
    """
    found: dict[str, Cell] = {}
    for name, cell in _members(value, "", 0):
        found[name] = cell
        if len(found) >= _COLUMNS:
            break
    return found


def _members(value: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Cell]]:
    for key, member in value.items():
        if key.startswith("@"):
            if key == "@type" and not depth:
                yield "schema type", _type(member)
            continue
        name = prefix + key
        if isinstance(member, list) and member and isinstance(member[0], dict) and key.lower() in _FIRST_ONLY:
            member = member[0]
        if isinstance(member, Mapping):
            if depth < _DEPTH:
                yield from _members(member, name + ".", depth + 1)
        elif isinstance(member, list):
            yield name, [text for item in member if (text := _spoken(item))]
        else:
            yield name, scalar(member)


def _type(value: Any) -> str:
    types = value if isinstance(value, list) else [value]
    return " ".join([scalar(item).rsplit("/", 1)[-1] for item in types])


def _spoken(item: Any) -> str:
    if isinstance(item, Mapping):
        return next((text for key in _SPOKEN if (text := scalar(item.get(key)))), "")
    return scalar(item)
