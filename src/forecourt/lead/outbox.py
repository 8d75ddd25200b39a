"""What goes into the outbox with a lead or a change of its status, and what comes of an attempt to send it.

Nothing here does I/O: the store keeps deliveries, a target sends them, the courier of the server brings them together.
"""

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from forecourt.identifier import sortable_id
from forecourt.lead.adf import ADFError, ADFLead, ADFOptions, to_adf
from forecourt.lead.calendar import AppointmentStatus
from forecourt.lead.delivery import DeliveryError, Parcel
from forecourt.lead.delivery.calendar import invitation
from forecourt.lead.delivery.event import render_event
from forecourt.lead.delivery.notice import notice
from forecourt.lead.sealing import Sealer, SealError
from forecourt.lead.seller import Seller
from forecourt.store import Booking, Delivery, LeadRecord, NewDelivery, Outcome, StatusChange

__all__ = [
    "CANCELLED",
    "SNAPSHOT_MEMBERS",
    "Destination",
    "Dispatch",
    "Retry",
    "adf_lead",
    "opened",
    "parcel",
    "sealed_places",
    "snapshot",
]

_spread = random.Random()  # noqa: S311 - spreads waits and keeps no secret; not everybody's own generator

CANCELLED: Final = "cancelled"
"""Our word for an appointment that was given up. AAP 1.1 has none, so events of it say "rejected"."""

SNAPSHOT_MEMBERS: Final = (
    "vehicle_id", "vin", "stock", "year", "make", "model", "trim", "doors", "body", "transmission", "mileage",
    "condition", "exterior_color", "interior_color", "price", "list_price", "msrp", "photos",
)  # fmt: skip
"""What is kept of a listing with a lead about it: what ADF and notices say of a vehicle."""

_LONGEST_WAIT: Final = 6 * 3600.0
_FEWEST_ATTEMPTS: Final = 3
"""Attempts that are made however late it is: after a server was down for days its deliveries are still sent."""
_PROBLEMS: Final = 3
_LONGEST_REASON: Final = 300


@dataclass(frozen=True, slots=True)
class Destination:
    """One configured target of a seller, and what it gets.

    `key` names the target over all sellers and stands in its deliveries. `form` is "adf" or "notice" for leads, and
    "event" for what becomes of them. Only leads for `rooftop` go there, unless that is None.
    """

    key: str
    form: Literal["adf", "notice", "event"] = "adf"
    rooftop: str | None = None
    options: ADFOptions = field(default_factory=ADFOptions)


@dataclass(frozen=True, slots=True)
class Retry:
    """When a delivery that failed is tried again: after `first_seconds`, then after twice that, and so on.

    It is given up after `most_attempts`, or at the attempt that ends `give_up_seconds` after the first one was due;
    the last attempt is made about then, not half a day earlier.
    """

    first_seconds: float = 10.0
    give_up_seconds: float = 86_400.0
    most_attempts: int = 30

    def after(
        self, delivery: Delivery, error: DeliveryError, now: datetime, jitter: Callable[[], float] = _spread.random
    ) -> Outcome:
        """Return what becomes of a delivery whose attempt failed. `jitter` is from 0 up to 1.

        A wait is lengthened by up to a quarter at random, so that what failed together does not come back together.
        """
        late = (now - delivery.since).total_seconds()
        over = late >= self.give_up_seconds and delivery.attempts >= _FEWEST_ATTEMPTS
        if error.permanent or over or delivery.attempts >= self.most_attempts:
            return Outcome("parked", now, None, error.reason[:_LONGEST_REASON])
        # Doubling is bounded before it is done: two to the power of the attempts may be beyond any float.
        wait = min(self.first_seconds * 2.0 ** min(delivery.attempts - 1, 32), _LONGEST_WAIT)
        wait = max(wait * (1 + jitter() / 4), min(error.retry_after or 0.0, _LONGEST_WAIT))
        if late < self.give_up_seconds:
            wait = min(wait, self.give_up_seconds - late)
        return Outcome("waiting", now, now + timedelta(seconds=wait), error.reason[:_LONGEST_REASON])


