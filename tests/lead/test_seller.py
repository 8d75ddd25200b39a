"""Sellers as they are read from their profiles (CONTRACTS.md sections 1 and 6)."""

from zoneinfo import ZoneInfo

import pytest

from forecourt.demo import DEALER_ID, profile
from forecourt.lead.calendar import AppointmentRules
from forecourt.lead.hours import HoursError
from forecourt.lead.seller import Seller

NORTH = {
    "name": "North",
    "timezone": "America/Denver",
    "schedules": [{"name": "sales", "value": {"monday": {"open": "09:00", "close": "17:00"}}}],
}


def test_a_seller_has_the_hours_of_each_rooftop_and_its_id_in_the_profile() -> None:
    seller = Seller.from_profile(DEALER_ID, profile())
    assert seller.dealer_id == seller.profile["dealer_id"] == DEALER_ID
    assert list(seller.hours) == ["Demo Toyota San Francisco", "Demo Motors Denver"]
    assert seller.hours["Demo Motors Denver"].zone == ZoneInfo("America/Denver")
    assert seller.rules == AppointmentRules()
    assert not seller.strict_times


def test_the_profile_that_was_given_is_not_changed() -> None:
    given = profile()
    Seller.from_profile("other", given)
    assert given == profile()
    assert Seller.from_profile("other", {**given, "dealer_id": "wrong"}).profile["dealer_id"] == "other"


def test_a_rooftop_is_found_by_its_exact_name() -> None:
    seller = Seller.from_profile(DEALER_ID, profile())
    found = seller.rooftop("Demo Motors Denver")
    assert found is not None
    assert found["phones"][0]["value"] == "+13035550100"
    assert seller.rooftop("demo motors denver") is None
    assert seller.rooftop(None) is None


def test_rules_strictness_and_holidays_are_taken_over() -> None:
    rules = AppointmentRules(step_minutes=15)
    holidays = {"2026-05-25": None}
    profile_of_a = {"name": "A", "rooftops": [NORTH]}
    seller = Seller.from_profile("dealer-a", profile_of_a, rules, strict_times=True, holidays=holidays)
    assert seller.rules is rules
    assert seller.strict_times
    assert [tuple(spans) for spans in seller.hours["North"].holidays.values()] == [()]


@pytest.mark.parametrize(
    "change",
    [{"timezone": "Mars/Olympus"}, {"schedules": [{"name": "", "value": {"monday": {"open": "9", "close": "x"}}}]}],
)
def test_hours_that_cannot_be_read_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(HoursError):
        Seller.from_profile("dealer-a", {"name": "A", "rooftops": [{**NORTH, **change}]})
