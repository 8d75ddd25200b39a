"""Contract 1.1: the official 1.1 schemas, paging by skip, errors as one plain object."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec

from forecourt.contract.interface import Contract, Offer
from forecourt.contract.skill import SKILLS, Skill
from forecourt.errors import CODES, AAPError, Kind, Problem
from forecourt.model import (
    FLAG_FILTERS,
    MAX_FILTERS,
    MIN_FILTERS,
    TERM_FILTERS,
    DealerInformationReply,
    DealerInformationRequest,
    Facets,
    FacetsReply,
    FacetsRequest,
    Filters,
    LeadReply,
    LeadRequest,
    Reply,
    Request,
    SearchReply,
    SearchRequest,
    Sort,
    VehicleReference,
    VehicleReply,
    VehicleRequest,
)

_CONDITIONS: Final[Mapping[str, frozenset[str]]] = {
    "vehicle_of_interest": frozenset({"new", "used", "cpo"}),
    "trade_in": frozenset({"excellent", "good", "fair", "poor"}),
}

# What a contract of this family calls a facet -> the listing's member that it counts.
_TERM_FACETS: Final[Mapping[str, str]] = {
    "makes": "make",
    "models": "model",
    "trims": "trim",
    "years": "year",
    "conditions": "condition",
    "transmissions": "transmission",
    "fuels": "fuel",
    "drivelines": "driveline",
    "bodies": "body",
    "exterior_colors": "exterior_color",
    "interior_colors": "interior_color",
    "rooftops": "rooftop",
    "statuses": "status",
}
_RANGE_FACETS: Final[Mapping[str, str]] = {
    "price_range": "price",
    "mileage_range": "mileage",
    "year_range": "year",
}

_encode = msgspec.json.Encoder().encode
_encode_in_order = msgspec.json.Encoder(order="deterministic").encode


class Contract11(Contract):
    """AAP 1.1 (official schemas; "JSON-RPC 2.0 binding", section "Error mapping")."""

    version: ClassVar[str] = "1.1"
    extension_uri: ClassVar[str] = "https://autoagentprotocol.org/extensions/aap/v1.1"
    schema_base_url: ClassVar[str] = "https://autoagentprotocol.org/v1.1/schemas/"
    activation: ClassVar[bool] = False
    typed_details: ClassVar[bool] = False

    capability_hint: ClassVar[str] = "Leave out what details.errors names; inventory.facets shows what is here."
    """What to do about a filter that is switched off; 1.1 publishes no capabilities that one could read."""
    term_facets: ClassVar[Mapping[str, str]] = _TERM_FACETS
    range_facets: ClassVar[Mapping[str, str]] = _RANGE_FACETS
    profile_members: ClassVar[Collection[str]] = ("name", "welcome_message", "rooftops")
    rooftop_members: ClassVar[Collection[str]] = (
        "name", "legal_name", "website", "geo", "emails", "phones", "address", "schedules", "timezone", "notes",
        "capabilities",
    )  # fmt: skip

    def __init__(self, offer: Offer) -> None:
        super().__init__(offer)
        self._checkers = {skill.id: self.schemas.checker(skill.request_schema) for skill in self.skills.values()}
        free_text = ("query",) if offer.capabilities.free_text else ()
        self._filters_offered = frozenset((*offer.capabilities.filters, *free_text))
        self._plain_filters = self._filters_offered
        self._features_offered = frozenset(offer.capabilities.feature_codes)
        self._sorts_offered = frozenset(offer.capabilities.sort_fields)

    # Reading

    def read(self, payload: Any) -> Request:
        """Check a request payload and read it (the order of checks: CONTRACTS.md section 4, "Which code wins")."""
        skill = self.skill_of(payload)
        if skill is None:
            raise self._no_skill(payload)
        checker = self._checkers[skill.id]
        if not checker.is_valid(payload):
            raise self._refusal(skill, payload, checker.problems(payload))
        unknown = self._unknown_words(payload)
        if unknown:
            raise AAPError("SCHEMA_VALIDATION_FAILED", problems=unknown)
        request: Request = self._READERS[skill.id](self, payload)
        return request

    def _no_skill(self, payload: Any) -> AAPError:
        if not isinstance(payload, dict):
            return AAPError("SCHEMA_VALIDATION_FAILED", problems=[Problem("", "type", "must be an object")])
        if "type" not in payload:
            problem = Problem("", "required", "needs the field `type`", "Set type to the request type of a skill.")
            return AAPError("SCHEMA_VALIDATION_FAILED", problems=[problem])
        if not isinstance(payload["type"], str):
            return AAPError("SCHEMA_VALIDATION_FAILED", problems=[Problem("/type", "type", "must be a string")])
        known = ", ".join(skill.request_type for skill in self.skills.values())
        problem = Problem("/type", "const", "names no skill of this agent", f"The request types here are {known}.")
        return AAPError("UNSUPPORTED_SKILL", CODES["UNSUPPORTED_SKILL"].message, problems=[problem])

    def _refusal(self, skill: Skill, payload: dict[str, Any], problems: Sequence[Problem]) -> AAPError:
        """Choose the code: the consent and condition codes only when nothing else is wrong."""
        problems = [*problems, *self._unknown_words(payload)]
        if skill.writes:
            if "consent" not in payload and all(map(_is_missing_consent, problems)):
                return AAPError(
                    "CONTACT_CONSENT_REQUIRED", CODES["CONTACT_CONSENT_REQUIRED"].message, problems=problems
                )
            if "consent" in payload and all(
                problem.location == "/consent" or problem.location.startswith("/consent/") for problem in problems
            ):
                return AAPError("INVALID_CONSENT", problems=problems)
            if all(_is_swapped_condition(problem, payload) for problem in problems):
                return AAPError("INVALID_CONDITION", problems=problems, hint=CODES["INVALID_CONDITION"].hint)
        return AAPError("SCHEMA_VALIDATION_FAILED", problems=problems)

    def _unknown_words(self, payload: dict[str, Any]) -> list[Problem]:
        """Return what a schema file cannot say because it depends on the deployment's vocabulary."""
        del payload
        return []

    def _read_dealer_information(self, payload: dict[str, Any]) -> Request:
        return DealerInformationRequest(dealer_id=payload.get("dealer_id"))

    def _read_facets(self, payload: dict[str, Any]) -> Request:
        self._check_capabilities(payload)
        return FacetsRequest(read_filters(payload.get("filters")), dealer_id=payload.get("dealer_id"))

    def _read_search(self, payload: dict[str, Any]) -> Request:
        self._check_capabilities(payload)
        filters, sort = read_filters(payload.get("filters")), read_sort(payload.get("sort"))
        paging = payload.get("pagination") or {}
        return SearchRequest(
            filters,
            sort,
            skip=int(paging.get("skip", 0)),
            limit=read_limit(paging),
            fingerprint=fingerprint(filters, sort, None),
        )

    def _read_vehicle(self, payload: dict[str, Any]) -> Request:
        vehicle = VehicleReference(payload.get("vin"), payload.get("vehicle_id"), payload.get("stock"))
        return VehicleRequest(vehicle, dealer_id=payload.get("dealer_id"))

    def _read_lead(self, payload: dict[str, Any]) -> Request:
        business = {key: value for key, value in payload.items() if key not in _ENVELOPE}
        return LeadRequest(business, payload.get("idempotency_key"), payload.get("dealer_id"))

    _READERS: ClassVar[Mapping[str, Any]] = {
        "dealer.information": _read_dealer_information,
        "inventory.facets": _read_facets,
        "inventory.search": _read_search,
        "inventory.vehicle": _read_vehicle,
        "lead.submit": _read_lead,
    }

    # Capabilities

    def _check_capabilities(self, payload: dict[str, Any]) -> None:
        """Refuse what is switched off here: filters first, then the sort field."""
        sort = payload.get("sort")
        filters = payload.get("filters") or {}
        if filters.keys() <= self._plain_filters and (sort is None or sort["field"] in self._sorts_offered):
            return
        problems = self._capability_problems(filters)
        sort_problem = None
        if sort is not None and sort["field"] not in self._sorts_offered:
            offered = ", ".join(self.offer.capabilities.sort_fields) or "nothing"
            sort_problem = Problem(
                "/sort/field", "capability", "is not a field this deployment sorts by", f"Sort by {offered}."
            )
        if problems:
            raise AAPError(
                "UNSUPPORTED_FILTER",
                problems=problems + ([sort_problem] if sort_problem else []),
                hint=self.capability_hint,
            )
        if sort_problem:
            raise AAPError("UNSUPPORTED_SORT", problems=[sort_problem])

    def _capability_problems(self, filters: Mapping[str, Any]) -> list[Problem]:
        return [
            Problem(f"/filters/{name}", "capability", "is not a filter that this deployment offers")
            for name in filters.keys() - self._filters_offered
        ]

    # Writing

    def pieces(self, reply: Reply) -> Sequence[bytes]:
        """Return the response payload; listings and receipts pass through unchanged."""
        match reply:
            case SearchReply():
                head, tail = self._around(reply)
                return (head, *_separated(reply.listings), tail)
            case VehicleReply():
                return (b'{"type":"inventory.vehicle.response","data":', reply.listing, b"}")
            case FacetsReply():
                return (b'{"type":"inventory.facets.response","data":', _encode(self._facets(reply.facets)), b"}")
            case DealerInformationReply():
                return (b'{"type":"dealer.information.response","data":', _encode(self._profile(reply)), b"}")
            case LeadReply():
                return (b'{"type":"lead.submit.response",', reply.receipt[1:])

    def _around(self, reply: SearchReply) -> tuple[bytes, bytes]:
        """Return what stands before the vehicles of a search and behind them."""
        head = b'{"type":"inventory.search.response","data":{"total":%d,"skip":%d,"limit":%d,"vehicles":['
        return head % (reply.total, reply.skip, reply.limit), b"]}}"

    def _facets(self, facets: Facets) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for name, member in self.term_facets.items():
            counts = facets.terms.get(member)
            if counts:
                data[name] = [{"value": value, "count": count} for value, count in counts]
        for name, member in self.range_facets.items():
            found = facets.ranges.get(member)
            if found:
                data[name] = {"min": found[0], "max": found[1]}
        return data

    def _profile(self, reply: DealerInformationReply) -> dict[str, Any]:
        """Keep the members that this contract has: the stored profile may say more."""
        data = {key: reply.profile[key] for key in self.profile_members if key in reply.profile}
        data["rooftops"] = [
            {key: rooftop[key] for key in self.rooftop_members if key in rooftop}
            for rooftop in reply.profile["rooftops"]
        ]
        return data

    def write_error(self, error: AAPError) -> dict[str, Any]:
        """Return the `aap.error` object, in the codes that 1.1 has."""
        payload = error.to_payload()
        payload["code"] = self._code(error)
        if error.problems:
            # The 1.1 page shows the place of the failure as details.instancePath; details.errors lists them all.
            payload["details"] = {"instancePath": error.problems[0].location, **payload["details"]}
        return payload

    def _code(self, error: AAPError) -> str:
        if error.code == "INVALID_CONSENT" and error.reason == "channel":
            return "CONTACT_CONSENT_REQUIRED"
        declared = CODES.get(error.code)
        if declared and declared.in_contract(self.version):
            return error.code
        return "SCHEMA_VALIDATION_FAILED" if error.kind is Kind.INVALID else "INTERNAL_ERROR"

    def extension_params(self) -> dict[str, Any]:
        """Return the card's extension params: the version and the schema addresses of every skill."""
        return {
            "version": f"{self.version}.0",
            "schema_base_url": self.schema_base_url,
            "skills": {
                skill.id: {
                    "request_schema": self.schema_base_url + skill.request_schema,
                    "response_schema": self.schema_base_url + skill.response_schema,
                }
                for skill in SKILLS.values()
            },
        }


