"""RFC 3339 text to instants, and back."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecourt.lead.moment import FAR_FUTURE, FAR_PAST, format_time, parse_time

DATE_TIME = jsonschema_rs.Draft202012Validator({"format": "date-time"}, validate_formats=True)

READABLE = {
    "2026-04-30T11:05:00Z": datetime(2026, 4, 30, 11, 5, tzinfo=UTC),
    "2026-04-30t11:05:00z": datetime(2026, 4, 30, 11, 5, tzinfo=UTC),
    "2026-05-03T11:00:00-07:00": datetime(2026, 5, 3, 18, tzinfo=UTC),
    "2026-05-03T00:30:00+14:00": datetime(2026, 5, 2, 10, 30, tzinfo=UTC),
    "2026-05-03T11:00:00-00:00": datetime(2026, 5, 3, 11, tzinfo=UTC),
    "2026-05-03T11:00:00+23:59": datetime(2026, 5, 2, 11, 1, tzinfo=UTC),
    "2016-12-31T23:59:60Z": datetime(2017, 1, 1, tzinfo=UTC),
    "2016-12-31T15:59:60.25-08:00": datetime(2017, 1, 1, 0, 0, 0, 250_000, tzinfo=UTC),
    "2026-05-03T11:00:00.5Z": datetime(2026, 5, 3, 11, 0, 0, 500_000, tzinfo=UTC),
    "2026-05-03T11:00:00.12345678901234567890Z": datetime(2026, 5, 3, 11, 0, 0, 123_456, tzinfo=UTC),
    "0000-02-29T00:00:00Z": FAR_PAST,
    "0001-01-01T00:00:00+14:00": FAR_PAST,
    "9999-12-31T23:59:59-14:00": FAR_FUTURE,
    "9999-12-31T23:59:60Z": FAR_FUTURE,
}

UNREADABLE = [
    "",
    "2026-05-03",
    "2026-05-03T11:00:00",
    "2026-05-03T11:00Z",
    "2026-05-03 11:00:00Z",
    "2026-05-03T11:00:00.Z",
    "2026-05-03T11:00:00+0700",
    "2026-05-03T11:00:00+24:00",
    "2026-05-03T24:00:00Z",
    "2026-05-03T11:60:00Z",
    "2026-02-30T11:00:00Z",
    "0000-02-30T11:00:00Z",
    "2026-05-03T11:00:00Z\n",
    "\uff12\uff10\uff12\uff16-05-03T11:00:00Z",
]


@pytest.mark.parametrize(("text", "moment"), READABLE.items())
def test_a_time_that_the_schema_accepts_is_read(text: str, moment: datetime) -> None:
    assert DATE_TIME.is_valid(text)
    assert parse_time(text) == moment
    assert parse_time(text).tzinfo is UTC


@pytest.mark.parametrize("text", UNREADABLE)
def test_anything_else_is_a_value_error_that_does_not_repeat_it(text: str) -> None:
    assert not DATE_TIME.is_valid(text)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - which text it has is the subject below
        parse_time(text)
    assert not text or text not in str(caught.value)


@given(
    st.datetimes(datetime(1, 1, 6), datetime(9999, 12, 25)),  # noqa: DTZ001 - UTC, as the text says
    st.integers(-1439, 1439),
)
def test_the_two_spellings_of_the_letters_name_one_instant(local: datetime, ahead: int) -> None:
    sign, minutes = "-" if ahead < 0 else "+", abs(ahead)
    text = f"{local.isoformat()}{sign}{minutes // 60:02}:{minutes % 60:02}"
    expected = local.replace(tzinfo=UTC) - timedelta(minutes=ahead)
    if FAR_PAST + timedelta(days=2) < expected < FAR_FUTURE - timedelta(days=2):
        assert parse_time(text) == parse_time(text.replace("T", "t")) == expected
    assert parse_time(f"{local.isoformat()}Z") == parse_time(f"{local.isoformat()}z") == local.replace(tzinfo=UTC)


@given(
    st.from_regex(
        r"\A[0-9]{4}-(0[0-9]|1[0-3])-[0-3][0-9][Tt][0-2][0-9]:[0-5][0-9]:[0-6][0-9](\.[0-9]{1,9})?"
        r"([Zz]|[+-][0-2][0-9]:[0-5][0-9])\Z"
    )
)
def test_whatever_the_schema_accepts_is_read_and_can_be_moved_about(text: str) -> None:
    if DATE_TIME.is_valid(text):
        moment = parse_time(text)
        assert FAR_PAST - timedelta(days=1) <= moment <= FAR_FUTURE + timedelta(days=1)
        for zone in ("America/Los_Angeles", "Pacific/Kiritimati"):
            assert moment.astimezone(ZoneInfo(zone)) + timedelta(days=2) > moment


def test_a_time_is_written_in_the_offset_that_the_zone_has_on_that_day() -> None:
    zone = ZoneInfo("America/Los_Angeles")
    assert format_time(datetime(2026, 5, 3, 18, tzinfo=UTC), zone) == "2026-05-03T11:00:00-07:00"
    assert format_time(datetime(2026, 12, 3, 19, tzinfo=UTC), zone) == "2026-12-03T11:00:00-08:00"
    assert format_time(datetime(2026, 5, 3, 18, tzinfo=UTC), ZoneInfo("Asia/Kolkata")) == ("2026-05-03T23:30:00+05:30")


def test_an_offset_with_seconds_is_written_in_utc_instead() -> None:
    # Los Angeles kept local mean time, -07:52:58, until 1883.
    text = format_time(datetime(1850, 1, 1, 12, tzinfo=UTC), ZoneInfo("America/Los_Angeles"))
    assert text == "1850-01-01T12:00:00+00:00"


@given(
    st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - bounds
    st.sampled_from(["America/Los_Angeles", "Europe/Lisbon", "Asia/Kathmandu", "Australia/Lord_Howe", "UTC"]),
)
def test_what_is_written_is_valid_and_reads_as_the_same_instant(moment: datetime, zone: str) -> None:
    text = format_time(moment, ZoneInfo(zone))
    assert DATE_TIME.is_valid(text)
    assert parse_time(text) == moment
