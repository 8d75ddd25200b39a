"""Mistakes are told all at once, in the words of whoever wrote the file."""

import pytest

from forecourt.server.config import Config
from forecourt.server.config_problem import ConfigError, ConfigProblem, mistakes


@pytest.mark.parametrize(
    ("table", "sentences"),
    [
        ({}, []),
        ({"server": 5}, ["server: must be a table, not a whole number"]),
        ({"server": {"port": 70_000}}, ["server.port: must be a whole number of at most 65535"]),
        ({"server": {"body_seconds": 0}}, ["server.body_seconds: must be a number above 0.0"]),
        (
            {"dealers": [{"id": 1}]},
            ["dealers[1].id: must be text, not a whole number", "dealers[1].profile: is missing"],
        ),
        ({"dealers": {}}, ["dealers: must be a list, not a table"]),
        ({"search": {"filters_off": ["a", 1]}}, ["search.filters_off[2]: must be text, not a whole number"]),
        (
            {"appointments": {"minutes": {"sales": 0}}},
            ["appointments.minutes.sales: must be a whole number of at least 1"],
        ),
        (
            {"serve": {}, "zebra": 1},
            ["serve: there is no such key; did you mean server?", "zebra: there is no such key"],
        ),
        (
            {"server": {"public_url": "dealer"}},
            ["server.public_url: must be an http or https address without a slash at its end"],
        ),
    ],
)
def test_every_mistake_has_its_key_and_a_sentence(table: dict[str, object], sentences: list[str]) -> None:
    assert [problem.sentence for problem in mistakes(table, Config)] == sentences


def test_an_error_is_one_line_and_holds_all() -> None:
    error = ConfigError([ConfigProblem(("b",), "is bad"), ConfigProblem(("a",), "is worse")])
    assert str(error) == "b: is bad"
    located = error.inside("table").located("f.toml", "[table]\na = 1\nb = 2\n")
    assert located.lines == ("f.toml:2: table.a: is worse", "f.toml:3: table.b: is bad")


def test_a_sentence_is_one_line_whatever_its_cause_said() -> None:
    assert str(ConfigError("two\nlines", "key")) == "key: two lines"
