"""The demo dealer's stock: the same cars on every machine, with dates that follow the day it is asked for.

Cars (VIN, price, equipment, ...) never change, so that examples and an installed demo stay valid;
`inventory_date` and `updated_at` are counted back from `today`, so that the stock never looks stale.
Everything is drawn by `random.Random(seed).random()`, whose sequence Python promises to keep, and by whole
numbers.

The first car is the one of the protocol's own examples ("Skills over A2A", the 2022 Honda Civic EX), under
a VIN of ours whose check digit is right.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from importlib import resources
from typing import Any, Final, TypeVar

from forecourt.demo import DEALER_ID, profile

__all__ = ["SEED_CIVIC_VIN", "check_digit", "gone", "listings"]

_Item = TypeVar("_Item")

SEED_CIVIC_VIN: Final = "2HGFE1F78NH000001"
"""The VIN of the 2022 Honda Civic EX that the documentation's examples show."""

_SEED: Final = 20260431
_GONE: Final = 25
_GONE_EVERY: Final = 22
_FRESH_DAYS: Final = 13

# The model year that is on sale as new while the next one begins to arrive; older ones are used.
_NEW: Final = 2026
_CERTIFIED_YEARS: Final = 5
_CERTIFIED_MILES: Final = 75_000
_LEATHER_LEVEL: Final = 3
_DRAWN_BITS: Final = 1 << 40

# Per cent of the sticker price that a car still brings, by age in years.
_RETAINED: Final = (95, 86, 79, 72, 66, 60, 54, 49, 44, 40, 36)

# 49 CFR 565.15, tables III (values of letters), IV (weights) and VII (model years, beginning again in 2010).
# I, O and Q do not occur in a VIN.
_VALUES: Final[Mapping[str, int]] = {
    **{digit: int(digit) for digit in "0123456789"},
    **{letter: value for value, letter in enumerate("ABCDEFGH", 1)},
    **{letter: value for value, letter in enumerate("JKLMN", 1)},
    "P": 7,
    "R": 9,
    **{letter: value for value, letter in enumerate("STUVWXYZ", 2)},
}
_WEIGHTS: Final = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
_YEARS: Final = "ABCDEFGHJKLMNPRSTVWXY123456789"
_PLANTS: Final = "ACEFHLMNRU"

_CLOSINGS: Final = (
    "Available for a test drive today.",
    "Recently arrived and fully inspected.",
    "Delivery to your door can be arranged.",
    "Trade-ins are welcome.",
)
_ORDER: Final = (
    "dealer_id", "vehicle_id", "vin", "stock", "rooftop", "year", "make", "model", "trim", "condition",
    "status", "msrp", "list_price", "price", "fees", "mileage", "vehicle_type", "body", "transmission",
    "driveline", "engine", "displacement_cc", "fuel", "city_mpg", "highway_mpg", "electric_range_mi",
    "battery_kwh", "motor_power_hp", "dc_fast_charge", "charge_port", "exterior_color", "interior_color",
    "other_attributes", "features", "photos", "vdp_url", "description", "inventory_date", "updated_at",
)  # fmt: skip


def check_digit(vin17: str) -> str:
    """Return what position 9 of a VIN must be: "0" to "9" or "X" (49 CFR 565.15(c)).

    What stands at position 9 of `vin17` does not matter, since its weight is 0. Raises ValueError unless
    `vin17` is 17 capital letters and digits without I, O and Q.
    """
    if len(vin17) != len(_WEIGHTS) or not _VALUES.keys() >= set(vin17):
        raise ValueError("a VIN is 17 capital letters and digits without I, O and Q")
    total = sum([_VALUES[character] * weight for character, weight in zip(vin17, _WEIGHTS, strict=True)])
    return "0123456789X"[total % 11]


def listings(today: date) -> list[dict[str, Any]]:
    """Return the stock on `today`: AAP Vehicles with the members of 3.1, in the order of their `vehicle_id`.

    Prices are whole US dollars; `price` is `list_price` and the rooftop's mandatory fees. Every call returns
    fresh objects, equal for the same date.
    """
    return [unit for index, unit in enumerate(_units(today)) if not _is_gone(index)]


def gone(today: date) -> list[dict[str, Any]]:
    """Return 25 listings that were sold before `today`: of the same shape, without `status`."""
    sold = [unit for index, unit in enumerate(_units(today)) if _is_gone(index)]
    for place, unit in enumerate(sold):
        # Last heard of 15 to 39 days ago, after some weeks in stock.
        last = today - timedelta(days=15 + place)
        unit["inventory_date"] = (last - timedelta(days=20 + place)).isoformat()
        unit["updated_at"] = last.isoformat() + unit["updated_at"][len("2026-04-30") :]
        del unit["status"]
    return sold


def _is_gone(index: int) -> bool:
    return index % _GONE_EVERY == _GONE_EVERY // 2 and index < _GONE * _GONE_EVERY


