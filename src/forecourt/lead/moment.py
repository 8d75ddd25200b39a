"""Points in time as they travel: RFC 3339 text to an aware datetime and back."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

__all__ = ["FAR_FUTURE", "FAR_PAST", "format_time", "parse_time"]

FAR_PAST: Final = datetime(1, 1, 5, tzinfo=UTC)
FAR_FUTURE: Final = datetime(9999, 12, 26, tzinfo=UTC)
"""What the edges of the calendar are read as: some days inside what datetime can hold, so that a change of
zone or a few days' arithmetic never overflows."""

_DATE_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(?:\.(\d+))?"
    r"(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)
_LEAP_YEAR: Final = 2000


def parse_time(text: str) -> datetime:
    """Return the instant that an RFC 3339 `date-time` names, in UTC.

    Everything that JSON Schema's `date-time` format lets through is read: small t and z, a leap second (the
    instant after it), fractions of any length (cut to microseconds), offsets up to 23:59 and -00:00, the
    years 0000 to 9999. Instants at the edges of the calendar come back as `FAR_PAST` or `FAR_FUTURE`.

    Raises ValueError, which does not repeat the text, for anything else. Source: RFC 3339 section 5.6.
    """
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        raise ValueError("not an RFC 3339 date-time with an offset")
    year, month, day, hour, minute, second, fraction, sign, ahead, beside = found.groups()
    if second != "60" and "T" in text and "z" not in text and not year.startswith(("000", "9999")):
        # In the common letters and away from the edges: the standard library reads it too, several times as fast.
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    micros = int(fraction[:6].ljust(6, "0")) if fraction else 0
    # Year 0000 is a leap year that datetime does not have: its dates are checked in another one.
    local = datetime(int(year) or _LEAP_YEAR, int(month), int(day), int(hour), int(minute), tzinfo=UTC)
    if year == "0000" or local < FAR_PAST:
        return FAR_PAST
    if local > FAR_FUTURE:
        return FAR_FUTURE
    shift = timedelta(seconds=int(second), microseconds=micros)
    if sign is not None:
        offset = timedelta(hours=int(ahead), minutes=int(beside))
        shift += offset if sign == "-" else -offset
    return local + shift


def format_time(moment: datetime, zone: tzinfo) -> str:
    """Return an aware `moment` as RFC 3339 in the offset that `zone` has then: 2026-05-04T11:00:00-07:00.

    Offsets with seconds (local mean time, before zones were agreed) cannot be written so; such a moment is in
    UTC.
    """
    local = moment.astimezone(zone)
    offset = local.utcoffset()
    if offset is not None and offset % timedelta(minutes=1):
        local = moment.astimezone(UTC)
    return local.isoformat()
