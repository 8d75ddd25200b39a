"""The official TypeScript clients under Node list and call every tool of both contracts, and believe our schemas.

`@modelcontextprotocol/sdk` shakes hands (MCP 2025-11-25); its successor `@modelcontextprotocol/client` speaks MCP
2026-07-28. Both check structured content against the output schema themselves where the call succeeded; ajv, in the
2020-12 dialect that MCP takes by default, checks that of errors too.
"""

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from tests.interop.npm import NODE, installed
from tests.server.running import lead
from tests.server_process import DEMO, ServerFarm

SCRIPTS: Final = Path(__file__).with_name("mcp_typescript")
REVISIONS: Final = {"sdk": "2025-11-25", "client": "2026-07-28"}
CONTRACTS: Final = ("1.1", "3.1")
WISH: Final = "a small wagon"
TOOLS: Final[dict[str, dict[str, Any]]] = {
    "aap_dealer_information": {},
    "aap_inventory_facets": {"filters": {"make": ["Toyota"]}},
    "aap_inventory_search": {"filters": {"price_max": 30000}, "sort": {"field": "price", "order": "asc"}},
    "aap_inventory_vehicle": {"stock": "T12345"},
    "aap_lead_submit": {},
}

Visit = tuple[str, str, dict[str, Any]]


@pytest.fixture(
    scope="module", params=[(client, contract) for client in REVISIONS for contract in CONTRACTS], ids="-".join
)
def visit(servers: ServerFarm, request: pytest.FixtureRequest) -> Visit:
    """A client, a contract, and what the script brought home with them."""
    client, contract = request.param
    folder = installed(SCRIPTS, request.config)
    submitted = lead()
    del submitted["type"]
    # The limit of that server is one call an hour: every visit has one of its own.
    limited = servers.get(f"rate-limited@typescript-{client}-{contract}")
    asked = {
        "client": client,
        "url": f"{servers.get(DEMO).base_url}/v{contract}/mcp",
        "limitedUrl": f"{limited.base_url}/v{contract}/mcp",
        "tools": {**TOOLS, "aap_lead_submit": submitted},
        "unconsented": {name: value for name, value in submitted.items() if name != "consent"},
        "wish": WISH,
    }
    run = subprocess.run(
        [NODE, "shop.mjs"], cwd=folder, input=json.dumps(asked), capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    return client, contract, json.loads(run.stdout)


def _checked(call: dict[str, Any], *, is_error: bool) -> dict[str, Any]:
    """Return the structured content of a call that is whole: as its text says it and as its schema allows."""
    assert call["isError"] is is_error, call["structured"]
    assert call["types"] == ["text"]
    assert call["textIsEqual"]
    assert call["violations"] == []
    assert not call["nonsenseFits"]
    structured: dict[str, Any] = call["structured"]
    return structured


def test_the_newest_revision_of_both_sides_is_spoken(visit: Visit) -> None:
    client, _, found = visit
    assert found["revision"] == REVISIONS[client]
    assert "Demo Auto Group" in found["instructions"]
    assert found["server"]["title"] == "Demo Auto Group"


def test_every_tool_is_listed_and_answers_as_its_output_schema_says(visit: Visit) -> None:
    _, contract, found = visit
    assert sorted(found["listed"]) == sorted(TOOLS)
    answers = {name: _checked(call, is_error=False) for name, call in found["called"].items()}
    for name, answer in answers.items():
        assert found["called"][name]["inputFits"]
        assert answer["type"] == f"{name.removeprefix('aap_').replace('_', '.')}.response"
    assert ("dealer_id" in answers["aap_dealer_information"]["data"]) == (contract == "3.1")
    search = answers["aap_inventory_search"]["data"]
    prices = [car["price"] for car in search["vehicles"]]
    assert prices == sorted(prices)
    assert 0 < prices[-1] <= 30000
    assert answers["aap_inventory_vehicle"]["data"]["stock"] == "T12345"
    assert answers["aap_lead_submit"]["data"]["lead_id"].startswith("lead_")


@pytest.mark.requirement("ERR-ENVELOPE-MCP")
def test_arguments_that_the_input_schema_forbids_are_typed_errors_of_the_tool(visit: Visit) -> None:
    _, _, found = visit
    assert sorted(found["refused"]) == sorted(TOOLS)
    for call in found["refused"].values():
        assert not call["inputFits"]
        error = _checked(call, is_error=True)
        assert (error["type"], error["code"]) == ("aap.error", "SCHEMA_VALIDATION_FAILED")
        assert error["retryable"] is False
        assert [problem["instanceLocation"] for problem in error["details"]["errors"]] == ["/nonsense"]


@pytest.mark.requirement("ERR-CODE-MCP-TYPED")
@pytest.mark.parametrize(
    ("call", "code", "retryable"),
    [
        ("unconsented", "CONTACT_CONSENT_REQUIRED", False),
        ("absent", "VEHICLE_NOT_FOUND", False),
        ("throttled", "RATE_LIMITED", True),
    ],
)
def test_other_failures_are_typed_errors_too(call: str, code: str, retryable: bool, visit: Visit) -> None:
    error = _checked(visit[2][call], is_error=True)
    assert (error["type"], error["code"], error["retryable"]) == ("aap.error", code, retryable)


@pytest.mark.requirement("ERR-PROTOCOL-UNKNOWN-TOOL")
def test_an_unknown_tool_is_a_failure_of_the_protocol(visit: Visit) -> None:
    client, _, found = visit
    assert found["unknownTool"]["name"] == {"sdk": "McpError", "client": "ProtocolError"}[client]
    # Invalid params: MCP, Tools, section "Error handling".
    assert found["unknownTool"]["code"] == -32602


def test_resources_and_the_prompt_are_read(visit: Visit) -> None:
    _, contract, found = visit
    uris = {"aap://search/capabilities", "aap://dealer/profile"}
    assert set(found["resources"]) == uris | ({"aap://features/vocabulary"} if contract == "3.1" else set())
    assert all(found["resources"].values())
    assert WISH in found["prompt"]
