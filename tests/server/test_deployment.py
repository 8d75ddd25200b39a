"""What a configuration is made into, and mistakes in it that only show against the files and names it speaks of."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.server.running import aap_error, lead, running, search

from forecourt.demo import profile
from forecourt.lead.adf import check
from forecourt.server import ConfigError, create_app, load
from forecourt.server.deployment import ALL_FILTERS


def own_dealer(folder: Path, **changes: Any) -> dict[str, str]:
    """Write a dealer's profile and return the configuration that names it."""
    file = folder / "profile.json"
    file.write_text(json.dumps({**profile(), **changes}), encoding="utf-8")
    return {"id": "own", "profile": str(file)}


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"search": {"filters_off": ["color", "make"]}}, "search.filters_off: no such name: color"),
    ({"search": {"filters_off": ["query"]}}, "search.filters_off: no such name: query"),
    ({"search": {"features_off": ["flying"]}}, "search.features_off: no such name: flying"),
    ({"search": {"sort_fields_off": ["colour"]}}, "search.sort_fields_off: no such name: colour"),
    ({"search": {"default_limit": 50, "max_limit": 20}}, "search.default_limit: must not be above search.max_limit"),
    ({"search": {"vocabulary": ["missing.toml"]}}, "search.vocabulary: "),
    ({"dealer": {"id": "own", "profile": "missing.json"}}, "dealer.profile: missing.json cannot be read"),
    ({"appointments": {"minutes": {"haircut": 30}}}, "appointments: "),
    ({"appointments": {"capacity": {"kitchen": 1}}}, "appointments: "),
    ({"appointments": {"notice_minutes": 100_000, "horizon_days": 1}}, "appointments: "),
    ({"appointments": {"holidays": {"Christmas": False}}}, "appointments.holidays."),
    ({"appointments": {"holidays": {"2026-12-25": True}}}, "appointments.holidays."),
    (
        {"appointments": {"holidays": {"2026-12-25": {"open": "noon", "close": "late"}}}},
        "appointments.holidays.2026-12-25: opening hours are written HH:MM",
    ),
    ({"store": "cassandra:nowhere"}, "store: "),
]


@pytest.mark.parametrize(("sections", "message"), MISTAKES)
def test_a_mistake_is_told_before_anything_starts(sections: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        create_app(load(None, **sections))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "{", "5", "[]", "{}", '{"name": "x"}'])
def test_a_profile_that_is_none_is_told(tmp_path: Path, content: str) -> None:
    tmp_path.joinpath("profile.json").write_text(content)
    dealer = {"id": "own", "profile": str(tmp_path / "profile.json")}
    with pytest.raises(ConfigError, match=r"^dealer\.profile: "):
        create_app(load(None, dealer=dealer))


def test_a_dealer_of_ones_own_is_served_instead_of_the_demo(tmp_path: Path) -> None:
    with running(tmp_path / "data", dealer=own_dealer(tmp_path, name="Own Cars")) as agent:
        assert not agent.app.deployment.is_demo
        answer = agent.call({"type": "dealer.information.request", "dealer_id": "own"}, "/dealers/own/v3.1/a2a")
        data = answer["result"]["message"]["parts"][0]["data"]["data"]
        assert (data["name"], data["dealer_id"]) == ("Own Cars", "own")
        found = agent.call(search())["result"]["message"]["parts"][0]["data"]["data"]
        assert found["total"] == 0


def test_what_is_switched_off_is_neither_advertised_nor_served(tmp_path: Path) -> None:
    off = {
        "filters_off": ["charge_port"], "features_off": ["sunroof"], "sort_fields_off": ["msrp"], "free_text": False,
        "default_limit": 3, "max_limit": 5,
    }  # fmt: skip
    with running(tmp_path, search=off) as agent:
        offered = agent.app.deployment.capabilities
        assert set(ALL_FILTERS) - set(offered.filters) == {"charge_port"}
        assert "sunroof" not in offered.feature_codes
        assert "msrp" not in offered.sort_fields
        for members, code in (
            ({"filters": {"charge_port": ["nacs"]}}, "UNSUPPORTED_FILTER"),
            ({"filters": {"query": "red"}}, "UNSUPPORTED_FILTER"),
            ({"filters": {"features_any": ["sunroof"]}}, "UNSUPPORTED_FILTER"),
            ({"sort": {"field": "msrp", "order": "asc"}}, "UNSUPPORTED_SORT"),
        ):
            assert aap_error(agent.call(search(**members)))["code"] == code
        pages = [
            agent.call(search(pagination=paging))["result"]["message"]["parts"][0]["data"]["data"]
            for paging in ({}, {"limit": 4}, {"limit": 100})
        ]
        assert [(page["limit"], len(page["vehicles"])) for page in pages] == [(3, 3), (4, 4), (5, 5)]


def test_a_restart_on_the_same_data_serves_the_same_stock(tmp_path: Path) -> None:
    pages = []
    for _ in range(2):
        with running(tmp_path) as agent:
            answer = agent.call(search(pagination={"limit": 100}))
            pages.append(answer["result"]["message"]["parts"][0]["data"]["data"]["vehicles"])
    assert pages[0] == pages[1]
    assert len(pages[0]) == 100


def test_a_newcomers_lead_is_a_file_beside_the_database_within_moments(tmp_path: Path) -> None:
    with running(tmp_path) as agent:
        answer = agent.call(lead())["result"]["message"]["parts"][0]["data"]["data"]
        files: list[Path] = []
        for _ in range(1000):
            if files := list((tmp_path / "leads").glob("*.adf.xml")):
                break
            time.sleep(0.01)
        (file,) = files
        assert file.name.startswith(answer["lead_id"])
        assert check(file.read_bytes()) == []
        assert agent.get("/readyz").json()["deliveries"].keys() == {"waiting", "parked"}


def test_a_lead_keeps_what_is_said_of_its_vehicle_though_the_vehicle_leaves_before_it_is_sent(tmp_path: Path) -> None:
    with running(tmp_path, leads={"parallel": 1}) as agent:
        deployment = agent.app.deployment
        vehicle = agent.call(search())["result"]["message"]["parts"][0]["data"]["data"]["vehicles"][0]
        (tmp_path / "leads").rename(tmp_path / "away")
        lead_id = agent.call(lead(vehicle_of_interest={"vin": vehicle["vin"]}))["result"]["message"]["parts"][0][
            "data"
        ]["data"]["lead_id"]
        agent.run(deployment.store.replace_listings(vehicle["dealer_id"], None, [], datetime.now(UTC)))
        (tmp_path / "away").rename(tmp_path / "leads")
        agent.run(deployment.store.resend_deliveries(lead_id, datetime.now(UTC)))
        agent.loop.call_soon_threadsafe(agent.app.deployment.prepare_leads().wake)
        for _ in range(1000):
            if files := list((tmp_path / "leads").glob("*.adf.xml")):
                break
            time.sleep(0.01)
        root = ElementTree.fromstring(files[0].read_bytes())
        assert root.findtext("prospect/vehicle/make") == vehicle["make"]
        assert root.findtext("prospect/vehicle/vin") == vehicle["vin"]
