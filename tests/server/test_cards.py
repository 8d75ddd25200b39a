"""The agent cards: one contract each, at one address ("JSON-RPC 2.0 binding", section "Endpoint and method")."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.running import JSON, RunningAgent, envelope, running, search

import forecourt
from forecourt.contract.validation import SchemaSet

CARD = "/.well-known/agent-card.json"
DEALER = "/dealers/demo-auto-group"
CARDS = [
    (CARD, "3.1", "/a2a"),
    (f"/v1.1{CARD}", "1.1", "/v1.1/a2a"),
    (f"/v3.1{CARD}", "3.1", "/v3.1/a2a"),
    (f"{DEALER}{CARD}", "3.1", f"{DEALER}/a2a"),
    (f"{DEALER}/v1.1{CARD}", "1.1", f"{DEALER}/v1.1/a2a"),
    (f"{DEALER}/v3.1{CARD}", "3.1", f"{DEALER}/v3.1/a2a"),
]
every = pytest.mark.parametrize(("path", "version", "endpoint"), CARDS)


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAgent]:
    """An agent that knows the address it is known by."""
    server = {"public_url": "https://dealer.example.com/agent"}
    with running(tmp_path_factory.mktemp("public"), server=server) as agent:
        yield agent


def card_of(agent: RunningAgent, path: str) -> dict[str, Any]:
    """Return the card at a path."""
    reply = agent.get(path)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    card: dict[str, Any] = reply.json()
    return card


@every
def test_a_card_fits_the_schema_of_its_contract(demo: RunningAgent, path: str, version: str, endpoint: str) -> None:
    del endpoint
    assert SchemaSet.load(version).problems("agent-card.schema.json", card_of(demo, path)) == []


@every
@pytest.mark.requirement(
    "RPC-CARD-JSONRPC", "RPC-CARD-NO-REST", "RPC-CARD-NO-GRPC", "RPC-SOLE-IN-1-1", "RPC-CARD-INTERFACES",
    "RPC-CARD-URL-ANSWERS",
)  # fmt: skip
def test_a_card_names_one_json_rpc_address_and_that_address_answers(
    demo: RunningAgent, path: str, version: str, endpoint: str
) -> None:
    interfaces = card_of(demo, path)["supportedInterfaces"]
    assert [(entry["protocolBinding"], entry["protocolVersion"]) for entry in interfaces] == [("JSONRPC", "1.0")]
    assert interfaces[0]["url"] == demo.base_url + endpoint
    reply = demo.request("POST", endpoint, json.dumps(envelope(search())), JSON)
    assert "result" in reply.json()
    assert reply.headers["a2a-extensions"].endswith(f"/v{version}")


@every
def test_a_card_declares_exactly_its_own_contract(demo: RunningAgent, path: str, version: str, endpoint: str) -> None:
    del endpoint
    card = card_of(demo, path)
    (extension,) = card["capabilities"]["extensions"]
    assert extension["uri"] == f"https://autoagentprotocol.org/extensions/aap/v{version}"
    assert extension.get("required", False) is (version == "3.1")
    assert extension["params"]["version"] == f"{version}.0"
    assert ("search_capabilities" in extension["params"]) is (version == "3.1")
    assert card["version"] == forecourt.__version__


def test_a_card_lists_the_five_skills_with_their_media_types(demo: RunningAgent) -> None:
    skills = card_of(demo, CARD)["skills"]
    assert [skill["id"] for skill in skills] == [
        "dealer.information", "inventory.facets", "inventory.search", "inventory.vehicle", "lead.submit",
    ]  # fmt: skip
    assert "application/vnd.autoagent.vehicle-detail-request+json" in skills[3]["inputModes"]
    assert "application/vnd.autoagent.vehicle-detail-response+json" in skills[3]["outputModes"]


def test_a_card_claims_neither_streams_nor_pushes(demo: RunningAgent) -> None:
    capabilities = card_of(demo, CARD)["capabilities"]
    assert not any(capabilities.get(name) for name in ("streaming", "pushNotifications", "extendedAgentCard"))


@every
def test_cards_name_the_public_address_where_one_is_configured(
    public: RunningAgent, path: str, version: str, endpoint: str
) -> None:
    del version
    assert card_of(public, path)["supportedInterfaces"][0]["url"] == f"https://dealer.example.com/agent{endpoint}"


def test_without_a_public_address_the_card_names_the_one_it_was_asked_at(demo: RunningAgent) -> None:
    card = demo.get(CARD, Host="cars.example.com").json()
    assert card["supportedInterfaces"][0]["url"] == "http://cars.example.com/a2a"


def test_what_the_card_offers_is_what_the_dealer_information_offers(demo: RunningAgent) -> None:
    (extension,) = card_of(demo, CARD)["capabilities"]["extensions"]
    answer = demo.call({"type": "dealer.information.request"})
    data = answer["result"]["message"]["parts"][0]["data"]["data"]
    assert data["search_capabilities"] == extension["params"]["search_capabilities"]
    assert data["name"] == card_of(demo, CARD)["name"]


@pytest.mark.parametrize("path", [f"/dealers/nobody{CARD}", f"/v9.9{CARD}", f"/dealers/nobody/v3.1{CARD}"])
def test_there_is_no_card_of_what_is_not_served(demo: RunningAgent, path: str) -> None:
    assert demo.get(path).status == 404
