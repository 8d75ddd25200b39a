"""Where an MCP endpoint stands: whose it is, and what is to be read there besides tools."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from forecourt.binding.mcp.icon import icon
from forecourt.contract import Contract

__all__ = ["CAPABILITIES_URI", "DEALERS_URI", "PROFILE_URI", "VOCABULARY_URI", "Place", "Resources"]

CAPABILITIES_URI: Final = "aap://search/capabilities"
VOCABULARY_URI: Final = "aap://features/vocabulary"
PROFILE_URI: Final = "aap://dealer/profile"
DEALERS_URI: Final = "aap://dealers"
_DEALER: Final = "aap://dealers/{dealer_id}/profile"

_JSON: Final = "application/json"
_LONGEST_ID: Final = 128


@dataclass(frozen=True)
class Place:
    """One endpoint's surroundings: the name of whose it is, its sellers' names by dealer id, what gives the label of a
    feature code, and the version of the software."""

    name: str
    sellers: Mapping[str, str]
    label: Callable[[str], str]
    version: str

    def implementation(self) -> dict[str, Any]:
        """Return what MCP calls serverInfo."""
        return {
            "name": "forecourt",
            "title": self.name,
            "version": self.version,
            "description": f"Dealer agent of {self.name}: stock, rooftops, and leads with the shopper's consent.",
            "websiteUrl": "https://autoagentprotocol.org/",
            "icons": [icon("car")],
        }


class Resources:
    """What can be read at a place under a contract. The dealer's profile is not here: a skill gives it."""

    def __init__(self, contract: Contract, place: Place) -> None:
        self._contract = contract
        self._place = place
        request = contract.schemas.inlined(contract.skills["inventory.search"].request_schema)["properties"]
        self._filters = request["filters"]["properties"]
        self._sorts = request["sort"]["properties"]["field"].get("enum")
        self._names_sellers = "dealer_id" in request

    def listed(self) -> list[dict[str, Any]]:
        """Return what `resources/list` shows."""
        shown = [
            _resource(
                CAPABILITIES_URI,
                "search_capabilities",
                "What can be searched by",
                "The filters, sort fields, feature codes and page lengths that this dealer offers.",
            )
        ]
        if self._has_features:
            shown.append(
                _resource(
                    VOCABULARY_URI,
                    "feature_vocabulary",
                    "Feature codes",
                    "Every feature code that can be filtered by, with its meaning in words.",
                )
            )
        if len(self._place.sellers) == 1:
            shown.append(
                _resource(
                    PROFILE_URI,
                    "dealer_profile",
                    "Dealer profile",
                    "The dealership's rooftops with addresses, opening hours and contacts.",
                )
            )
        elif self._names_sellers:
            shown.append(_resource(DEALERS_URI, "dealers", "Dealers", "The sellers that answer here, by dealer_id."))
        return shown

    def templates(self) -> list[dict[str, Any]]:
        """Return what `resources/templates/list` shows."""
        if len(self._place.sellers) == 1 or not self._names_sellers:
            return []
        return [
            {
                "uriTemplate": _DEALER,
                "name": "dealer_profile",
                "title": "Dealer profile",
                "description": "One seller's rooftops with addresses, opening hours and contacts.",
                "mimeType": _JSON,
            }
        ]

    def content(self, uri: str) -> Any:
        """Return the JSON that stands at a URI, None when there is nothing, or when a skill has to be asked."""
        if uri == CAPABILITIES_URI:
            return self._capabilities()
        if uri == VOCABULARY_URI and self._has_features:
            codes = self._contract.offer.capabilities.feature_codes
            return {"features": [{"code": code, "label": self._place.label(code)} for code in codes]}
        if uri == DEALERS_URI and len(self._place.sellers) != 1 and self._names_sellers:
            return {"dealers": [{"dealer_id": id, "name": name} for id, name in self._place.sellers.items()]}  # noqa: A001
        return None

    def request(self, uri: str) -> dict[str, Any] | None:
        """Return the skill's request whose response is what stands at a URI, None when there is none."""
        skill = self._contract.skills["dealer.information"]
        if len(self._place.sellers) == 1:
            return {"type": skill.request_type} if uri == PROFILE_URI else None
        before, _, after = _DEALER.partition("{dealer_id}")
        dealer_id = uri[len(before) : -len(after)]
        if not self._names_sellers or uri != f"{before}{dealer_id}{after}" or not 0 < len(dealer_id) <= _LONGEST_ID:
            return None
        return {"type": skill.request_type, "dealer_id": dealer_id} if dealer_id in self._place.sellers else None

    @property
    def _has_features(self) -> bool:
        return "features_all" in self._filters and bool(self._contract.offer.capabilities.feature_codes)

    def _capabilities(self) -> dict[str, Any]:
        """Return the published capabilities, as far as the contract knows them."""
        offered = self._contract.offer.capabilities.to_payload()
        offered["filters"] = [name for name in offered["filters"] if name in self._filters]
        offered["sort_fields"] = [name for name in offered["sort_fields"] if not self._sorts or name in self._sorts]
        if not self._has_features:
            offered["feature_codes"] = []
        return offered


def _resource(uri: str, name: str, title: str, description: str) -> dict[str, Any]:
    return {"uri": uri, "name": name, "title": title, "description": description, "mimeType": _JSON}
