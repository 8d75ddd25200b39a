"""What `forecourt.toml` may say, and that every mistake is told with its key."""

import re
from pathlib import Path
from typing import Any

import pytest

from forecourt.server import Config, ConfigError, load


def written(folder: Path, text: str) -> Path:
    """Write a configuration file."""
    file = folder / "forecourt.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_nothing_said_is_the_demo_dealer_on_this_machine_alone() -> None:
    config = load(None)
    assert config == Config()
    assert (config.server.host, config.server.port, config.server.public_url) == ("127.0.0.1", 8000, None)
    assert config.server.max_body_bytes == 1024 * 1024
    assert config.server.body_seconds == 20
    assert config.dealer is None
    assert config.limits.requests is None
    assert (config.search.default_limit, config.search.max_limit, config.search.free_text) == (20, 100, True)
    assert config.appointments.when_unavailable == "propose"
    assert config.store_address == f"sqlite:{Path('forecourt-data') / 'forecourt.db'}"


def test_an_empty_file_changes_nothing_and_a_full_one_everything(tmp_path: Path) -> None:
    assert load(written(tmp_path, "")) == Config()
    config = load(
        written(
            tmp_path,
            """
            data = "data"
            [server]
            host = "::1"
            port = 0
            public_url = "https://dealer.example.com"
            max_body_bytes = 4096
            body_seconds = 5
            [dealer]
            id = "own"
            profile = "profile.json"
            [search]
            filters_off = ["query"]
            features_off = ["sunroof"]
            sort_fields_off = ["msrp"]
            free_text = false
            default_limit = 10
            max_limit = 50
            vocabulary = ["more.toml"]
            [limits]
            requests = 10
            seconds = 1
            [appointments]
            confirm = false
            minutes = { test_drive = 45 }
            holidays = { "2026-12-25" = false, "2026-12-24" = { open = "10:00", close = "12:00" } }
            """,
        )
    )
    assert (config.server.host, config.server.port, config.server.body_seconds) == ("::1", 0, 5)
    assert config.limits.requests == 10
    assert config.appointments.minutes == {"test_drive": 45}
    assert config.search.sort_fields_off == ("msrp",)
    assert config.dealer is not None


def test_paths_in_a_file_are_relative_to_it(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """
        data = "data"
        dealer = { id = "own", profile = "profile.json" }
        search = { vocabulary = ["more.toml", "/absolute.toml"] }
        """,
    )
    config = load(file)
    assert config.data == str(tmp_path / "data")
    assert config.dealer is not None
    assert config.dealer.profile == str(tmp_path / "profile.json")
    assert config.search.vocabulary == (str(tmp_path / "more.toml"), "/absolute.toml")
    assert config.store_address == f"sqlite:{tmp_path / 'data' / 'forecourt.db'}"


def test_overrides_win_over_the_file_member_by_member(tmp_path: Path) -> None:
    file = written(tmp_path, '[server]\nport = 9000\nhost = "0.0.0.0"\n')
    config = load(file, server={"port": 9001}, data="elsewhere")
    assert (config.server.host, config.server.port, config.data) == ("0.0.0.0", 9001, "elsewhere")
    assert load(file, server={}, data=None) == load(file)


def test_a_store_of_its_own_needs_no_folder() -> None:
    assert load(None, store="sqlite:cars.db").store_address == "sqlite:cars.db"


