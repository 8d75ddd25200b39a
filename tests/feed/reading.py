"""Reads a small feed whole, for tests."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from forecourt.feed import FeedOptions, Report, open_feed, read_feed

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@dataclass
class Reading:
    """The vehicles (of several with one id the last, as the store has it) and the report."""

    vehicles: list[dict[str, Any]]
    report: Report

    @property
    def only(self) -> dict[str, Any]:
        (vehicle,) = self.vehicles
        return vehicle

    def findings(self) -> list[tuple[str, int, str]]:
        return [(finding.kind, finding.line, finding.field) for finding in self.report.findings]


def read(data: bytes | str, **options: Any) -> Reading:
    """Read a feed for the seller "d" and the rooftop "Main"."""
    report = Report()
    chosen = FeedOptions("d", **{"rooftop": "Main", "now": NOW, **options})
    found: dict[str, dict[str, Any]] = {}
    with open_feed(data.encode() if isinstance(data, str) else data) as stream:
        for vehicle in read_feed(stream, chosen, report):
            found[vehicle["vehicle_id"]] = vehicle
    return Reading(list(found.values()), report)


def one(options: dict[str, Any] | None = None, /, **cells: str) -> Reading:
    """Read a file of one row with these columns beside the ones that every row needs."""
    row = {"stock": "S1", "make": "Honda", "model": "Civic", "type": "Used", **cells}
    quoted = ['"' + value.replace('"', '""') + '"' for value in row.values()]
    return read(",".join(row) + "\n" + ",".join(quoted) + "\n", **(options or {}))
