"""The five skills of AAP: their names, their payload types and media types, and where their schemas are.

Source: "JSON-RPC 2.0 binding", sections "Generic envelope" and the five that follow; official 1.1 `skills.yaml`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from forecourt.model import (
    DealerInformationRequest,
    FacetsRequest,
    LeadRequest,
    Request,
    SearchRequest,
    VehicleRequest,
)


@dataclass(frozen=True)
class Skill:
    """One skill. `stem` names its schemas and media types; it differs from the id for `inventory.vehicle`."""

    id: str
    stem: str
    name: str
    description: str
    tags: tuple[str, ...]
    request: type[Request]
    writes: bool = False

    @cached_property
    def request_type(self) -> str:
        """The `type` of a request, for example inventory.search.request."""
        return f"{self.id}.request"

    @cached_property
    def response_type(self) -> str:
        """The `type` of a response."""
        return f"{self.id}.response"

    @cached_property
    def request_media_type(self) -> str:
        """The media type of a request part."""
        return f"application/vnd.autoagent.{self.stem}-request+json"

    @cached_property
    def response_media_type(self) -> str:
        """The media type of a response part."""
        return f"application/vnd.autoagent.{self.stem}-response+json"

    @cached_property
    def request_schema(self) -> str:
        """The file name of the request's schema."""
        return f"{self.stem}-request.schema.json"

    @cached_property
    def response_schema(self) -> str:
        """The file name of the response's schema."""
        return f"{self.stem}-response.schema.json"


SKILLS: Final[Mapping[str, Skill]] = {
    skill.id: skill
    for skill in (
        Skill(
            "dealer.information",
            "dealer-information",
            "Dealer information",
            "The dealership's public profile: its rooftops with addresses, opening hours, time zones, contacts and"
            " services.",
            ("dealer", "profile", "hours", "contact", "automotive"),
            DealerInformationRequest,
        ),
        Skill(
            "inventory.facets",
            "inventory-facets",
            "Inventory facets",
            "What the stock is made of: counts per make, model, year, condition and more, and the ranges of price,"
            " mileage and year, for all of it or for a filtered part.",
            ("inventory", "facets", "counts", "automotive"),
            FacetsRequest,
        ),
        Skill(
            "inventory.search",
            "inventory-search",
            "Inventory search",
            "Find vehicles in stock by make, model, price, mileage, features, free text and more; sorted and paged.",
            ("inventory", "search", "vehicles", "automotive"),
            SearchRequest,
        ),
        Skill(
            "inventory.vehicle",
            "vehicle-detail",
            "Vehicle detail",
            "One listing in full, by VIN, stock number or vehicle_id, with its price, status and freshness.",
            ("inventory", "vehicle", "vin", "automotive"),
            VehicleRequest,
        ),
        Skill(
            "lead.submit",
            "lead-submit",
            "Submit a lead",
            "Hand the dealership a shopper's enquiry, with the shopper's consent, and any of a vehicle of interest, a"
            " trade-in and an appointment.",
            ("lead", "consent", "appointment", "automotive"),
            LeadRequest,
            writes=True,
        ),
    )
}
"""The skills by id, in the order in which they are published."""
