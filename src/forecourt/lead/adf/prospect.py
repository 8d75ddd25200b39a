"""A stored lead as an ADF document, checked before it leaves. Source: ADF.md."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from forecourt.lead.adf.element import Element, branch, document, leaf
from forecourt.lead.adf.party import customer_contact, provider, vendor
from forecourt.lead.adf.schema import check
from forecourt.lead.adf.text import to_ascii_xml, written
from forecourt.lead.adf.vehicle import vehicle_of_interest, vehicle_to_trade_in
from forecourt.lead.adf.visit import Visit, customer_comments, stamp
from forecourt.lead.hours import DEPARTMENTS
from forecourt.lead.seller import Seller
from forecourt.store import Booking

__all__ = ["ADFError", "ADFLead", "ADFOptions", "to_adf"]

_SOURCE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:/-]{0,63}")


class ADFError(Exception):
    """A lead cannot be written as ADF. `problems` name places and rules of the format, and nothing of the lead."""

    def __init__(self, problems: list[str]) -> None:
        """Keep the problems."""
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class ADFOptions:
    """How a CRM wants its leads.

    `status` is "resend" for a lead that it may have had before: its id stays the same. `seven_bit` is the form for
    email. `condition_element` writes the condition of a trade-in also as the non-standard element. `brand` is the
    network that provides the leads, with the buyer agent as its service; without one the agent is the provider.
    `source` is whose ids they are. Raises ValueError for a source or brand that cannot be written.
    """

    status: Literal["new", "resend"] = "new"
    seven_bit: bool = False
    condition_element: bool = False
    brand: str | None = None
    brand_url: str | None = None
    source: str = "Forecourt"

    def __post_init__(self) -> None:
        """Refuse what no CRM could read."""
        if not _SOURCE.fullmatch(self.source):
            raise ValueError(
                "source must be 1 to 64 ASCII letters, digits, spaces and . _ : / -, a letter or digit first"
            )
        if self.brand is not None and written(self.brand) is None:
            raise ValueError("brand must not be blank")


@dataclass(frozen=True, slots=True)
class ADFLead:
    """A lead as it is stored, with what it refers to.

    `business` is the payload of `LeadRequest`, `listing` the body of the listing that its vehicle was resolved to,
    `booking` the outcome of its appointment, `rooftop` the name of the one that has the lead. Personal: the repr shows
    neither the payload nor anything from it.
    """

    lead_id: str
    received_at: datetime
    business: Mapping[str, Any] = field(repr=False)
    seller: Seller = field(repr=False)
    rooftop: str | None
    listing: Mapping[str, Any] | None = field(default=None, repr=False)
    booking: Booking | None = field(default=None, repr=False)


_DEFAULTS: Final = ADFOptions()


def to_adf(lead: ADFLead, options: ADFOptions = _DEFAULTS) -> bytes:
    """Return the lead as an ADF 1.0 document, in UTF-8 or in the 7-bit form.

    The same lead and options give the same bytes. Raises ADFError when the document does not pass `check`; the lead
    is then still there to be kept and shown.
    """
    xml = document(branch("adf", _prospect(lead, options)))
    if options.seven_bit:
        xml = to_ascii_xml(xml)
    problems = check(xml, condition_element=options.condition_element)
    if problems:
        raise ADFError(problems)
    return xml


def _prospect(lead: ADFLead, options: ADFOptions) -> Element:
    business, seller = lead.business, lead.seller
    hours = seller.hours.get(lead.rooftop) if lead.rooftop is not None else None
    zone = hours.zone if hours is not None else None
    appointment = business.get("appointment")
    visit = None if appointment is None else Visit(appointment, lead.booking, zone)
    department = "sales" if appointment is None else DEPARTMENTS[appointment["appointment_type"]]
    return branch(
        "prospect",
        leaf("id", lead.lead_id, sequence="1", source=options.source),
        leaf("requestdate", stamp(lead.received_at, zone)),
        *_vehicles(lead, options),
        branch(
            "customer",
            customer_contact(business["customer"]),
            *(() if visit is None else (visit.timeframe(),)),
            customer_comments(
                visit, business.get("message"), business["consent"], business["customer"].get("preferred_contact")
            ),
        ),
        vendor(seller.profile, seller.rooftop(lead.rooftop), lead.rooftop, department, options.source),
        provider(business["source_agent"], options.brand, options.brand_url),
        status=options.status,
    )


def _vehicles(lead: ADFLead, options: ADFOptions) -> list[Element]:
    """Return the vehicle of interest, then the trade-in; a placeholder where the lead has neither."""
    wanted, traded = lead.business.get("vehicle_of_interest"), lead.business.get("trade_in")
    appointment = lead.business.get("appointment") or {}
    vehicles = []
    if wanted is not None or lead.listing is not None or traded is None:
        interest = "test-drive" if appointment.get("appointment_type") == "test_drive" else "buy"
        vehicles.append(vehicle_of_interest(wanted, lead.listing, interest, options.source))
    if traded is not None:
        vehicles.append(vehicle_to_trade_in(traded, options.source, condition_element=options.condition_element))
    return vehicles
