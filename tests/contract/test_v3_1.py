"""Contract 3.1: sellers, cursors, feature filters, capabilities (CONTRACTS.md section 5)."""

import json
from typing import Any

import pytest
from tests.contract.example_requests import FEATURES, contract, lead, request

from forecourt.contract import SKILLS
from forecourt.demo import profile
from forecourt.errors import CODES, AAPError
from forecourt.model import DealerInformationReply, Facets, FacetsReply, Filters, SearchReply

SERVED = contract("3.1")


def refusal(payload: Any, **offered: Any) -> AAPError:
    """Return the error that reading the payload ends in."""
    with pytest.raises(AAPError) as caught:
        contract("3.1", **offered).read(payload)
    return caught.value


def search(**members: Any) -> Any:
    """Read a search with these members."""
    return SERVED.read({"type": "inventory.search.request", **members})


def test_a_search_pages_by_cursor() -> None:
    read = search(pagination={"limit": 5.0, "cursor": "abc"})
    assert (read.skip, read.limit, read.cursor, read.paged_by_cursor) == (0, 5, "abc", True)
    assert type(read.limit) is int
    assert search().cursor is None


def test_skip_does_not_exist_and_the_hint_names_the_cursor() -> None:
    error = refusal(request("inventory.search", pagination={"skip": 20}))
    assert error.code == "SCHEMA_VALIDATION_FAILED"
    assert [(problem.location, problem.keyword) for problem in error.problems] == [
        ("/pagination/skip", "additionalProperties")
    ]
    assert "cursor" in str(error.hint)


@pytest.mark.parametrize("skill", SKILLS)
def test_every_request_may_name_its_seller(skill: str) -> None:
    read: Any = SERVED.read(request(skill, dealer_id="demo-auto-group"))
    assert read.dealer_id == "demo-auto-group"
    assert refusal(request(skill, dealer_id="")).problems[0].location == "/dealer_id"


def test_the_seller_is_no_part_of_what_a_lead_says() -> None:
    one: Any = SERVED.read(lead(dealer_id="a", idempotency_key="k"))
    other: Any = SERVED.read(lead())
    assert one.business == other.business


def test_the_filters_of_3_1_are_read() -> None:
    read = search(
        filters={
            "vehicle_type": ["motorcycle"], "charge_port": ["nacs"], "dc_fast_charge": False,
            "electric_range_mi_min": 200.5, "electric_range_mi_max": 400, "displacement_cc_min": 600,
            "displacement_cc_max": 1200, "features_all": ["sunroof"], "features_any": ["heated_seats"],
            "features_none": ["apple_carplay"], "query": "red",
        }
    )  # fmt: skip
    assert read.filters == Filters(
        {"vehicle_type": ["motorcycle"], "charge_port": ["nacs"]},
        at_least={"electric_range_mi": 200.5, "displacement_cc": 600},
        at_most={"electric_range_mi": 400, "displacement_cc": 1200},
        flags={"dc_fast_charge": False},
        text="red",
        features_all=("sunroof",),
        features_any=("heated_seats",),
        features_none=("apple_carplay",),
    )


# Features: unknown, and known but not offered


@pytest.mark.parametrize("name", ["features_all", "features_any", "features_none"])
@pytest.mark.parametrize("skill", ["inventory.search", "inventory.facets"])
def test_a_code_of_no_vocabulary_breaks_the_schema(skill: str, name: str) -> None:
    error = refusal({"type": f"{skill}.request", "filters": {name: ["sunroof", "sunrof", "qqq"]}})
    assert error.code == "SCHEMA_VALIDATION_FAILED"
    assert [(problem.location, problem.keyword) for problem in error.problems] == [
        (f"/filters/{name}/1", "enum"),
        (f"/filters/{name}/2", "enum"),
    ]
    assert "`sunroof`" in str(error.hint)
    assert "sunrof`" not in json.dumps(SERVED.write_error(error))
    assert "qqq" not in json.dumps(SERVED.write_error(error))


def test_a_known_code_that_is_not_offered_is_an_unsupported_filter() -> None:
    error = refusal(request("inventory.search", filters={"features_all": list(FEATURES)}), feature_codes=("sunroof",))
    assert error.code == "UNSUPPORTED_FILTER"
    assert [(problem.location, problem.keyword) for problem in error.problems] == [
        ("/filters/features_all/0", "capability"),
        ("/filters/features_all/1", "capability"),
    ]


def test_an_unknown_code_wins_over_one_that_is_not_offered() -> None:
    error = refusal(request("inventory.search", filters={"features_all": ["sunroof", "qqq"]}), feature_codes=())
    assert error.code == "SCHEMA_VALIDATION_FAILED"
    assert [problem.location for problem in error.problems] == ["/filters/features_all/1"]


def test_a_feature_filter_that_is_off_is_named_once_and_not_code_by_code() -> None:
    error = refusal(
        request("inventory.search", filters={"features_all": ["sunroof"], "features_any": ["sunroof"]}),
        filters=("features_any",),
        feature_codes=(),
    )
    assert error.code == "UNSUPPORTED_FILTER"
    assert [problem.location for problem in error.problems] == [
        "/filters/features_all",
        "/filters/features_any/0",
    ]
    assert error.hint == CODES["UNSUPPORTED_FILTER"].hint


def test_unknown_codes_are_listed_with_whatever_else_is_wrong() -> None:
    error = refusal(request("inventory.search", filters={"features_all": ["qqq", "Sunroof", 5], "year_min": "x"}))
    assert error.code == "SCHEMA_VALIDATION_FAILED"
    assert {(problem.location, problem.keyword) for problem in error.problems} >= {
        ("/filters/features_all/0", "enum"),
        ("/filters/features_all/1", "pattern"),
        ("/filters/features_all/2", "type"),
        ("/filters/year_min", "type"),
    }