_OTHER_FILTERS: Final[Mapping[str, str]] = {
    "vin": "vin",
    "stock": "stock",
    "query": "text",
    "features_all": "features_all",
    "features_any": "features_any",
    "features_none": "features_none",
}
"""Filters of one value or of codes -> the member of `Filters`."""

_FAR: Final = 1 << 53
"""Beyond every price, mileage and year; up to here integers and floats mean the same number."""

_ENVELOPE: Final = frozenset({"type", "dealer_id", "idempotency_key"})


def _separated(items: Sequence[bytes]) -> Sequence[bytes]:
    """Return the items with a comma between each two."""
    if not items:
        return ()
    pieces = [b","] * (2 * len(items) - 1)
    pieces[::2] = items
    return pieces


def read_filters(filters: Mapping[str, Any] | None) -> Filters:
    """Read a valid `filters` object, in one form for all that ask the same: lists have no order, empty ones set no
    condition (ours), 30000.0 is 30000.

    Members that the model does not know are left to capability checks.
    """
    if not filters:
        return Filters()
    terms: dict[str, Sequence[str]] = {}
    at_least: dict[str, float] = {}
    at_most: dict[str, float] = {}
    flags: dict[str, bool] = {}
    others: dict[str, Any] = {}
    for name, value in filters.items():
        if name in TERM_FILTERS:
            if value:
                terms[TERM_FILTERS[name]] = sorted(value) if len(value) > 1 else value
        elif name in MIN_FILTERS:
            at_least[MIN_FILTERS[name]] = _bound(value)
        elif name in MAX_FILTERS:
            at_most[MAX_FILTERS[name]] = _bound(value)
        elif name in FLAG_FILTERS:
            flags[FLAG_FILTERS[name]] = value
        elif name in _OTHER_FILTERS:
            others[_OTHER_FILTERS[name]] = tuple(sorted(value)) if isinstance(value, list) else value
    return Filters(terms, at_least, at_most, flags, **others)


