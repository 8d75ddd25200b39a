"""A lead in plain words, for the people of a rooftop who have no CRM, or read email first."""

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final

from forecourt.lead.adf import ADFLead
from forecourt.lead.adf.text import written
from forecourt.lead.adf.visit import Visit, spoken

__all__ = ["customer_name", "notice", "vehicle_words", "visit_of"]

_LONGEST: Final = 500
"""Characters of one line of a notice at most; only the message is longer."""
_WIDTH: Final = 12
_JOINERS: Final = "\u200c\u200d"
_ADDRESS: Final = ("address_line_1", "address_line_2", "city", "state", "zip", "country")
_SPOKEN: Final = ("year", "make", "model", "trim")


def notice(lead: ADFLead) -> bytes:
    r"""Return the lead as plain text in UTF-8, with ``\n`` at the ends of lines. Times are in the rooftop's zone.

    What a shopper sent stands behind our labels and cannot begin a line of its own; the message is indented. The same
    lead gives the same bytes.
    """
    parts = ["\n".join(_facts(lead))]
    for heading, text in _texts(lead):
        lines = "\n".join(f"  {line}".rstrip() for line in text.split("\n"))
        parts.append(f"{heading}:\n{lines}")
    parts.append("\n".join(_origin(lead)))
    return ("\n\n".join(parts) + "\n").encode("utf-8", "replace")


def customer_name(lead: ADFLead) -> str | None:
    """Return the shopper's first and last name in one line, None where neither says anything."""
    customer = lead.business["customer"]
    names = [name for member in ("first_name", "last_name") if (name := _line(customer.get(member)))]
    return " ".join(names) or None


def vehicle_words(vehicle: Mapping[str, Any] | None, listing: Mapping[str, Any] | None = None) -> str | None:
    """Return a vehicle in one line: year, make, model and trim as the shopper said, completed from the listing."""
    said, found = vehicle or {}, listing or {}
    words = [text for member in _SPOKEN if (text := _line(said.get(member)) or _line(found.get(member)))]
    marks = [
        f"{label} {text}"
        for label, member in (("VIN", "vin"), ("stock", "stock"))
        if (text := _line(found.get(member)) or _line(said.get(member)))
    ]
    return ", ".join([" ".join(words), *marks] if words else marks) or None


def visit_of(lead: ADFLead) -> Visit | None:
    """Return the appointment of a lead in its rooftop's time zone, None for a lead without one."""
    appointment = lead.business.get("appointment")
    hours = lead.seller.hours.get(lead.rooftop) if lead.rooftop is not None else None
    return None if appointment is None else Visit(appointment, lead.booking, hours.zone if hours else None)


def _facts(lead: ADFLead) -> Iterator[str]:
    customer = lead.business["customer"]
    yield f"New lead for {_line(lead.rooftop) or _line(lead.seller.profile.get('name')) or 'the dealership'}"
    yield ""
    visit = visit_of(lead)
    address = [text for member in _ADDRESS if (text := _line((customer.get("address") or {}).get(member)))]
    preferred = customer.get("preferred_contact")
    channels = ", ".join(lead.business["consent"]["allowed_channels"])
    yield from _labelled("Name", customer_name(lead))
    yield from _labelled("Email", customer.get("email"))
    yield from _labelled("Phone", customer.get("phone"))
    yield from _labelled("Address", ", ".join(address))
    yield from _labelled("Contact by", channels if preferred in (None, "any") else f"{channels} (prefers {preferred})")
    yield from _labelled("Vehicle", vehicle_words(lead.business.get("vehicle_of_interest"), lead.listing))
    traded = lead.business.get("trade_in")
    if traded is not None:
        yield from _labelled("Trade-in", vehicle_words(traded) or "not described")
        mileage, condition = _line(traded.get("mileage")), _line(traded.get("condition"))
        about = ", ".join(
            [*([f"{mileage} miles"] if mileage else []), *([f"{condition} condition"] if condition else [])]
        )
        yield from _labelled("", about)
    if visit is not None:
        yield from _labelled("Appointment", visit.sentence().removeprefix("Appointment: "))


def _texts(lead: ADFLead) -> Iterator[tuple[str, str]]:
    for heading, value in (
        ("Appointment notes", (lead.business.get("appointment") or {}).get("notes")),
        ("Notes on the vehicle", (lead.business.get("vehicle_of_interest") or {}).get("notes")),
        ("Notes on the trade-in", (lead.business.get("trade_in") or {}).get("notes")),
        ("Message", lead.business.get("message")),
    ):
        if (text := written(value)) is not None:
            yield heading, _shown(text)


def _origin(lead: ADFLead) -> Iterator[str]:
    hours = lead.seller.hours.get(lead.rooftop) if lead.rooftop is not None else None
    agent = lead.business["source_agent"]
    said = [text for member in ("name", "url") if (text := _line(agent.get(member)))]
    yield from _labelled("Sent by", ", ".join(said))
    yield from _labelled("Received", spoken(lead.received_at, hours.zone if hours else None))
    yield from _labelled("Lead", lead.lead_id)


def _labelled(label: str, value: object) -> Iterator[str]:
    if (text := _line(value)) is not None:
        yield f"{label + ':' if label else '':{_WIDTH}} {text}"


def _line(value: object) -> str | None:
    """Return a value in one line, without what turns text around or hides in it; None where nothing is left."""
    text = written(value)
    if text is None:
        return None
    kept = "".join(letter if _harmless(letter) else " " for letter in text)
    line = " ".join(kept.split())
    return (line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…") or None


def _shown(text: str) -> str:
    """Return a longer text with its lines, without what controls."""
    lines = ("".join(letter for letter in line if letter in "\t " or _harmless(letter)) for line in text.splitlines())
    return "\n".join(lines)


def _harmless(letter: str) -> bool:
    """Tell whether a letter is one that is seen, or one of the joiners that Persian and some emoji are written with."""
    return letter in _JOINERS or unicodedata.category(letter)[0] not in "CZ"
