"""Which columns of a file make which field: worked out once per header, not once per row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from forecourt.feed.alias import FIELDS, MANY, meanings, normalised
from forecourt.feed.error import FeedError

__all__ = ["Plan", "check_mapping", "known_columns", "plan"]

_STATE: Final = frozenset({
    "disposition", "condition", "is_new", "certified", "status", "year", "currency", "odometer_unit",
})  # fmt: skip
_BUILD: Final = frozenset({
    "make", "model", "trim",
    "body", "transmission", "driveline", "fuel", "vehicle_type", "engine", "displacement_cc", "cylinders", "city_mpg",
    "highway_mpg", "electric_range_mi", "battery_kwh", "motor_power_hp", "dc_fast_charge", "charge_port",
})  # fmt: skip
_BUILD_OTHERS: Final = frozenset({"doors", "market_class", "passenger_capacity", "series_detail", "legal_disclaimer"})
_NOT_ONE_TEXT: Final = frozenset({
    *MANY, "mileage", "all_in_price", "offer_price", "list_price", "msrp", "rooftop_name", "rooftop_code",
})  # fmt: skip
"""Fields whose columns are looked at one by one."""


@dataclass(slots=True)
class Plan:
    """Positions of columns. Those of a field are in the order in which their values count."""

    texts: list[tuple[str, int]] = field(default_factory=list)
    """Field and position of every column of which one text is wanted, in the order in which they count."""
    state_texts: list[tuple[str, int]] = field(default_factory=list)
    """The same for what few words say of many vehicles: whether they are new, where they stand, their year."""
    build_texts: list[tuple[str, int]] = field(default_factory=list)
    """The same for how a vehicle is built, which vehicles of one trim have in common."""
    build_others: dict[str, tuple[int, ...]] = field(default_factory=dict)
    build_places: tuple[int, ...] = ()
    """All positions that the build is made of."""
    state_places: tuple[int, ...] = ()
    """All positions that the state is made of."""
    fields: dict[str, tuple[int, ...]] = field(default_factory=dict)
    others: dict[str, tuple[int, ...]] = field(default_factory=dict)
    unmapped: dict[str, int] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def check_mapping(mapping: Mapping[str, str]) -> None:
    """Raise FeedError if an operator's mapping names a field that does not exist."""
    unknown = sorted(name for name in mapping if name not in FIELDS)
    if unknown:
        raise FeedError(f"no such field: {', '.join(unknown)}; there are {', '.join(sorted(FIELDS))}")


def known_columns(columns: tuple[str, ...], mapping: Mapping[str, str]) -> int:
    """Count the columns that mean something, to tell a header from a row and a delimiter from a comma in a text."""
    mapped = {normalised(name) for name in mapping.values()}
    return len({normalised(name) for name in columns if normalised(name) in mapped or meanings(name)})


def plan(columns: tuple[str, ...], mapping: Mapping[str, str]) -> Plan:
    """Work out what each column is for. The operator's mapping wins over the table of aliases."""
    ranked: dict[str, list[tuple[int, int]]] = {}
    others: dict[str, list[tuple[int, int]]] = {}
    result = Plan()
    mapped = {normalised(column): name for name, column in mapping.items()}
    ignored = []
    for at, column in enumerate(columns):
        own = mapped.get(normalised(column))
        if own is not None:
            ranked.setdefault(own, []).append((0, at))
            continue
        found = meanings(column)
        if not found:
            if column.strip():
                result.unmapped[column] = at
            continue
        for meaning in found:
            if meaning.field and meaning.field not in mapping:
                ranked.setdefault(meaning.field, []).append((meaning.rank, at))
            elif meaning.other:
                others.setdefault(meaning.other, []).append((meaning.rank, at))
            elif not meaning.field:
                ignored.append(column)
    result.fields = {name: tuple(at for _, at in sorted(places)) for name, places in ranked.items()}
    texts = [(name, at) for name, places in result.fields.items() if name not in _NOT_ONE_TEXT for at in places]
    result.texts = [(name, at) for name, at in texts if name not in _BUILD and name not in _STATE]
    result.state_texts = [(name, at) for name, at in texts if name in _STATE]
    result.build_texts = [(name, at) for name, at in texts if name in _BUILD]
    result.others = {name: tuple(at for _, at in sorted(places)) for name, places in others.items()}
    for name in [name for name in result.others if name in _BUILD_OTHERS]:
        result.build_others[name] = result.others.pop(name)
    places = [at for _, at in result.build_texts] + [at for each in result.build_others.values() for at in each]
    result.build_places = tuple(sorted(set(places)))
    result.state_places = tuple(sorted({at for _, at in result.state_texts}))
    result.ignored = tuple(ignored)
    return result
