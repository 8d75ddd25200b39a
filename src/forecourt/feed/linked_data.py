"""Which JSON objects are vehicles: by their schema.org type, or by what they have."""

from collections.abc import Collection, Iterator
from typing import Any, Final

from forecourt.feed.alias import meanings
from forecourt.feed.nested import flat

__all__ = ["is_vehicle", "vehicles"]

_TYPES: Final = frozenset({"car", "vehicle", "motorcycle", "motorizedbicycle", "busorcoach"})
_TELLING: Final = frozenset({"vin", "stock", "make", "model", "year"})
_DEPTH: Final = 8
_OBJECTS: Final = 10_000


def is_vehicle(value: dict[str, Any], mapped: Collection[str] = ()) -> bool:
    """Tell whether an object is a vehicle: typed as one, or with a VIN, or with two other members that tell.

    `mapped` are column names that an operator maps.
    """
    if "@type" in value:
        types = value["@type"] if isinstance(value["@type"], list) else [value["@type"]]
        if any(isinstance(each, str) and each.rsplit("/", 1)[-1].lower() in _TYPES for each in types):
            return True
        return "vehicleIdentificationNumber" in value
    found = set()
    for name in flat(value):
        if name in mapped:
            return True
        found.update([meaning.field for meaning in meanings(name) if meaning.field in _TELLING])
    return "vin" in found or len(found) > 1


def vehicles(value: Any) -> Iterator[dict[str, Any]]:
    """Give the vehicles anywhere in a value. An offer around one becomes its `offers`."""
    waiting: list[tuple[Any, int]] = [(value, 0)]
    for _ in range(_OBJECTS):
        if not waiting:
            return
        each, depth = waiting.pop()
        if isinstance(each, dict):
            if is_vehicle(each):
                yield each
                continue
            offered = each.get("itemOffered")
            if isinstance(offered, dict) and is_vehicle(offered) and "offers" not in offered:
                yield {**offered, "offers": {key: item for key, item in each.items() if key != "itemOffered"}}
                continue
            each = list(each.values())
        if isinstance(each, list) and depth < _DEPTH:
            waiting.extend([(item, depth + 1) for item in reversed(each) if isinstance(item, dict | list)])
