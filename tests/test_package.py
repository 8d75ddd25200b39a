"""`import forecourt`: the public names, and nothing heavy behind them until they are used."""

import subprocess
import sys

import pytest

import forecourt
import forecourt.a2a
import forecourt.errors
import forecourt.server

HEAVY = (
    "uvicorn", "starlette", "sqlite3", "psycopg", "httpx", "requests", "numpy", "jsonschema_rs", "msgspec", "limits",
    "http.client", "http.server", "urllib.request", "asyncio", "socket", "ssl", "json", "pyroaring", "click",
)  # fmt: skip


def run(program: str) -> str:
    """Run a program in a fresh interpreter and return what it prints."""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return ended.stdout.strip()


def test_importing_the_package_loads_no_server_database_or_http_client() -> None:
    loaded = run(f"import sys, forecourt; print(*[name for name in {HEAVY!r} if name in sys.modules])")
    assert loaded == ""


def test_the_error_and_the_a2a_room_load_no_server_database_or_http_client_either() -> None:
    heavy = [name for name in HEAVY if name != "json"]
    loaded = run(
        "import sys, forecourt; forecourt.AAPError, forecourt.Problem, forecourt.a2a\n"
        f"print(*[name for name in {heavy!r} if name in sys.modules])"
    )
    assert loaded == ""


def test_the_public_names_are_those_of_their_rooms() -> None:
    assert forecourt.AAPError is forecourt.errors.AAPError
    assert forecourt.Problem is forecourt.errors.Problem
    assert forecourt.Config is forecourt.server.Config
    assert forecourt.create_app is forecourt.server.create_app
    assert forecourt.a2a is sys.modules["forecourt.a2a"]


def test_every_public_name_is_found_first_and_listed_in_a_fresh_interpreter() -> None:
    program = "import forecourt\nprint(*[name for name in forecourt.__all__ if name in dir(forecourt)])\n"
    assert run(program + "forecourt.create_app, forecourt.a2a").split() == forecourt.__all__


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'forecourt' has no attribute 'nothing'$"):
        forecourt.nothing  # noqa: B018 - the access is what is tested


def test_the_whole_of_the_public_names_can_be_imported_at_once() -> None:
    assert run("from forecourt import *; print(AAPError.__name__, create_app.__name__)") == "AAPError create_app"