def test_a_body_full_of_unknown_codes_is_not_looked_through() -> None:
    error = refusal(request("inventory.search", filters={"features_all": [f"q{n}" for n in range(30_000)]}))
    assert error.code == "SCHEMA_VALIDATION_FAILED"
    assert error.problems[0].keyword == "maxItems"
    assert len(error.problems) == 51


@pytest.mark.parametrize("field", ["nonsense", "vin", "price"])
def test_a_sort_field_that_is_not_advertised_is_refused_known_or_not(field: str) -> None:
    error = refusal(request("inventory.search", sort={"field": field, "order": "asc"}), sort_fields=("year", "mileage"))
    assert error.code == "UNSUPPORTED_SORT"
    assert [(problem.location, problem.keyword) for problem in error.problems] == [("/sort/field", "capability")]
    assert error.hint == "Sort by year, mileage."


# Fingerprints: what a cursor is bound to

EQUAL: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"filters": {}}),
    ({}, {"filters": {"make": []}}),
    ({}, {"pagination": {"limit": 5, "cursor": "c"}}),
    ({}, {"privacy": {"anonymous": True}}),
    ({"filters": {"make": ["A", "B"]}}, {"filters": {"make": ["B", "A"]}}),
    ({"filters": {"make": ["A"], "year_min": 2020}}, {"filters": {"year_min": 2020, "make": ["A"]}}),
    ({"filters": {"price_max": 30000}}, {"filters": {"price_max": 30000.0}}),
    ({"filters": {"electric_range_mi_min": 1e300}}, {"filters": {"electric_range_mi_min": int(1e300)}}),
    ({"sort": {"field": "price", "order": "asc"}}, {"sort": {"order": "asc", "field": "price"}}),
]
DIFFERENT: list[dict[str, Any]] = [
    {},
    {"filters": {"make": ["A"]}},
    {"filters": {"model": ["A"]}},
    {"filters": {"make": ["A", "B"]}},
    {"filters": {"make": ["A,B"]}},
    {"filters": {"price_max": 30000}},
    {"filters": {"price_min": 30000}},
    {"filters": {"electric_range_mi_min": 0.5}},
    {"filters": {"dc_fast_charge": True}},
    {"filters": {"dc_fast_charge": False}},
    {"filters": {"query": "red"}},
    {"filters": {"query": "Red"}},
    {"sort": {"field": "price", "order": "asc"}},
    {"sort": {"field": "price", "order": "desc"}},
    {"dealer_id": "demo-auto-group"},
    {"dealer_id": "price"},
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_requests_that_ask_for_the_same_have_one_fingerprint(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert search(**one).fingerprint == search(**other).fingerprint


def test_requests_that_ask_for_something_else_have_another() -> None:
    assert len({search(**members).fingerprint for members in DIFFERENT}) == len(DIFFERENT)


# Writing


@pytest.mark.parametrize("cursor", [None, "abc-_123"])
def test_a_page_has_its_next_cursor_and_no_skip(cursor: str | None) -> None:
    payload = json.loads(SERVED.write(SearchReply(100, 0, 20, [], next_cursor=cursor)))
    assert SERVED.schemas.problems(SKILLS["inventory.search"].response_schema, payload) == []
    more = {} if cursor is None else {"next_cursor": cursor}
    assert payload["data"] == {"total": 100, "limit": 20, "vehicles": [], **more}


def test_every_facet_of_3_1_is_written_and_no_other() -> None:
    words = {
        member: [("a", 2)]
        for member in (
            "make", "model", "trim", "condition", "transmission", "fuel", "driveline", "body", "exterior_color",
            "interior_color", "rooftop", "status", "vehicle_type", "charge_port", "feature_codes",
        )
    }  # fmt: skip
    ranges = dict.fromkeys(("price", "mileage", "year", "displacement_cc", "electric_range_mi"), (1, 2.5))
    facets = Facets({**words, "year": [(2024, 5)], "dc_fast_charge": [(True, 3), (False, 1)]}, ranges)
    payload = json.loads(SERVED.write(FacetsReply(facets)))
    assert SERVED.schemas.problems(SKILLS["inventory.facets"].response_schema, payload) == []
    assert payload["data"]["dc_fast_charge"] == [{"value": True, "count": 3}, {"value": False, "count": 1}]
    assert payload["data"].keys() == json.loads(SERVED.schemas.text("facets.schema.json"))["properties"].keys()


def test_the_profile_says_who_the_seller_is_what_it_charges_and_what_can_be_searched_by() -> None:
    stored = {**profile(), "dealer_id": "demo-auto-group"}
    payload = json.loads(SERVED.write(DealerInformationReply(stored, SERVED.offer.capabilities)))
    assert SERVED.schemas.problems(SKILLS["dealer.information"].response_schema, payload) == []
    data = payload["data"]
    assert data["dealer_id"] == "demo-auto-group"
    assert data["rooftops"][0]["fees"] == [{"name": "Dealer preparation and documentation", "amount": 1790}]
    assert data["search_capabilities"] == SERVED.offer.capabilities.to_payload()


def test_capabilities_are_on_the_card_as_they_are_in_the_profile() -> None:
    assert SERVED.extension_params()["search_capabilities"] == {
        **SERVED.offer.capabilities.to_payload(),
        "feature_codes": list(FEATURES),
    }


def test_the_form_of_a_3_1_deployment() -> None:
    assert (SERVED.activation, SERVED.typed_details) == (True, True)


@pytest.mark.parametrize("code", CODES)
def test_3_1_has_every_code(code: str) -> None:
    error = AAPError(code)
    assert SERVED.write_error(error) == error.to_payload()
