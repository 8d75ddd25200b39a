"""The version-free side of the five skills: what a contract reads a request into, and what it writes a reply from.

Plain, typed and immutable (msgspec structs, since they are made for every request); nothing here knows an AAP version,
a protocol or a database. Amounts are whole US dollars, distances miles, times aware datetimes. Bodies of listings and
receipts are JSON bytes, serialised once and passed through.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

__all__ = [
    "FLAG_FILTERS",
    "MAX_FILTERS",
    "MIN_FILTERS",
    "SORT_FIELDS",
    "TERM_FILTERS",
    "Capabilities",
    "DealerInformationReply",
    "DealerInformationRequest",
    "Facets",
    "FacetsReply",
    "FacetsRequest",
    "Filters",
    "LeadReply",
    "LeadRequest",
    "Page",
    "Place",
    "Reply",
    "Request",
    "SearchReply",
    "SearchRequest",
    "Sort",
    "VehicleReference",
    "VehicleReply",
    "VehicleRequest",
    "listing_id",
]


def listing_id(dealer_id: str, vehicle_id: str) -> str:
    """Return the id of a listing over all sellers; every listing in stock has both members.

    A slash in a seller's id is escaped as in a JSON Pointer, so that no two sellers ever share a listing's id.
    """
    return f"{dealer_id.replace('~', '~0').replace('/', '~1')}/{vehicle_id}"


TERM_FILTERS: Final[Mapping[str, str]] = {
    "make": "make",
    "model": "model",
    "trim": "trim",
    "condition": "condition",
    "transmission": "transmission",
    "fuel": "fuel",
    "driveline": "driveline",
    "body": "body",
    "exterior_color": "exterior_color",
    "interior_color": "interior_color",
    "rooftops": "rooftop",
    "vehicle_type": "vehicle_type",
    "charge_port": "charge_port",
}
"""Filters that list values, any of which may match -> the listing's member that they look at."""

MIN_FILTERS: Final[Mapping[str, str]] = {
    "year_min": "year",
    "price_min": "price",
    "electric_range_mi_min": "electric_range_mi",
    "displacement_cc_min": "displacement_cc",
}
"""Filters with a lowest value, included -> the listing's member."""

MAX_FILTERS: Final[Mapping[str, str]] = {
    "year_max": "year",
    "price_max": "price",
    "mileage_max": "mileage",
    "electric_range_mi_max": "electric_range_mi",
    "displacement_cc_max": "displacement_cc",
}
"""Filters with a highest value, included -> the listing's member."""

FLAG_FILTERS: Final[Mapping[str, str]] = {"dc_fast_charge": "dc_fast_charge"}
"""Filters that are yes or no -> the listing's member; a listing that does not say matches neither."""

SORT_FIELDS: Final = ("price", "list_price", "msrp", "mileage", "year", "make", "model", "stock", "updated_at")
"""Members that a search can be sorted by (official 1.1 schema, inventory-search-request, sort.field)."""


class Filters(msgspec.Struct, frozen=True):
    """What a listing has to be. Everything given must hold; an empty `Filters` lets every listing through.

    The keys of the mappings are the listing's members (the values of the tables above), never a contract's filter
    names. Texts match whole values without regard to case, accents or surrounding spaces.
    """

    terms: Mapping[str, Sequence[str]] = {}
    at_least: Mapping[str, float] = {}
    at_most: Mapping[str, float] = {}
    flags: Mapping[str, bool] = {}
    vin: str | None = None
    stock: str | None = None
    text: str | None = None
    features_all: Sequence[str] = ()
    features_any: Sequence[str] = ()
    features_none: Sequence[str] = ()


class Sort(msgspec.Struct, frozen=True):
    """An order by one member. Listings without the member come last in both directions; ties go by listing id."""

    field: str
    descending: bool = False


class Place(msgspec.Struct, frozen=True):
    """Where a walk through a result stands: after the listing with this sort value and this id.

    `value` is None when that listing has no value to sort by, or when no sort was asked for.
    """

    listing_id: str
    value: str | float | None = None


class Page(msgspec.Struct, frozen=True):
    """Part of a search result. `total` counts every match; `last` is the place to go on from, None at the end."""

    total: int
    listings: Sequence[bytes]
    last: Place | None = None


