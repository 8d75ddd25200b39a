"""JSON strings among arguments are read where the schema wants an array or an object, and nowhere else (ours)."""

import copy
import json
from typing import Any, Final

import pytest
from tests.contract.example_requests import VERSIONS, contract, request

from forecourt.binding.mcp.argument import reader
from forecourt.contract import SKILLS

SEARCH: Final = reader(contract("3.1").schemas.inlined("inventory-search-request.schema.json"))


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({"filters": '{"make": ["Honda"]}'}, {"filters": {"make": ["Honda"]}}),
        ({"filters": {"make": '["Honda", "Kia"]'}}, {"filters": {"make": ["Honda", "Kia"]}}),
        ({"filters": '{"make": "[\\"Honda\\"]"}'}, {"filters": {"make": ["Honda"]}}),
        ({"sort": ' {"field":"price","order":"asc"}'}, {"sort": {"field": "price", "order": "asc"}}),
        ('{"pagination": {"limit": 3}}', {"pagination": {"limit": 3}}),
        ({"filters": {"query": '["Honda"]'}}, {"filters": {"query": '["Honda"]'}}),
        ({"filters": {"query": '{"a": 1}', "stock": "[1]"}}, {"filters": {"query": '{"a": 1}', "stock": "[1]"}}),
        ({"filters": {"make": ['["Honda"]']}}, {"filters": {"make": ['["Honda"]']}}),
        ({"filters": {"price_max": "30000"}}, {"filters": {"price_max": "30000"}}),
        ({"filters": {"make": '{"a": 1}'}}, {"filters": {"make": '{"a": 1}'}}),
        ({"filters": "[1]"}, {"filters": "[1]"}),
        ({"filters": '{"make": ['}, {"filters": '{"make": ['}),
        ({"filters": '{"make": [], "make": []}'}, {"filters": '{"make": [], "make": []}'}),
        ({"filters": "Honda"}, {"filters": "Honda"}),
        ({"filters": '{"a": "\\ud800"}'}, {"filters": '{"a": "\\ud800"}'}),
        ({"unknown": "[1]"}, {"unknown": "[1]"}),
        ({"filters": None, "sort": 7}, {"filters": None, "sort": 7}),
        ([1], [1]),
        (None, None),
    ],
)
def test_a_string_is_read_as_what_the_schema_wants_or_stays(sent: Any, read: Any) -> None:
    assert SEARCH(copy.deepcopy(sent)) == read


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("skill", SKILLS.values(), ids=SKILLS)
def test_every_array_and_object_of_a_request_may_come_as_text(skill: Any, version: str) -> None:
    made = contract(version)
    payload = {name: value for name, value in request(skill.id).items() if name in _known(made, skill)}
    read = reader(made.schemas.inlined(skill.request_schema))
    texts = {name: json.dumps(value) if isinstance(value, list | dict) else value for name, value in payload.items()}
    deep = {name: _as_texts(value) for name, value in payload.items()}
    assert made.schemas.is_valid(skill.request_schema, payload)
    assert read(copy.deepcopy(payload)) == read(texts) == read(deep) == payload


def _known(made: Any, skill: Any) -> Any:
    return made.schemas.inlined(skill.request_schema)["properties"]


def _as_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return json.dumps({name: _as_texts(inner) for name, inner in value.items()})
    return json.dumps([_as_texts(item) for item in value]) if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("schema", "sent", "read"),
    [
        ({"anyOf": [{"type": "array"}, {"type": "integer"}]}, "[1]", [1]),
        ({"anyOf": [{"type": "array"}, {"type": "string"}]}, "[1]", "[1]"),
        ({"type": ["array", "null"]}, "[1]", [1]),
        ({"type": ["array", "string"]}, "[1]", "[1]"),
        ({"oneOf": [{"properties": {"a": {"type": "array"}}}]}, {"a": "[1]"}, {"a": [1]}),
        ({"allOf": [{"then": {"properties": {"a": {"type": "object"}}}}]}, {"a": "{}"}, {"a": {}}),
        ({"type": "object", "additionalProperties": {"type": "array"}}, {"a": "[1]"}, {"a": [1]}),
        ({"type": "array", "items": {"type": "object"}}, ['{"a": 1}', "x"], [{"a": 1}, "x"]),
        ({"type": "array", "enum": ["[1]"]}, "[1]", "[1]"),
        ({"type": "object", "const": "{}"}, "{}", "{}"),
        ({"properties": {"a": True}}, '{"a": "[1]"}', {"a": "[1]"}),
        ({}, "[1]", "[1]"),
    ],
)
def test_alternatives_and_additions_of_a_schema_are_looked_at(schema: Any, sent: Any, read: Any) -> None:
    assert reader(schema)(sent) == read


def test_a_text_nested_too_deep_stays_a_text() -> None:
    text = "[" * 5000 + "]" * 5000
    assert reader({"type": "array"})(text) == text
