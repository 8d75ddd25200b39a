"""The description of the operations: valid, complete, and its examples true to the contract."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.binding.test_pap import STATUS_OF_CODE

from forecourt.contract import Contract, Offer, contract_class
from forecourt.contract.validation import SchemaSet
from forecourt.errors import CODES
from forecourt.model import Capabilities
from forecourt.server.pap.openapi import ERRORS, description

CONTRACT: Contract = contract_class("3.1")(
    Offer(Capabilities(("make", "price_max"), ("apple_carplay",), ("price",)), frozenset({"apple_carplay"}))
)
DOCUMENT = description(CONTRACT, "Example Motors", "https://dealer.example.com")
SCHEMAS = SchemaSet.load("3.1")
OPERATIONS = {skill: DOCUMENT["paths"][f"/api/{skill}"]["post"] for skill in CONTRACT.skills}


def test_a_public_validator_finds_nothing_wrong() -> None:
    assert list(OpenAPIV31SpecValidator(DOCUMENT).iter_errors()) == []
    assert json.loads(json.dumps(DOCUMENT)) == DOCUMENT


def test_every_skill_is_one_operation_named_by_its_id() -> None:
    assert {skill: operation["operationId"] for skill, operation in OPERATIONS.items()} == {
        skill: skill for skill in CONTRACT.skills
    }
    assert len(DOCUMENT["paths"]) == 5


def refs(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for value in part.values():
            yield from refs(value)
    elif isinstance(part, list):
        for value in part:
            yield from refs(value)


def test_every_reference_leads_somewhere_within_the_document() -> None:
    found = set(refs(DOCUMENT))
    assert found
    for reference in found:
        assert reference.startswith("#/")
        place: Any = DOCUMENT
        for token in reference[2:].split("/"):
            place = place[token]
        assert isinstance(place, dict)


@pytest.mark.parametrize("skill", OPERATIONS)
def test_request_and_response_are_the_contracts_schemas(skill: str) -> None:
    declared = CONTRACT.skills[skill]
    for file, place in (
        (declared.request_schema, OPERATIONS[skill]["requestBody"]),
        (declared.response_schema, OPERATIONS[skill]["responses"]["200"]),
    ):
        name = place["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        ours = DOCUMENT["components"]["schemas"][name]
        theirs = json.loads(SCHEMAS.text(file))
        assert ours["properties"].keys() == theirs["properties"].keys()
        assert ours["required"] == theirs["required"]


@pytest.mark.parametrize("skill", OPERATIONS)
def test_examples_fit_the_schemas(skill: str) -> None:
    declared, operation = CONTRACT.skills[skill], OPERATIONS[skill]
    requests = [each["value"] for each in operation["requestBody"]["content"]["application/json"]["examples"].values()]
    answers = operation["responses"]["200"]["content"]["application/json"]["examples"].values()
    assert requests
    for request in requests:
        assert SCHEMAS.problems(declared.request_schema, request) == []
    assert [SCHEMAS.problems(declared.response_schema, each["value"]) for each in answers] == [[]]


@pytest.mark.parametrize("skill", OPERATIONS)
def test_every_error_of_a_skill_is_documented_with_its_status_and_an_example(skill: str) -> None:
    responses = OPERATIONS[skill]["responses"]
    for code in ERRORS[skill]:
        content = responses[str(STATUS_OF_CODE[code])]["content"]["application/json"]
        example = content["examples"][code]["value"]
        assert example["code"] == code
        assert SCHEMAS.problems("error.schema.json", example) == []
    assert {"200", "400", "401", "413", "415", "422", "429", "500"} <= responses.keys()
    assert "Retry-After" in responses["429"]["headers"]
    assert "WWW-Authenticate" in responses["401"]["headers"]


def test_every_code_is_some_skills() -> None:
    assert {code for codes in ERRORS.values() for code in codes} == set(CODES)


def test_only_a_lead_takes_an_idempotency_key() -> None:
    with_key = {skill for skill, operation in OPERATIONS.items() if "parameters" in operation}
    assert with_key == {"lead.submit"}
    [parameter] = OPERATIONS["lead.submit"]["parameters"]
    assert (parameter["name"], parameter["in"], parameter["required"]) == ("Idempotency-Key", "header", False)
    assert "503" in OPERATIONS["lead.submit"]["responses"]


def test_what_the_deployment_offers_is_published() -> None:
    assert DOCUMENT["info"]["x-aap"]["search_capabilities"] == CONTRACT.offer.capabilities.to_payload()
    assert DOCUMENT["info"]["x-aap"]["extension_uri"] == "https://autoagentprotocol.org/extensions/aap/v3.1"


def test_a_call_needs_a_token_and_a_proof() -> None:
    assert DOCUMENT["security"] == [{"session_token": [], "dpop_proof": []}]
    schemes = DOCUMENT["components"]["securitySchemes"]
    assert (schemes["session_token"]["scheme"], schemes["dpop_proof"]["name"]) == ("DPoP", "DPoP")
