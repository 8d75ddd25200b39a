"""The official `@a2a-js/sdk` 1.3.0 client under Node, over real HTTP: card, activation, five skills, four failures."""

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from tests.interop.npm import NODE, installed
from tests.server_process import ServerFarm

SCRIPTS: Final = Path(__file__).with_name("a2a_js")
HOW_TO: Final = Path(__file__).parents[2] / "docs" / "how-to" / "build-a-buyer-agent.md"


@pytest.fixture(scope="module")
def shopped(servers: ServerFarm, request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the script brought home."""
    folder = installed(SCRIPTS, request.config)
    addresses = [servers.get(name).base_url for name in ("demo", "rate-limited")]
    run = subprocess.run(
        [NODE, "shop.mjs", *addresses], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_the_card_is_fetched_and_the_extension_activated(shopped: dict[str, Any]) -> None:
    assert shopped["name"] == "Demo Auto Group"
    assert shopped["uri"] == "https://autoagentprotocol.org/extensions/aap/v3.1"


def test_all_five_skills_answer_with_whole_numbers(shopped: dict[str, Any]) -> None:
    assert shopped["information"]["data"]["dealer_id"] == "demo-auto-group"
    assert shopped["facets"]["data"]["makes"][0] == {"value": "Tesla", "count": 20}
    car = shopped["search"]["data"]["vehicles"][0]
    assert {type(car[name]) for name in ("price", "year", "mileage")} == {int}
    assert shopped["vehicle"]["data"] == car
    assert shopped["receipt"]["data"]["lead_id"].startswith("lead_")
    assert shopped["replayed"] == shopped["receipt"]


@pytest.mark.requirement("ERR-SDK-VERIFY-CLIENT", "ERR-SDK-JS-ARRAY")
def test_validation_consent_and_rate_limit_are_typed_errors_in_full(shopped: dict[str, Any]) -> None:
    validation, consent, throttled = (shopped[name]["aap"] for name in ("validation", "unconsented", "throttled"))
    assert validation["code"] == "SCHEMA_VALIDATION_FAILED"
    assert [each["instanceLocation"] for each in validation["details"]["errors"]] == [
        "/filters/mkae",
        "/filters/year_min",
    ]
    assert (consent["code"], consent["retryable"]) == ("CONTACT_CONSENT_REQUIRED", False)
    assert (throttled["code"], throttled["retryable"]) == ("RATE_LIMITED", True)
    assert throttled["details"]["retry_after_ms"] > 0


def test_an_activation_error_is_the_sdks_own_and_no_skill_error(shopped: dict[str, Any]) -> None:
    assert shopped["inactive"]["aap"] is None


def test_the_documented_adapter_is_the_one_that_was_tried() -> None:
    adapter = (SCRIPTS / "aap_error.mjs").read_text(encoding="utf-8")
    assert f"```js\n{adapter}```" in HOW_TO.read_text(encoding="utf-8")
