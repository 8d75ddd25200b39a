"""A confirmed appointment as an iCalendar object, for the calendar of whoever reads the notice.

Sources: RFC 5545 (the format), RFC 5546 (PUBLISH and CANCEL).
"""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from forecourt.lead.adf import ADFLead
from forecourt.lead.adf.text import clean, written
from forecourt.lead.delivery.notice import customer_name, notice, vehicle_words, visit_of
from forecourt.lead.hours import DEPARTMENTS

__all__ = ["LONGEST_LINE", "invitation"]

LONGEST_LINE: Final = 75
"""Octets of a line without its end (RFC 5545 section 3.1)."""

_NAMESPACE: Final = uuid.UUID("5f0f7a0e-7a58-4f6e-8f0c-3d1f0a6f9b52")
"""Of the names of rooftops that have no address of their own; any value does that never changes."""
_ESCAPES: Final = str.maketrans({"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n"})
_FORBIDDEN: Final = dict.fromkeys((*range(9), *range(11, 32), 127))
_QUOTED: Final = str.maketrans({'"': "'", "\n": " "})


def invitation(lead: ADFLead, *, stamped: datetime, sequence: int = 0, cancelled: bool = False) -> bytes:
    """Return the calendar object of a lead's appointment: METHOD:PUBLISH, or METHOD:CANCEL to take it back.

    It tells and asks for no answer: nobody would read the replies that METHOD:REQUEST invites. Its UID is the
    appointment's id, so that a later one with a higher `sequence` replaces it; `stamped` is when this one was made.
    Times are in UTC. The same arguments give the same bytes.

    Raises ValueError for a lead whose appointment has no times: only a confirmed one has.
    """
    visit, booking = visit_of(lead), lead.booking
    if visit is None or booking is None or booking.start is None or booking.end is None:
        raise ValueError("only an appointment with its times goes into a calendar")
    name = customer_name(lead)
    summary = visit.words.capitalize() + (f": {name}" if name else "")
    vehicle = vehicle_words(lead.business.get("vehicle_of_interest"), lead.listing)
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Forecourt//Leads//EN",
        "CALSCALE:GREGORIAN",
        f"METHOD:{'CANCEL' if cancelled else 'PUBLISH'}",
        "BEGIN:VEVENT",
        f"UID:{_text(booking.appointment_id)}",
        f"DTSTAMP:{_time(stamped)}",
        f"DTSTART:{_time(booking.start)}",
        f"DTEND:{_time(booking.end)}",
        f"SEQUENCE:{sequence}",
        f"STATUS:{'CANCELLED' if cancelled else 'CONFIRMED'}",
        "TRANSP:OPAQUE",
        "CLASS:PRIVATE",
        _organizer(lead),
        f"SUMMARY:{_text(summary if vehicle is None else f'{summary} ({vehicle})')}",
        f"LOCATION:{_text(_place(lead))}",
        f"DESCRIPTION:{_text(notice(lead).decode())}",
        "END:VEVENT",
        "END:VCALENDAR",
    ]
    return b"".join(part + b"\r\n" for line in lines for part in _folded(line.encode("utf-8", "replace")))


def _organizer(lead: ADFLead) -> str:
    """Return who gives the appointment, which RFC 5546 section 3.2 requires: the rooftop, by email if it has one."""
    rooftop = lead.seller.rooftop(lead.rooftop) or {}
    department = DEPARTMENTS[lead.business["appointment"]["appointment_type"]]
    emails = [
        (entry.get("name"), value) for entry in rooftop.get("emails") or () if (value := written(entry.get("value")))
    ]
    own = [value for name, value in emails if (written(name) or "").strip().casefold() == department]
    address = next(iter(own or [value for _, value in emails]), None)
    name = clean(lead.rooftop or "").translate(_FORBIDDEN).translate(_QUOTED).strip()
    shown = f';CN="{name}"' if name else ""
    if address is not None and address.isascii() and not any(letter.isspace() for letter in address):
        return f"ORGANIZER{shown}:mailto:{address.translate(_FORBIDDEN)}"
    own_id = uuid.uuid5(_NAMESPACE, f"{lead.seller.dealer_id}\n{lead.rooftop}")
    return f"ORGANIZER{shown}:urn:uuid:{own_id}"


def _place(lead: ADFLead) -> str:
    address = (lead.seller.rooftop(lead.rooftop) or {}).get("address") or {}
    members = ("address_line_1", "address_line_2", "city", "state", "zip", "country")
    parts = [lead.rooftop, *(address.get(member) for member in members)]
    return ", ".join(text for part in parts if (text := written(part)) is not None)


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _text(value: str) -> str:
    r"""Return a value of type TEXT (RFC 5545 section 3.3.11): no control characters, line ends as \n, marks escaped."""
    return clean(value).translate(_FORBIDDEN).translate(_ESCAPES)


def _folded(line: bytes) -> Iterator[bytes]:
    """Yield a content line in pieces of at most `LONGEST_LINE` octets, each after the first behind a space.

    No character is torn apart: the format allows it, and readers that unfold after decoding lose it.
    """
    first = True
    while line:
        room = LONGEST_LINE if first else LONGEST_LINE - 1
        end = min(room, len(line))
        while end < len(line) and line[end] & 0xC0 == 0x80:
            end -= 1
        yield line[:end] if first else b" " + line[:end]
        line, first = line[end:], False