def _bound(value: float) -> float:
    """Return a bound as a whole number where it is one, and no further out than any listing can be."""
    if -_FAR < value < _FAR:
        return int(value) if value == int(value) else value
    return _FAR if value > 0 else -_FAR


def read_sort(sort: Mapping[str, Any] | None) -> Sort | None:
    """Read a valid `sort` object."""
    return Sort(sort["field"], sort["order"] == "desc") if sort else None


def fingerprint(filters: Filters, sort: Sort | None, dealer_id: str | None) -> str:
    """Return a search as text, the same for all that ask the same: what was read has one form."""
    return _encode_in_order((filters, sort, dealer_id)).decode()


def read_limit(paging: Mapping[str, Any]) -> int | None:
    """Read a valid `pagination` object's limit; an integral 20.0 is the integer 20 (JSON Schema 2020-12)."""
    limit = paging.get("limit")
    return None if limit is None else int(limit)


def _is_missing_consent(problem: Problem) -> bool:
    return problem.keyword == "required" and problem.location == "" and "`consent`" in problem.error


def _is_swapped_condition(problem: Problem, payload: Mapping[str, Any]) -> bool:
    """Tell whether a problem is a condition word that would be right for the other vehicle."""
    if problem.keyword != "enum":
        return False
    for part, own in _CONDITIONS.items():
        if problem.location == f"/{part}/condition":
            word = payload[part]["condition"]
            return isinstance(word, str) and any(word in words for words in _CONDITIONS.values() if words is not own)
    return False


CONTRACT: Final = Contract11
