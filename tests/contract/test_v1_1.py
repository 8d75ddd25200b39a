"""Contract 1.1: paging by skip, errors in the codes of its own table ("JSON-RPC 2.0 binding", "Error mapping")."""

import json
from typing import Any

import pytest
from tests.contract.example_requests import contract, lead, request

from forecourt.contract import SKILLS
from forecourt.errors import CODES, AAPError, Problem
from forecourt.model import Facets, FacetsReply, Filters, SearchReply, Sort

SERVED = contract("1.1")


def refusal(payload: Any) -> AAPError:
    """Return the error that reading the payload ends in."""
    with pytest.raises(AAPError) as caught:
        SERVED.read(payload)
    return caught.value


def test_the_search_of_the_page_is_read_into_its_filters_sort_and_page() -> None:
    read: Any = SERVED.read(request("inventory.search", pagination={"skip": 40, "limit": 20}))
    assert read.filters == Filters(
        {"make": ["Honda"], "condition": ["cpo", "used"]}, at_least={"year": 2020}, at_most={"price": 30000}
    )
    assert read.sort == Sort("price")
    assert (read.skip, read.limit, read.cursor, read.paged_by_cursor) == (40, 20, None, False)


def test_nothing_given_is_everything_from_the_start_without_a_limit_of_its_own() -> None:
    for member in ("filters", "pagination", "privacy"):
        read: Any = SERVED.read({"type": "inventory.search.request", member: {}})
        assert (read.filters, read.sort, read.skip, read.limit) == (Filters(), None, 0, None)


def test_integral_numbers_are_integers_however_they_are_written() -> None:
    filters = {"year_min": 2020.0, "price_max": 30000.0}
    read: Any = SERVED.read(request("inventory.search", filters=filters, pagination={"skip": 40.0, "limit": 20.0}))
    assert (read.skip, read.limit) == (40, 20)
    assert type(read.skip) is type(read.limit) is int
    assert (read.filters.at_least, read.filters.at_most) == ({"year": 2020}, {"price": 30000})


@pytest.mark.parametrize(
    ("paging", "location", "keyword"),
    [
        ({"skip": -1}, "/pagination/skip", "minimum"),
        ({"skip": 1.5}, "/pagination/skip", "type"),
        ({"limit": 0}, "/pagination/limit", "minimum"),
        ({"limit": "20"}, "/pagination/limit", "type"),
        ({"cursor": "x"}, "/pagination/cursor", "additionalProperties"),
    ],
)
def test_paging_that_cannot_be_breaks_the_schema(paging: Any, location: str, keyword: str) -> None:
    error = refusal(request("inventory.search", pagination=paging))
    assert error.code == "SCHEMA_VALIDATION_FAILED"
    assert [(problem.location, problem.keyword) for problem in error.problems] == [(location, keyword)]


def test_a_descending_sort_is_read() -> None:
    read: Any = SERVED.read(request("inventory.search", sort={"field": "updated_at", "order": "desc"}))
    assert read.sort == Sort("updated_at", descending=True)


@pytest.mark.parametrize("skill", SKILLS)
def test_1_1_knows_no_dealer_id(skill: str) -> None:
    error = refusal(request(skill, dealer_id="demo-auto-group"))
    assert error.code == "SCHEMA_VALIDATION_FAILED"
    assert [problem.location for problem in error.problems] == ["/dealer_id"]


@pytest.mark.parametrize("name", ["features_all", "vehicle_type", "electric_range_mi_min", "dc_fast_charge"])
def test_filters_of_3_1_are_unknown_fields_in_1_1(name: str) -> None:
    error = refusal(request("inventory.search", filters={name: []}))
    assert error.code == "SCHEMA_VALIDATION_FAILED"
    assert [problem.keyword for problem in error.problems] == ["additionalProperties"]


