"""When a rooftop is open: weekly hours per department, holidays, and the rooftop's own clock.

Hours are written in local time (official 1.1 schema, dealer-information, schedules and timezone); everything
here compares instants. A local time that a change of clocks skips or repeats is read as RFC 5545 section
3.3.5 reads it: a skipped one by the offset before the change, a repeated one as the first of the two.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

__all__ = ["DAY_MINUTES", "DEPARTMENTS", "HoursError", "OpeningHours", "Span", "hosts", "is_open"]

DEPARTMENTS: Final[Mapping[str, str]] = {
    "sales": "sales",
    "test_drive": "sales",
    "trade_in": "sales",
    "service": "service",
}
"""Appointment type -> the department whose schedule and calendar it uses."""

DAY_MINUTES: Final = 24 * 60

_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TIME: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
_LAST_MINUTE: Final = DAY_MINUTES - 1
_SPANS: Final = 1024
"""How many pairs of times are remembered as read."""
_DAY: Final = timedelta(days=1)


class HoursError(ValueError):
    """A rooftop's hours cannot be read. The message is for the operator who wrote them."""


@dataclass(frozen=True, slots=True)
class Span:
    """One stretch of opening hours, in minutes by the local clock after midnight of the day that it opens on.

    `closes` exceeds a day's 1440 minutes where the stretch runs past midnight.
    """

    opens: int
    closes: int


@dataclass(frozen=True, slots=True)
class OpeningHours:
    """The opening hours of one rooftop.

    `weeks` maps a department, or "" for the one unnamed schedule, to the spans of its seven days from Monday.
    No weeks, or no `zone`, means that the rooftop has not published when it is open. A date in `holidays` has
    those spans in every department instead of its weekday's.
    """

    zone: ZoneInfo | None = None
    weeks: Mapping[str, tuple[tuple[Span, ...], ...]] = field(default_factory=dict)
    holidays: Mapping[date, tuple[Span, ...]] = field(default_factory=dict)

    @classmethod
    def from_profile(
        cls, rooftop: Mapping[str, Any], holidays: Mapping[str, Mapping[str, str] | None] | None = None
    ) -> "OpeningHours":
        """Read a rooftop of the seller's profile, and its holidays, which are not part of the profile.

        `holidays` maps an ISO date to {open, close} or, for a day that stays closed, None. A day that a
        schedule does not mention is closed. Several schedules of one name add up (a lunch break is two of
        them). A close before its open is on the next day, 00:00 included; 23:59 counts as the end of the day;
        equal times mean closed. An unnamed schedule serves the departments that have none of their own, if
        there is exactly one.

        Raises HoursError for a zone, time or date that cannot be read.
        """
        weeks: dict[str, tuple[tuple[Span, ...], ...]] = {}
        unnamed = 0
        for schedule in rooftop.get("schedules", ()):
            name = str(schedule.get("name", "")).strip().casefold()
            unnamed += not name
            week = tuple(_spans(schedule["value"].get(day)) for day in _DAYS)
            before = weeks.get(name, ((),) * len(_DAYS))
            weeks[name] = tuple(first + more for first, more in zip(before, week, strict=True))
        if unnamed > 1:
            del weeks[""]
        return cls(
            _zone(rooftop.get("timezone")),
            weeks,
            {_date(day): _spans(times) for day, times in (holidays or {}).items()},
        )

    @property
    def published(self) -> bool:
        """Tell whether it is known when the rooftop is open."""
        return self.zone is not None and bool(self.weeks)

    def week(self, department: str) -> tuple[tuple[Span, ...], ...] | None:
        """Return a department's spans from Monday to Sunday, None when it has no schedule here."""
        return self.weeks.get(department, self.weeks.get(""))

    def open_spans(self, department: str, first: date, last: date) -> list[tuple[datetime, datetime]]:
        """Return the stretches, as instants in UTC, that open on the local dates `first` to `last`.

        In order, with stretches that touch joined, so that open round the clock is one stretch.
        """
        week = self.week(department)
        if self.zone is None or week is None:
            return []
        joined: list[tuple[datetime, datetime]] = []
        for opens, closes in sorted(self._instants(week, self.zone, first, last)):
            if joined and opens <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(joined[-1][1], closes))
            else:
                joined.append((opens, closes))
        return joined

    def _instants(
        self, week: tuple[tuple[Span, ...], ...], zone: ZoneInfo, first: date, last: date
    ) -> Iterator[tuple[datetime, datetime]]:
        for number in range((last - first).days + 1):
            day = first + number * _DAY
            for span in self.holidays.get(day, week[day.weekday()]):
                opens, closes = _instant(day, span.opens, zone), _instant(day, span.closes, zone)
                if opens < closes:  # not so where a change of clocks skips the whole span
                    yield opens, closes


def hosts(hours: OpeningHours, kind: str) -> bool:
    """Tell whether appointments of a type can take place at a rooftop.

    They cannot when its published schedules leave out the type's department. A rooftop without any schedules
    leaves out none.
    """
    department = DEPARTMENTS.get(kind)
    return department is not None and (not hours.weeks or hours.week(department) is not None)


def is_open(hours: OpeningHours, kind: str, start: datetime, minutes: int) -> bool:
    """Tell whether the department of an appointment type is open all through [start, start + minutes).

    False where the hours are not published, for no minutes, and for more than a day's.
    """
    department = DEPARTMENTS.get(kind)
    if department is None or hours.zone is None or not 0 < minutes <= DAY_MINUTES:
        return False
    day = start.astimezone(hours.zone).date()
    end = start + timedelta(minutes=minutes)
    spans = hours.open_spans(department, day - _DAY, day + _DAY)
    return any(opens <= start and end <= closes for opens, closes in spans)


def _instant(day: date, minutes: int, zone: ZoneInfo) -> datetime:
    days, minutes = divmod(minutes, DAY_MINUTES)
    local = datetime.combine(day + days * _DAY, time(*divmod(minutes, 60)), zone)
    return local.astimezone(UTC)


def _spans(times: Mapping[str, str] | None) -> tuple[Span, ...]:
    return () if times is None else _span(times["open"], times["close"])


@lru_cache(_SPANS)
def _span(first: str, last: str) -> tuple[Span, ...]:
    # A network's thousands of rooftops open and close at a few dozen times.
    opens, closes = _minutes(first), _minutes(last)
    if opens == closes:
        return ()
    if closes == _LAST_MINUTE:
        closes = DAY_MINUTES
    return (Span(opens, closes if closes > opens else closes + DAY_MINUTES),)


def _minutes(text: str) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        raise HoursError(f"opening hours are written HH:MM, not {text!r}")
    return int(found[1]) * 60 + int(found[2])


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise HoursError(f"a holiday is written YYYY-MM-DD, not {text!r}") from None


def _zone(name: str | None) -> ZoneInfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError; odd names are the others
        raise HoursError(f"no such time zone in the IANA database: {name!r}") from None