class Dispatch:
    """Where the sellers' leads go, and the key that they are kept under."""

    def __init__(
        self,
        destinations: Mapping[str, Sequence[Destination]] | None = None,
        sealer: Sealer | None = None,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the destinations by dealer id. `wake` is called, without waiting, when something new is there."""
        self.destinations = destinations or {}
        self.sealer = sealer or Sealer()
        self.wake = wake

    @property
    def destinations(self) -> Mapping[str, Sequence[Destination]]:
        """The destinations by dealer id; set as a whole."""
        return self._destinations

    @destinations.setter
    def destinations(self, destinations: Mapping[str, Sequence[Destination]]) -> None:
        self._destinations = dict(destinations)
        self._by_key = {each.key: each for found in destinations.values() for each in found}

    def destination(self, key: str) -> Destination | None:
        """Return the destination that deliveries name, None when it is not configured any more."""
        return self._by_key.get(key)

    def of_lead(
        self, dealer_id: str, lead_id: str, rooftop: str | None, booking: Booking | None, now: datetime
    ) -> tuple[NewDelivery, ...]:
        """Return the deliveries of a new lead: it to each of its destinations, and the events of its arrival."""
        events: list[bytes] | None = None
        found = []
        for destination in self._for(dealer_id, rooftop):
            if destination.form != "event":
                found.append(NewDelivery(sortable_id("dlv_"), destination.key, destination.form))
                continue
            if events is None:
                about = {"dealer_id": dealer_id, "rooftop": rooftop}
                events = [render_event("lead.status_changed", lead_id, "received", now, about)]
                if booking is not None:
                    events.append(_appointment_event(booking.appointment_id, lead_id, booking.status, now, booking))
            found += [NewDelivery(sortable_id("dlv_"), destination.key, "event", event) for event in events]
        return tuple(found)

    def of_changes(
        self, record: LeadRecord, changes: Sequence[StatusChange], start: datetime | None = None
    ) -> tuple[NewDelivery, ...]:
        """Return the events of changes to a lead. `start` is the time of an appointment that they confirm."""
        found = []
        for destination in self._for(record.dealer_id, record.rooftop):
            if destination.form == "event":
                events = [_event_of(record, change, start) for change in changes]
                found += [NewDelivery(sortable_id("dlv_"), destination.key, "event", event) for event in events]
        return tuple(found)

    def _for(self, dealer_id: str, rooftop: str | None) -> Iterable[Destination]:
        known = self.destinations.get(dealer_id, ())
        return (each for each in known if each.rooftop is None or each.rooftop == rooftop)


def _event_of(record: LeadRecord, change: StatusChange, start: datetime | None) -> bytes:
    payload: dict[str, Any] = {"previous_status": change.previous}
    if change.entity_id == change.lead_id:
        payload |= {"dealer_id": record.dealer_id, "rooftop": record.rooftop}
        return render_event("lead.status_changed", change.lead_id, change.status, change.changed_at, payload)
    booking = record.booking
    if booking is not None and start is not None:
        booking = replace(booking, start=start)
    return _appointment_event(
        change.entity_id, change.lead_id, change.status, change.changed_at, booking, previous=change.previous
    )


def _appointment_event(
    appointment_id: str,
    lead_id: str,
    status: str,
    now: datetime,
    booking: Booking | None,
    previous: str | None = None,
) -> bytes:
    payload: dict[str, Any] = {"lead_id": lead_id}
    if previous is not None:
        payload["previous_status"] = previous
    if status == CANCELLED:
        payload["reason"], status = CANCELLED, AppointmentStatus.REJECTED.value
    if status == AppointmentStatus.CONFIRMED and booking is not None and booking.start is not None:
        payload["confirmed_at"] = booking.start.isoformat()
    return render_event("appointment.status_changed", appointment_id, status, now, payload)


# What is kept of a lead


def sealed_places(lead_id: str) -> tuple[str, str]:
    """Return where a lead's payload and its grant are kept, as sealing binds them to it."""
    return f"lead/{lead_id}/business", f"lead/{lead_id}/grant"


def snapshot(listing: bytes | None) -> bytes | None:
    """Return what a lead keeps of the body of its listing, which may be gone when the lead is sent."""
    if listing is None:
        return None
    body: dict[str, Any] = json.loads(listing)
    kept = {member: body[member] for member in SNAPSHOT_MEMBERS if member in body}
    if isinstance(kept.get("photos"), list):
        kept["photos"] = kept["photos"][:1]
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()


def opened(record: LeadRecord, sealer: Sealer) -> tuple[dict[str, Any] | None, bytes]:
    """Return a lead's payload, None once it was purged, and its grant, byte for byte. Raises SealError."""
    at_business, at_grant = sealed_places(record.lead_id)
    business = json.loads(sealer.open(record.business, at_business)) if record.purged_at is None else None
    return business, sealer.open(record.grant, at_grant)


# Sending


def parcel(
    record: LeadRecord | None, delivery: Delivery, seller: Seller | None, destination: Destination, sealer: Sealer
) -> Parcel:
    """Return what is sent. Raises DeliveryError, with the reason for which this lead cannot be sent so."""
    if record is None or seller is None:
        raise DeliveryError("the lead or its seller is not here any more", permanent=True)
    vendor = record.rooftop or str(seller.profile["name"])
    if delivery.kind == "event":
        return Parcel(delivery.delivery_id, record.lead_id, "event", vendor, delivery.content or b"")
    if record.purged_at is not None:
        raise DeliveryError("the lead's personal data was deleted", permanent=True)
    try:
        lead = adf_lead(record, seller, sealer)
    except SealError as error:
        # Its message holds no data; a key that is missing may be there tomorrow.
        raise DeliveryError(f"the lead cannot be opened: {error}") from None
    try:
        if delivery.kind == "notice":
            visit = lead.booking
            confirmed = visit is not None and visit.status == AppointmentStatus.CONFIRMED and visit.start is not None
            invited = invitation(lead, stamped=lead.received_at, sequence=delivery.turn) if confirmed else None
            return Parcel(delivery.delivery_id, record.lead_id, "notice", vendor, notice(lead), invited)
        options = replace(destination.options, status="resend" if delivery.turn else "new", seven_bit=True)
        return Parcel(delivery.delivery_id, record.lead_id, "adf", vendor, to_adf(lead, options))
    except ADFError as error:
        shown = "; ".join(error.problems[:_PROBLEMS])
        raise DeliveryError(f"the lead cannot be written as ADF: {shown}", permanent=True) from None
    except Exception as error:
        # Whatever a shopper sent, one lead must not keep the others. Its words may hold some of it; its kind does not.
        raise DeliveryError(f"the lead cannot be written: {type(error).__name__}", permanent=True) from None


def adf_lead(record: LeadRecord, seller: Seller, sealer: Sealer) -> ADFLead:
    """Return a stored lead as its mapping takes it. Raises SealError; ValueError for one that was purged."""
    business, _ = opened(record, sealer)
    if business is None:
        raise ValueError("the lead's personal data was deleted")
    return ADFLead(
        lead_id=record.lead_id,
        received_at=datetime.fromisoformat(record.received_at),
        business=business,
        seller=seller,
        rooftop=record.rooftop,
        listing=json.loads(record.snapshot) if record.snapshot else None,
        booking=_as_answered(record.booking),
    )


def _as_answered(booking: Booking | None) -> Booking | None:
    """Return an appointment in the words of answers to shoppers, which ADF and notices are written from."""
    if booking is None or booking.status in set(AppointmentStatus):
        return booking
    status = AppointmentStatus.REJECTED if booking.status == CANCELLED else AppointmentStatus.CONFIRMED
    return replace(booking, status=status.value)