@pytest.mark.requirement("RPC-ERROR-EXAMPLE", "RPC-ERROR-EXAMPLE-NO-ECHO")
def test_a_word_for_a_year_is_answered_like_the_example_but_not_repeated() -> None:
    error = refusal(request("inventory.search", filters={"year_min": "twenty-twenty"}))
    payload = SERVED.write_error(error)
    assert payload["code"] == "SCHEMA_VALIDATION_FAILED"
    assert payload["message"] == "filters.year_min must be an integer"
    assert payload["retryable"] is False
    assert payload["details"]["instancePath"] == "/filters/year_min"
    assert payload["details"]["errors"] == [
        {"instanceLocation": "/filters/year_min", "keyword": "type", "error": "must be an integer"}
    ]
    assert "twenty" not in json.dumps(payload)


@pytest.mark.requirement("RPC-EX-SEARCH-RESPONSE")
def test_a_page_repeats_skip_and_limit_and_has_no_cursor() -> None:
    reply = SearchReply(100, 40, 20, [b"{}"], next_cursor="not for 1.1")
    assert json.loads(SERVED.write(reply))["data"] == {"total": 100, "skip": 40, "limit": 20, "vehicles": [{}]}


@pytest.mark.requirement("RPC-EX-FACETS-RESPONSE")
def test_every_facet_of_1_1_is_written_and_no_other() -> None:
    words = {
        member: [("b", 3), ("a", 2)]
        for member in (
            "make", "model", "trim", "condition", "transmission", "fuel", "driveline", "body", "exterior_color",
            "interior_color", "rooftop", "status", "vehicle_type", "charge_port", "feature_codes",
        )
    }  # fmt: skip
    ranges = dict.fromkeys(("price", "mileage", "year", "displacement_cc", "electric_range_mi"), (1, 2.5))
    payload = json.loads(SERVED.write(FacetsReply(Facets({**words, "year": [(2024, 5)]}, ranges))))
    assert SERVED.schemas.problems(SKILLS["inventory.facets"].response_schema, payload) == []
    data = payload["data"]
    assert data["makes"] == [{"value": "b", "count": 3}, {"value": "a", "count": 2}]
    assert data["years"] == [{"value": 2024, "count": 5}]
    assert data["price_range"] == {"min": 1, "max": 2.5}
    assert data.keys() == json.loads(SERVED.schemas.text("facets.schema.json"))["properties"].keys()


@pytest.mark.requirement("RPC-MAP-FULL-VOCABULARY")
@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("UNSUPPORTED_FILTER", "SCHEMA_VALIDATION_FAILED"),
        ("UNSUPPORTED_SORT", "SCHEMA_VALIDATION_FAILED"),
        ("INVALID_CURSOR", "SCHEMA_VALIDATION_FAILED"),
        ("DEALER_NOT_FOUND", "INTERNAL_ERROR"),
    ],
)
def test_codes_that_1_1_lacks_are_told_by_one_that_it_has(code: str, told: str) -> None:
    error = AAPError(code, problems=[Problem("/filters/make", "capability", "is not offered")])
    payload = SERVED.write_error(error)
    assert payload["code"] == told
    assert payload["details"]["errors"][0]["keyword"] == "capability"


def test_every_other_code_keeps_its_name() -> None:
    own = [code.name for code in CODES.values() if code.in_contract("1.1")]
    assert len(own) == 12
    assert [SERVED.write_error(AAPError(name))["code"] for name in own] == own


def test_a_channel_that_the_grant_does_not_allow_is_a_missing_consent_in_1_1() -> None:
    assert SERVED.write_error(AAPError("INVALID_CONSENT", reason="channel"))["code"] == "CONTACT_CONSENT_REQUIRED"
    assert SERVED.write_error(AAPError("INVALID_CONSENT", reason="expired"))["code"] == "INVALID_CONSENT"
    assert SERVED.write_error(AAPError("INVALID_CONSENT"))["code"] == "INVALID_CONSENT"


def test_the_form_of_a_1_1_deployment() -> None:
    assert (SERVED.activation, SERVED.typed_details) == (False, False)
    assert "search_capabilities" not in SERVED.extension_params()
    assert SERVED.read(lead()) is not None
