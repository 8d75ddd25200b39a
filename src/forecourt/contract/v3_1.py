"""Contract 3.1: 1.1 with sellers, cursors, feature filters, published capabilities and typed error details."""

import difflib
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final

from forecourt.contract.interface import Offer
from forecourt.contract.v1_1 import Contract11, fingerprint, read_filters, read_limit, read_sort
from forecourt.errors import CODES, AAPError, Problem
from forecourt.model import DealerInformationReply, Request, SearchReply, SearchRequest

_FEATURE_FILTERS: Final = ("features_all", "features_any", "features_none")

_FEATURES: Final = frozenset(_FEATURE_FILTERS)
_FEATURES_READ: Final = 50
"""How many codes of one filter are looked at: as many as the schema allows, however many were sent."""


class Contract31(Contract11):
    """AAP 3.1 ("Errors and retries"; what the seed only names is read as CONTRACTS.md section 5 says)."""

    version: ClassVar[str] = "3.1"
    extension_uri: ClassVar[str] = "https://autoagentprotocol.org/extensions/aap/v3.1"
    schema_base_url: ClassVar[str] = "https://autoagentprotocol.org/v3.1/schemas/"
    activation: ClassVar[bool] = True
    typed_details: ClassVar[bool] = True

    capability_hint: ClassVar[str] = CODES["UNSUPPORTED_FILTER"].hint
    term_facets: ClassVar[Mapping[str, str]] = {
        **Contract11.term_facets,
        "vehicle_types": "vehicle_type",
        "dc_fast_charge": "dc_fast_charge",
        "charge_ports": "charge_port",
    }
    range_facets: ClassVar[Mapping[str, str]] = {
        **Contract11.range_facets,
        "displacement_cc_range": "displacement_cc",
        "electric_range_mi_range": "electric_range_mi",
    }
    profile_members: ClassVar[Collection[str]] = ("dealer_id", *Contract11.profile_members)
    rooftop_members: ClassVar[Collection[str]] = (*Contract11.rooftop_members, "fees")

    def __init__(self, offer: Offer) -> None:
        super().__init__(offer)
        self._known_features = offer.known_features
        # Feature filters are offered code by code, so their names alone do not settle it.
        self._plain_filters = self._filters_offered.difference(_FEATURE_FILTERS)

    def _unknown_words(self, payload: dict[str, Any]) -> list[Problem]:
        """Refuse feature codes that no vocabulary has (CONTRACTS.md section 5, "Feature filters")."""
        filters = payload.get("filters")
        if not isinstance(filters, dict) or _FEATURES.isdisjoint(filters):
            return []
        return [
            Problem(
                f"/filters/{name}/{place}",
                "enum",
                "is not a feature code of the published vocabulary",
                self._feature_hint(code),
            )
            for name in _FEATURE_FILTERS
            if name in filters and isinstance(filters[name], list)
            for place, code in enumerate(filters[name][:_FEATURES_READ])
            if isinstance(code, str) and code not in self._known_features
        ]

    def _feature_hint(self, code: str) -> str | None:
        close = difflib.get_close_matches(code[:64], self._known_features, 1)
        return f"Unknown feature code; did you mean `{close[0]}`?" if close else None

    def _capability_problems(self, filters: Mapping[str, Any]) -> list[Problem]:
        problems = super()._capability_problems(filters)
        for name in _FEATURE_FILTERS:
            if name in filters and name in self._filters_offered:
                problems += [
                    Problem(
                        f"/filters/{name}/{place}",
                        "capability",
                        "is a feature code that this deployment does not offer",
                    )
                    for place, code in enumerate(filters[name])
                    if code not in self._features_offered
                ]
        return problems

    def _read_search(self, payload: dict[str, Any]) -> Request:
        self._check_capabilities(payload)
        paging = payload.get("pagination") or {}
        filters = read_filters(payload.get("filters"))
        sort = read_sort(payload.get("sort"))
        dealer_id = payload.get("dealer_id")
        return SearchRequest(
            filters,
            sort,
            limit=read_limit(paging),
            cursor=paging.get("cursor"),
            paged_by_cursor=True,
            fingerprint=fingerprint(filters, sort, dealer_id),
            dealer_id=dealer_id,
        )

    _READERS: ClassVar[Mapping[str, Any]] = {**Contract11._READERS, "inventory.search": _read_search}

    def _around(self, reply: SearchReply) -> tuple[bytes, bytes]:
        more = b"" if reply.next_cursor is None else b',"next_cursor":"' + reply.next_cursor.encode() + b'"'
        head = b'{"type":"inventory.search.response","data":{"total":%d,"limit":%d,"vehicles":['
        return head % (reply.total, reply.limit), b"]" + more + b"}}"

    def _profile(self, reply: DealerInformationReply) -> dict[str, Any]:
        data = super()._profile(reply)
        data["search_capabilities"] = reply.capabilities.to_payload()
        return data

    def write_error(self, error: AAPError) -> dict[str, Any]:
        """Return the `aap.error` object as it is: 3.1 has every code."""
        return error.to_payload()

    def extension_params(self) -> dict[str, Any]:
        """Return the 1.1 params and the search capabilities."""
        return {**super().extension_params(), "search_capabilities": self.offer.capabilities.to_payload()}


CONTRACT: Final = Contract31
