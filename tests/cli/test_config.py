"""A hundred mistakes of a configuration: each is one line with its key, and status 2, of two commands."""

import json
import re
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from forecourt.cli import main

PROFILE: Final = {"name": "Example", "rooftops": [{"name": "Main", "timezone": "America/Chicago"}]}
ONE: Final = '[dealer]\nid = "own"\nprofile = "dealer.json"\n'
TWO: Final = '[[dealers]]\nid = "a"\nprofile = "dealer.json"\n[[dealers]]\nid = "b"\nprofile = "dealer.json"\n'

WRONG_TYPES: Final = [
    (f"[{table}]\n{key} = {value}\n", f"{table}.{key}")
    for table, keys in {
        "server": (
            "name",
            "host",
            "port",
            "public_url",
            "trusted_proxies",
            "max_body_bytes",
            "body_seconds",
            "max_connections",
            "max_connections_per_client",
            "max_running",
        ),
        "search": ("filters_off", "features_off", "sort_fields_off", "free_text", "default_limit", "max_limit"),
        "limits": ("requests", "seconds", "concurrent"),
        "appointments": ("confirm", "notice_minutes", "horizon_days", "step_minutes", "minutes", "capacity"),
    }.items()
    for key in keys
    for value in ("2026-12-25", "[[]]")
]

MISTAKES: Final = [
    *WRONG_TYPES,
    # Names that are none
    ("prot = 1\n", "prot"),
    ("[serve]\n", "serve"),
    ("[server]\nhots = 1\n", "server.hots"),
    (ONE + "ident = 1\n", "dealer.ident"),
    ("[[feeds]]\nsource = 'x'\nevry = 60\n", "feeds[1].evry"),
    ("[search]\nfilter_off = []\n", "search.filter_off"),
    ("[limits]\nrequest = 1\n", "limits.request"),
    ("[appointments]\nholiday = {}\n", "appointments.holiday"),
    # Out of bounds
    ("[server]\nport = 65536\n", "server.port"),
    ("[server]\nport = -1\n", "server.port"),
    ("[server]\nmax_body_bytes = 1\n", "server.max_body_bytes"),
    ("[server]\nmax_body_bytes = 99999999999\n", "server.max_body_bytes"),
    ("[server]\nbody_seconds = 0\n", "server.body_seconds"),
    ("[server]\nbody_seconds = 301\n", "server.body_seconds"),
    ("[server]\nhost = ''\n", "server.host"),
    ("[server]\npublic_url = 'ftp://x.example.com'\n", "server.public_url"),
    ("[server]\npublic_url = 'https://x.example.com/'\n", "server.public_url"),
    ("[limits]\nrequests = 0\n", "limits.requests"),
    ("[limits]\nseconds = -5\n", "limits.seconds"),
    ("[search]\ndefault_limit = 0\n", "search.default_limit"),
    ("[search]\nmax_limit = 101\n", "search.max_limit"),
    ("[search]\ndefault_limit = 50\nmax_limit = 10\n", "search.default_limit"),
    ("[search]\nfilters_off = ['colour']\n", "search.filters_off"),
    ("[search]\nfeatures_off = ['wings']\n", "search.features_off"),
    ("[search]\nsort_fields_off = ['smell']\n", "search.sort_fields_off"),
    ("[appointments]\nhorizon_days = 367\n", "appointments.horizon_days"),
    ("[appointments]\nstep_minutes = 4\n", "appointments.step_minutes"),
    ("[appointments]\nnotice_minutes = 100000\nhorizon_days = 1\n", "appointments"),
    ("[appointments]\nminutes = { sales = 0 }\n", "appointments.minutes.sales"),
    ("[appointments]\nminutes = { haircut = 5 }\n", "appointments"),
    ("[appointments]\ncapacity = { kitchen = 5 }\n", "appointments"),
    ("[appointments]\nwhen_unavailable = 'maybe'\n", "appointments.when_unavailable"),
    ("[appointments]\nholidays = { Christmas = false }\n", "appointments.holidays.Christmas"),
    ("[appointments]\nholidays = { 2026-12-25 = true }\n", "appointments.holidays.2026-12-25"),
    ("[appointments]\nholidays = { 2026-12-25 = { open = '9' } }\n", "appointments.holidays.2026-12-25"),
    ("[appointments]\nholidays = { 2026-12-25 = { open = 'x', close = 'y' } }\n", "appointments.holidays.2026-12-25"),
    # Sellers
    ("[dealer]\nid = 'own'\n", "dealer.profile"),
    ("[dealer]\nprofile = 'dealer.json'\n", "dealer.id"),
    ("[dealer]\nid = ''\nprofile = 'dealer.json'\n", "dealer.id"),
    ("[dealer]\nid = 'a/b'\nprofile = 'dealer.json'\n", "dealer.id"),
    (f"[dealer]\nid = '{'x' * 129}'\nprofile = 'dealer.json'\n", "dealer.id"),
    ("[dealer]\nid = 'own'\nprofile = 'missing.json'\n", "dealer.profile"),
    ("[dealer]\nid = 'own'\nprofile = '.'\n", "dealer.profile"),
    ("[dealer]\nid = 'own'\nprofile = 'broken.json'\n", "dealer.profile"),
    ("[dealer]\nid = 'own'\nprofile = 'empty.json'\n", "dealer.profile"),
    ("[dealer]\nid = 'own'\nprofile = 'zone.json'\n", "dealer.profile"),
    ("[dealer]\nid = 'own'\nprofile = 'hours.json'\n", "dealer.profile"),
    (ONE + "hosts = ['a b']\n", "dealer.hosts[1]"),
    (ONE + "hosts = ['a.example.com:80']\n", "dealer.hosts[1]"),
    (ONE + "hosts = ['a.example.com', 'A.example.com']\n", "dealer.hosts"),
    (ONE + "[[dealers]]\nid = 'b'\nprofile = 'dealer.json'\n", "dealer"),
    (TWO + "[[dealers]]\nid = 'a'\nprofile = 'dealer.json'\n", "dealers[3].id"),
    ("dealers = 5\n", "dealers"),
    ("dealer = []\n", "dealer"),
    # Feeds
    (ONE + "[[feeds]]\n", "feeds[1].source"),
    (ONE + "[[feeds]]\nsource = ''\n", "feeds[1].source"),
    (ONE + "[[feeds]]\nsource = 'x'\nevery = 9\n", "feeds[1].every"),
    (ONE + "[[feeds]]\nsource = 'x'\nodometer_unit = 'yards'\n", "feeds[1].odometer_unit"),
    (ONE + "[[feeds]]\nsource = 'x'\ndefault_condition = 'good'\n", "feeds[1].default_condition"),
    (ONE + "[[feeds]]\nsource = 'x'\nmost_removed = 2\n", "feeds[1].most_removed"),
    (ONE + "[[feeds]]\nsource = 'x'\ntimezone = 'America/Nowhere'\n", "feeds[1].timezone"),
    (ONE + "[[feeds]]\nsource = 'x'\ncolumns = { prize = 'Our Price' }\n", "feeds[1].columns"),
    (ONE + "[[feeds]]\nsource = 'x'\nrooftop = 'Other'\n", "feeds[1].rooftop"),
    (ONE + "[[feeds]]\nsource = 'x'\ndealer = 'other'\n", "feeds[1].dealer"),
    (TWO + "[[feeds]]\nsource = 'x'\n", "feeds[1].dealer"),
    (ONE + "[[feeds]]\nsource = 'x'\n[[feeds]]\nsource = 'y'\n", "feeds[2].rooftop"),
    # The store and files
    ("store = 'cassandra:x'\n", "store"),
    ("store = 'nothing'\n", "store"),
    ("store = 5\n", "store"),
    ("data = []\n", "data"),
    ("[search]\nvocabulary = ['missing.toml']\n", "search.vocabulary"),
    ("[search]\nvocabulary = ['dealer.json']\n", "search.vocabulary"),
]