class Facets(msgspec.Struct, frozen=True):
    """Counts and ranges over a matching set.

    `terms` maps a listing's member ("make", "year", "feature_codes", ...) to (value, count) pairs, most frequent
    first and ties by value; `ranges` maps a member to its lowest and highest value. Members with nothing to count
    are absent.
    """

    terms: Mapping[str, Sequence[tuple[str | int | bool, int]]] = {}
    ranges: Mapping[str, tuple[float, float]] = {}


class Capabilities(msgspec.Struct, frozen=True):
    """What a deployment offers to search by, as it is published (CONTRACTS.md section 5, "Search capabilities")."""

    filters: tuple[str, ...]
    feature_codes: tuple[str, ...]
    sort_fields: tuple[str, ...]
    default_limit: int = 20
    max_limit: int = 100
    free_text: bool = True

    def to_payload(self) -> dict[str, Any]:
        """Return the object that is published."""
        return {
            "filters": list(self.filters),
            "feature_codes": list(self.feature_codes),
            "sort_fields": list(self.sort_fields),
            "default_limit": self.default_limit,
            "max_limit": self.max_limit,
            "free_text": self.free_text,
        }


class VehicleReference(msgspec.Struct, frozen=True):
    """How a caller names one listing. The most specific wins: vin, then vehicle_id, then stock."""

    vin: str | None = None
    vehicle_id: str | None = None
    stock: str | None = None

    def __bool__(self) -> bool:
        """Tell whether anything is named."""
        return not (self.vin is None and self.vehicle_id is None and self.stock is None)


class DealerInformationRequest(msgspec.Struct, frozen=True):
    """`dealer.information`."""

    dealer_id: str | None = None


class FacetsRequest(msgspec.Struct, frozen=True):
    """`inventory.facets`."""

    filters: Filters
    dealer_id: str | None = None


class SearchRequest(msgspec.Struct, frozen=True):
    """`inventory.search`. A request either skips (1.1) or continues from a cursor (3.1).

    `limit` is what was asked for, None when nothing was; `fingerprint` is what is searched for as text, the same for
    all that ask the same, which a cursor is bound to; `paged_by_cursor` asks for a `next_cursor` in the reply.
    """

    filters: Filters
    sort: Sort | None = None
    skip: int = 0
    limit: int | None = None
    cursor: str | None = None
    paged_by_cursor: bool = False
    fingerprint: str = ""
    dealer_id: str | None = None


class VehicleRequest(msgspec.Struct, frozen=True):
    """`inventory.vehicle`."""

    vehicle: VehicleReference
    dealer_id: str | None = None


class LeadRequest(msgspec.Struct, frozen=True):
    """`lead.submit`: the parts as they came, already checked against the contract's schema.

    `business` is the payload without its envelope members (type, dealer_id, idempotency_key): what decides whether
    two submissions are the same.
    """

    business: Mapping[str, Any]
    idempotency_key: str | None = None
    dealer_id: str | None = None

    @property
    def customer(self) -> Mapping[str, Any]:
        """The shopper. Personal: never logged, never echoed."""
        customer: Mapping[str, Any] = self.business["customer"]
        return customer

    @property
    def consent(self) -> Mapping[str, Any]:
        """The consent grant, verbatim."""
        consent: Mapping[str, Any] = self.business["consent"]
        return consent

    def part(self, name: str) -> Mapping[str, Any] | None:
        """Return `vehicle_of_interest`, `trade_in`, `appointment` or `source_agent`, None when absent."""
        part: Mapping[str, Any] | None = self.business.get(name)
        return part


Request = DealerInformationRequest | FacetsRequest | SearchRequest | VehicleRequest | LeadRequest


class DealerInformationReply(msgspec.Struct, frozen=True):
    """The seller's public profile as it is stored, and what can be searched by."""

    profile: Mapping[str, Any]
    capabilities: Capabilities


class FacetsReply(msgspec.Struct, frozen=True):
    """Counts over the matching set."""

    facets: Facets


class SearchReply(msgspec.Struct, frozen=True):
    """A page of listings as JSON bytes, with the effective limit."""

    total: int
    skip: int
    limit: int
    listings: Sequence[bytes]
    next_cursor: str | None = None


class VehicleReply(msgspec.Struct, frozen=True):
    """One listing as JSON bytes."""

    listing: bytes


class LeadReply(msgspec.Struct, frozen=True):
    """The receipt of a lead: the JSON bytes of `{"data": {...}, "message": ...}`, identical for every replay."""

    receipt: bytes


Reply = DealerInformationReply | FacetsReply | SearchReply | VehicleReply | LeadReply
