"""Opening hours on a rooftop's own clock (official 1.1 schema, dealer-information, schedules)."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from forecourt.lead.hours import HoursError, OpeningHours, hosts, is_open

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday")
WEEK = (*WEEKDAYS, "saturday", "sunday")


def daily(opens: str, closes: str, days: tuple[str, ...] = WEEK) -> dict[str, Any]:
    return {day: {"open": opens, "close": closes} for day in days}


def rooftop(zone: str | None = "America/Los_Angeles", **schedules: Mapping[str, Any]) -> dict[str, Any]:
    profile: dict[str, Any] = {
        "name": "Demo Toyota",
        "schedules": [{"name": name, "value": week} for name, week in schedules.items()],
    }
    return profile if zone is None else {**profile, "timezone": zone}


def read(zone: str = "America/Los_Angeles", **schedules: Mapping[str, Any]) -> OpeningHours:
    return OpeningHours.from_profile(rooftop(zone, **schedules))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


NINE_TO_SIX = read(sales={**daily("09:00", "18:00", WEEKDAYS), "saturday": None, "sunday": None})


@pytest.mark.parametrize(
    ("start", "minutes", "answer"),
    [
        ("2026-05-04T09:00:00-07:00", 60, True),
        ("2026-05-04T08:59:59-07:00", 60, False),
        ("2026-05-04T17:00:00-07:00", 60, True),
        ("2026-05-04T17:00:01-07:00", 60, False),
        ("2026-05-04T09:00:00-07:00", 540, True),
        ("2026-05-04T09:00:00-07:00", 541, False),
        ("2026-05-04T18:00:00+02:00", 60, True),  # 09:00 in Los Angeles, asked for in another offset
        ("2026-05-04T09:00:00+00:00", 60, False),  # 02:00 there
        ("2026-05-09T11:00:00-07:00", 60, False),  # a Saturday, closed by null
        ("2026-05-10T11:00:00-07:00", 60, False),  # a Sunday
        ("2026-05-04T11:00:00-07:00", 0, False),
        ("2026-05-04T11:00:00-07:00", 10**30, False),
    ],
)
def test_the_whole_appointment_lies_in_the_opening_hours(start: str, minutes: int, answer: bool) -> None:
    assert is_open(NINE_TO_SIX, "test_drive", utc(start), minutes) is answer


def test_a_day_that_the_schedule_leaves_out_is_closed() -> None:
    hours = read(sales=daily("09:00", "18:00", WEEKDAYS))
    assert not is_open(hours, "sales", utc("2026-05-10T11:00:00-07:00"), 60)


def test_hours_that_close_before_they_open_run_past_midnight() -> None:
    hours = read(sales={"friday": {"open": "18:00", "close": "02:00"}})
    assert is_open(hours, "sales", utc("2026-05-08T23:30:00-07:00"), 60)
    assert is_open(hours, "sales", utc("2026-05-09T01:00:00-07:00"), 60)
    assert not is_open(hours, "sales", utc("2026-05-09T01:30:00-07:00"), 60)
    assert not is_open(hours, "sales", utc("2026-05-08T01:00:00-07:00"), 60)


def test_a_close_at_midnight_is_the_end_of_the_day() -> None:
    hours = read(sales={"friday": {"open": "09:00", "close": "00:00"}})
    assert is_open(hours, "sales", utc("2026-05-08T23:00:00-07:00"), 60)
    assert not is_open(hours, "sales", utc("2026-05-08T23:30:00-07:00"), 60)


def test_open_round_the_clock_goes_on_over_midnight() -> None:
    hours = read(sales=daily("00:00", "23:59"))
    assert is_open(hours, "sales", utc("2026-05-08T23:30:00-07:00"), 60)
    assert is_open(hours, "sales", utc("2026-05-08T23:30:00-07:00"), 24 * 60)


def test_equal_open_and_close_mean_closed() -> None:
    for times in ("00:00", "09:00"):
        assert not is_open(read(sales=daily(times, times)), "sales", utc("2026-05-08T12:00:00-07:00"), 15)


def test_two_schedules_of_one_name_leave_a_break_between_them() -> None:
    profile = rooftop()
    profile["schedules"] = [
        {"name": "Sales", "value": daily("09:00", "12:00")},
        {"name": "sales ", "value": daily("13:00", "18:00")},
    ]
    hours = OpeningHours.from_profile(profile)
    assert is_open(hours, "sales", utc("2026-05-08T11:00:00-07:00"), 60)
    assert is_open(hours, "sales", utc("2026-05-08T13:00:00-07:00"), 60)
    assert not is_open(hours, "sales", utc("2026-05-08T11:30:00-07:00"), 60)


def test_each_type_uses_its_own_department() -> None:
    hours = read(sales=daily("09:00", "18:00"), service=daily("07:00", "08:00"))
    early, late = utc("2026-05-08T07:00:00-07:00"), utc("2026-05-08T17:00:00-07:00")
    assert is_open(hours, "service", early, 60)
    assert not is_open(hours, "service", late, 60)
    for kind in ("sales", "test_drive", "trade_in"):
        assert is_open(hours, kind, late, 60)
        assert not is_open(hours, kind, early, 60)


def test_a_rooftop_hosts_what_it_has_a_schedule_for() -> None:
    hours = read(sales=daily("09:00", "18:00"))
    assert [hosts(hours, kind) for kind in ("sales", "test_drive", "trade_in", "service", "car_wash")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_one_unnamed_schedule_serves_departments_without_their_own() -> None:
    profile = rooftop(service=daily("07:00", "08:00"))
    profile["schedules"].append({"value": daily("09:00", "18:00")})
    hours = OpeningHours.from_profile(profile)
    assert is_open(hours, "sales", utc("2026-05-08T17:00:00-07:00"), 60)
    assert not is_open(hours, "service", utc("2026-05-08T17:00:00-07:00"), 60)
    profile["schedules"].append({"value": daily("10:00", "11:00")})
    assert not hosts(OpeningHours.from_profile(profile), "sales")


def test_a_rooftop_that_publishes_no_hours_may_host_but_is_never_known_to_be_open() -> None:
    for profile in (
        {"name": "Demo", "timezone": "America/Los_Angeles"},
        rooftop(None, sales=daily("09:00", "18:00")),
    ):
        hours = OpeningHours.from_profile(profile)
        assert hosts(hours, "sales")
        assert not hours.published
        assert not is_open(hours, "sales", utc("2026-05-08T11:00:00-07:00"), 60)


def test_holidays_replace_the_hours_of_their_day_in_every_department() -> None:
    hours = OpeningHours.from_profile(
        rooftop(sales=daily("09:00", "18:00"), service=daily("07:00", "18:00")),
        {"2026-12-25": None, "2026-12-24": {"open": "10:00", "close": "13:00"}},
    )
    for kind in ("sales", "service"):
        assert is_open(hours, kind, utc("2026-12-24T12:00:00-08:00"), 60)
        assert not is_open(hours, kind, utc("2026-12-24T12:30:00-08:00"), 60)
        assert not is_open(hours, kind, utc("2026-12-25T12:00:00-08:00"), 60)
        assert is_open(hours, kind, utc("2026-12-26T12:00:00-08:00"), 60)


@pytest.mark.parametrize(
    ("zone", "opens", "closes", "day", "instants"),
    [
        # Los Angeles goes from 02:00 -08:00 to 03:00 -07:00 on 2026-03-08, and back from 02:00 to 01:00 on
        # 2026-11-01.
        ("America/Los_Angeles", "01:00", "04:00", "2026-03-08", ("09:00", "11:00")),
        ("America/Los_Angeles", "02:30", "05:00", "2026-03-08", ("10:30", "12:00")),  # 02:30 is skipped
        ("America/Los_Angeles", "01:00", "02:30", "2026-03-08", ("09:00", "10:30")),
        ("America/Los_Angeles", "01:00", "04:00", "2026-11-01", ("08:00", "12:00")),
        ("America/Los_Angeles", "01:30", "04:00", "2026-11-01", ("08:30", "12:00")),  # 01:30 comes twice
        ("America/Los_Angeles", "00:00", "01:30", "2026-11-01", ("07:00", "08:30")),
        # Lisbon goes from 01:00 +00:00 to 02:00 +01:00 on 2026-03-29, and back from 02:00 to 01:00 on
        # 2026-10-25.
        ("Europe/Lisbon", "00:00", "03:00", "2026-03-29", ("00:00", "02:00")),
        ("Europe/Lisbon", "01:30", "04:00", "2026-10-25", ("00:30", "04:00")),
        # Adelaide, +10:30 in summer and +09:30 else, goes back from 03:00 to 02:00 on 2026-04-05.
        ("Australia/Adelaide", "12:00", "18:00", "2026-04-05", ("02:30", "08:30")),
    ],
)
def test_days_on_which_the_clock_changes(
    zone: str, opens: str, closes: str, day: str, instants: tuple[str, str]
) -> None:
    hours = read(zone, sales=daily(opens, closes))
    spans = hours.open_spans("sales", date.fromisoformat(day), date.fromisoformat(day))
    assert spans == [(utc(f"{day}T{instants[0]}:00+00:00"), utc(f"{day}T{instants[1]}:00+00:00"))]


def test_hours_that_a_change_of_the_clock_skips_are_none() -> None:
    # 02:15 reads as 03:15 on that day, after 03:00.
    hours = read(sales={"sunday": {"open": "02:15", "close": "03:00"}})
    assert hours.open_spans("sales", date(2026, 3, 8), date(2026, 3, 8)) == []


def test_an_appointment_across_the_change_lasts_its_minutes() -> None:
    hours = read(sales=daily("01:00", "04:00"))
    assert is_open(hours, "sales", utc("2026-03-08T01:00:00-08:00"), 120)
    assert not is_open(hours, "sales", utc("2026-03-08T01:00:00-08:00"), 121)
    assert is_open(hours, "sales", utc("2026-11-01T01:00:00-07:00"), 240)
    assert not is_open(hours, "sales", utc("2026-11-01T01:00:00-07:00"), 241)


def test_a_night_across_the_change_closes_by_the_clock() -> None:
    hours = read(sales={"saturday": {"open": "22:00", "close": "03:00"}})
    assert hours.open_spans("sales", date(2026, 3, 7), date(2026, 3, 7)) == [
        (utc("2026-03-07T22:00:00-08:00"), utc("2026-03-08T03:00:00-07:00"))
    ]


@pytest.mark.parametrize(
    ("profile", "holidays"),
    [
        (rooftop("Mars/Olympus"), None),
        (rooftop("../etc/passwd"), None),
        (rooftop(""), None),
        (rooftop(sales=daily("9:00", "18:00")), None),
        (rooftop(sales=daily("09:00", "24:00")), None),
        (rooftop(), {"Christmas": None}),
        (rooftop(), {"2026-12-24": {"open": "ten", "close": "13:00"}}),
    ],
)
def test_hours_that_cannot_be_read_are_the_operators_error(
    profile: Mapping[str, Any], holidays: Mapping[str, Mapping[str, str] | None] | None
) -> None:
    with pytest.raises(HoursError):
        OpeningHours.from_profile(profile, holidays)


def test_the_published_zone_is_kept() -> None:
    assert NINE_TO_SIX.zone == ZoneInfo("America/Los_Angeles")
    assert NINE_TO_SIX.published


def test_open_spans_are_bounded_by_the_days_asked_for() -> None:
    spans = NINE_TO_SIX.open_spans("sales", date(2026, 5, 4), date(2026, 5, 10))
    assert len(spans) == 5
    assert {closes - opens for opens, closes in spans} == {timedelta(hours=9)}