NO_TOML: Final = ["[server", "port 8000", "a = 1\na = 2", "[a]\n[a]", "a = ", 'a = "']


def run(*arguments: str, **environment: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, arguments, env={"FORECOURT_CONFIG": "", **environment})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with good and bad profiles."""
    (tmp_path / "dealer.json").write_text(json.dumps(PROFILE))
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "empty.json").write_text("{}")
    (tmp_path / "zone.json").write_text(
        json.dumps({"name": "X", "rooftops": [{"name": "M", "timezone": "Mars/Olympus"}]})
    )
    hours = {"name": "sales", "value": {"monday": {"open": "25:00", "close": "26:00"}}}
    (tmp_path / "hours.json").write_text(json.dumps({"name": "X", "rooftops": [{"name": "M", "schedules": [hours]}]}))
    return tmp_path


def test_there_are_a_hundred_mistakes() -> None:
    assert len(MISTAKES) + len(NO_TOML) >= 100


@pytest.mark.parametrize(("text", "key"), MISTAKES)
def test_a_mistake_is_one_line_with_file_line_and_key_and_status_2(folder: Path, text: str, key: str) -> None:
    path = folder / "forecourt.toml"
    path.write_text(text)
    checked = run("config", "check", "--config", str(path))
    assert checked.exit_code == 2
    first, *more = checked.stdout.splitlines()
    place, _, sentence = first.removeprefix(f"{path}:").partition(": ")
    assert place.isdecimal()
    assert 1 <= int(place) <= text.count("\n")
    assert re.match(rf"{re.escape(key)}(\[1\])?: ", sentence)
    # A profile may have several things wrong with it; every other mistake here is one.
    assert not more or key == "dealer.profile"
    assert not checked.stderr
    served = run("serve", "--config", str(path))
    assert served.exit_code == 2
    assert f" serve: {first} (" in served.stderr
    assert len(served.stderr.splitlines()) == 1


def test_mistakes_of_different_parts_are_all_told_at_once(folder: Path) -> None:
    path = folder / "forecourt.toml"
    own = (
        "[search]\nfilters_off = ['colour']\nfeatures_off = ['wings']\n"
        "[leads]\nencryption_key_env = 'FORECOURT_NO_SUCH_KEY'\n"
        "[appointments]\nminutes = { haircut = 5 }\n[appointments.holidays]\nChristmas = false\n"
        "[limits.skills]\nnone = { requests = 1 }\n"
    )
    feeds = "[[feeds]]\nsource = 'x'\nrooftop = 'Nowhere'\n[[feeds]]\nsource = 'y'\ntimezone = 'Mars/Olympus'\n"
    expected = [
        "search.filters_off", "search.features_off", "leads.encryption_key_env", "appointments",
        "appointments.holidays.Christmas", "limits.skills.none",
    ]  # fmt: skip

    def told(text: str) -> list[str]:
        path.write_text(text)
        result = run("config", "check", "--config", str(path))
        assert result.exit_code == 2
        return [line.removeprefix(f"{path}:").split(": ")[1] for line in result.stdout.splitlines()]

    two = "[[dealers]]\nid = 'a b'\nprofile = 'none.json'\n[[dealers]]\nid = 'b'\nprofile = 'broken.json'\n"
    assert told(own + two) == [*expected, "dealers[1].id", "dealers[1].profile", "dealers[2].profile"]
    delivery = "[[dealer.deliveries]]\nvia = 'pigeon'\n"
    assert told(ONE + delivery + feeds) == ["dealer.deliveries[1].via", "feeds[1].rooftop", "feeds[2].timezone"]
    served = run("serve", "--config", str(path))
    assert "(2 more: forecourt config check lists all)" in served.stderr


@pytest.mark.parametrize("text", NO_TOML)
def test_a_file_that_is_no_toml_is_one_line_and_status_2(tmp_path: Path, text: str) -> None:
    path = tmp_path / "forecourt.toml"
    path.write_text(text)
    checked = run("config", "check", "--config", str(path))
    assert checked.exit_code == 2
    assert checked.stdout.startswith(f"{path}: is not TOML: ")
    assert len(checked.stdout.splitlines()) == 1


def test_a_good_configuration_is_said_to_be_good(folder: Path) -> None:
    path = folder / "forecourt.toml"
    path.write_text(ONE)
    assert run("config", "check", "--config", str(path)).stdout == f"{path}: good; serves 1 seller at 127.0.0.1\n"
    result = run("config", "check", "--config", str(path), "--json")
    assert json.loads(result.stdout) == {"good": True, "problems": [], "warnings": []}
    assert run("config", "check").stdout == "no file: good; serves the demo dealer at 127.0.0.1\n"


def test_a_mistake_in_the_environment_is_told_by_its_variable(folder: Path) -> None:
    result = run("config", "check", FORECOURT_SERVER__PORT="many")
    assert result.exit_code == 2
    assert result.stdout == "environment: FORECOURT_SERVER__PORT: must be a whole number, not text\n"


def test_a_store_address_with_a_password_is_never_printed(folder: Path) -> None:
    path = folder / "forecourt.toml"
    for store in ("postgresql://user:hunter2@h/d", "mysql://user:hunter2@h/d"):
        path.write_text(f"store = '{store}'\n" + ONE)
        result = run("config", "check", "--config", str(path))
        assert "hunter2" not in result.output


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("public_url = 'http://dealer.example.com'", "server.public_url is not https"),
        ("public_url = 'http://10.0.0.1:8000/agent'", "server.public_url is not https"),
        ("public_url = 'http://localhost.example.com'", "server.public_url is not https"),
        ("host = '0.0.0.0'", "server.public_url is not set"),
        ("host = '::'", "server.public_url is not set"),
        ("public_url = 'https://dealer.example.com'\nhost = '0.0.0.0'", ""),
        ("public_url = 'http://127.8.0.1:8000'", ""),
        ("public_url = 'http://[::1]:8000'", ""),
        ("public_url = 'http://LOCALHOST'", ""),
        ("host = '::1'", ""),
        ("", ""),
    ],
)
def test_an_address_in_the_clear_is_a_warning_and_no_mistake(tmp_path: Path, server: str, words: str) -> None:
    (tmp_path / "forecourt.toml").write_text(f"[server]\n{server}\n")
    arguments = ["config", "check", "--config", str(tmp_path / "forecourt.toml")]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0
    assert result.stderr.startswith(f"warning: {words}") if words else result.stderr == ""
    told = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)
    assert told["good"] is True
    assert [each.startswith(words) for each in told["warnings"]] == ([True] if words else [])
