"""The vehicles of a lead: the one of interest, the one to trade in, at most one of each.

Source: ADF.md, "Rules for the mapping".
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from forecourt.lead.adf.element import UNKNOWN, Element, branch, leaf, optional
from forecourt.lead.adf.text import written

__all__ = ["UNKNOWN_YEAR", "vehicle_of_interest", "vehicle_to_trade_in"]

UNKNOWN_YEAR: Final = "0"
"""The year of a vehicle whose year is not known: a number, since many CRMs read one here (ours)."""

_DESCRIBED: Final = ("year", "make", "model", "trim")
_STATUS: Final[Mapping[object, str]] = {"new": "new", "used": "used", "cpo": "used"}
_PRICES: Final = (("price", "asking"), ("list_price", "asking"), ("msrp", "msrp"))
_SAID_PRICES: Final = (("price", "quote"), ("list_price", "quote"), ("msrp", "msrp"))
_REMARKS: Final = (
    ("Engine", "engine"),
    ("Fuel", "fuel"),
    ("Drive", "driveline"),
    ("Features", "features"),
    ("Description", "description"),
    ("Notes", "notes"),
)


def vehicle_of_interest(
    vehicle: Mapping[str, Any] | None, listing: Mapping[str, Any] | None, interest: str, source: str
) -> Element:
    """Return the vehicle that the shopper asks about.

    Year, make, model and trim are the shopper's words, completed from the `listing` that they were resolved to; of
    everything else the listing knows better. Without either it is a neutral placeholder, since ADF requires a vehicle.
    The status attribute is left out where nobody said whether the vehicle is new.
    """
    said, found = vehicle or {}, listing or {}
    known = {**_present(said), **_present(found)}
    known |= {member: said[member] for member in _DESCRIBED if member in _present(said)}
    remarks = _remarks(said)
    if not known:
        remarks.append("No particular vehicle.")
    if known.get("condition") == "cpo":
        remarks.insert(0, "certified pre-owned")
    status = _STATUS.get(known.get("condition"))
    attributes = {"interest": interest} | ({"status": status} if status else {})
    return branch(
        "vehicle",
        *_body(known, source),
        *_price(said, found),
        *_comments(remarks),
        **attributes,
    )


def vehicle_to_trade_in(vehicle: Mapping[str, Any], source: str, *, condition_element: bool) -> Element:
    """Return the vehicle that the shopper brings: used, with its condition in the comments.

    `condition_element` also writes the non-standard element.
    """
    known = _present(vehicle)
    condition = written(known.get("condition"))
    remarks = ([f"Condition: {condition}"] if condition else []) + _remarks(vehicle)
    return branch(
        "vehicle",
        *_body(known, source, condition if condition_element else None),
        *_price_element(known, _PRICES),
        *_comments(remarks),
        interest="trade-in",
        status="used",
    )


def _present(vehicle: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that say something."""
    return {member: value for member, value in vehicle.items() if _list(value) or written(value) is not None}


def _body(known: Mapping[str, Any], source: str, condition: str | None = None) -> list[Element]:
    """Return what stands before the price, in ADF's order."""
    photo = next(iter(_list(known.get("photos"))), None)
    colors = (
        *optional("interiorcolor", known.get("interior_color")),
        *optional("exteriorcolor", known.get("exterior_color")),
    )
    return [
        *optional("id", known.get("vehicle_id"), sequence="1", source=source),
        leaf("year", _number(known.get("year")) or UNKNOWN_YEAR),
        leaf("make", written(known.get("make")) or UNKNOWN),
        leaf("model", written(known.get("model")) or UNKNOWN),
        *optional("vin", known.get("vin")),
        *optional("stock", known.get("stock")),
        *optional("trim", known.get("trim")),
        *optional("doors", _number(known.get("doors"))),
        *optional("bodystyle", known.get("body")),
        *optional("transmission", known.get("transmission")),
        *optional("odometer", _number(known.get("mileage")), units="mi"),
        *optional("condition", condition),
        *((branch("colorcombination", *colors),) if colors else ()),
        *optional("imagetag", photo),
    ]


def _price(said: Mapping[str, Any], found: Mapping[str, Any]) -> list[Element]:
    """Return the dealer's price, or without one what the shopper was told; both where they differ."""
    asked, told = _price_element(found, _PRICES), _price_element(said, _SAID_PRICES)
    if not asked:
        return told
    price = _number(said.get("price"))
    if price is None or price == asked[0].content:
        return asked
    return [*asked, leaf("pricecomments", f"The shopper was told {price} USD.")]


def _price_element(vehicle: Mapping[str, Any], types: Sequence[tuple[str, str]]) -> list[Element]:
    for member, kind in types:
        amount = _number(vehicle.get(member))
        if amount is not None:
            return [leaf("price", amount, type=kind, currency="USD")]
    return []


def _remarks(said: Mapping[str, Any]) -> list[str]:
    """Return what the shopper said about the vehicle and ADF has no element for."""
    remarks = []
    for label, member in _REMARKS:
        value = said.get(member)
        texts = [text for entry in (_list(value) or [value]) if (text := written(entry)) is not None]
        if texts:
            remarks.append(f"{label}: {', '.join(texts)}")
    return remarks


def _comments(remarks: Sequence[str]) -> tuple[Element, ...]:
    return optional("comments", "\n".join(remarks))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _number(value: object) -> str | None:
    """Return a whole number from 0 on as text."""
    text = written(value) if isinstance(value, int | float) else None
    return text if text is not None and text.isdecimal() else None