class _Draw:
    """Draws from one sequence, by `random()` alone: Python may change how its other methods draw."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random  # noqa: S311 - repeatable on purpose

    def below(self, limit: int) -> int:
        """Return a whole number from 0 up to, not including, `limit`."""
        return int(self._random() * limit)

    def chance(self, percent: int) -> bool:
        """Return True in `percent` of 100 cases."""
        return self.below(100) < percent

    def one(self, items: Sequence[_Item]) -> _Item:
        """Return one of `items`."""
        return items[self.below(len(items))]


def _units(today: date) -> Iterator[dict[str, Any]]:
    """Yield every car there is or was. The sequence of draws does not depend on `today`."""
    catalogue = json.loads(resources.files("forecourt.demo").joinpath("catalogue.json").read_bytes())
    rooftops = profile()["rooftops"]
    yield _seed_civic(rooftops[0], today)
    draw = _Draw(_SEED)
    index = 0
    for make, line in catalogue["makes"].items():
        for model in line["models"]:
            for _ in range(model["units"]):
                index += 1
                unit, rooftop = _drawn(draw, line, model, rooftops)
                unit |= {"make": make, "model": model["model"]}
                number = f"{'T' if rooftop is rooftops[0] else 'D'}{10_000 + index}"
                unit |= {"stock": number, "vin": _vin(draw, model, unit["year"], index + 1)}
                level = unit.pop("level")
                unit["features"] = _features(draw, unit, level, catalogue["equipment"])
                if "vehicle_type" not in unit:
                    material = "leather" if level >= _LEATHER_LEVEL else "cloth"
                    unit["interior_color"] = draw.one(catalogue["interior_colors"][material])
                unit["description"] = _description(draw, unit)
                yield _listing(
                    unit,
                    index,
                    rooftop,
                    photos=1 if unit["status"] == "intransit" else 3 + draw.below(6),
                    updated=today - timedelta(days=1 + draw.below(_FRESH_DAYS)),
                    second=draw.below(86_400),
                    stocked_days=draw.below(90),
                )


def _seed_civic(rooftop: dict[str, Any], today: date) -> dict[str, Any]:
    """Return the car of the protocol's examples: "Skills over A2A", section "inventory.vehicle"."""
    unit = {
        "vin": SEED_CIVIC_VIN,
        "stock": "T12345",
        "year": 2022,
        "make": "Honda",
        "model": "Civic",
        "trim": "EX",
        "condition": "cpo",
        "status": "available",
        "msrp": 26500,
        "list_price": 24990,
        "mileage": 28450,
        "body": "sedan",
        "transmission": "cvt",
        "driveline": "fwd",
        "engine": "1.5L Turbo I4",
        "fuel": "gas",
        "city_mpg": 31,
        "highway_mpg": 40,
        "exterior_color": "Aegean Blue Metallic",
        "interior_color": "Black Cloth",
        "features": ["Adaptive Cruise Control", "Apple CarPlay", "Lane Keep Assist"],
        "description": "Certified 2022 Honda Civic EX with one owner and a complete service history.",
    }
    yesterday = today - timedelta(days=1)
    return _listing(unit, 0, rooftop, photos=3, updated=yesterday, second=36_900, stocked_days=18)


def _listing(
    unit: dict[str, Any],
    index: int,
    rooftop: dict[str, Any],
    *,
    photos: int,
    updated: date,
    second: int,
    stocked_days: int,
) -> dict[str, Any]:
    """Return `unit` as a listing: with its fees, addresses and dates, and its members in a reader's order."""
    if "list_price" in unit:
        unit["fees"] = [dict(fee) for fee in rooftop["fees"]]
        unit["price"] = unit["list_price"] + sum([fee["amount"] for fee in unit["fees"]])
    folder = f"https://cdn.demo-auto.example.com/vehicles/{unit['stock'].lower()}"
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    unit |= {
        "dealer_id": DEALER_ID,
        "vehicle_id": f"veh_{index + 1:04d}",
        "rooftop": rooftop["name"],
        "photos": [f"{folder}/{place}.jpg" for place in range(1, photos + 1)],
        "vdp_url": f"{rooftop['website']}/inventory/{unit['stock']}",
        "inventory_date": (updated - timedelta(days=stocked_days)).isoformat(),
        "updated_at": f"{updated.isoformat()}T{clock}Z",
    }
    return {member: unit[member] for member in _ORDER if member in unit}


