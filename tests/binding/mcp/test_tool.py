"""The tools: what models and hosts are told of them, and the schemas of their arguments and results."""

import json
from typing import Any, Final

import jsonschema_rs
import pytest
from tests.contract.example_requests import FEATURES, FILTERS, VERSIONS, contract, request

from forecourt.binding.mcp import Toolbox, tool_name
from forecourt.contract import SKILLS
from forecourt.model import SORT_FIELDS

both = pytest.mark.parametrize("version", VERSIONS)
TOOLS: Final = {
    version: {tool["name"]: tool for tool in json.loads(Toolbox(contract(version)).listed)["tools"]}
    for version in VERSIONS
}


def _tools(version: str, **offer: Any) -> dict[str, Any]:
    return {tool["name"]: tool for tool in json.loads(Toolbox(contract(version, **offer)).listed)["tools"]}


@both
def test_every_skill_is_a_tool_by_its_name(version: str) -> None:
    names = ["dealer_information", "inventory_facets", "inventory_search", "inventory_vehicle", "lead_submit"]
    assert list(TOOLS[version]) == [f"aap_{name}" for name in names] == [tool_name(skill) for skill in SKILLS]


@both
@pytest.mark.parametrize("kind", ["inputSchema", "outputSchema"])
def test_the_schemas_are_objects_of_json_schema_2020_12_without_references(kind: str, version: str) -> None:
    for tool in TOOLS[version].values():
        schema = tool[kind]
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
        assert schema["type"] == "object"
        # A reader of another dialect gives up on a schema that names one; without a name it is MCP's default.
        assert not {"$ref", "$id", "$schema", "$defs"} & _names(schema)


@both
def test_the_root_of_the_arguments_has_no_rules_that_model_providers_refuse(version: str) -> None:
    for tool in TOOLS[version].values():
        assert tool["inputSchema"].keys() <= {"type", "properties", "required", "additionalProperties"}


def _names(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(_names, schema))
    return set(schema).union(*map(_names, schema.values())) if isinstance(schema, dict) else set()


@both
@pytest.mark.parametrize("skill", SKILLS.values(), ids=SKILLS)
def test_good_arguments_fit_with_and_without_their_type(skill: Any, version: str) -> None:
    schema = TOOLS[version][tool_name(skill.id)]["inputSchema"]
    arguments = {name: value for name, value in request(skill.id).items() if name in schema["properties"]}
    jsonschema_rs.validate(schema, arguments)
    jsonschema_rs.validate(schema, {name: value for name, value in arguments.items() if name != "type"})
    assert not jsonschema_rs.is_valid(schema, {**arguments, "type": "vehicle.reserve.request"})
    assert not jsonschema_rs.is_valid(schema, {**arguments, "nonsense": 1})


def test_what_is_switched_off_is_not_in_the_arguments() -> None:
    filters = tuple(name for name in FILTERS if name not in ("make", "features_all"))
    tools = _tools("3.1", filters=filters, feature_codes=("sunroof",), sort_fields=("price", "year"), free_text=False)
    for name in ("aap_inventory_search", "aap_inventory_facets"):
        shown = tools[name]["inputSchema"]["properties"]["filters"]["properties"]
        assert shown.keys() == set(filters)
        assert shown["features_any"]["items"]["enum"] == ["sunroof"]
    sort = tools["aap_inventory_search"]["inputSchema"]["properties"]["sort"]["properties"]["field"]
    assert sort["enum"] == ["price", "year"]
    assert sort.keys() == {"type", "enum", "description"}


def test_nothing_to_sort_by_and_no_codes_leave_sort_and_feature_filters_out() -> None:
    shown = _tools("3.1", feature_codes=(), sort_fields=())["aap_inventory_search"]["inputSchema"]["properties"]
    assert "sort" not in shown
    assert not {"features_all", "features_any", "features_none"} & shown["filters"]["properties"].keys()


def test_everything_that_is_on_is_in_the_arguments() -> None:
    shown = TOOLS["3.1"]["aap_inventory_search"]["inputSchema"]["properties"]
    assert shown["filters"]["properties"].keys() == {*FILTERS, "query"}
    assert shown["filters"]["properties"]["features_all"]["items"]["enum"] == list(FEATURES)
    assert shown["sort"]["properties"]["field"]["enum"] == list(SORT_FIELDS)


def test_the_older_contract_sorts_by_its_own_fields() -> None:
    shown = TOOLS["1.1"]["aap_inventory_search"]["inputSchema"]["properties"]
    official = contract("1.1").schemas.inlined("inventory-search-request.schema.json")["properties"]
    assert set(shown["sort"]["properties"]["field"]["enum"]) <= set(official["sort"]["properties"]["field"]["enum"])
    assert shown["filters"]["properties"].keys() == official["filters"]["properties"].keys()


@both
def test_the_words_of_a_condition_are_those_of_its_vehicle(version: str) -> None:
    shown = TOOLS[version]["aap_lead_submit"]["inputSchema"]["properties"]
    assert shown["vehicle_of_interest"]["properties"]["condition"]["enum"] == ["new", "used", "cpo"]
    assert shown["trade_in"]["properties"]["condition"]["enum"] == ["excellent", "good", "fair", "poor"]


@both
def test_an_error_fits_the_output_schema_as_a_response_does(version: str) -> None:
    made = contract(version)
    for skill in SKILLS.values():
        schema = TOOLS[version][tool_name(skill.id)]["outputSchema"]
        for example in made.schemas.inlined("error.schema.json").get("examples", []):
            jsonschema_rs.validate(schema, example)
        for example in made.schemas.inlined(skill.response_schema).get("examples", []):
            jsonschema_rs.validate(schema, example)
        assert not jsonschema_rs.is_valid(schema, {"type": "aap.error"})
        assert not jsonschema_rs.is_valid(schema, {"type": "vehicle.reserve.response", "data": {}})


@both
def test_the_annotations_are_true(version: str) -> None:
    for name, tool in TOOLS[version].items():
        writes = name == "aap_lead_submit"
        told = {key: value for key, value in tool["annotations"].items() if key != "title"}
        assert told == {
            "readOnlyHint": not writes, "destructiveHint": False, "idempotentHint": True, "openWorldHint": writes
        }  # fmt: skip


@both
def test_every_tool_has_a_title_and_an_icon(version: str) -> None:
    for tool in TOOLS[version].values():
        assert tool["title"] == tool["annotations"]["title"]
        assert tool["icons"][0]["src"].startswith("data:image/svg+xml;base64,")


def test_a_model_is_told_how_to_page_in_the_contract_at_hand() -> None:
    newer = TOOLS["3.1"]["aap_inventory_search"]["description"]
    older = TOOLS["1.1"]["aap_inventory_search"]["description"]
    assert "next_cursor" in newer
    assert "skip" not in newer
    assert "pagination.skip" in older
    assert "cursor" not in older


@both
def test_a_model_is_told_units_prices_and_consent(version: str) -> None:
    search, lead = (TOOLS[version][f"aap_{name}"]["description"] for name in ("inventory_search", "lead_submit"))
    assert all(word in search for word in ("US dollars", "miles", "mandatory fee", "updated_at", "at most 100"))
    assert all(word in lead for word in ("consent_text", "clear yes", "idempotency_key", "never a new key"))


def test_a_name_of_no_skill_is_no_tool() -> None:
    box = Toolbox(contract("3.1"))
    assert box.get("aap_vehicle_reserve") is None
    assert [box.get(name) is not None for name in box.names] == [True] * 5
