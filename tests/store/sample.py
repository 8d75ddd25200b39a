"""Listings, leads and decisions that the store's tests keep and read back."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from forecourt.identifier import sortable_id
from forecourt.store import Booking, LeadTransaction, NewLead, StoredListing

__all__ = ["NOW", "booking", "lead", "listing", "take_once", "take_slot"]

NOW: Final = datetime(2026, 5, 4, 19, 0, tzinfo=UTC)


def listing(
    vehicle_id: str, dealer_id: str = "dealer-a", rooftop: str = "North", vin: str | None = None, price: int = 20_000
) -> StoredListing:
    """Return a listing; its stock number is S and its vehicle id."""
    body = {"vehicle_id": vehicle_id, "rooftop": rooftop, "price": price}
    return StoredListing(
        f"{dealer_id}/{vehicle_id}", dealer_id, rooftop, vin, vehicle_id, f"S{vehicle_id}", json.dumps(body).encode()
    )


def lead(lead_id: str | None = None, **changes: Any) -> NewLead:
    """Return a lead without a key; `key` brings scope, fingerprint and expiry with it."""
    lead_id = lead_id or sortable_id("lead_")
    values: dict[str, Any] = {
        "lead_id": lead_id,
        "dealer_id": "dealer-a",
        "rooftop": "North",
        "listing_id": None,
        "received_at": NOW,
        "caller": None,
        "person_keys": frozenset({"person-1"}),
        "vehicle_key": "none",
        "business": b'{"customer":{"first_name":"Sam"}}',
        "grant": b'{"consent_text":"Yes \\u00fc"}',
        "receipt": json.dumps({"data": {"lead_id": lead_id}}).encode(),
        "booking": None,
    }
    if "key" in changes:
        values |= {"scope": "scope-1", "fingerprint": "f-1", "expires_at": NOW + timedelta(days=30)}
    return NewLead(**values | changes)


def booking(start: datetime | None, minutes: int = 45, status: str = "confirmed") -> Booking:
    """Return an appointment in the sales department."""
    end = None if start is None else start + timedelta(minutes=minutes)
    return Booking(sortable_id("appt_"), "sales", "test_drive", status, start, end)


def take_once(key: str, **changes: Any) -> Callable[[LeadTransaction], bytes]:
    """Return what decides on a lead with a key: the receipt that it was given before, else a new lead."""

    def work(transaction: LeadTransaction) -> bytes:
        known = transaction.recall("scope-1", key, NOW)
        if known is not None:
            return known.receipt
        new = lead(key=key, **changes)
        transaction.add(new)
        return new.receipt

    return work


def take_slot(start: datetime, capacity: int) -> Callable[[LeadTransaction], bool]:
    """Return what decides on an appointment: confirmed while the slot has room, else proposed."""

    def work(transaction: LeadTransaction) -> bool:
        end = start + timedelta(minutes=45)
        free = transaction.busy("dealer-a", "North", "sales", start, end) < capacity
        transaction.add(lead(booking=booking(start) if free else booking(None, status="proposed")))
        return free

    return work
