"""The one table of column names, and what it says about a name."""

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Final

__all__ = ["FIELDS", "MANY", "Alias", "Meaning", "aliases", "meanings", "normalised"]

MANY: Final = frozenset({"photos", "features"})
"""Fields that take the values of all their columns."""

_INDEX: Final = re.compile(r"\[\d*\]")
_OTHER: Final = re.compile(r"[\W_]+")
_LAST_NUMBER: Final = re.compile(r"\d+$")
_WRAPPERS: Final = (
    "vehicle.", "listing.", "item.", "car.", "attributes.", "specs.", "details.", "data.", "itemoffered.",
)  # fmt: skip
_ITEMS: Final = {
    "photos": frozenset(
        {"image", "imageurl", "photo", "photourl", "picture", "url", "src", "href", "link", "contenturl"}
    ),
    "features": frozenset({"option", "feature", "item", "name", "value", "description", "text", "equipment"}),
}
_NUMBERED: Final = frozenset({"photos", "features", ""})


def normalised(name: str) -> str:
    """Return a column's name as it is compared: small letters and digits, without a number in brackets."""
    return _OTHER.sub("", _INDEX.sub("", name.casefold()))


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a column is for: `field`, or `other` (a name in `other_attributes`), or neither where it is ignored.

    `rank` orders several columns of one field, the lowest first.
    """

    field: str = ""
    other: str = ""
    rank: int = 0


Alias = Mapping[str, tuple[Meaning, ...]]


@functools.cache
def aliases() -> Alias:
    """Return the packaged table, by normalised name; one name may serve two fields (a price and a list price)."""
    document = tomllib.loads(resources.files("forecourt.feed").joinpath("alias.toml").read_text("utf-8"))
    table: dict[str, tuple[Meaning, ...]] = {}
    for field, names in document["fields"].items():
        for rank, name in enumerate(dict.fromkeys(map(normalised, names))):
            table[name] = (*table.get(name, ()), Meaning(field=field, rank=rank))
    for other, names in document["other_attributes"].items():
        for rank, name in enumerate(dict.fromkeys(map(normalised, names))):
            table[name] = (*table.get(name, ()), Meaning(other=other, rank=rank))
    for name in document["ignored"]["names"]:
        table.setdefault(normalised(name), (Meaning(),))
    return table


FIELDS: Final = frozenset(meaning.field for meanings in aliases().values() for meaning in meanings if meaning.field)
"""What a column can be mapped to: AAP members, and what they are made of (`certified`, `odometer_unit`, ...)."""


def _contained(name: str) -> tuple[Meaning, ...]:
    """Read "imagelist.image.url" and "options.option": a list of photos or features, and what its items are called."""
    container, _, inner = name.partition(".")
    if not inner:
        return ()
    item = normalised(inner.rsplit(".", 1)[-1])
    return tuple([
        meaning
        for meaning in aliases().get(normalised(container), ())
        if item in _ITEMS.get(meaning.field, ())
    ])  # fmt: skip


@functools.lru_cache(maxsize=4096)
def meanings(name: str) -> tuple[Meaning, ...]:
    """Return what a column is for; empty if nobody knows it.

    Without a hit, a wrapper's name before it ("vehicle.vin") is left off, and so is a number after it where there may
    be many ("photo3", "misc_price2").
    """
    table = aliases()
    plain = name.casefold()
    while True:
        key = normalised(plain)
        found = table.get(key)
        if found is None and key[-1:].isdigit():
            numbered = table.get(_LAST_NUMBER.sub("", key), ())
            found = numbered if any(each.field in _NUMBERED and not each.other for each in numbered) else None
        if found is not None:
            return found
        if container := _contained(plain):
            return container
        wrapper = next((each for each in _WRAPPERS if plain.startswith(each)), None)
        if wrapper is None:
            return ()
        plain = plain[len(wrapper) :]
