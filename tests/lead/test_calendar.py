"""Decisions on appointments (CONTRACTS.md section 6, "Appointments")."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecourt.lead.calendar import MAX_PROBES, AppointmentRules, Decision, IsFree, decide, first_slots
from forecourt.lead.hours import OpeningHours, is_open
from forecourt.lead.moment import format_time

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
ZONE = ZoneInfo("America/Los_Angeles")
RULES = AppointmentRules()
NOW = datetime(2026, 5, 4, 12, 0, tzinfo=ZONE)  # a Monday noon


def profile(opens: str, closes: str, zone: str = "America/Los_Angeles", days: tuple[str, ...] = DAYS[:6]) -> Any:
    week = {day: {"open": opens, "close": closes} for day in days}
    return {"name": "Demo Toyota", "timezone": zone, "schedules": [{"name": "sales", "value": week}]}


HOURS = OpeningHours.from_profile(profile("09:00", "18:00"))


def free(start: datetime, minutes: int) -> bool:
    return True


def full(start: datetime, minutes: int) -> bool:
    return False


def ask(at: str | None = None, *, rules: AppointmentRules = RULES, is_free: IsFree = free, **more: object) -> Decision:
    appointment = {"appointment_type": "test_drive", **({"appointment_at": at} if at else {}), **more}
    return decide(HOURS, rules, appointment, NOW, is_free)


def local(moments: tuple[datetime, ...] | list[datetime], zone: ZoneInfo = ZONE) -> list[str]:
    return [format_time(moment, zone) for moment in moments]


def test_an_open_and_free_time_is_confirmed_at_that_instant() -> None:
    decision = ask("2026-05-05T18:10:00.5Z")
    assert decision == Decision(decision.status, datetime(2026, 5, 5, 18, 10, 0, 500_000, tzinfo=UTC), 45, (), "free")
    assert decision.status == "confirmed"


@pytest.mark.parametrize(("kind", "minutes"), [("sales", 60), ("test_drive", 45), ("trade_in", 30)])
def test_the_length_is_the_types_own_unless_one_is_asked_for(kind: str, minutes: int) -> None:
    assert ask("2026-05-05T11:00:00-07:00", appointment_type=kind).minutes == minutes
    assert ask("2026-05-05T11:00:00-07:00", appointment_type=kind, duration_minutes=90).minutes == 90
    assert ask("2026-05-05T11:00:00-07:00", appointment_type=kind, duration_minutes=90.0).minutes == 90
    rules = AppointmentRules(minutes={kind: 20})
    assert ask("2026-05-05T11:00:00-07:00", appointment_type=kind, rules=rules).minutes == 20


def test_a_service_takes_an_hour_by_default() -> None:
    assert RULES.minutes_for("service") == 60
    assert AppointmentRules(minutes={"sales": 30}).minutes_for("service") == 60


def test_the_callback_is_asked_for_the_instant_and_the_length() -> None:
    asked: list[tuple[datetime, int]] = []

    def remember(start: datetime, minutes: int) -> bool:
        asked.append((start, minutes))
        return True

    ask("2026-05-05T11:00:00-07:00", duration_minutes=75, is_free=remember)
    assert asked == [(datetime(2026, 5, 5, 18, tzinfo=UTC), 75)]


def test_no_time_is_left_to_the_dealer() -> None:
    decision = ask()
    assert (decision.status, decision.start, decision.why) == ("requested", None, "no_time")


def test_a_dealer_who_confirms_by_hand_is_left_to_do_so() -> None:
    decision = ask("2026-05-05T11:00:00-07:00", rules=AppointmentRules(confirm_automatically=False))
    assert (decision.status, decision.why) == ("requested", "by_hand")
    assert decision.start == datetime(2026, 5, 5, 18, tzinfo=UTC)
    assert decision.alternatives == ()


def test_unpublished_hours_are_left_to_the_dealer() -> None:
    appointment = {"appointment_type": "sales", "appointment_at": "2026-05-05T11:00:00-07:00"}
    decision = decide(OpeningHours.from_profile({"name": "Demo"}), RULES, appointment, NOW, free)
    assert (decision.status, decision.why) == ("requested", "hours_unknown")


def test_a_taken_time_is_answered_with_the_next_three_free_ones() -> None:
    taken = {datetime(2026, 5, 5, hour, tzinfo=ZONE) for hour in (11, 12)}
    decision = ask("2026-05-05T11:00:00-07:00", is_free=lambda start, _: start not in taken)
    assert (decision.status, decision.why) == ("proposed", "taken")
    assert local(decision.alternatives) == [
        "2026-05-05T11:30:00-07:00",
        "2026-05-05T12:30:00-07:00",
        "2026-05-05T13:00:00-07:00",
    ]


def test_a_sunday_is_answered_with_monday() -> None:
    decision = ask("2026-05-10T11:00:00-07:00")
    assert (decision.status, decision.why) == ("proposed", "closed")
    assert local(decision.alternatives)[0] == "2026-05-11T09:00:00-07:00"


def test_an_appointment_that_would_outlast_the_day_is_moved() -> None:
    # 17:30 and 45 minutes end at 18:15; the shop closes at 18:00.
    decision = ask("2026-05-05T17:30:00-07:00")
    assert decision.why == "closed"
    assert local(decision.alternatives)[0] == "2026-05-06T09:00:00-07:00"


def test_the_notice_is_kept_to_the_second() -> None:
    assert ask("2026-05-04T14:00:00-07:00").status == "confirmed"
    decision = ask("2026-05-04T13:59:59-07:00")
    assert (decision.status, decision.why) == ("proposed", "too_soon")
    assert local(decision.alternatives)[0] == "2026-05-04T14:00:00-07:00"


@pytest.mark.parametrize("at", ["2020-05-05T11:00:00-07:00", "0001-01-01T00:00:00+14:00", "0000-01-01T00:00:00Z"])
def test_a_past_time_is_answered_with_the_first_possible_ones(at: str) -> None:
    decision = ask(at)
    assert decision.why == "too_soon"
    assert local(decision.alternatives)[0] == "2026-05-04T14:00:00-07:00"


def test_the_horizon_is_kept_to_the_second() -> None:
    rules = AppointmentRules(horizon=timedelta(days=7))
    assert ask("2026-05-11T12:00:00-07:00", rules=rules).status == "confirmed"
    decision = ask("2026-05-11T12:00:01-07:00", rules=rules)
    assert (decision.status, decision.why) == ("proposed", "too_far")


@pytest.mark.parametrize("at", ["2027-05-05T11:00:00-07:00", "9999-12-31T23:59:60Z"])
def test_a_time_beyond_the_horizon_is_answered_with_the_first_possible_ones(at: str) -> None:
    decision = ask(at)
    assert decision.why == "too_far"
    assert local(decision.alternatives)[0] == "2026-05-04T14:00:00-07:00"


def test_earlier_times_are_proposed_where_no_later_one_is_left() -> None:
    limit = datetime(2026, 5, 5, 10, 0, tzinfo=ZONE)
    decision = ask("2026-05-06T11:00:00-07:00", is_free=lambda start, _: start < limit)
    assert decision.status == "proposed"
    assert local(decision.alternatives)[0] == "2026-05-04T14:00:00-07:00"


def test_an_appointment_is_rejected_where_no_time_is_left() -> None:
    decision = ask("2026-05-05T11:00:00-07:00", is_free=full)
    assert (decision.status, decision.alternatives, decision.why) == ("rejected", (), "no_alternative")


def test_an_appointment_longer_than_any_opening_is_rejected() -> None:
    assert ask("2026-05-05T09:00:00-07:00", duration_minutes=541).why == "no_alternative"


@pytest.mark.parametrize("minutes", [1441, 10**30, 1e300])
def test_an_appointment_longer_than_a_day_is_rejected(minutes: float) -> None:
    decision = ask("2026-05-05T09:00:00-07:00", duration_minutes=minutes)
    assert (decision.status, decision.why) == ("rejected", "too_long")


def test_a_type_that_the_rooftop_does_not_host_is_rejected_even_without_a_time() -> None:
    assert ask(appointment_type="service").why == "not_hosted"
    assert ask("2026-05-05T11:00:00-07:00", appointment_type="service").status == "rejected"


def test_the_number_of_alternatives_is_configured() -> None:
    assert len(ask("2026-05-10T11:00:00-07:00").alternatives) == 3
    rules = AppointmentRules(alternatives=1)
    assert len(ask("2026-05-10T11:00:00-07:00", rules=rules).alternatives) == 1


def test_the_search_asks_a_bounded_number_of_times() -> None:
    probes = 0

    def count(start: datetime, minutes: int) -> bool:
        nonlocal probes
        probes += 1
        return False

    hours = OpeningHours.from_profile(profile("00:00", "23:59", days=DAYS))
    rules = AppointmentRules(step_minutes=5, horizon=timedelta(days=366))
    assert first_slots(hours, rules, "sales", NOW, NOW, count, 3) == []
    assert probes == MAX_PROBES


def slots(hours: OpeningHours, at: str, count: int, step: int = 30, zone: ZoneInfo = ZONE) -> list[str]:
    around = datetime.fromisoformat(at)
    rules = AppointmentRules(step_minutes=step, notice=timedelta())
    return local(first_slots(hours, rules, "sales", around, around, free, count, 30), zone)


def test_times_that_the_change_of_the_clock_skips_are_not_proposed() -> None:
    hours = OpeningHours.from_profile(profile("01:00", "04:00", days=DAYS))
    assert slots(hours, "2026-03-08T00:00:00-08:00", 5) == [
        "2026-03-08T01:00:00-08:00",
        "2026-03-08T01:30:00-08:00",
        "2026-03-08T03:00:00-07:00",
        "2026-03-08T03:30:00-07:00",
        "2026-03-09T01:00:00-07:00",
    ]


def test_times_that_the_change_of_the_clock_repeats_are_proposed_twice() -> None:
    hours = OpeningHours.from_profile(profile("01:00", "02:30", days=DAYS))
    assert slots(hours, "2026-11-01T00:00:00-07:00", 6) == [
        "2026-11-01T01:00:00-07:00",
        "2026-11-01T01:30:00-07:00",
        "2026-11-01T01:00:00-08:00",
        "2026-11-01T01:30:00-08:00",
        "2026-11-01T02:00:00-08:00",
        "2026-11-02T01:00:00-08:00",
    ]


def test_lisbon_keeps_its_clock_over_both_changes() -> None:
    zone = ZoneInfo("Europe/Lisbon")
    hours = OpeningHours.from_profile(profile("09:00", "18:00", "Europe/Lisbon", DAYS))
    assert slots(hours, "2026-03-28T18:00:00+00:00", 1, zone=zone) == ["2026-03-29T09:00:00+01:00"]
    assert slots(hours, "2026-10-24T18:00:00+01:00", 1, zone=zone) == ["2026-10-25T09:00:00+00:00"]


@pytest.mark.parametrize(
    ("name", "offset"),
    [("Asia/Kolkata", "+05:30"), ("Asia/Kathmandu", "+05:45"), ("Australia/Adelaide", "+09:30")],
)
def test_the_grid_follows_the_clock_of_the_rooftop(name: str, offset: str) -> None:
    hours = OpeningHours.from_profile(profile("09:00", "18:00", name, DAYS))
    assert slots(hours, f"2026-06-01T09:01:00{offset}", 2, step=60, zone=ZoneInfo(name)) == [
        f"2026-06-01T10:00:00{offset}",
        f"2026-06-01T11:00:00{offset}",
    ]


def test_a_night_that_runs_past_midnight_is_proposed_on_both_days() -> None:
    hours = OpeningHours.from_profile(profile("23:00", "01:00", days=("friday",)))
    assert slots(hours, "2026-05-08T12:00:00-07:00", 5) == [
        "2026-05-08T23:00:00-07:00",
        "2026-05-08T23:30:00-07:00",
        "2026-05-09T00:00:00-07:00",
        "2026-05-09T00:30:00-07:00",
        "2026-05-15T23:00:00-07:00",
    ]


def test_slots_come_in_the_zone_of_the_rooftop() -> None:
    assert first_slots(HOURS, RULES, "sales", NOW, NOW, free, 1)[0].tzinfo is HOURS.zone


def test_nothing_is_proposed_without_a_department_or_its_hours() -> None:
    assert first_slots(HOURS, RULES, "service", NOW, NOW, free, 3) == []
    assert first_slots(HOURS, RULES, "car_wash", NOW, NOW, free, 3) == []
    assert first_slots(OpeningHours(), RULES, "sales", NOW, NOW, free, 3) == []
    assert first_slots(HOURS, RULES, "sales", NOW, NOW, free, 0) == []


def test_capacity_is_one_unless_the_department_has_more() -> None:
    rules = AppointmentRules(capacity={"sales": 3})
    assert [rules.capacity_for(kind) for kind in ("sales", "test_drive", "trade_in", "service")] == [
        3,
        3,
        3,
        1,
    ]


@pytest.mark.parametrize(
    "make",
    [
        lambda: AppointmentRules(minutes={"sales": 0}),
        lambda: AppointmentRules(minutes={"sales": 1441}),
        lambda: AppointmentRules(minutes={"car_wash": 30}),
        lambda: AppointmentRules(capacity={"sales": 0}),
        lambda: AppointmentRules(capacity={"test_drive": 1}),
        lambda: AppointmentRules(step_minutes=0),
        lambda: AppointmentRules(notice=timedelta(days=60)),
        lambda: AppointmentRules(notice=timedelta(seconds=-1)),
        lambda: AppointmentRules(horizon=timedelta(days=400)),
        lambda: AppointmentRules(alternatives=0),
        lambda: AppointmentRules(alternatives=4),
    ],
)
def test_rules_that_cannot_be_kept_are_refused(make: Callable[[], AppointmentRules]) -> None:
    with pytest.raises(ValueError, match=r"minutes|capacity|notice|alternatives"):
        make()


CLOCK = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.sampled_from([0, 15, 30, 45, 59]))
ZONES = ["America/Los_Angeles", "Europe/Lisbon", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"]
MOMENTS = st.datetimes(
    datetime(2026, 1, 1),  # noqa: DTZ001 - hypothesis takes its bounds without a zone
    datetime(2026, 12, 31),  # noqa: DTZ001 - the same
    timezones=st.just(UTC),
)


@given(
    opens=CLOCK,
    closes=CLOCK,
    zone=st.sampled_from(ZONES),
    days=st.sets(st.sampled_from(DAYS), min_size=1).map(tuple),
    now=MOMENTS,
    ahead=st.timedeltas(timedelta(days=-2), timedelta(days=12)),
    minutes=st.integers(15, 300),
    step=st.sampled_from([15, 30, 45, 60]),
    seed=st.integers(0, 2**32),
)
def test_what_is_offered_is_open_free_on_the_grid_and_ahead(
    opens: str,
    closes: str,
    zone: str,
    days: tuple[str, ...],
    now: datetime,
    ahead: timedelta,
    minutes: int,
    step: int,
    seed: int,
) -> None:
    hours = OpeningHours.from_profile(profile(opens, closes, zone, days))
    rules = AppointmentRules(step_minutes=step, horizon=timedelta(days=10))
    asked = now + ahead

    def some_free(start: datetime, _: int) -> bool:
        return hash((seed, start.astimezone(UTC))) % 3 == 0

    appointment = {
        "appointment_type": "trade_in",
        "appointment_at": asked.isoformat(),
        "duration_minutes": minutes,
    }
    decision = decide(hours, rules, appointment, now, some_free)

    assert decision.start == asked
    assert (decision.status == "proposed") == bool(decision.alternatives)
    offered = [asked] if decision.status == "confirmed" else list(decision.alternatives)
    assert (decision.status == "rejected") == (not offered)
    assert offered == sorted(set(offered))
    for start in offered:
        assert now + rules.notice <= start <= now + rules.horizon
        assert is_open(hours, "trade_in", start, minutes)
        assert some_free(start, minutes)
    for start in decision.alternatives:
        clock = start.astimezone(ZoneInfo(zone))
        assert (clock.hour * 60 + clock.minute) % step == clock.second == clock.microsecond == 0
