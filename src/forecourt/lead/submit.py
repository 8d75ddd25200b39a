"""Taking a lead: recognised if it came before, decided, and kept with all that belongs to it, in one transaction.

Source: CONTRACTS.md section 6; "Errors and retries", sections "Important distinctions" and "Retry without changing
the outcome".
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any, Final

import msgspec

from forecourt.errors import CODES, AAPError, Problem
from forecourt.identifier import sortable_id
from forecourt.lead.calendar import AppointmentStatus, Decision, decide
from forecourt.lead.fingerprint import fingerprint, is_plain
from forecourt.lead.hours import DEPARTMENTS, OpeningHours, hosts
from forecourt.lead.identity import person_keys, vehicle_key
from forecourt.lead.moment import format_time
from forecourt.lead.outbox import Dispatch, sealed_places, snapshot
from forecourt.lead.seller import Seller
from forecourt.model import LeadRequest
from forecourt.store import Booking, Foreseen, LeadTransaction, NewDelivery, NewLead, Store

__all__ = ["KEY_LIFETIME", "TWIN_WINDOW", "Stock", "replay", "replay_among", "submit"]

KEY_LIFETIME: Final = timedelta(days=30)
"""How long a key is remembered (ours; the contract asks for a day)."""

TWIN_WINDOW: Final = timedelta(hours=24)
"""Within what time an equivalent submission without a key is the same lead."""

_SCOPES: Final = 1024
"""For how many sellers and callers the scope of their keys is remembered."""

_E164: Final = re.compile(r"^\+[1-9]\d{1,14}$", re.ASCII)
_TIMES_SHOWN: Final = "%A, %B {day} at {hour}:%M %p"

_encode = msgspec.json.Encoder().encode


class Stock(msgspec.Struct, frozen=True):
    """What the vehicle of interest was found to be: one listing of ours, with its body, or nothing in particular."""

    listing_id: str | None = None
    rooftop: str | None = None
    body: bytes | None = None


def key_scope(seller: Seller, caller: str | None) -> str:
    """Return what a key is unique in: the seller and, where callers are known, the caller; never a session."""
    return _scope_text(seller.dealer_id, caller)


@lru_cache(_SCOPES)
def _scope_text(dealer_id: str, caller: str | None) -> str:
    return json.dumps([dealer_id, caller])


def _scope_texts(dealer_ids: Collection[str], caller: str | None) -> list[str]:
    """Return the scopes of one caller at many sellers, written the same at a tenth of the time."""
    end = json.dumps(["", caller])[3:]
    return [f"[{encode_basestring_ascii(dealer_id)}{end}" for dealer_id in dealer_ids]


async def replay(store: Store, seller: Seller, request: LeadRequest, caller: str | None, now: datetime) -> bytes | None:
    """Return the receipt that this very submission was given before, if it was."""
    if request.idempotency_key is None:
        return None
    known = await store.recall(key_scope(seller, caller), request.idempotency_key, now)
    return known.receipt if known and known.fingerprint == fingerprint(request.business) else None


async def replay_among(
    store: Store, dealer_ids: Collection[str], request: LeadRequest, caller: str | None, now: datetime
) -> bytes | None:
    """Return the receipt that this very submission was given by one of these sellers, the first of them, if it was."""
    if request.idempotency_key is None:
        return None
    scopes = _scope_texts(dealer_ids, caller)
    known = await store.recall_among(scopes, request.idempotency_key, now)
    if not known:
        return None
    wanted = fingerprint(request.business)
    found = (known[scope] for scope in scopes if scope in known)
    return next((each.receipt for each in found if each.fingerprint == wanted), None)


async def submit(
    store: Store,
    seller: Seller,
    request: LeadRequest,
    stock: Stock,
    caller: str | None,
    now: datetime,
    dispatch: Dispatch | None = None,
) -> bytes:
    """Take the lead and return its receipt: JSON bytes, the same for every replay of the same key and content.

    `dispatch` says where it is sent, and seals it; its deliveries are committed with it, and sent by others later.

    The request has passed the contract's schema, its consent is good, and its vehicle can be had. Raises AAPError
    IDEMPOTENCY_CONFLICT or APPOINTMENT_TIME_UNAVAILABLE, with nothing kept; StoreError when the database fails.
    """
    dispatch = dispatch or Dispatch()
    submission = _Submission(seller, request, stock, caller, now, dispatch)
    key = request.idempotency_key
    foreseen = None
    if key is not None and submission.appointment is None:
        foreseen = Foreseen(submission.scope, key, now)
    receipt = await store.decide_lead(submission.take, foreseen)
    if submission.deliveries:
        dispatch.wake()
    return receipt


class _Submission:
    """One lead on its way through the transaction; what can be computed beforehand, is."""

    def __init__(
        self,
        seller: Seller,
        request: LeadRequest,
        stock: Stock,
        caller: str | None,
        now: datetime,
        dispatch: Dispatch,
    ) -> None:
        self.seller, self.request, self.stock, self.caller, self.now = seller, request, stock, caller, now
        self.dispatch = dispatch
        self.snapshot = snapshot(stock.body)
        self.appointment = request.part("appointment")
        plain = is_plain(request.business)
        self.fingerprint = fingerprint(request.business, plain)
        self.scope = key_scope(seller, caller)
        self.persons = person_keys(request.customer, seller.dealer_id)
        self.vehicle = _subject(request, stock)
        self.rooftop = self._rooftop()
        # What is plain is written alike by both.
        write = _encode if plain else _json
        self.business, self.grant = write(request.business), write(request.consent)
        self.deliveries: Sequence[NewDelivery] = ()

    def take(self, transaction: LeadTransaction) -> bytes:
        """Recognise, decide, keep. Runs inside the store's transaction, and anew where that was undone."""
        self.deliveries = ()
        key = self.request.idempotency_key
        if key is not None:
            known = transaction.recall(self.scope, key, self.now)
            if known is not None:
                if known.fingerprint == self.fingerprint:
                    return known.receipt
                raise AAPError(
                    "IDEMPOTENCY_CONFLICT",
                    CODES["IDEMPOTENCY_CONFLICT"].message,
                    problems=[Problem("/idempotency_key", "idempotency", "was used before with other content")],
                )
        else:
            receipt = transaction.twin(self.seller.dealer_id, self.persons, self.vehicle, self.now - TWIN_WINDOW)
            if receipt is not None:
                return _as_duplicate(receipt)
        return self._keep(transaction)

    def _keep(self, transaction: LeadTransaction) -> bytes:
        lead_id = sortable_id("lead_")
        booking, decision = self._book(transaction)
        receipt = self._receipt(lead_id, booking, decision)
        keyed = self.request.idempotency_key is not None
        at_business, at_grant = sealed_places(lead_id)
        seal = self.dispatch.sealer.seal
        self.deliveries = self.dispatch.of_lead(self.seller.dealer_id, lead_id, self.rooftop, booking, self.now)
        transaction.add(
            NewLead(
                lead_id=lead_id,
                dealer_id=self.seller.dealer_id,
                rooftop=self.rooftop,
                listing_id=self.stock.listing_id,
                received_at=self.now,
                caller=self.caller,
                person_keys=self.persons,
                vehicle_key=self.vehicle,
                business=seal(self.business, at_business),
                grant=seal(self.grant, at_grant),
                receipt=receipt,
                booking=booking,
                scope=self.scope if keyed else None,
                key=self.request.idempotency_key,
                fingerprint=self.fingerprint,
                expires_at=self.now + KEY_LIFETIME if keyed else None,
                snapshot=self.snapshot,
                deliveries=self.deliveries,
            )
        )
        return receipt

    # Appointments

    def _rooftop(self) -> str:
        """Return the rooftop that gets the lead: the listing's, else the first that hosts the appointment."""
        if self.stock.rooftop in self.seller.hours:
            return str(self.stock.rooftop)
        names = list(self.seller.hours)
        if self.appointment is not None:
            kind = self.appointment["appointment_type"]
            names = [name for name in names if hosts(self.seller.hours[name], kind)] or names
        return names[0]

    def _book(self, transaction: LeadTransaction) -> tuple[Booking | None, Decision | None]:
        if self.appointment is None:
            return None, None
        kind: str = self.appointment["appointment_type"]
        department = DEPARTMENTS[kind]
        capacity = self.seller.rules.capacity_for(kind)

        def is_free(start: datetime, minutes: int) -> bool:
            end = start + timedelta(minutes=minutes)
            return transaction.busy(self.seller.dealer_id, self.rooftop, department, start, end) < capacity

        decision = decide(self._hours, self.seller.rules, self.appointment, self.now, is_free)
        self._reject_whole(decision)
        start = end = None
        if decision.status is AppointmentStatus.CONFIRMED:
            assert decision.start is not None
            start, end = decision.start, decision.start + timedelta(minutes=decision.minutes)
        return Booking(sortable_id("appt_"), department, kind, decision.status.value, start, end), decision

    @property
    def _hours(self) -> OpeningHours:
        return self.seller.hours[self.rooftop]

    def _reject_whole(self, decision: Decision) -> None:
        """Raise when there is nothing to accept: no time, and nothing but a time was asked for (ours)."""
        declined = decision.status is AppointmentStatus.REJECTED
        if self.seller.strict_times:
            declined = declined or decision.status is AppointmentStatus.PROPOSED
        elif any(self.request.business.get(part) for part in ("vehicle_of_interest", "trade_in", "message")):
            declined = False
        if declined:
            raise AAPError(
                "APPOINTMENT_TIME_UNAVAILABLE",
                CODES["APPOINTMENT_TIME_UNAVAILABLE"].message,
                problems=[Problem("/appointment", "availability", "cannot be had as asked for")],
                details={"proposed_times": self._local(decision)} if decision.alternatives else None,
            )

    def _local(self, decision: Decision) -> list[str]:
        zone = self._hours.zone
        assert zone is not None
        return [format_time(moment, zone) for moment in decision.alternatives]

    # The receipt

    def _receipt(self, lead_id: str, booking: Booking | None, decision: Decision | None) -> bytes:
        rooftop = self.seller.rooftop(self.rooftop) or {}
        data: dict[str, Any] = {"lead_id": lead_id, "status": "received"}
        if booking is not None and decision is not None:
            outcome: dict[str, Any] = {"appointment_id": booking.appointment_id, "status": booking.status}
            if booking.start is not None and self._hours.zone is not None:
                outcome["confirmed_at"] = format_time(booking.start, self._hours.zone)
            if decision.alternatives:
                outcome["proposed_times"] = self._local(decision)
            data["appointment"] = outcome
        data["dealer"] = {"name": self.rooftop}
        phone = next((entry["value"] for entry in rooftop.get("phones", ()) if _E164.match(entry["value"])), None)
        if phone is not None:
            data["dealer"]["phone"] = phone
        return _encode({"data": data, "message": self._message(booking, decision)})

    def _message(self, booking: Booking | None, decision: Decision | None) -> str:
        """Return a note for the shopper. It names times and the rooftop, and nothing that the shopper sent."""
        if booking is None or decision is None:
            return f"{self.rooftop} has received the enquiry and will follow up."
        what = booking.kind.replace("_", " ").capitalize()
        if booking.start is not None and self._hours.zone is not None:
            return f"{what} at {self.rooftop} confirmed for {_spoken(booking.start, self._hours)}."
        if decision.alternatives:
            times = "; ".join(_spoken(moment, self._hours) for moment in decision.alternatives)
            return f"The enquiry is received, but that time cannot be had. Open at {self.rooftop}: {times}."
        if decision.status is AppointmentStatus.REJECTED:
            return f"The enquiry is received. {self.rooftop} cannot host this appointment."
        return f"The enquiry is received. {self.rooftop} will follow up to arrange a time."


def _subject(request: LeadRequest, stock: Stock) -> str:
    """Return what a lead is about, for recognising an equivalent one.

    The vehicle, and the appointment where one is asked for: a shopper who asks about a car and an hour later for a
    test drive of it has said something new, and answering "duplicate" would lose it (ours).
    """
    subject = vehicle_key(request.part("vehicle_of_interest"), stock.listing_id)
    appointment = request.part("appointment")
    if appointment is not None:
        subject += f"|{appointment['appointment_type']}|{appointment.get('appointment_at', '')}"
    return subject


def _as_duplicate(receipt: bytes) -> bytes:
    """Return the receipt of an earlier lead as the answer to an equivalent one."""
    first: dict[str, Any] = json.loads(receipt)
    first["data"]["status"] = "duplicate"
    first["message"] = "This enquiry was received before; it is kept once."
    return _encode(first)


def _spoken(moment: datetime, hours: OpeningHours) -> str:
    local = moment.astimezone(hours.zone)
    clock = local.strftime(_TIMES_SHOWN.format(day=local.day, hour=local.hour % 12 or 12))
    return f"{clock} ({hours.zone})"


def _json(value: Mapping[str, Any]) -> bytes:
    """Return compact JSON with the members as they came, and every number as the standard library spells it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
