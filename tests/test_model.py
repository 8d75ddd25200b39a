"""The version-free model (`forecourt.model`; CONTRACTS.md section 5)."""

import json
from importlib.resources import files
from itertools import product

from forecourt.contract.validation import SchemaSet
from forecourt.model import (
    FLAG_FILTERS,
    MAX_FILTERS,
    MIN_FILTERS,
    SORT_FIELDS,
    TERM_FILTERS,
    Capabilities,
    LeadRequest,
    VehicleReference,
    listing_id,
)

SCHEMAS = files("forecourt.contract") / "schema"


def filters_of(version: str) -> set[str]:
    schema = SchemaSet.load(version).inlined("inventory-search-request.schema.json")
    return set(schema["properties"]["filters"]["properties"])


def test_the_filter_tables_name_every_filter_of_3_1_and_each_once() -> None:
    tables = [*TERM_FILTERS, *MIN_FILTERS, *MAX_FILTERS, *FLAG_FILTERS]
    others = ["vin", "stock", "query", "features_all", "features_any", "features_none"]
    assert sorted(tables + others) == sorted(filters_of("3.1"))
    assert filters_of("1.1") <= {*tables, *others}


def test_filters_look_at_members_that_a_vehicle_has() -> None:
    vehicle = json.loads((SCHEMAS / "3.1" / "vehicle.schema.json").read_bytes())["properties"]
    members = {*TERM_FILTERS.values(), *MIN_FILTERS.values(), *MAX_FILTERS.values(), *FLAG_FILTERS.values()}
    assert members <= set(vehicle)
    assert set(SORT_FIELDS) <= set(vehicle)


def test_the_sort_fields_are_those_of_the_1_1_schema() -> None:
    schema = json.loads((SCHEMAS / "1.1" / "inventory-search-request.schema.json").read_bytes())
    assert sorted(SORT_FIELDS) == sorted(schema["properties"]["sort"]["properties"]["field"]["enum"])


def test_no_two_listings_of_any_two_sellers_share_an_id() -> None:
    texts = ["a", "b", "a/b", "b/a", "a~1b", "a~b", "~", "/", "a/", "/b", "1"]
    assert len({listing_id(*pair) for pair in product(texts, texts)}) == len(texts) ** 2
    assert listing_id("demo-auto-group", "v-1") == "demo-auto-group/v-1"


def test_capabilities_are_published_with_the_six_members_of_the_contract() -> None:
    found = Capabilities(("make",), ("apple_carplay",), ("price",), 10, 50, free_text=False).to_payload()
    assert found == {
        "filters": ["make"],
        "feature_codes": ["apple_carplay"],
        "sort_fields": ["price"],
        "default_limit": 10,
        "max_limit": 50,
        "free_text": False,
    }


def test_a_reference_is_true_when_it_names_anything() -> None:
    assert not VehicleReference()
    assert VehicleReference(vin="1")
    assert VehicleReference(vehicle_id="1")
    assert VehicleReference(stock="")


def test_a_lead_request_gives_its_parts_and_none_for_those_that_are_absent() -> None:
    lead = LeadRequest({"customer": {"first_name": "Sam"}, "consent": {"scope": []}, "appointment": {}})
    assert lead.customer == {"first_name": "Sam"}
    assert lead.consent == {"scope": []}
    assert lead.part("appointment") == {}
    assert lead.part("trade_in") is None
