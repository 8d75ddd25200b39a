"""What the catalog reads of a listing, and how it reads it.

A member of the wrong type reads as absent, as does a text that is blank: the catalog is no judge of listings,
the feed readers are. Whole numbers are whole whatever they were written as (26780.0 is 26780).
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

__all__ = [
    "CAR",
    "DEFAULT_TEXT_FIELDS",
    "FACET_RANGES",
    "FACET_TERMS",
    "NUMBERS",
    "OFFERED",
    "Listing",
    "Members",
    "instant",
    "number",
]

OFFERED: Final = frozenset({"available", "intransit", "pending"})
"""The statuses of what may be shown ("inventory.search", status; CONTRACTS.md section 5)."""

CAR: Final = "car"
"""What a listing without `vehicle_type` is (3.1)."""

FACET_TERMS: Final = (
    "make", "model", "trim", "year", "condition", "transmission", "fuel", "driveline", "body",
    "exterior_color", "interior_color", "rooftop", "status", "vehicle_type", "dc_fast_charge", "charge_port",
)  # fmt: skip
"""Single-valued members whose values are counted; `feature_codes` is counted beside them."""

FACET_RANGES: Final = ("price", "mileage", "year", "displacement_cc", "electric_range_mi")
"""Members of which the lowest and the highest value are given."""

NUMBERS: Final = ("price", "list_price", "msrp", "mileage", "year", "electric_range_mi", "displacement_cc")
"""Numeric members that are filtered or sorted by."""

DEFAULT_TEXT_FIELDS: Final = (
    "year", "make", "model", "trim", "body", "exterior_color", "interior_color", "fuel", "driveline",
    "features", "description",
)  # fmt: skip
"""Members that the text query looks into (CONTRACTS.md section 5, `query`)."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One listing as the store holds it.

    `listing_id` is unique over all sellers and stays the same over imports; ties in an order are settled by
    it. `body` is the AAP Vehicle as compact JSON, exactly as it is sent to callers.
    """

    listing_id: str
    dealer_id: str
    body: bytes


class Members(msgspec.Struct):
    """The members of a body that the catalog looks at; the others are skipped unread."""

    make: Any = None
    model: Any = None
    trim: Any = None
    year: Any = None
    condition: Any = None
    transmission: Any = None
    fuel: Any = None
    driveline: Any = None
    body: Any = None
    exterior_color: Any = None
    interior_color: Any = None
    rooftop: Any = None
    status: Any = None
    vehicle_type: Any = None
    dc_fast_charge: Any = None
    charge_port: Any = None
    feature_codes: Any = None
    price: Any = None
    list_price: Any = None
    msrp: Any = None
    mileage: Any = None
    electric_range_mi: Any = None
    displacement_cc: Any = None
    updated_at: Any = None
    vin: Any = None
    stock: Any = None
    vehicle_id: Any = None
    features: Any = None
    description: Any = None
    engine: Any = None
    notes: Any = None


def number(value: object) -> int | float | None:
    """Return a number as it is compared and shown, None for anything else."""
    if type(value) is int:
        return value
    if type(value) is float and math.isfinite(value):
        return int(value) if value.is_integer() else value
    return None


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def instant(value: object) -> int | None:
    """Return an RFC 3339 time as microseconds since 1970, None for anything else; without an offset it is
    UTC.
    """
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.strip().upper())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND
