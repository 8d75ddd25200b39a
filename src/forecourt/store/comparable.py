"""What every store keeps in one form so that it can be compared: identifiers of listings, and times as text."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final, TypeAlias

from forecourt.model import VehicleReference
from forecourt.store import StoredListing

__all__ = ["Row", "digest", "identifiers", "normal", "retired", "row", "time_of", "time_text"]

Row: TypeAlias = tuple[str, str, str, str | None, str | None, str | None, bytes]
"""A listing as it is written: listing_id, dealer_id, rooftop, vin, vehicle_id, stock, body."""


_DIGEST_BYTES: Final = 16


def digest(rooftop: str, body: bytes) -> bytes:
    """Return 16 bytes that tell whether a listing has changed: of what it says, and of where it stands."""
    return hashlib.sha256(b"%b\0%b" % (rooftop.encode(), body)).digest()[:_DIGEST_BYTES]


def normal(identifier: str | None) -> str | None:
    """Return an identifier as it is compared; a blank one is none.

    Neither case nor surrounding spaces count, nor does U+0000, which is no part of any printed identifier and which
    not every database can keep in text.
    """
    return None if identifier is None else identifier.replace("\0", "").strip().casefold() or None


def identifiers(reference: VehicleReference) -> list[tuple[str, str]]:
    """Return what a reference names, as (kind, value), the most specific first."""
    named = (("vin", reference.vin), ("vehicle_id", reference.vehicle_id), ("stock", reference.stock))
    return [(kind, value) for kind, given in named if (value := normal(given)) is not None]


def row(listing: StoredListing) -> Row:
    """Return a listing as it is written, its identifiers as they are compared."""
    vin, vehicle_id, stock = normal(listing.vin), normal(listing.vehicle_id), normal(listing.stock)
    return listing.listing_id, listing.dealer_id, listing.rooftop, vin, vehicle_id, stock, listing.body


def time_text(moment: datetime) -> str:
    """Return a time as UTC text of one width (microseconds and "Z"), so that text order is time order."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    # Like isoformat without the offset, in three quarters of its time; every lead has some.
    return "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ" % (  # noqa: UP031
        moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second, moment.microsecond,
    )  # fmt: skip


def time_of(text: str) -> datetime:
    """Return the time that `time_text` wrote."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def retired(keys: Sequence[tuple[str, bytes, Any]], kept_since: Any) -> Sequence[tuple[str, bytes, Any]]:
    """Return those of (name, key, time made), newest first, whose successor is older than `kept_since`."""
    return [key for successor, key in pairwise(keys) if successor[2] < kept_since]
