"""How a vehicle is built: body, engine, transmission, fuel, battery."""

from collections.abc import Mapping
from typing import Any, Final

from forecourt.feed.normalise.number import quantity
from forecourt.feed.normalise.text import flag
from forecourt.feed.normalise.word import engine_size, short
from forecourt.feed.state import Found

__all__ = ["read"]

_WORDS: Final = ("body", "transmission", "driveline", "fuel")
_WHOLE: Final = ("city_mpg", "highway_mpg")
_AMOUNTS: Final = ("electric_range_mi", "battery_kwh", "motor_power_hp")
_NUMBERS: Final = (*_WHOLE, *_AMOUNTS)
_MOST_MPG: Final = 400
_NO_NUMBER: Final = "is not a number"


def read(said: Mapping[str, str], members: dict[str, Any], other: dict[str, Any]) -> list[Found]:
    """Put what the texts say into a vehicle's members and other attributes; return what is to be reported."""
    _words(said, members, other)
    _engine(said, members)
    found = _numbers(said, members)
    _electric(said, members, other)
    return found


def _words(said: Mapping[str, str], vehicle: dict[str, Any], other: dict[str, Any]) -> None:
    for field in _WORDS:
        if text := said.get(field):
            word, says_more = short(field, text)
            vehicle[field] = word or text
            if word and says_more:
                other[f"{field}_description"] = text
    if text := said.get("vehicle_type"):
        word, says_more = short("vehicle_type", text)
        if word and word != "car":
            vehicle["vehicle_type"] = word
        if says_more:
            other["vehicle_type_description"] = text


def _engine(said: Mapping[str, str], vehicle: dict[str, Any]) -> None:
    """Find the engine; without a text of its own, put it into words from displacement and cylinders."""
    size, cylinders = said.get("displacement_cc", ""), said.get("cylinders", "")
    if size and (cubic := engine_size(size)):
        vehicle["displacement_cc"] = cubic
    if text := said.get("engine"):
        vehicle["engine"] = text
    elif size or cylinders:
        count = cylinders.removesuffix(".0")
        counted = f"{count}-cylinder" if count.isdigit() else cylinders
        liters = f"{size}L" if "displacement_cc" in vehicle and "." in size and size[-1:].isdigit() else size
        vehicle["engine"] = f"{liters} {counted}".strip()


def _electric(said: Mapping[str, str], vehicle: dict[str, Any], other: dict[str, Any]) -> None:
    if text := said.get("dc_fast_charge"):
        fast = flag(text)
        if fast is not None:
            vehicle["dc_fast_charge"] = fast
    if text := said.get("charge_port"):
        word, _ = short("charge_port", text)
        vehicle["charge_port"] = word or text
        if not word:
            other.setdefault("charge_port_description", text)


def _numbers(said: Mapping[str, str], vehicle: dict[str, Any]) -> list[Found]:
    found: list[Found] = []
    for field in _NUMBERS:
        if text := said.get(field):
            value = quantity(text)
            if value is None or value < 0 or (field in _WHOLE and value > _MOST_MPG):
                found.append(("repaired", field, _NO_NUMBER))
            elif value:
                vehicle[field] = int(value + 0.5) if field in _WHOLE or value.is_integer() else value
    return found
