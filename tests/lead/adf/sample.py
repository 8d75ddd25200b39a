"""Leads as the demo dealer stores them, one for each thing that ADF has to say differently.

`python -m tests.lead.adf.sample` writes the golden files anew; what changed in them is to be reviewed like code.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from forecourt.demo import DEALER_ID, profile
from forecourt.lead.adf import ADFLead, ADFOptions, to_adf
from forecourt.lead.seller import Seller
from forecourt.store import Booking

SELLER: Final = Seller.from_profile(DEALER_ID, profile())
CALIFORNIA: Final = "Demo Toyota San Francisco"
DENVER: Final = "Demo Motors Denver"
LEAD_ID: Final = "lead_01JT0000000000000000000001"
RECEIVED: Final = datetime(2026, 4, 30, 11, 5, 9, 123456, UTC)
START: Final = datetime(2026, 5, 3, 18, 0, tzinfo=UTC)
END: Final = datetime(2026, 5, 3, 19, 0, tzinfo=UTC)

GOLDEN: Final = Path(__file__).parent / "golden"

CUSTOMER: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "first_name": "Ada",
        "last_name": "Example",
        "email": "ada@example.com",
        "phone": "+14155550123",
        "preferred_contact": "phone",
        "address": {
            "address_line_1": "320 Example Street",
            "address_line_2": "Apt 412",
            "city": "San Francisco",
            "state": "CA",
            "zip": "94107",
        },
    }
)
CONSENT: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "granted_at": "2026-04-30T11:05:00Z",
        "allowed_channels": ["email", "phone"],
        "consent_text": "I let the dealer contact me by email or phone.",
        "scope": ["lead_submission"],
    }
)
AGENT: Final[Mapping[str, Any]] = MappingProxyType({"name": "example-assistant", "url": "https://agent.example.com"})
LISTING: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "vehicle_id": "veh_2611",
        "vin": "1HGCY2F57RA000001",
        "stock": "DT-2611",
        "year": 2024,
        "make": "Honda",
        "model": "CR-V",
        "trim": "EX-L",
        "condition": "used",
        "status": "available",
        "rooftop": CALIFORNIA,
        "msrp": 35450,
        "list_price": 31495,
        "price": 32995,
        "mileage": 14820,
        "body": "suv",
        "transmission": "cvt",
        "exterior_color": "Crystal Black Pearl",
        "interior_color": "Gray Cloth",
        "features": ["Apple CarPlay"],
        "photos": ["https://photos.example.com/2611/1.jpg", "https://photos.example.com/2611/2.jpg"],
    }
)
TRADE_IN: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "year": 2020,
        "make": "Volkswagen",
        "model": "Passat",
        "trim": "SE",
        "condition": "good",
        "mileage": 62000,
        "body": "sedan",
        "transmission": "automatic",
        "exterior_color": "White",
    }
)
VIN: Final[Mapping[str, Any]] = MappingProxyType({"vin": "1HGCY2F57RA000001"})


def business(**parts: Any) -> dict[str, Any]:
    """Return a payload with what is always in one, and these parts; a part that is None is left out."""
    whole = {"customer": CUSTOMER, "consent": CONSENT, "source_agent": AGENT, **parts}
    return {name: part for name, part in whole.items() if part is not None}


def lead(
    payload: Mapping[str, Any],
    *,
    listing: Mapping[str, Any] | None = None,
    booking: Booking | None = None,
    rooftop: str | None = CALIFORNIA,
) -> ADFLead:
    """Return a stored lead."""
    return ADFLead(LEAD_ID, RECEIVED, payload, SELLER, rooftop, listing, booking)


def appointment(kind: str, **more: Any) -> dict[str, Any]:
    """Return what a shopper asks for: noon of the Sunday in Colorado, eleven in California."""
    return {"appointment_type": kind, "appointment_at": "2026-05-03T20:00:00+02:00", **more}


def booking(kind: str, status: str) -> Booking:
    """Return an outcome; only a confirmed one has times."""
    times = (START, END) if status == "confirmed" else (None, None)
    return Booking("appt_1", "service" if kind == "service" else "sales", kind, status, *times)


HOSTILE: Final = (
    ']]></comments></customer><vendor>&xxe; <!-- <!DOCTYPE adf [<!ENTITY a SYSTEM "file:///etc/passwd">]> \'x\' "y"\r\n'
    "Subject: other\r\nBcc: all@example.com\x00\x0b\x1b[31m\ud800\udfff\ufffe\uffff\x85 end"
)

CASES: Final[Mapping[str, tuple[ADFLead, ADFOptions]]] = MappingProxyType(
    {
        "general": (lead(business(message="Do you take older cars in part exchange?")), ADFOptions()),
        "vehicle": (
            lead(
                business(vehicle_of_interest={**VIN, "price": 32500, "model": "CRV"}, message="Is it still there?"),
                listing=LISTING,
            ),
            ADFOptions(),
        ),
        "vehicle-described": (
            lead(
                business(
                    vehicle_of_interest={
                        "year": 2025.0,
                        "make": "Toyota",
                        "model": "RAV4",
                        "condition": "new",
                        "msrp": 34000,
                        "fuel": "hybrid",
                        "features": ["Heated Front Seats", "Tow Hitch"],
                        "notes": "Blue if you have it.",
                    }
                )
            ),
            ADFOptions(),
        ),
        "trade-in": (lead(business(trade_in=TRADE_IN, message="What is it worth?")), ADFOptions()),
        "trade-in-condition-element": (
            lead(business(vehicle_of_interest=VIN, trade_in=TRADE_IN), listing=LISTING),
            ADFOptions(condition_element=True),
        ),
        "vehicle-and-trade-in-resent": (
            lead(
                business(
                    vehicle_of_interest=VIN,
                    trade_in=TRADE_IN,
                    appointment=appointment("test_drive", notes="I bring my partner."),
                    message="I would pay cash.",
                ),
                listing=LISTING,
                booking=booking("test_drive", "confirmed"),
            ),
            ADFOptions(status="resend"),
        ),
        **{
            f"appointment-{kind.replace('_', '-')}-{status}": (
                lead(
                    business(
                        vehicle_of_interest=VIN if kind == "test_drive" else None,
                        trade_in=TRADE_IN if kind == "trade_in" else None,
                        appointment=appointment(kind, duration_minutes=60),
                    ),
                    listing=LISTING if kind == "test_drive" else None,
                    booking=booking(kind, status),
                    rooftop=CALIFORNIA if kind == "test_drive" else DENVER,
                ),
                ADFOptions(),
            )
            for kind in ("sales", "service", "test_drive", "trade_in")
            for status in ("confirmed", "proposed", "requested", "rejected")
        },
        "appointment-without-time": (
            lead(
                business(appointment={"appointment_type": "sales"}),
                booking=booking("sales", "requested"),
            ),
            ADFOptions(),
        ),
        "cpo": (
            lead(business(vehicle_of_interest=VIN), listing={**LISTING, "condition": "cpo"}),
            ADFOptions(),
        ),
        "missing-parts": (
            lead(
                business(
                    customer={
                        "first_name": " ",
                        "last_name": "\x07",
                        "phone": "+14155550123",
                        "preferred_contact": "sms",
                        "address": {"zip": "94107"},
                    },
                    consent={**CONSENT, "allowed_channels": ["sms"]},
                    vehicle_of_interest={"model": "RAV4"},
                    trade_in={},
                    source_agent={"name": "example-assistant"},
                ),
                rooftop="Closed Rooftop",
            ),
            ADFOptions(),
        ),
        "network": (
            lead(business(message="Hello")),
            ADFOptions(brand="Example Network", brand_url="https://network.example.com", source="example.com"),
        ),
        "hostile-text": (
            lead(
                business(
                    customer={**CUSTOMER, "first_name": HOSTILE, "last_name": 'O"Neil & <Söhne>'},
                    vehicle_of_interest={"make": HOSTILE, "model": "</model>"},
                    source_agent={"name": HOSTILE},
                    message=HOSTILE,
                )
            ),
            ADFOptions(),
        ),
        "hostile-text-7-bit": (
            lead(
                business(customer={**CUSTOMER, "last_name": HOSTILE}, message=HOSTILE),
            ),
            ADFOptions(seven_bit=True),
        ),
        "non-latin-names": (
            lead(
                business(
                    customer={
                        **CUSTOMER,
                        "first_name": "Zoë 花子",
                        "last_name": "Łukasiewicz 田中",
                        "preferred_contact": "email",
                    },
                    message="こんにちは 🚗 Здравствуйте مرحبا",
                )
            ),
            ADFOptions(),
        ),
        "non-latin-names-7-bit": (
            lead(
                business(
                    customer={
                        **CUSTOMER,
                        "first_name": "Zoë 花子",
                        "last_name": "Łukasiewicz 田中",
                        "preferred_contact": "any",
                    },
                    message="こんにちは 🚗 Здравствуйте مرحبا",
                )
            ),
            ADFOptions(seven_bit=True),
        ),
    }
)
"""Name of a golden file -> the lead in it, and the options that it was written with."""


def main() -> None:
    """Write every golden file."""
    for name, (stored, options) in CASES.items():
        (GOLDEN / f"{name}.xml").write_bytes(to_adf(stored, options))


if __name__ == "__main__":
    main()
