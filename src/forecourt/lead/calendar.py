"""Whether an appointment can be had, and when else.

An appointment occupies [start, start + minutes) of one department's calendar at one rooftop. How many may
overlap is `AppointmentRules.capacity_for`; who counts them is the store, behind the `IsFree` callback. All
times are aware. Source: CONTRACTS.md section 6, "Appointments".
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import islice
from types import MappingProxyType
from typing import Any, Final
from zoneinfo import ZoneInfo

from forecourt.lead.hours import DAY_MINUTES, DEPARTMENTS, OpeningHours, hosts, is_open
from forecourt.lead.moment import parse_time

__all__ = [
    "MAX_PROBES",
    "AppointmentRules",
    "AppointmentStatus",
    "Decision",
    "IsFree",
    "decide",
    "first_slots",
]

IsFree = Callable[[datetime, int], bool]
"""Tells whether the department has a place left all through the minutes from a start."""

MAX_PROBES: Final = 500
"""How often a search asks whether a slot is free, each way: it may be a query. About a month of full days."""

_DEFAULT_MINUTES: Final[Mapping[str, int]] = MappingProxyType(
    {"sales": 60, "test_drive": 45, "trade_in": 30, "service": 60}
)
_MOST_ALTERNATIVES: Final = 3
_LONGEST_HORIZON: Final = timedelta(days=366)
_DAY: Final = timedelta(days=1)


class AppointmentStatus(StrEnum):
    """The outcomes of an appointment request (official 1.1 schema, lead-submit-response)."""

    REQUESTED = "requested"
    PROPOSED = "proposed"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class AppointmentRules:
    """How a seller gives appointments (all ours, all configurable).

    `minutes` is the length per appointment type where none is asked for, `capacity` how many may overlap per
    department (1 where it is not listed), `step_minutes` the grid of proposed starts, counted on the
    rooftop's clock from midnight. A start lies at least `notice` and at most `horizon` ahead. Without
    `confirm_automatically` every request waits for the dealer. Raises ValueError for settings that cannot be
    kept.
    """

    minutes: Mapping[str, int] = field(default_factory=lambda: _DEFAULT_MINUTES)
    capacity: Mapping[str, int] = field(default_factory=dict)
    step_minutes: int = 30
    notice: timedelta = timedelta(hours=2)
    horizon: timedelta = timedelta(days=60)
    confirm_automatically: bool = True
    alternatives: int = 3

    def __post_init__(self) -> None:
        """Refuse settings under which no appointment could ever be given."""
        if not all(name in DEPARTMENTS and 0 < span <= DAY_MINUTES for name, span in self.minutes.items()):
            raise ValueError("minutes gives each appointment type a length of 1 to 1440 minutes")
        if not all(name in DEPARTMENTS.values() and places > 0 for name, places in self.capacity.items()):
            raise ValueError("capacity gives each department at least one place")
        if not 5 <= self.step_minutes <= DAY_MINUTES:
            raise ValueError("step_minutes must be from 5 to 1440")
        if not timedelta() <= self.notice < self.horizon <= _LONGEST_HORIZON:
            raise ValueError("notice must be shorter than horizon, and horizon at most 366 days")
        if not 1 <= self.alternatives <= _MOST_ALTERNATIVES:
            raise ValueError("alternatives must be from 1 to 3")

    def minutes_for(self, kind: str) -> int:
        """Return the length of an appointment type where none is asked for."""
        return self.minutes.get(kind, _DEFAULT_MINUTES[kind])

    def capacity_for(self, kind: str) -> int:
        """Return how many appointments may overlap in the department of an appointment type."""
        return self.capacity.get(DEPARTMENTS[kind], 1)


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of an appointment request.

    `start` is the time that was asked for, None when none was; of a confirmed appointment it is the time that
    it has. `alternatives` are there exactly when `status` is proposed. `why` is a word for our own use: free;
    no_time, by_hand, hours_unknown; too_soon, too_far, closed, taken (proposed); not_hosted, too_long,
    no_alternative.
    """

    status: AppointmentStatus
    start: datetime | None
    minutes: int
    alternatives: tuple[datetime, ...] = ()
    why: str = ""


