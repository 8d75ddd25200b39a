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
    "AnyMembers",
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


class Members(msgspec.Struct, gc=False):
    """The members of a body that the catalog looks at, of the types that they should have; the others are skipped
    unread.
    """

    make: str | None = None
    model: str | None = None
    trim: str | None = None
    year: int | float | None = None
    condition: str | None = None
    transmission: str | None = None
    fuel: str | None = None
    driveline: str | None = None
    body: str | None = None
    exterior_color: str | None = None
    interior_color: str | None = None
    rooftop: str | None = None
    status: str | None = None
    vehicle_type: str | None = None
    dc_fast_charge: bool | None = None
    charge_port: str | None = None
    feature_codes: list[str] | None = None
    price: int | float | None = None
    list_price: int | float | None = None
    msrp: int | float | None = None
    mileage: int | float | None = None
    electric_range_mi: int | float | None = None
    displacement_cc: int | float | None = None
    updated_at: str | None = None
    vin: str | None = None
    stock: str | None = None
    vehicle_id: str | None = None
    features: list[str] | None = None
    description: str | None = None
    engine: str | None = None
    notes: str | None = None


AnyMembers: Final = msgspec.defstruct(
    "AnyMembers", [(member.name, Any, None) for member in msgspec.structs.fields(Members)], gc=False
)
"""The same members, of whatever type."""


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
