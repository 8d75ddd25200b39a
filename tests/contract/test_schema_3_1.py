"""The 3.1 schemas: what 3.1 adds to 1.1, and what it takes away (CONTRACTS.md section 5, "3.1")."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from forecourt.contract.validation import SchemaSet
from forecourt.errors import CODES

V11 = SchemaSet.load("1.1")
V31 = SchemaSet.load("3.1")
SEARCH = "inventory-search-request.schema.json"
RESULT = "inventory-search-response.schema.json"
VEHICLE = "vehicle.schema.json"
DEALER = "dealer-information.schema.json"
ERROR = "error.schema.json"
CARD = "agent-card.schema.json"
REQUESTS: dict[str, dict[str, Any]] = {
    "dealer-information-request.schema.json": {"type": "dealer.information.request"},
    "inventory-facets-request.schema.json": {"type": "inventory.facets.request"},
    SEARCH: {"type": "inventory.search.request"},
    "vehicle-detail-request.schema.json": {"type": "inventory.vehicle.request", "stock": "T1"},
    "lead-submit-request.schema.json": {
        "type": "lead.submit.request",
        "customer": {"first_name": "Sam", "last_name": "Example", "email": "sam@example.com"},
        "consent": {
            "granted_at": "2026-04-30T10:16:00Z",
            "allowed_channels": ["email"],
            "consent_text": "I agree.",
            "scope": ["lead_submission"],
        },
        "source_agent": {"name": "example-shopper"},
    },
}
CAPABILITIES = {
    "filters": ["make", "features_all"],
    "feature_codes": ["apple_carplay"],
    "sort_fields": ["price"],
    "default_limit": 20,
    "max_limit": 100,
    "free_text": True,
}
AAP = "https://autoagentprotocol.org/extensions/aap/"


def broken_rules(file: str, instance: Any) -> list[tuple[str, str]]:
    return [(problem.location, problem.keyword) for problem in V31.problems(file, instance)]


def test_3_1_has_the_files_of_1_1_under_its_own_ids() -> None:
    assert V31.files() == V11.files()
    for file in V31.files():
        assert json.loads(V31.text(file))["$id"] == f"https://autoagentprotocol.org/v3.1/schemas/{file}"
        assert "v1.1" not in V31.text(file).decode()


@pytest.mark.parametrize("file", REQUESTS)
def test_every_request_may_name_a_seller(file: str) -> None:
    request = REQUESTS[file]
    assert broken_rules(file, request) == []
    assert broken_rules(file, {**request, "dealer_id": "d" * 128}) == []
    assert broken_rules(file, {**request, "dealer_id": ""}) == [("/dealer_id", "minLength")]
    assert broken_rules(file, {**request, "dealer_id": "d" * 129}) == [("/dealer_id", "maxLength")]
    assert broken_rules(file, {**request, "dealer_id": 1}) == [("/dealer_id", "type")]
    assert not V11.is_valid(file, {**request, "dealer_id": "d"})


@pytest.mark.parametrize(
    ("filters", "broken"),
    [
        ({"vehicle_type": ["car", "motorcycle", "trailer", "rv", "other"]}, []),
        ({"vehicle_type": ["boat"]}, [("/filters/vehicle_type/0", "enum")]),
        ({"vehicle_type": "car"}, [("/filters/vehicle_type", "type")]),
        ({"electric_range_mi_min": 0, "electric_range_mi_max": 310.5}, []),
        ({"electric_range_mi_min": -1}, [("/filters/electric_range_mi_min", "minimum")]),
        ({"dc_fast_charge": False}, []),
        ({"dc_fast_charge": "true"}, [("/filters/dc_fast_charge", "type")]),
        ({"charge_port": ["nacs"]}, []),
        ({"charge_port": "nacs"}, [("/filters/charge_port", "type")]),
        ({"displacement_cc_min": 0, "displacement_cc_max": 1200}, []),
        ({"displacement_cc_max": 1.5}, [("/filters/displacement_cc_max", "type")]),
        ({"features_all": ["apple_carplay"], "features_any": ["a", "b2"], "features_none": []}, []),
        ({"features_all": ["Apple CarPlay"]}, [("/filters/features_all/0", "pattern")]),
        ({"features_any": ["_a"]}, [("/filters/features_any/0", "pattern")]),
        ({"features_none": ["a", "a"]}, [("/filters/features_none", "uniqueItems")]),
        ({"features_all": [f"f{number}" for number in range(50)]}, []),
        ({"features_all": [f"f{number}" for number in range(51)]}, [("/filters/features_all", "maxItems")]),
        ({"features": ["a"]}, [("/filters/features", "additionalProperties")]),
    ],
)
def test_the_filters_of_3_1(filters: dict[str, Any], broken: list[tuple[str, str]]) -> None:
    assert broken_rules(SEARCH, {"type": "inventory.search.request", "filters": filters}) == broken
    facets = {"type": "inventory.facets.request", "filters": filters}
    assert broken_rules("inventory-facets-request.schema.json", facets) == broken


@pytest.mark.parametrize(
    ("pagination", "broken"),
    [
        ({"limit": 1, "cursor": "c" * 2048}, []),
        ({"limit": 1000}, []),
        ({"limit": 0}, [("/pagination/limit", "minimum")]),
        ({"limit": 1001}, [("/pagination/limit", "maximum")]),
        ({"cursor": ""}, [("/pagination/cursor", "minLength")]),
        ({"cursor": "c" * 2049}, [("/pagination/cursor", "maxLength")]),
        ({"skip": 0}, [("/pagination/skip", "additionalProperties")]),
    ],
)
def test_pages_are_continued_by_cursor_and_never_skipped(
    pagination: dict[str, Any], broken: list[tuple[str, str]]
) -> None:
    assert broken_rules(SEARCH, {"type": "inventory.search.request", "pagination": pagination}) == broken


def test_a_sort_field_is_any_word_because_an_unadvertised_one_is_no_schema_violation() -> None:
    """ "Errors and retries", section "Error code reference": that is UNSUPPORTED_SORT."""

    def sorted_by(field: Any) -> dict[str, Any]:
        return {"type": "inventory.search.request", "sort": {"field": field, "order": "asc"}}

    assert broken_rules(SEARCH, sorted_by("battery_kwh")) == []
    assert broken_rules(SEARCH, sorted_by("Price")) == [("/sort/field", "pattern")]
    assert broken_rules(SEARCH, sorted_by("a" * 64)) == []
    assert broken_rules(SEARCH, sorted_by("a" * 65)) == [("/sort/field", "maxLength")]
    assert broken_rules(SEARCH, sorted_by(1)) == [("/sort/field", "type")]


def test_a_page_of_results_carries_the_next_cursor_and_no_skip() -> None:
    def page(**data: Any) -> dict[str, Any]:
        return {"type": "inventory.search.response", "data": {"total": 1, "vehicles": [], **data}}

    assert broken_rules(RESULT, page(limit=20, next_cursor="abc")) == []
    assert broken_rules(RESULT, page(skip=0)) == [("/data/skip", "additionalProperties")]
    assert broken_rules(RESULT, page(next_cursor="")) == [("/data/next_cursor", "minLength")]
    listing = {"condition": "used", "status": "available", "vehicle_type": "rv", "fees": []}
    assert broken_rules(RESULT, page(vehicles=[listing])) == []
    assert broken_rules(RESULT, page(vehicles=[{}])) == [("/data/vehicles/0", "required")]
    assert broken_rules(RESULT, page(vehicles=[{**listing, "condition": "good"}])) == [
        ("/data/vehicles/0/condition", "enum")
    ]


@pytest.mark.parametrize(
    ("vehicle", "broken"),
    [
        ({"vehicle_type": "rv", "displacement_cc": 0, "battery_kwh": 77.4, "motor_power_hp": 320}, []),
        ({"vehicle_type": "boat"}, [("/vehicle_type", "enum")]),
        ({"displacement_cc": 1.5}, [("/displacement_cc", "type")]),
        ({"displacement_cc": -1}, [("/displacement_cc", "minimum")]),
        ({"battery_kwh": -0.1}, [("/battery_kwh", "minimum")]),
        ({"motor_power_hp": "320"}, [("/motor_power_hp", "type")]),
        ({"dc_fast_charge": True, "charge_port": "ccs1", "electric_range_mi": 310}, []),
        ({"dc_fast_charge": 1}, [("/dc_fast_charge", "type")]),
        ({"charge_port": ["ccs1"]}, [("/charge_port", "type")]),
        ({"feature_codes": ["apple_carplay"]}, []),
        ({"feature_codes": ["Apple CarPlay"]}, [("/feature_codes/0", "pattern")]),
        ({"other_attributes": {"seats": 7, "tow_package": True, "axles": ["front", 2]}}, []),
        ({"other_attributes": {"nested": {"a": 1}}}, [("/other_attributes/nested", "type")]),
        ({"other_attributes": {"nested": [[1]]}}, [("/other_attributes/nested/0", "type")]),
        ({"fees": []}, []),
        ({"fees": [{"name": "Documentation", "amount": 85}]}, []),
        ({"fees": [{"name": "Documentation", "amount": 85.5}]}, [("/fees/0/amount", "type")]),
        ({"fees": [{"name": "Documentation", "amount": -1}]}, [("/fees/0/amount", "minimum")]),
        ({"fees": [{"name": "Documentation"}]}, [("/fees/0", "required")]),
        ({"fees": [{"name": "A", "amount": 1, "tax": 1}]}, [("/fees/0/tax", "additionalProperties")]),
        ({"fees": [{"name": "A", "amount": 1}, {"name": "A", "amount": 1}]}, [("/fees", "uniqueItems")]),
        ({"x_dealer_field": {"any": "thing"}}, []),
    ],
)
def test_the_vehicle_of_3_1(vehicle: dict[str, Any], broken: list[tuple[str, str]]) -> None:
    assert broken_rules(VEHICLE, vehicle) == broken


def test_the_facets_of_3_1() -> None:
    facets = {
        "vehicle_types": [{"value": "car", "count": 3}],
        "dc_fast_charge": [{"value": True, "count": 1}, {"value": False, "count": 2}],
        "charge_ports": [{"value": "nacs", "count": 1}],
        "displacement_cc_range": {"min": 49, "max": 1200},
        "electric_range_mi_range": {"min": 30.5, "max": 400},
    }
    assert broken_rules("facets.schema.json", facets) == []
    as_text = {"dc_fast_charge": [{"value": "true", "count": 1}]}
    assert broken_rules("facets.schema.json", as_text) == [("/dc_fast_charge/0/value", "type")]
    assert not V11.is_valid("facets.schema.json", facets)


def test_the_dealer_publishes_what_a_search_can_do() -> None:
    dealer = {"name": "Demo", "rooftops": [{"name": "North", "fees": [{"name": "Documentation", "amount": 85}]}]}
    assert broken_rules(DEALER, dealer) == []
    assert broken_rules(DEALER, {**dealer, "dealer_id": "demo", "search_capabilities": CAPABILITIES}) == []
    lacking = {name: value for name, value in CAPABILITIES.items() if name != "free_text"}
    assert broken_rules(DEALER, {**dealer, "search_capabilities": lacking}) == [("/search_capabilities", "required")]
    assert not V11.is_valid(DEALER, dealer)


@pytest.mark.parametrize(("version", "number"), [("1.1", 12), ("3.1", 16)])
def test_the_codes_of_the_error_are_those_of_the_contract(version: str, number: int) -> None:
    codes = json.loads(SchemaSet.load(version).text(ERROR))["properties"]["code"]["enum"]
    assert codes == [code.name for code in CODES.values() if code.in_contract(version)]
    assert len(codes) == number


def test_the_errors_that_the_specification_shows_are_accepted() -> None:
    """ "Errors and retries", sections "One automotive error" and "Complete A2A throttle response"."""
    unsupported = {
        "type": "aap.error",
        "error_id": "error_example_001",
        "code": "UNSUPPORTED_FILTER",
        "message": "This deployment does not support features_all.",
        "retryable": False,
        "details": {
            "errors": [
                {"instanceLocation": "/filters/features_all", "keyword": "capability", "error": "Not advertised."}
            ],
            "hint": "Read the published search capabilities.",
        },
        "created_at": "2026-10-24T15:00:00Z",
    }
    throttled = {**unsupported, "code": "RATE_LIMITED", "retryable": True, "details": {"retry_after_ms": 30000}}
    assert broken_rules(ERROR, unsupported) == []
    assert broken_rules(ERROR, throttled) == []


@pytest.mark.requirement("ERR-OBJECT-DETAILS-OPTIONAL")
def test_an_error_lists_its_problems_in_full_and_a_throttle_says_how_long() -> None:
    error = {
        "type": "aap.error",
        "error_id": "e",
        "code": "RATE_LIMITED",
        "message": "m",
        "retryable": True,
        "created_at": "2026-10-24T15:00:00Z",
    }
    assert broken_rules(ERROR, error) == [("", "required")]
    assert broken_rules(ERROR, {**error, "details": {}}) == [("/details", "required")]
    assert broken_rules(ERROR, {**error, "details": {"retry_after_ms": -1}}) == [("/details/retry_after_ms", "minimum")]
    assert broken_rules(ERROR, {**error, "details": {"retry_after_ms": 0.5}}) == [("/details/retry_after_ms", "type")]
    other = {**error, "code": "INTERNAL_ERROR"}
    assert broken_rules(ERROR, other) == []
    assert broken_rules(ERROR, {**other, "details": {"errors": [{"keyword": "type"}]}}) == [
        ("/details/errors/0", "required"),
        ("/details/errors/0", "required"),
    ]


def card(*extensions: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "Demo",
        "description": "A dealer agent.",
        "version": "1.0.0",
        "supportedInterfaces": [
            {"url": "https://demo.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "capabilities": {"extensions": list(extensions)},
        "defaultInputModes": ["application/json"],
        "defaultOutputModes": ["application/json"],
        "skills": [],
    }


def test_a_card_declares_exactly_one_aap_extension_and_requires_it() -> None:
    """CONTRACTS.md section 2: two AAP versions are never put on one 3.1 card."""
    ours = {"uri": f"{AAP}v3.1", "required": True, "params": {"search_capabilities": CAPABILITIES}}
    foreign = {"uri": "https://example.com/extensions/loyalty/v1"}
    place = "/capabilities/extensions"
    assert broken_rules(CARD, card(ours)) == []
    assert broken_rules(CARD, card(foreign, ours)) == []
    assert broken_rules(CARD, card(foreign)) == [(place, "contains")]
    assert broken_rules(CARD, card(ours, {"uri": f"{AAP}v1.1"})) == [(place, "contains")]
    assert broken_rules(CARD, card({"uri": f"{AAP}v1.1", "required": True})) == [(place, "contains")]
    assert broken_rules(CARD, card({"uri": f"{AAP}v3.1"})) == [(place, "contains")]
    assert broken_rules(CARD, card({"uri": f"{AAP}v3.1", "required": False})) == [(place, "contains")]
    wrong = {**ours, "params": {"search_capabilities": {**CAPABILITIES, "free_text": "yes"}}}
    assert broken_rules(CARD, card(wrong)) == [(f"{place}/0/params/search_capabilities/free_text", "type")]


@pytest.mark.parametrize("schemas", [V11, V31], ids=["1.1", "3.1"])
def test_every_field_of_every_request_is_described(schemas: SchemaSet) -> None:
    for file in REQUESTS:
        schema = schemas.inlined(file)
        assert schema["description"]
        for path, field in _fields(schema, ""):
            assert field.get("description"), f"{file}{path}"
        for example in schema["examples"]:
            assert schemas.problems(file, example) == []


def _fields(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, field in schema.get("properties", {}).items():
        yield f"{path}/{name}", field
        yield from _fields(field, f"{path}/{name}")
        if isinstance(field.get("items"), dict):
            yield from _fields(field["items"], f"{path}/{name}/0")
