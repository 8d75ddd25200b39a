"""Whatever is in a row, what comes out is a vehicle by the 3.1 schema, and every row is accounted for."""

import contextlib
import csv
import io
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.reading import Reading, read

from forecourt.contract.validation import SchemaSet
from forecourt.feed import FeedError
from forecourt.feed.alias import aliases

SCHEMAS = SchemaSet.load("3.1")
COLUMNS = sorted(aliases())
ODD = [
    "0",
    "-1",
    "1e9",
    "99999999999999999999",
    "$",
    "$1.5",
    "1,2,3",
    "km",
    "-5 km",
    "Call",
    "nan",
    "inf",
    "\x00",
    "\ud83d",
    "http://",
    "https://x y",
    "http://[::1]/%",
    "12/31/9999",
    "0001-01-01",
    "99999",
    "45601.999999",
    "1/1/70 12:61 PM",
    "{",
    "[",
    "[[]]",
    '{"a": 1}',
    '[{"url": 5}]',
    "\xb2",
    "\u0661\u0662\u0663",
    "2022\xb2",
    "New",
    "Y",
    "W",
    "99999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999",
    "|,;|",
    "\u2028",
    "True",
    "9999-12-31T23:59:59-14:00",
    "1234567890",
    "20261399",
    "0000-00-00",
]
CELL = st.one_of(st.sampled_from(ODD), st.text(max_size=30), st.integers().map(str), st.floats().map(str))
ROW = st.dictionaries(st.sampled_from(COLUMNS), CELL, max_size=25)
VALUE = st.recursive(
    st.one_of(CELL, st.none(), st.booleans(), st.integers(), st.floats()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*COLUMNS, "url", "value", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
NEEDED = {"stock": "S1", "make": "Honda", "model": "Civic"}


def check(reading: Reading) -> None:
    report = reading.report
    assert report.rows == report.imported + report.refused + report.total("left_out") + report.total("duplicate")
    assert report.imported == len(reading.vehicles)
    for vehicle in reading.vehicles:
        assert SCHEMAS.problems("vehicle.schema.json", vehicle) == []
        assert vehicle["status"] in ("available", "intransit", "pending")
        assert vehicle["condition"] in ("new", "used", "cpo")
        assert vehicle["updated_at"].endswith("Z")
        assert vehicle.get("price") != 0
        assert msgspec.json.decode(msgspec.json.encode(vehicle)) == vehicle
    json.dumps(report.to_payload())
    assert report.lines()


@settings(max_examples=300, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=3), st.booleans())
def test_whatever_cells_hold_vehicles_are_valid_and_rows_accounted_for(rows: list[dict[str, str]], keep: bool) -> None:
    columns = sorted({*NEEDED, *(name for row in rows for name in row)})
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([{**NEEDED, **row}.get(column, "") for column in columns])
    check(read(text.getvalue().encode("utf-8", "surrogatepass"), rooftop=None, keep_unmapped=keep))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.dictionaries(st.sampled_from([*COLUMNS, "colour of the sky"]), VALUE, max_size=10), min_size=1, max_size=3
    )
)
def test_whatever_json_holds_vehicles_are_valid_and_rows_accounted_for(rows: list[dict[str, Any]]) -> None:
    check(read(json.dumps([{**NEEDED, **row} for row in rows]), keep_unmapped=True))


@given(st.binary(max_size=400))
def test_any_bytes_give_vehicles_or_a_feed_error(data: bytes) -> None:
    for head in (b"", b"stock,make,model\n", b"<i><vehicle>", b"[{", b"\x1f\x8b\x08\x00", b"PK\x03\x04"):
        with contextlib.suppress(FeedError):
            check(read(head + data))


def test_rooftops_are_looked_up_by_the_feeds_own_codes_and_an_unknown_one_is_refused() -> None:
    header = "stock,make,model,type,store_code,dealership_name"
    text = f"{header}\nS1,Honda,Fit,Used,A,\nS2,Honda,Fit,Used,,North\nS3,Honda,Fit,Used,C,x\n"
    reading = read(text, rooftop={"A": "Alpha", "North": "Northern"})
    assert [(vehicle["rooftop"], vehicle["vehicle_id"]) for vehicle in reading.vehicles] == [
        ("Alpha", "alpha:S1"),
        ("Northern", "northern:S2"),
    ]
    assert reading.findings() == [("refused", 4, "rooftop")]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "1HGCM82633A004352", "1HGCM82633A004353", "1M8GDM9AXKP042788"]),
            st.sampled_from(["", "A", "B"]),
            st.sampled_from(["", "S1", "S2"]),
            st.sampled_from(["North", "South"]),
            st.sampled_from(["", "2026-01-02", "2026-01-03"]),
        ),
        max_size=12,
    )
)
def test_what_is_a_duplicate_does_not_depend_on_what_is_asked_of_the_database(rows: list[tuple[str, ...]]) -> None:
    """With a bitmap of one byte nearly every row is looked up; with the usual one only those that may be known."""
    told = [",".join((*row, "A", "B", "New")) for row in (*rows, ("1HGCM82633A004352", "Z", "S9", "North", ""))]
    text = "\n".join(["vin,vehicle_id,stock,rooftop,updated,make,model,type", *told])
    usual = read(text, rooftop=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("forecourt.feed.duplicate._BITS", 8)
        patch.setattr("forecourt.feed.duplicate._WAITING", 2)
        asked = read(text, rooftop=None)
    assert (asked.vehicles, asked.report) == (usual.vehicles, usual.report)


def test_ids_are_qualified_where_rooftops_send_files_of_their_own_if_asked_for() -> None:
    text = "stock,make,model,type\nS1,Honda,Fit,Used\n"
    assert read(text).only["vehicle_id"] == "S1"
    assert read(text, qualify_ids=True).only["vehicle_id"] == "main:S1"


def test_feature_texts_are_recognised_as_codes() -> None:
    vehicle = read('stock,make,model,type,options\nS1,Honda,Fit,Used,"Apple CarPlay, no sunroof"\n').only
    assert vehicle["features"] == ["Apple CarPlay", "no sunroof"]
    assert vehicle["feature_codes"] == ["apple_carplay"]
