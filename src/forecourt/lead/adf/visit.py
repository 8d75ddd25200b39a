"""The appointment of a lead in words and times, and the customer's comments that begin with it.

Source: ADF.md, "Rules for the mapping": the time is in the rooftop's own zone, and the zone is named.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

from forecourt.lead.adf.element import Element, branch, leaf
from forecourt.lead.adf.text import written
from forecourt.lead.calendar import AppointmentStatus
from forecourt.lead.moment import format_time, parse_time
from forecourt.store import Booking

__all__ = ["Visit", "customer_comments", "spoken", "stamp"]

_KINDS: Final[Mapping[str, str]] = {
    "sales": "sales visit",
    "service": "service visit",
    "test_drive": "test drive",
    "trade_in": "trade-in appraisal",
}
# Not strftime's names, which follow the locale of the process.
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_OUTCOMES: Final[Mapping[str, str]] = {
    AppointmentStatus.CONFIRMED: "confirmed",
    AppointmentStatus.PROPOSED: "not available; other times were proposed",
    AppointmentStatus.REJECTED: "declined",
    AppointmentStatus.REQUESTED: "to be arranged by the dealership",
}


@dataclass(frozen=True, slots=True, repr=False)
class Visit:
    """The appointment that was asked for, what became of it, and the rooftop's time zone where it is published."""

    appointment: Mapping[str, Any]
    booking: Booking | None
    zone: ZoneInfo | None

    @property
    def status(self) -> str:
        """The outcome; without one the dealership has yet to answer."""
        return self.booking.status if self.booking is not None else AppointmentStatus.REQUESTED

    @property
    def start(self) -> datetime | None:
        """The time that it has, else the one that was asked for."""
        if self.booking is not None and self.booking.start is not None:
            return self.booking.start
        asked = self.appointment.get("appointment_at")
        return None if asked is None else parse_time(asked)

    @property
    def minutes(self) -> int | None:
        """How long it takes, or was asked to take."""
        if self.booking is not None and self.booking.start is not None and self.booking.end is not None:
            return (self.booking.end - self.booking.start) // timedelta(minutes=1)
        asked = self.appointment.get("duration_minutes")
        return None if asked is None or written(asked) is None else int(asked)

    @property
    def words(self) -> str:
        """What kind of appointment it is."""
        return _KINDS[self.appointment["appointment_type"]]

    def sentence(self) -> str:
        """Return the appointment in one sentence."""
        start, minutes = self.start, self.minutes
        when = "no time named" if start is None else spoken(start, self.zone)
        length = "" if minutes is None else f", {minutes} minutes"
        return f"Appointment: {self.words}, {when}{length}: {_OUTCOMES[self.status]}."

    def timeframe(self) -> Element:
        """Return when the shopper comes: the times only as long as they may hold."""
        description = leaf("description", self.words.capitalize())
        start = self.start
        if start is None or self.status in (AppointmentStatus.PROPOSED, AppointmentStatus.REJECTED):
            return branch("timeframe", description)
        dates = [leaf("earliestdate", stamp(start, self.zone))]
        if self.booking is not None and self.booking.end is not None:
            dates.append(leaf("latestdate", stamp(self.booking.end, self.zone)))
        return branch("timeframe", description, *dates)


def customer_comments(visit: Visit | None, message: object, consent: Mapping[str, Any], preferred: object) -> Element:
    """Return the appointment and its notes, then the shopper's message, then the channels that consent allows."""
    lines = []
    if visit is not None:
        lines.append(visit.sentence())
        if (notes := written(visit.appointment.get("notes"))) is not None:
            lines.append(f"Appointment notes: {notes}")
    if (text := written(message)) is not None:
        lines.append(text)
    channels = f"Consent to contact by: {', '.join(consent['allowed_channels'])}."
    lines.append(channels if preferred in (None, "any") else f"{channels} Preferred: {preferred}.")
    return leaf("comments", "\n".join(lines))


def spoken(moment: datetime, zone: tzinfo | None) -> str:
    """Return a time as people say it: Sunday, May 3, 2026 at 11:00 AM PDT (America/Los_Angeles).

    In UTC where the rooftop's zone is not published. The abbreviation tells apart an hour that a clock shows twice.
    """
    local = moment.astimezone(zone or UTC)
    day = f"{_DAYS[local.weekday()]}, {_MONTHS[local.month - 1]} {local.day}, {local.year}"
    clock = f"{local.hour % 12 or 12}:{local.minute:02} {'AM' if local.hour < 12 else 'PM'}"
    named = "UTC" if zone is None else f"{local.tzname()} ({zone})"
    return f"{day} at {clock} {named}"


def stamp(moment: datetime, zone: tzinfo | None) -> str:
    """Return a time to the second in ISO 8601, with the offset of the zone, of UTC without one."""
    return format_time(moment.replace(microsecond=0), zone or UTC)
