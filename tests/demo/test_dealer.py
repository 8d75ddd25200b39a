"""The demo dealer's profile: 1.1's dealer-information schema, and the `fees` that 3.1 adds to rooftops."""

import json
import re
from importlib import resources
from typing import Any
from zoneinfo import ZoneInfo

import jsonschema_rs
import pytest

from forecourt.demo import DEALER_ID, profile

SCHEMAS = resources.files("forecourt.contract").joinpath("schema/1.1")
NAME = "dealer-information.schema.json"
ADDRESS = "_primitives/address.schema.json"

DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
ROOFTOPS = profile()["rooftops"]


def test_the_group_has_two_rooftops_in_two_time_zones() -> None:
    assert DEALER_ID == "demo-auto-group"
    assert profile()["name"] == "Demo Auto Group"
    assert {rooftop["name"]: ZoneInfo(rooftop["timezone"]).key for rooftop in ROOFTOPS} == {
        "Demo Toyota San Francisco": "America/Los_Angeles",
        "Demo Motors Denver": "America/Denver",
    }


def test_only_one_rooftop_has_a_service_department() -> None:
    serving = ["service" in rooftop["capabilities"] for rooftop in ROOFTOPS]
    scheduled = [{schedule["name"] for schedule in rooftop["schedules"]} for rooftop in ROOFTOPS]
    assert serving == [True, False]
    assert scheduled == [{"sales", "service"}, {"sales"}]


def test_the_profile_without_fees_fits_the_schema_of_1_1() -> None:
    public = profile()
    for rooftop in public["rooftops"]:
        del rooftop["fees"]
    schema, address = (json.loads(SCHEMAS.joinpath(name).read_bytes()) for name in (NAME, ADDRESS))
    registry = jsonschema_rs.Registry([(address["$id"], address)])
    validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True, registry=registry)
    assert [error.message for error in validator.iter_errors(public)] == []
    assert not validator.is_valid(profile())


def test_every_caller_gets_a_profile_of_its_own() -> None:
    profile()["rooftops"].clear()
    assert profile()["rooftops"] == ROOFTOPS


@pytest.mark.parametrize("rooftop", ROOFTOPS, ids=lambda rooftop: rooftop["name"])
def test_rooftops_have_the_members_of_the_schema_and_fees(rooftop: dict[str, Any]) -> None:
    assert set(rooftop) == {
        "name", "legal_name", "website", "geo", "emails", "phones", "address", "schedules", "timezone",
        "notes", "capabilities", "fees",
    }  # fmt: skip
    assert set(rooftop["address"]) == {"country", "state", "city", "address_line_1", "zip"}
    assert -90 <= rooftop["geo"]["latitude"] <= 90
    assert -180 <= rooftop["geo"]["longitude"] <= 180


@pytest.mark.parametrize("rooftop", ROOFTOPS, ids=lambda rooftop: rooftop["name"])
def test_contacts_are_fictitious(rooftop: dict[str, Any]) -> None:
    assert re.fullmatch(r"https://[a-z-]+\.example\.com", rooftop["website"])
    for email in rooftop["emails"]:
        assert email["value"].endswith(".example.com")
    for phone in rooftop["phones"]:
        # 555-0100 to 555-0199 are kept free for fiction.
        assert re.fullmatch(r"\+1[2-9]\d\d55501\d\d", phone["value"])


@pytest.mark.parametrize("rooftop", ROOFTOPS, ids=lambda rooftop: rooftop["name"])
def test_every_day_has_hours_or_is_closed(rooftop: dict[str, Any]) -> None:
    for schedule in rooftop["schedules"]:
        assert list(schedule["value"]) == DAYS
        for hours in schedule["value"].values():
            if hours is not None:
                assert set(hours) == {"open", "close"}
                assert re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", hours["open"])
                assert "00:00" < hours["open"] < hours["close"] <= "23:59"


def test_each_rooftop_has_one_mandatory_fee() -> None:
    fees = [[(fee["name"], fee["amount"]) for fee in rooftop["fees"]] for rooftop in ROOFTOPS]
    # 24990 and 1790 make the 26780 of the example in "Skills over A2A", section "inventory.search".
    assert fees == [[("Dealer preparation and documentation", 1790)], [("Dealer handling", 699)]]
