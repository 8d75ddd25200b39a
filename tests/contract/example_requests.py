"""One good request for each skill ("JSON-RPC 2.0 binding"), and contracts over an offer to read them with."""

import copy
from typing import Any, Final

from forecourt.contract import Contract, Offer, contract_class
from forecourt.model import FLAG_FILTERS, MAX_FILTERS, MIN_FILTERS, SORT_FIELDS, TERM_FILTERS, Capabilities

__all__ = ["FEATURES", "FILTERS", "VERSIONS", "contract", "lead", "request"]

VERSIONS: Final = ("1.1", "3.1")

FEATURES: Final = ("apple_carplay", "heated_seats", "sunroof")
"""The vocabulary of these tests."""

FILTERS: Final = (
    *TERM_FILTERS, *MIN_FILTERS, *MAX_FILTERS, *FLAG_FILTERS, "vin", "stock", "features_all", "features_any",
    "features_none",
)  # fmt: skip

_REQUESTS: Final[dict[str, dict[str, Any]]] = {
    "dealer.information": {"type": "dealer.information.request"},
    "inventory.facets": {"type": "inventory.facets.request", "filters": {"condition": ["used"]}},
    "inventory.search": {
        "type": "inventory.search.request",
        "filters": {"make": ["Honda"], "condition": ["used", "cpo"], "year_min": 2020, "price_max": 30000},
        "pagination": {"limit": 20},
        "sort": {"field": "price", "order": "asc"},
        "privacy": {"anonymous": True},
    },
    "inventory.vehicle": {"type": "inventory.vehicle.request", "vin": "1HGCY2F57RA000001"},
    "lead.submit": {
        "type": "lead.submit.request",
        "customer": {
            "first_name": "Anna",
            "last_name": "Lee",
            "email": "anna@example.com",
            "phone": "+14155550123",
            "preferred_contact": "phone",
        },
        "consent": {
            "granted_at": "2026-04-30T10:16:00Z",
            "allowed_channels": ["email", "phone"],
            "consent_text": "I agree to share my contact details with the dealer.",
            "scope": ["lead_submission"],
        },
        "vehicle_of_interest": {"vin": "1HGCY2F57RA000001", "condition": "cpo"},
        "trade_in": {"year": 2014, "make": "Toyota", "model": "Corolla", "condition": "good", "mileage": 96000},
        "appointment": {
            "appointment_type": "test_drive",
            "appointment_at": "2026-05-02T17:00:00Z",
            "duration_minutes": 60,
        },
        "message": "Is it still available?",
        "source_agent": {"name": "shopping-assistant", "url": "https://assistant.example.com"},
        "submitted_at": "2026-04-30T10:16:05Z",
    },
}


def request(skill: str, **changes: Any) -> dict[str, Any]:
    """Return a fresh request that both contracts accept, with members replaced."""
    return {**copy.deepcopy(_REQUESTS[skill]), **changes}


def lead(**changes: Any) -> dict[str, Any]:
    """Return a lead with members replaced; None leaves one out."""
    changed = request("lead.submit", **changes)
    return {name: value for name, value in changed.items() if value is not None}


def contract(version: str, **offered: Any) -> Contract:
    """Return a contract over an offer of everything, or of what is said instead."""
    capabilities = Capabilities(
        filters=offered.get("filters", FILTERS),
        feature_codes=offered.get("feature_codes", FEATURES),
        sort_fields=offered.get("sort_fields", SORT_FIELDS),
        free_text=offered.get("free_text", True),
    )
    return contract_class(version)(Offer(capabilities, frozenset(FEATURES)))