MISTAKES = [
    ("[server]\nprot = 1", "prot"),
    ("[sever]\nport = 1", "sever"),
    ("port = 1", "port"),
    ("server = 5", "server"),
    ('server = "x"', "server"),
    ("[server]\nport = 65536", "server.port"),
    ("[server]\nport = -1", "server.port"),
    ('[server]\nport = "80"', "server.port"),
    ("[server]\nport = true", "server.port"),
    ("[server]\nhost = 5", "server.host"),
    ("[server]\nmax_body_bytes = 10", "server.max_body_bytes"),
    ("[server]\nmax_body_bytes = 10000000000", "server.max_body_bytes"),
    ("[server]\nbody_seconds = 0", "server.body_seconds"),
    ("[server]\nbody_seconds = inf", "server.body_seconds"),
    ('[server]\npublic_url = "dealer.example.com"', "server.public_url"),
    ('[server]\npublic_url = "https://dealer.example.com/"', "server.public_url"),
    ('[dealer]\nid = "own"', "profile"),
    ('[dealer]\nprofile = "x"', "id"),
    ('[dealer]\nid = ""\nprofile = "x"', "dealer.id"),
    ("[dealer]\nid = 5\nprofile = 5", "dealer.id"),
    ("data = 5", "data"),
    ("store = 5", "store"),
    ('[search]\nfilters_off = "query"', "search.filters_off"),
    ("[search]\nfilters_off = [5]", "search.filters_off"),
    ('[search]\nfree_text = "yes"', "search.free_text"),
    ("[search]\ndefault_limit = 0", "search.default_limit"),
    ("[search]\nmax_limit = 101", "search.max_limit"),
    ("[search]\nvocabulary = [5]", "search.vocabulary"),
    ("search = 5", "search"),
    ("[limits]\nrequests = 0", "limits.requests"),
    ("[limits]\nseconds = 0.5", "limits.seconds"),
    ('[appointments]\nwhen_unavailable = "sometimes"', "appointments.when_unavailable"),
    ("[appointments]\nstep_minutes = 1", "appointments.step_minutes"),
    ("[appointments]\nhorizon_days = 400", "appointments.horizon_days"),
    ("[appointments]\nminutes = { test_drive = 0 }", "appointments.minutes"),
    ('[appointments]\nholidays = { "2026-12-25" = "closed" }', "appointments.holidays"),
]


@pytest.mark.parametrize(("text", "key"), MISTAKES)
@pytest.mark.parametrize("overrides", [{}, {"server": {}, "data": None}, {"server": {"host": "::1"}}])
def test_a_mistake_is_told_in_one_line_with_its_key(
    tmp_path: Path, text: str, key: str, overrides: dict[str, Any]
) -> None:
    if overrides.get("server") and key == "server.host":
        return
    file = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(file, **overrides)
    message = str(caught.value)
    assert re.match(rf"{re.escape(str(file))}:\d+: ", message)
    assert key in message
    assert "\n" not in message


@pytest.mark.parametrize("content", [b"[server", b"port 8000", b"\xff\xfe", b"a = 1\na = 2"])
def test_what_is_not_toml_is_told(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "forecourt.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match="is not TOML"):
        load(file)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(ConfigError, match="cannot be read"):
            load(path)


def test_a_mistake_in_an_override_is_told_as_well() -> None:
    with pytest.raises(ConfigError, match=r"configuration: .*server\.port"):
        load(None, server={"port": 70_000})


def test_every_mistake_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    file = written(tmp_path, '[server]\nprot = 1\nport = 0.5\n[[dealers]]\nid = ""\n[limits]\nseconds = "1"\n')
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert caught.value.lines == (
        f"{file}:2: server.prot: there is no such key; did you mean port?",
        f"{file}:3: server.port: must be a whole number, not a number",
        f"{file}:4: dealers[1].profile: is missing",
        f"{file}:5: dealers[1].id: must be text of a length of at least 1",
        f"{file}:7: limits.seconds: must be a whole number, not text",
    )


def test_the_environment_wins_over_the_file_and_an_option_over_both(tmp_path: Path) -> None:
    file = written(tmp_path, '[server]\nport = 1\nhost = "::1"\n')
    environment = {"FORECOURT_SERVER__PORT": "2", "FORECOURT_DATA": "5", "FORECOURT_LONG": "1"}
    config = load(file, environment=environment, server={"host": "::2"})
    assert (config.server.port, config.server.host, config.data) == (2, "::2", "5")


def test_a_mistake_in_the_environment_is_told_by_its_variable() -> None:
    with pytest.raises(ConfigError, match=r"^environment: FORECOURT_SERVER__PORT: must be a whole number, not text$"):
        load(None, environment={"FORECOURT_SERVER__PORT": "many"})
