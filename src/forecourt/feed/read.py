"""The way in: from the bytes of a feed to AAP vehicles, one by one, and the report on them."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import lru_cache
from typing import IO, Any, Final

from forecourt.feed.duplicate import Seen
from forecourt.feed.encoding import Text
from forecourt.feed.error import FeedError
from forecourt.feed.options import FeedOptions
from forecourt.feed.plan import check_mapping
from forecourt.feed.reader import find_reader
from forecourt.feed.report import Report
from forecourt.feed.vehicle import Unfit, Vehicles

__all__ = ["read_feed", "read_undated", "stamp"]

_EARLIER: Final = "another row of the same vehicle has a later update, and counts"
_LATER: Final = "a later row of the same vehicle counts"
_ELSEWHERE: Final = "another rooftop has the same VIN; both are listed"
_RENAMED: Final = "another vehicle has the same id; the VIN stands in for it"
_MIXED: Final = "the file is UTF-8 with single characters of an older code page in it"


def read_feed(stream: IO[bytes], options: FeedOptions, report: Report) -> Iterator[dict[str, Any]]:
    """Give the vehicles of a feed as AAP 3.1 Vehicles, and fill `report` on the way; it is complete at the end.

    `stream` is what `open_feed` gives. A vehicle has at least `dealer_id`, `vehicle_id`, `rooftop`, `make`, `model`,
    `condition`, `status` and `updated_at`; `vehicle_id` is the feed's own id, else the VIN, else the stock number, and
    stays the same from file to file. Where a later row of the same vehicle wins, the vehicle is given again under the
    same `vehicle_id`: of several with one id the last counts, as `Store.replace_listings` has it.

    Memory stays bounded whatever the length of the feed. Raises FeedError, at any moment, if the feed as a whole
    cannot be used; what was given before is not to be kept then.
    """
    now = stamp(options.now)
    for vehicle, updated in read_undated(stream, options, report):
        if updated is None:
            known = options.unchanged_since(vehicle) if options.unchanged_since else None
            vehicle["updated_at"] = known or now
        yield vehicle


def stamp(now: datetime) -> str:
    """Return a moment as an RFC 3339 date-time in UTC."""
    return now.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def read_undated(
    stream: IO[bytes], options: FeedOptions, report: Report
) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Give what `read_feed` gives, each with the `updated_at` of the feed, or with None and without one."""
    check_mapping(options.mapping)
    text = Text(stream)
    report.encoding = text.encoding
    report.format, reader = find_reader(text.head, options.format)
    vehicles = Vehicles(options, report)
    qualify = options.qualify_ids if options.qualify_ids is not None else not isinstance(options.rooftop, str)
    with closing(Seen()) as seen:
        for row in reader.rows(text, options.mapping, report):
            report.rows += 1
            try:
                vehicle, rooftop, own_id, updated = vehicles.make(row)
            except Unfit as unfit:
                report.add(unfit.kind, row.line, unfit.field, unfit.reason)
                continue
            vin = vehicle.get("vin")
            # Where the feed names no rooftop, the seller's own id stands for it, and says nothing.
            prefix = f"{_slug(rooftop)}:" if qualify and rooftop != options.dealer_id else ""
            fallback = prefix + (vin or vehicle.get("stock") or own_id)
            vehicle_id = prefix + own_id if own_id else fallback
            verdict = seen.judge(rooftop, vin, vehicle_id, fallback, updated, row.line)
            if verdict is None:
                vehicle["vehicle_id"] = vehicle_id
                report.imported += 1
            else:
                vehicle["vehicle_id"] = verdict.vehicle_id
                if verdict.loser is not None:
                    report.add("duplicate", verdict.loser, "", _LATER if verdict.counts else _EARLIER)
                elif verdict.counts:
                    report.imported += 1
                if not verdict.counts:
                    continue
            for kind, field, reason in vehicles.found:
                report.add(kind, row.line, field, reason)
            if verdict is not None and verdict.elsewhere:
                report.add("warning", row.line, "vin", _ELSEWHERE)
            if verdict is not None and verdict.renamed:
                report.add("repaired", row.line, "vehicle_id", _RENAMED)
            yield vehicle, updated
    report.encoding = text.encoding
    for name, column in vehicles.missing():
        report.warn(f"{name} is mapped to the column {column!r}, which the file does not have; nothing else gave it")
    if text.mixed:
        report.warn(_MIXED)
    if not report.rows:
        raise FeedError("the file has no vehicles")


@lru_cache(maxsize=1024)
def _slug(rooftop: str) -> str:
    return re.sub(r"[\W_]+", "-", rooftop.casefold()).strip("-")
