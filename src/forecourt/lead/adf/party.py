"""The people and companies of a lead: the shopper, the selling rooftop, and who brings them together.

Source: ADF.md, "Rules for the mapping".
"""

from collections.abc import Mapping
from typing import Any, Final

from forecourt.lead.adf.element import UNKNOWN, Element, branch, leaf, optional
from forecourt.lead.adf.text import written

__all__ = ["customer_contact", "provider", "vendor"]

_COUNTRY: Final = "US"


def customer_contact(customer: Mapping[str, Any]) -> Element:
    """Return the shopper's contact: first and last name apart, email, phone, address.

    A shopper who prefers text messages has a cellphone. ADF marks a preference on phones alone.
    """
    preferred = customer.get("preferred_contact")
    names = (
        *optional("name", customer.get("first_name"), part="first", type="individual"),
        *optional("name", customer.get("last_name"), part="last", type="individual"),
    )
    return branch(
        "contact",
        *(names or (leaf("name", UNKNOWN, part="full", type="individual"),)),
        *optional("email", customer.get("email")),
        *optional(
            "phone",
            customer.get("phone"),
            type="cellphone" if preferred == "sms" else "voice",
            preferredcontact="1" if preferred in ("phone", "sms") else "0",
        ),
        *_address(customer.get("address")),
    )


def vendor(
    profile: Mapping[str, Any], rooftop: Mapping[str, Any] | None, name: str | None, department: str, source: str
) -> Element:
    """Return the selling rooftop with its own contact.

    Its email and phone are the ones of the `department`, else its first. `name` is the rooftop's as the lead has it;
    a rooftop that the seller no longer has is named and has no more to say.
    """
    known = rooftop or {}
    called = written(name) or written(profile.get("name")) or UNKNOWN
    return branch(
        "vendor",
        *optional("id", profile.get("dealer_id"), sequence="1", source=source),
        leaf("vendorname", called),
        *optional("url", known.get("website")),
        branch(
            "contact",
            leaf("name", called, part="full", type="business"),
            *optional("email", _channel(known.get("emails"), department)),
            *optional("phone", _channel(known.get("phones"), department), type="voice"),
            *_address(known.get("address")),
        ),
    )


def provider(agent: Mapping[str, Any], brand: str | None, brand_url: str | None) -> Element:
    """Return the buyer agent, or a network's `brand` with the agent as its service."""
    name = written(agent.get("name")) or UNKNOWN
    if brand is None:
        return branch("provider", leaf("name", name, part="full", type="business"), *optional("url", agent.get("url")))
    return branch(
        "provider",
        leaf("name", brand, part="full", type="business"),
        leaf("service", name),
        *optional("url", brand_url),
    )


def _address(address: Mapping[str, Any] | None) -> tuple[Element, ...]:
    """Return an address where anything of one is given; its second line is a second line of street."""
    known = {member: text for member, value in (address or {}).items() if (text := written(value)) is not None}
    if not known:
        return ()
    lines = [known[member] for member in ("address_line_1", "address_line_2") if member in known]
    return (
        branch(
            "address",
            *(leaf("street", line, line=str(number)) for number, line in enumerate(lines, 1)),
            *optional("city", known.get("city")),
            *optional("regioncode", known.get("state")),
            *optional("postalcode", known.get("zip")),
            leaf("country", known.get("country", _COUNTRY)),
        ),
    )


def _channel(entries: list[Mapping[str, Any]] | None, department: str) -> str | None:
    """Return the value of a department's entry, else of the first; entries without a value do not count."""
    values = [
        (written(entry.get("name")) or "", value) for entry in entries or () if (value := written(entry["value"]))
    ]
    own = [value for name, value in values if name.strip().casefold() == department]
    return next(iter(own or [value for _, value in values]), None)
