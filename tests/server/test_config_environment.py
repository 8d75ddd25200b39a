"""Every key can be set by the environment, and a variable that leads nowhere is told."""

from typing import Any

import pytest

from forecourt.server.config import Config
from forecourt.server.config_environment import apply_environment
from forecourt.server.config_problem import ConfigError


@pytest.mark.parametrize(
    ("variable", "text", "table"),
    [
        ("SERVER__PORT", "9000", {"server": {"port": 9000}}),
        ("DATA", "12", {"data": "12"}),
        ("STORE", "postgresql://h/d", {"store": "postgresql://h/d"}),
        ("SEARCH__FREE_TEXT", "false", {"search": {"free_text": False}}),
        ("SEARCH__FILTERS_OFF", '["query", "make"]', {"search": {"filters_off": ["query", "make"]}}),
        ("DEALER__ID", "own", {"dealer": {"id": "own"}}),
        ("DEALERS__0__ID", "own", {"dealers": [{"id": "own"}]}),
        ("DEALERS__0__HOSTS__0", "a.example.com", {"dealers": [{"hosts": ["a.example.com"]}]}),
        ("APPOINTMENTS__MINUTES__TEST_DRIVE", "30", {"appointments": {"minutes": {"test_drive": 30}}}),
        ("FEEDS__0__ROOFTOP", "Main", {"feeds": [{"rooftop": "Main"}]}),
        ("LIMITS__SECONDS", "x", {"limits": {"seconds": "x"}}),
        ("TEST_POSTGRES", "x", {}),
        ("CONFIG", "x", {}),
        ("LONG", "1", {}),
    ],
)
def test_a_variable_sets_its_key(variable: str, text: str, table: dict[str, Any]) -> None:
    read: dict[str, Any] = {}
    said = apply_environment(read, Config, {f"FORECOURT_{variable}": text, "PATH": "x"})
    assert read == table
    assert list(said.values()) == ([f"FORECOURT_{variable}"] if table else [])


def test_an_entry_of_a_list_in_the_file_is_changed_and_the_next_one_added() -> None:
    table: dict[str, Any] = {"dealers": [{"id": "a", "profile": "a.json"}]}
    environment = {"FORECOURT_DEALERS__0__ID": "b", "FORECOURT_DEALERS__1__ID": "c"}
    apply_environment(table, Config, environment)
    assert table == {"dealers": [{"id": "b", "profile": "a.json"}, {"id": "c"}]}


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("SERVER__PROT", "there is no such key"),
        ("SERVER__PORT__MORE", "is the name of no key|there is no such key"),
        ("SERVER__", "is the name of no key"),
        ("DEALERS__2__ID", "no entry 2"),
        ("DEALERS__X__ID", "no entry x"),
        ("DATA__X", "is the name of no key"),
        ("SERVER" + "__A" * 20, "is the name of no key"),
    ],
)
def test_a_variable_that_leads_nowhere_is_told(variable: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"FORECOURT_{variable}: .*({said})"):
        apply_environment({"server": {"port": 1}, "data": "x"}, Config, {f"FORECOURT_{variable}": "1"})
