"""`forecourt call`."""

import json
from pathlib import Path

import pytest
from tests.cli.shopping import printed, run

from forecourt.cli.call import SKILLS
from forecourt.contract import SKILLS as CONTRACT


def test_a_payload_goes_in_and_a_payload_comes_out(demo: str, tmp_path: Path) -> None:
    payload = '{"pagination": {"limit": 1}}'
    found = printed("call", demo, "inventory.search", payload)
    assert found["type"] == "inventory.search.response"
    assert len(found["data"]["vehicles"]) == 1
    place = tmp_path / "payload.json"
    place.write_text(payload)
    assert printed("call", demo, "inventory.search", f"@{place}")["data"]["vehicles"] == found["data"]["vehicles"]
    assert printed("call", demo, "inventory.search", "-", text=payload)["data"]["limit"] == 1
    assert printed("call", demo, "dealer.information")["data"]["dealer_id"] == "demo-auto-group"


def test_a_failure_is_the_aap_error_and_status_1(demo: str) -> None:
    error = printed("call", demo, "inventory.search", '{"type": "inventory.search.request", "mkae": 1}', status=1)
    assert (error["type"], error["code"]) == ("aap.error", "SCHEMA_VALIDATION_FAILED")
    assert error["details"]["errors"][0]["instanceLocation"] == "/mkae"


@pytest.mark.parametrize("payload", ["{", "[]", "5", "@/nowhere/at/all", "[" * 100_000])
def test_a_payload_that_is_none_is_wrong_usage(demo: str, payload: str) -> None:
    result = run("call", demo, "inventory.search", payload)
    assert result.exit_code == 2
    assert "the payload" in result.stderr


def test_the_skills_are_those_of_the_contracts() -> None:
    assert tuple(CONTRACT) == SKILLS


def test_a_skill_that_is_none_is_wrong_usage(demo: str) -> None:
    assert run("call", demo, "wash.car").exit_code == 2


def test_a_lead_gets_its_key(demo: str) -> None:
    error = printed("call", demo, "lead.submit", json.dumps({"customer": {}}), status=1)
    assert error["code"] == "SCHEMA_VALIDATION_FAILED"
