"""What a dealer says of a lead and of its appointment, recorded with its time and told to who wants events of it.

Source: AAP 1.1, event.schema.json, which has the words; "cancelled" is ours (decision 0027).
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from forecourt.lead.delivery.event import EVENT_STATUSES
from forecourt.lead.moment import parse_time
from forecourt.lead.outbox import CANCELLED, Dispatch, opened
from forecourt.lead.seller import Seller
from forecourt.store import LeadRecord, NewStatus, StatusChange, Store

__all__ = ["APPOINTMENT_STATUSES", "LEAD_STATUSES", "StatusError", "change_status"]

LEAD_STATUSES: Final = EVENT_STATUSES["lead.status_changed"]
APPOINTMENT_STATUSES: Final = (*EVENT_STATUSES["appointment.status_changed"], CANCELLED)

_CONFIRMED: Final = "confirmed"


class StatusError(ValueError):
    """A status that this lead cannot be given. The message says why, and nothing of the shopper."""


async def change_status(
    store: Store,
    dispatch: Dispatch,
    seller: Seller,
    record: LeadRecord,
    *,
    lead: str | None = None,
    appointment: str | None = None,
    at: datetime | None = None,
    now: datetime,
) -> Sequence[StatusChange]:
    """Give a lead, its appointment or both a status, and return what has changed by it: nothing that was so before.

    An appointment that is confirmed holds its slot from then on: at its time, else `at`, else the time that the
    shopper asked for. It is the dealer who confirms, so the slot may be taken already. One that is anything else
    frees its slot. Raises StatusError, SealError and StoreError.
    """
    if lead is not None and lead not in LEAD_STATUSES:
        raise StatusError(f"a lead is one of {', '.join(LEAD_STATUSES)}")
    if appointment is not None and appointment not in APPOINTMENT_STATUSES:
        raise StatusError(f"an appointment is one of {', '.join(APPOINTMENT_STATUSES)}")
    start = end = None
    if appointment is not None:
        if record.booking is None:
            raise StatusError("this lead asks for no appointment")
        if appointment == _CONFIRMED:
            start, end = _span(record, seller, dispatch, at)
    wanted = NewStatus(lead, appointment, start, end)
    changes = await store.change_status(
        record.lead_id, wanted, now, lambda changed: dispatch.of_changes(record, changed, start)
    )
    if changes:
        dispatch.wake()
    return changes


def _span(record: LeadRecord, seller: Seller, dispatch: Dispatch, at: datetime | None) -> tuple[datetime, datetime]:
    booking = record.booking
    assert booking is not None
    if at is None and booking.start is not None and booking.end is not None:
        return booking.start, booking.end
    business, _ = opened(record, dispatch.sealer)
    asked: dict[str, Any] = (business or {}).get("appointment") or {}
    if at is None:
        if "appointment_at" not in asked:
            raise StatusError("the shopper named no time; say at which time it is confirmed")
        at = parse_time(asked["appointment_at"])
    minutes = asked.get("duration_minutes") or seller.rules.minutes_for(booking.kind)
    return at, at + timedelta(minutes=float(minutes))
