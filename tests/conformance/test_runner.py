"""The runner of conformance cases finds differences, so that a case can fail."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from tests.conformance.runner import CaseError, Filler, differences, expected_error

FILLER = Filler(date(2026, 5, 3), {"first": {"data": {"list": ["a", "b"], "a/b": 1}}}, run=7)


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (1, 1.0),
        (1, True),
        ("a", "b"),
        ({"a": 1}, {}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ([1, 2], [1, 2, 3]),
        ([1, 2], [2, 1]),
        (None, False),
        ({}, []),
        ({"$any": "integer"}, True),
        ({"$any": "timestamp"}, "2026-05-03T10:00:00"),
        ({"$any": "error_id"}, "err_1"),
        ({"$any": "string"}, ""),
        ({"$pattern": "a+"}, "aab"),
        ({"$not": "a"}, "a"),
        ({"$subset": {"a": 1}}, {"b": 1}),
        ({"$subset": {"a": 1}}, {"a": 2, "b": 1}),
        ({"$items": {"/a": [1, 2]}}, [{"a": 1}]),
        ({"$items": {"/a": [1, 2]}}, [{"a": 1}, {"b": 2}]),
        ({"$each": {"$any": "integer"}}, []),
        ({"$each": {"$any": "integer"}}, [1, "2"]),
    ],
)
def test_a_difference_is_found(expected: Any, found: Any) -> None:
    assert differences(expected, found) != []


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ({"a": [1, 2.0, None, "x"]}, {"a": [1, 2.0, None, "x"]}),
        ({"$any": "integer"}, 3),
        ({"$any": "timestamp"}, "2026-05-03T10:00:00.123Z"),
        ({"$any": "timestamp"}, "2026-05-03T10:00:00-07:00"),
        ({"$pattern": "a+b"}, "aab"),
        ({"$not": "a"}, "b"),
        ({"$subset": {"a": {"$any": "integer"}}}, {"a": 2, "b": 1}),
        ({"$items": {"/a/0": [1, 2]}}, [{"a": [1]}, {"a": [2, 3]}]),
        ({"$each": {"$subset": {"a": 1}}}, [{"a": 1}, {"a": 1, "b": 2}]),
    ],
)
def test_what_is_as_expected_has_no_difference(expected: Any, found: Any) -> None:
    assert differences(expected, found) == []


def test_a_difference_says_where_it_is() -> None:
    assert differences({"a": [{"b": 1}]}, {"a": [{"b": 2}]}) == ["/a/0/b is 2, not 1"]


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ({"$day": -3, "then": "T10:00:00Z"}, "2026-04-30T10:00:00Z"),
        ({"$unique": "sam-{number}@example.com"}, "sam-7@example.com"),
        ({"$unique": "+1{area}5550123"}, "+12085550123"),
        ({"$from": "first#/data/list/1"}, "b"),
        ({"$from": "first#/data/a~1b"}, 1),
        ({"$join": ["<", {"$repeat": "ab", "times": 2}, ">"]}, "<abab>"),
        ({"$any": "string"}, {"$any": "string"}),
    ],
)
def test_a_template_is_replaced_and_a_matcher_stays(template: Any, filled: Any) -> None:
    assert FILLER.fill([{"at": template}]) == [{"at": filled}]


def test_a_time_from_now_is_in_utc_with_seconds() -> None:
    told = FILLER.fill({"$now": "-5m"})
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", told)
    assert abs(datetime.now(UTC) - timedelta(minutes=5) - datetime.fromisoformat(told)) < timedelta(minutes=1)


def test_a_time_of_day_is_that_of_its_zone_on_the_weekday_or_after() -> None:
    template = {"$now": "+9d", "zone": "America/Denver", "weekday": "sunday", "later": 1, "at": "11:30"}
    local = datetime.fromisoformat(FILLER.fill(template))
    assert local.strftime("%A %H:%M:%S") == "Monday 11:30:00"
    assert local.utcoffset() in {timedelta(hours=-7), timedelta(hours=-6)}
    assert datetime.fromisoformat(FILLER.fill({**template, "as": "utc"})) == local
    ahead = (local.date() - datetime.now(UTC).date()).days
    assert 9 <= ahead <= 17


def test_a_day_of_the_year_is_the_next_one() -> None:
    told = datetime.fromisoformat(
        FILLER.fill({"$now": "+1d", "zone": "America/Denver", "date": "12-24", "at": "03:00"})
    )
    assert told.strftime("%m-%d %H:%M:%S") == "12-24 03:00:00"
    assert timedelta(0) < told - datetime.now(UTC) < timedelta(days=368)


@pytest.mark.parametrize("template", [{"$from": "second#/a"}, {"$from": "first#/data/x"}, {"$now": "soon"}])
def test_a_template_that_makes_no_sense_is_refused(template: Any) -> None:
    with pytest.raises(CaseError):
        FILLER.fill(template)


def test_a_kind_that_is_not_known_is_refused() -> None:
    with pytest.raises(CaseError, match="tomorrow is no kind"):
        differences({"$any": "tomorrow"}, "x")


def test_the_short_form_of_an_error_stands_for_the_whole_object() -> None:
    found = {
        "type": "aap.error",
        "error_id": "err_01HZ9RATE010000000",
        "code": "INVALID_CURSOR",
        "message": "The cursor cannot be continued.",
        "retryable": False,
        "created_at": "2026-04-30T10:16:00Z",
    }
    short = {"code": "INVALID_CURSOR", "message": "The cursor cannot be continued.", "retryable": False}
    assert differences(expected_error(short), found) == []
    for member in found:
        assert differences(expected_error(short), {**found, member: None}) != []
