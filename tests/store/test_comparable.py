"""What stores compare: times as text."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from forecourt.store.comparable import time_of, time_text

FIRST, LAST = datetime(1, 1, 2), datetime(9999, 12, 30)  # noqa: DTZ001 - the zones are beside them
ZONES = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(FIRST, LAST, timezones=ZONES))
def test_a_time_is_text_of_one_width_and_reads_as_the_same_instant(moment: datetime) -> None:
    text = time_text(moment)
    assert len(text) == len("2026-05-04T11:00:00.000000Z")
    assert time_of(text) == moment


@given(st.datetimes(FIRST, LAST), st.datetimes(FIRST, LAST))
def test_the_order_of_the_texts_is_that_of_the_times(one: datetime, other: datetime) -> None:
    one, other = one.replace(tzinfo=UTC), other.replace(tzinfo=UTC)
    assert (time_text(one) < time_text(other)) == (one < other)