def decide(
    hours: OpeningHours,
    rules: AppointmentRules,
    appointment: Mapping[str, Any],
    now: datetime,
    is_free: IsFree,
) -> Decision:
    """Decide on the `appointment` of a lead, which has passed the contract's schema.

    Confirmed: open all through, noticed, within the horizon, free. Requested: no time was named, the dealer
    confirms by hand, or the rooftop does not publish its hours and zone. Rejected: the type is not hosted
    here, it would take more than a day, or no time is left to propose. Proposed: everything else.
    """
    kind = appointment["appointment_type"]
    asked = appointment.get("appointment_at")
    start = None if asked is None else parse_time(asked)
    if not hosts(hours, kind):
        return Decision(AppointmentStatus.REJECTED, start, 0, why="not_hosted")
    # JSON Schema takes 60.0 for an integer.
    minutes = int(appointment.get("duration_minutes") or rules.minutes_for(kind))
    if minutes > DAY_MINUTES:
        return Decision(AppointmentStatus.REJECTED, start, DAY_MINUTES, why="too_long")
    if start is None:
        return Decision(AppointmentStatus.REQUESTED, None, minutes, why="no_time")
    if not rules.confirm_automatically:
        return Decision(AppointmentStatus.REQUESTED, start, minutes, why="by_hand")
    if not hours.published:
        return Decision(AppointmentStatus.REQUESTED, start, minutes, why="hours_unknown")
    obstacle = _obstacle(hours, rules, kind, start, minutes, now, is_free)
    if obstacle is None:
        return Decision(AppointmentStatus.CONFIRMED, start, minutes, why="free")
    others = first_slots(hours, rules, kind, start, now, is_free, rules.alternatives, minutes)
    if not others:
        return Decision(AppointmentStatus.REJECTED, start, minutes, why="no_alternative")
    return Decision(AppointmentStatus.PROPOSED, start, minutes, tuple(others), why=obstacle)


def first_slots(
    hours: OpeningHours,
    rules: AppointmentRules,
    kind: str,
    around: datetime,
    now: datetime,
    is_free: IsFree,
    count: int,
    minutes: int | None = None,
) -> list[datetime]:
    """Return up to `count` free starts on the grid, earliest first, in the rooftop's zone.

    They are the first from `around` on, or where there is none the first of all: never sooner than the notice
    allows, nor beyond the horizon. `minutes` is the length asked for, the type's own by default. After
    `MAX_PROBES` questions to `is_free` each way the search ends with what it has. Empty where the type is not
    hosted or the hours are not published.
    """
    if hours.zone is None or count < 1 or kind not in DEPARTMENTS:
        return []
    length = rules.minutes_for(kind) if minutes is None else minutes
    earliest, latest = now + rules.notice, now + rules.horizon
    for begin, end in ((max(around, earliest), latest), (earliest, min(around, latest))):
        starts = _starts(hours, hours.zone, kind, length, rules.step_minutes, begin, end)
        free = (start for start in islice(starts, MAX_PROBES) if is_free(start, length))
        if found := list(islice(free, count)):
            return found
    return []


def _obstacle(
    hours: OpeningHours,
    rules: AppointmentRules,
    kind: str,
    start: datetime,
    minutes: int,
    now: datetime,
    is_free: IsFree,
) -> str | None:
    if start < now + rules.notice:
        return "too_soon"
    if start > now + rules.horizon:
        return "too_far"
    if not is_open(hours, kind, start, minutes):
        return "closed"
    return None if is_free(start, minutes) else "taken"


def _starts(
    hours: OpeningHours, zone: ZoneInfo, kind: str, minutes: int, step: int, begin: datetime, end: datetime
) -> Iterator[datetime]:
    """Walk the starts on the grid from `begin` to `end`, both included, that the opening hours allow."""
    if begin > end:
        return
    day, last = begin.astimezone(zone).date(), end.astimezone(zone).date()
    length = timedelta(minutes=minutes)
    while day <= last:
        spans = hours.open_spans(DEPARTMENTS[kind], day - _DAY, day + _DAY)
        if spans:
            for start in _grid(day, zone, step):
                fits = any(opens <= start and start + length <= closes for opens, closes in spans)
                if fits and begin <= start <= end:
                    yield start.astimezone(zone)
        day += _DAY


def _grid(day: date, zone: ZoneInfo, step: int) -> list[datetime]:
    """Return when the local clock shows multiples of `step` minutes: skipped times never, repeated ones
    twice."""
    instants = set()
    for minute in range(0, DAY_MINUTES, step):
        for fold in (0, 1):
            local = datetime.combine(day, time(*divmod(minute, 60), fold=fold), zone)
            instant = local.astimezone(UTC)
            if instant.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
                instants.add(instant)
    return sorted(instants)
