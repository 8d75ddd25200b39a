"""Each exporter's file imports without a single option, and its report names every planted fault and nothing else.

The shapes are those of FEEDS.md; the faults are planted by ``tests.feed.samples.make``.
"""

import pytest
from tests.feed.reading import NOW
from tests.feed.samples.make import samples
from tests.feed.samples.sheet import Sample

from forecourt.contract.validation import SchemaSet
from forecourt.feed import FeedOptions, Report, open_feed, read_feed

SCHEMAS = SchemaSet.load("3.1")
SAMPLES = {sample.name: sample for sample in samples()}


def imported(sample: Sample) -> tuple[dict[str, dict[str, object]], Report]:
    report = Report()
    with open_feed(sample.data) as stream:
        vehicles = list(read_feed(stream, FeedOptions("demo-auto-group", now=NOW), report))
    return {str(vehicle["vehicle_id"]): vehicle for vehicle in vehicles}, report


@pytest.mark.parametrize("name", SAMPLES)
def test_the_report_names_every_planted_fault_and_nothing_else(name: str) -> None:
    sample = SAMPLES[name]
    _, report = imported(sample)
    assert sorted(map(tuple, report.findings)) == sorted(sample.faults)
    assert report.warnings == sample.warnings
    assert report.unmapped_columns == sample.unmapped
    assert report.ignored_columns == sample.ignored
    assert report.format == sample.format


@pytest.mark.parametrize("name", SAMPLES)
def test_every_row_is_accounted_for_and_every_vehicle_is_one_by_the_schema(name: str) -> None:
    sample = SAMPLES[name]
    vehicles, report = imported(sample)
    assert report.rows == sample.rows
    assert report.imported == len(vehicles)
    assert report.imported + report.refused + report.total("left_out") + report.total("duplicate") == report.rows
    for vehicle in vehicles.values():
        assert SCHEMAS.problems("vehicle.schema.json", vehicle) == []
        assert {"dealer_id", "vehicle_id", "rooftop", "condition", "status", "updated_at"} <= vehicle.keys()