def _drawn(
    draw: _Draw, line: dict[str, Any], model: dict[str, Any], rooftops: list[dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the car itself, with the `level` of its trim, and the rooftop that has it."""
    kind = line.get("kind", "car")
    franchise = line.get("franchise")
    unit: dict[str, Any] = dict(draw.one(model["trims"]))
    if not unit["trim"]:
        del unit["trim"]
    if "other_attributes" in unit:
        unit["other_attributes"] = dict(unit["other_attributes"])
    if franchise and model["last_year"] >= _NEW and draw.chance(55):
        unit["condition"] = "new"
        unit["year"] = _NEW + (1 if model["last_year"] > _NEW and draw.chance(35) else 0)
        unit["status"] = "intransit" if draw.chance(22) else _in_stock(draw)
        mileage = None if unit["status"] == "intransit" else 3 + draw.below(38)
    else:
        span = min(model["last_year"], _NEW - 1) - model["first_year"] + 1
        # The lower of two draws: recent years are commoner.
        age = _NEW - model["first_year"] - span + 1 + min(draw.below(span), draw.below(span + span))
        mileage = age * (2500 if kind == "motorcycle" else 8500) + draw.below(5000 * age)
        certifiable = kind == "car" and age <= _CERTIFIED_YEARS and mileage <= _CERTIFIED_MILES
        unit["condition"] = "cpo" if franchise and certifiable and draw.chance(45) else "used"
        unit["year"] = _NEW - age
        unit["status"] = _in_stock(draw)
    if mileage is not None:
        unit["mileage"] = mileage
    age = _NEW - unit["year"]
    sticker = unit["msrp"] * (100 - 2 * age) // 500 * 5
    if unit["condition"] == "new":
        unit["msrp"] = sticker
        list_price = sticker - sticker * draw.below(4) // 100
    else:
        del unit["msrp"]
        percent = _RETAINED[min(age, len(_RETAINED) - 1)] - 3 + draw.below(7)
        percent += 2 if unit["condition"] == "cpo" else 0
        list_price = sticker * percent // 10_000 * 100 + draw.one((0, 50, 90, 95))
    if not draw.chance(4):
        unit["list_price"] = list_price
    unit |= {"body": model["body"], "exterior_color": draw.one(line["colors"])}
    if kind != "car":
        unit["vehicle_type"] = kind
    if kind != "car" or (unit["condition"] == "new" and franchise == rooftops[1]["name"]):
        return unit, rooftops[1]
    if unit["condition"] == "new":
        return unit, rooftops[0]
    return unit, rooftops[0 if draw.chance(58) else 1]


def _in_stock(draw: _Draw) -> str:
    return "pending" if draw.chance(6) else "available"


def _vin(draw: _Draw, model: dict[str, Any], year: int, serial: int) -> str:
    letter = _YEARS[(year - 2010) % len(_YEARS)]
    vin = f"{model['wmi']}{model['vds']}0{letter}{draw.one(_PLANTS)}{serial:06d}"
    return vin[:8] + check_digit(vin) + vin[9:]


def _features(draw: _Draw, unit: dict[str, Any], level: int, equipment: dict[str, Any]) -> list[str]:
    """Return the free texts of a car's equipment, each worded in one of the ways that listings word it."""
    kind = unit.get("vehicle_type", "car")
    levels = equipment["levels"][kind]
    codes = [code for step in levels[:level] for code in _some(draw, step, most=True)]
    codes += _some(draw, levels[level], most=True)
    codes += _some(draw, equipment["bodies"].get(unit["body"], ()), most=level >= _LEATHER_LEVEL)
    if kind == "car":
        codes += _some(draw, equipment["fuels"].get(unit["fuel"], ()), most=True)
    if unit.get("driveline") == "4wd":
        codes += _some(draw, equipment["4wd"], most=False)
    codes += [code for trait in ("rows", "removable") if unit.pop(trait, None) for code in equipment[trait]]
    wording = draw.below(_DRAWN_BITS)
    ways = [equipment["texts"][code] for code in codes]
    texts = [way[(wording + place) % len(way)] for place, way in enumerate(ways)]
    if unit["condition"] != "new":
        texts += _some(draw, equipment["others"][kind], most=False)
    return texts


def _some(draw: _Draw, items: Sequence[str], *, most: bool) -> list[str]:
    """Return three quarters of `items` (`most`) or one quarter: two bits of one draw decide on each item."""
    bits = draw.below(_DRAWN_BITS)
    return [item for place, item in enumerate(items) if (bits >> 2 * place & 3 != 0) is most]


def _description(draw: _Draw, unit: dict[str, Any]) -> str:
    name = " ".join([str(unit[member]) for member in ("year", "make", "model", "trim") if member in unit])
    words = {"new": "New", "used": "Used", "cpo": "Certified"}[unit["condition"]]
    engine = unit["engine"][0].lower() + unit["engine"][1:]
    closing = draw.one(_CLOSINGS)
    if unit["status"] == "intransit":
        closing = "On its way to us; ask for the arrival date."
    elif "list_price" not in unit:
        closing = "Call for price."
    return f"{words} {name} in {unit['exterior_color']} with {engine}. {closing}"
