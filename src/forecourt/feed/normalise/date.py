"""Days and moments (FEEDS.md, point 7), and model years (point 4)."""

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

from forecourt.feed.normalise.remembered import remembered

__all__ = ["day", "model_year", "moment"]

_NOT_A_DATE: Final = "is not a date"
_NOT_A_YEAR: Final = "is not a model year"
_TWO_DIGITS: Final = "a two-digit year was completed"
_FUTURE: Final = "lies in the future"

_NUMERIC: Final = re.compile(
    r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?:[T, ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s*(?:([AP])\.?M\.?)?)?",
    re.IGNORECASE | re.ASCII,
)
_NAMED: Final = re.compile(
    r"(?:(\d{1,2})[ -])?([A-Z]{3})[A-Z]*\.?[ -](?:(\d{1,2}),? )?(\d{4})"
    r"(?:,? (\d{1,2}):(\d{2})(?::(\d{2}))?\s*(?:([AP])M)?)?",
    re.IGNORECASE | re.ASCII,
)
_SERIAL: Final = re.compile(r"(\d{5})(?:\.(\d{1,12}))?", re.ASCII)
_EPOCH_SECONDS: Final = re.compile(r"1\d{9}(\d{3})?", re.ASCII)
_MONTH_NAMES: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS: Final = {name: at for at, name in enumerate(_MONTH_NAMES, 1)}
_SERIAL_ZERO: Final = datetime(1899, 12, 30)  # noqa: DTZ001 - serials know no time zone
_SERIALS: Final = range(20_000, 80_000)
_FIRST: Final = 1990
_AHEAD: Final = timedelta(days=1)
_PIVOT: Final = 70
_NOON: Final = 12
_YEAR: Final = re.compile(r"'?(\d{4}|\d{2})(?:\.0*)?", re.ASCII)
_ISO_YEAR: Final = re.compile(r"(\d{4})-\d{2}(?:-\d{2}.*)?", re.ASCII)
_YEARS: Final = (1900, 3)


@remembered(16_384)
def day(text: str, now: datetime) -> tuple[str | None, tuple[str, ...]]:
    """Return a day as YYYY-MM-DD, as it stands in the feed whatever the time zone."""
    found = _read(text)
    if found is None or not _FIRST <= found.year <= now.year + 5:
        return None, (_NOT_A_DATE,)
    return found.date().isoformat(), ()


@remembered(16_384)
def moment(text: str, zone: tzinfo, now: datetime) -> tuple[str | None, tuple[str, ...]]:
    """Return a moment in UTC as an RFC 3339 date-time. A time without an offset is in `zone`, a mere day its start."""
    found = _read(text)
    if found is None or found.year < _FIRST:
        return None, (_NOT_A_DATE,)
    try:
        utc = (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
        if utc > now + _AHEAD:
            return None, (_FUTURE,)
    except (OverflowError, ValueError):
        return None, (_NOT_A_DATE,)
    return utc.replace(tzinfo=None).isoformat(timespec="seconds") + "Z", ()


@remembered(1024)
def model_year(text: str, today: date) -> tuple[int | None, tuple[str, ...]]:
    """Return a model year. Two digits are the latest such year that is not more than two years ahead."""
    found = _YEAR.fullmatch(text) or _ISO_YEAR.fullmatch(text)
    if not found:
        return None, (_NOT_A_YEAR,)
    year, reasons = int(found[1]), ()
    if len(found[1]) == 2:
        year += 2000 if 2000 + year <= today.year + 2 else 1900
        return year, (_TWO_DIGITS,)
    first, ahead = _YEARS
    return (year, reasons) if first <= year <= today.year + ahead else (None, (_NOT_A_YEAR,))


def _read(text: str) -> datetime | None:
    try:
        if found := _SERIAL.fullmatch(text):
            seconds = round(float(f"0.{found[2] or 0}") * 86_400)
            return _SERIAL_ZERO + timedelta(int(found[1]), seconds) if int(found[1]) in _SERIALS else None
        if found := _EPOCH_SECONDS.fullmatch(text):
            return datetime.fromtimestamp(int(text[:10]), UTC)
        if found := _NUMERIC.fullmatch(text):
            month, sign, number, year, *clock = found.groups()
            if sign == "." or int(month) > 12 >= int(number):
                month, number = number, month
            return _at(int(year), int(month), int(number), clock)
        if found := _NAMED.fullmatch(text):
            before, name, after, year, *clock = found.groups()
            if name.lower() in _MONTHS and bool(before) != bool(after):
                return _at(int(year), _MONTHS[name.lower()], int(before or after), clock)
            return None
        if text[:1].isdigit():
            return datetime.fromisoformat(text.upper().removesuffix(" UTC"))
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _at(year: int, month: int, number: int, clock: list[str | None]) -> datetime:
    hour, minute, second, half = clock
    hours = int(hour or 0)
    if half:
        if not 1 <= hours <= _NOON:
            raise ValueError("no such hour")
        hours = hours % _NOON + (_NOON if half.upper() == "P" else 0)
    if year < 100:
        year += 2000 if year < _PIVOT else 1900
    return datetime(year, month, number, hours, int(minute or 0), int(second or 0))  # noqa: DTZ001 - the caller knows
