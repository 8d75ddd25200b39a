"""JSON in the shapes that feeds come in (FEEDS.md, issue "Feeds"): arrays, objects around arrays, JSON Lines."""

import contextlib
import json
import tracemalloc
from collections.abc import Iterator
from typing import IO, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.feed.reading import NOW, read

from forecourt.feed import FeedError, FeedOptions, Report, read_feed

CARS: list[dict[str, Any]] = [
    {"stock": f"S{at}", "make": "Honda", "model": "Civic", "condition": "used", "price": 20000 + at, "year": 2020}
    for at in range(1, 6)
]
STOCKS = [car["stock"] for car in CARS]


@pytest.mark.parametrize(
    "document",
    [
        json.dumps(CARS),
        json.dumps(CARS, indent=2),
        json.dumps(CARS[:1])[:-1] + "," + json.dumps(CARS[1:])[1:],
        json.dumps({"vehicles": CARS}),
        json.dumps({"vehicles": CARS}, indent=2),
        json.dumps({"status": "ok", "count": 5, "data": {"page": 1, "items": CARS}, "next": None}),
        json.dumps({"dealers": [{"name": "North", "inventory": CARS[:2]}, {"name": "South", "inventory": CARS[2:]}]}),
        json.dumps({"stock": {car["stock"]: car for car in CARS}}),
        json.dumps([{"vehicle": car} for car in CARS]),
        "\n".join(map(json.dumps, CARS)),
        "\n".join(map(json.dumps, CARS)) + "\n",
        "\r\n\r\n".join(map(json.dumps, CARS)),
        "\n".join(json.dumps(car, indent=1) for car in CARS),
        '{"vehicles": [\n' + ",\n".join(map(json.dumps, CARS)) + "\n]}",
    ],
)
def test_every_shape_gives_the_same_vehicles(document: str) -> None:
    reading = read(document)
    assert [vehicle["stock"] for vehicle in reading.vehicles] == STOCKS
    assert reading.findings() == []
    assert reading.report.format == "json_rows"


def test_a_single_object_is_a_feed_of_one() -> None:
    assert read(json.dumps(CARS[0])).only["stock"] == "S1"


def test_nested_values_and_json_paths_are_read_alike() -> None:
    nested = {
        **CARS[0],
        "mileage": {"value": 50000, "unit": "KM"},
        "image": [{"url": "https://x.example.com/1.jpg", "tag": ["a"]}],
    }
    paths = {**CARS[0], "mileage.value": "50000", "mileage.unit": "KM", "image[0].url": "https://x.example.com/1.jpg"}
    for car in (nested, paths):
        vehicle = read(json.dumps([car])).only
        assert (vehicle["mileage"], vehicle["photos"]) == (31069, ["https://x.example.com/1.jpg"])


def test_a_number_with_three_decimals_is_not_one_with_thousands() -> None:
    assert read(json.dumps([{**CARS[0], "price": 24990.125}])).only["price"] == 24990


@pytest.mark.parametrize("broken", ['{"stock": "S9", "make": }', '{"stock": "S9" "make": "x"}', "{stock: 'S9'}"])
def test_an_object_that_is_not_json_is_refused_and_the_rest_is_imported(broken: str) -> None:
    one_a_line = [json.dumps(CARS[0]), broken, json.dumps(CARS[1])]
    for document, line in (
        ("\n".join(one_a_line), 2),
        ("[\n" + ",\n".join(one_a_line) + "\n]", 3),
        ('{"vehicles": [\n' + ",\n".join(one_a_line) + "\n]}", 3),
    ):
        reading = read(document)
        assert [vehicle["stock"] for vehicle in reading.vehicles] == ["S1", "S2"]
        assert reading.findings() == [("refused", line, "")]


def test_a_line_that_breaks_off_costs_its_own_row_only() -> None:
    lines = [json.dumps(CARS[0]), '{"stock": "S9", "make": "Ho', json.dumps(CARS[1]), "garbage", json.dumps(CARS[2])]
    reading = read("\n".join(lines))
    assert [vehicle["stock"] for vehicle in reading.vehicles] == ["S1", "S2", "S3"]
    assert reading.findings() == [("refused", 2, ""), ("refused", 4, "")]


def test_lines_are_those_on_which_objects_begin() -> None:
    bad = [{**CARS[0], "make": ""}, {**CARS[1], "make": ""}]
    document = json.dumps(bad, indent=2)
    starts = [at for at, line in enumerate(document.split("\n"), 1) if line == "  {"]
    assert [finding.line for finding in read(document).report.findings] == starts


@pytest.mark.parametrize("cut", [10, 100, 200, 350])
def test_an_array_that_breaks_off_is_no_feed(cut: int) -> None:
    with pytest.raises(FeedError, match=r"ends in the middle|no vehicles"):
        read(json.dumps(CARS)[:-cut])


@given(st.text('{}[]",:\\ \nab1', max_size=60))
def test_whatever_begins_like_json_gives_rows_or_a_feed_error(text: str) -> None:
    for head in ("[", "{", '{"vehicles": [', json.dumps(CARS[0]) + "\n"):
        with contextlib.suppress(FeedError):
            reading = read(head + text)
            assert reading.report.rows >= len(reading.vehicles)


class Endless:
    """A binary stream of a JSON array that is far longer than what may be held of it."""

    def __init__(self, rows: int) -> None:
        self._rows = self._generate(rows)
        self._rest = b""

    def _generate(self, rows: int) -> Iterator[bytes]:
        yield b'{"vehicles": ['
        for at in range(rows):
            car = {**CARS[0], "stock": f"S{at}", "description": "x" * 8000}
            yield (b"," if at else b"") + json.dumps(car).encode()
        yield b"]}"

    def read(self, size: int) -> bytes:
        while len(self._rest) < size and (more := next(self._rows, b"")):
            self._rest += more
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


def test_memory_does_not_grow_with_the_file() -> None:
    report = Report()
    tracemalloc.start()
    try:
        stream = cast("IO[bytes]", Endless(10_000))
        count = len([None for _ in read_feed(stream, FeedOptions("d", now=NOW), report)])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 10_000
    # The file has over 80 MB.
    assert peak < 24_000_000


@pytest.mark.parametrize("document", ['{"a":', '{"a": ', '{"x": {"vin": 1}, "a":', '{"a": {"b":', '{"a"'])
def test_an_object_that_ends_before_a_value_is_no_feed(document: str) -> None:
    with pytest.raises(FeedError):
        read(document)
