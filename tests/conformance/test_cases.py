"""Every conformance case is well formed and holds, over every binding and a real socket.

A binding is a module `over_NAME.py` here, found by that name, with two functions. `faults(case, server) -> list[str]`
runs a case and says what its answers have wrong; `payload_of(exchange, server)` sends one payload and gives back the
payload that comes, so that bindings can be compared directly. A case of payloads holds over every binding, or over
those that its `bindings` name; a case of one binding's requests lies in that binding's folder.
"""

import importlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import pytest
from tests.conformance.runner import CASES, Exchange, case_files, exchanges
from tests.server_process import CONFIGS, DEMO, ServerFarm, ServerProcess

_SCHEMA = json.loads((CASES.parent / "case.schema.json").read_text(encoding="utf-8"))
_FILES = case_files()
_HERE = Path(__file__).parent

_MODULES = {
    module.stem.removeprefix("over_"): importlib.import_module(f"tests.conformance.{module.stem}")
    for module in sorted(_HERE.glob("over_*.py"))
}
BINDINGS: Final[Mapping[str, Callable[[Mapping[str, Any], ServerProcess], list[str]]]] = {
    name: module.faults for name, module in _MODULES.items()
}
"""What runs a case, by the name of the binding."""
_ASKED: Final[Mapping[str, Callable[[Exchange, ServerProcess], Any]]] = {
    name: module.payload_of for name, module in _MODULES.items() if hasattr(module, "payload_of")
}
"""What sends a payload and gives back the one that is answered."""

CONTRACTS: Final[Mapping[str, tuple[str, ...]]] = {"pap": ("3.1",)}
"""The contracts that a binding has, where it has not all of them."""


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def _bindings(file: Path) -> list[str]:
    """Return the bindings over which a case is to hold."""
    case = _read(file)
    if any("request" in step for step in (case, *case.get("given", ()))):
        return [file.parent.name]
    chosen = [name for name in BINDINGS if name in case.get("bindings", BINDINGS)]
    return [name for name in chosen if case["contract"] in CONTRACTS.get(name, (case["contract"],))]


def _is_a_question(file: Path) -> bool:
    """Tell whether a case asks once, over every binding, and leaves nothing behind: it can be asked again."""
    case = _read(file)
    if "given" in case or "bindings" in case or "payload" not in case:
        return False
    return not (isinstance(case["payload"], dict) and case["payload"].get("type") == "lead.submit.request")


def _settled(value: Any) -> Any:
    """Return a payload without what is made anew for each answer."""
    if isinstance(value, list):
        return [_settled(item) for item in value]
    if isinstance(value, dict):
        fresh = ("created_at", "error_id", "next_cursor")
        return {name: "…" if name in fresh else _settled(member) for name, member in value.items()}
    return value


_PAIRS = [(binding, file) for file in _FILES for binding in _bindings(file)]


def _name(file: Path) -> str:
    return file.relative_to(CASES).with_suffix("").as_posix()


@pytest.fixture(scope="module")
def farm(servers: ServerFarm) -> ServerFarm:
    """The session's farm, in which every server that a case names has been started."""
    servers.start({_server(binding, file) for binding, file in _PAIRS})
    return servers


def _server(binding: str, file: Path) -> str:
    """Return the server of a case: each binding has its own, since cases take slots and use up limits."""
    return f"{_read(file)['server']}@{binding}"


def test_every_case_fits_the_schema_of_cases() -> None:
    validator = jsonschema_rs.validator_for(_SCHEMA)
    broken = [f"{_name(file)}: {error.message}" for file in _FILES for error in validator.iter_errors(_read(file))]
    assert broken == []


def test_every_case_lies_in_the_folder_of_its_contract_and_binding() -> None:
    for file in _FILES:
        case = _read(file)
        folders = file.relative_to(CASES).parent.parts
        steps = (case, *case.get("given", ()))
        if any("request" in step for step in steps):
            assert folders[:1] == (case["contract"],), _name(file)
            assert folders[1:] in {(binding,) for binding in BINDINGS}, _name(file)
            assert "bindings" not in case, _name(file)
        else:
            assert folders == (case["contract"],), _name(file)


def test_every_case_has_a_name_that_reads_as_words() -> None:
    assert all(part.isalnum() for file in _FILES for part in file.stem.split("-"))


def test_every_case_names_a_configuration_that_is_there() -> None:
    known = {DEMO, *(file.stem for file in CONFIGS.glob("*.toml"))}
    assert {_read(file)["server"] for file in _FILES} == known


_HOLDS: dict[str, Any] = {
    "contract": "3.1",
    "given": [{"name": "first", "payload": {"type": "inventory.vehicle.request", "stock": "T12345"}}],
    "payload": {"type": "inventory.search.request", "filters": {"make": ["Lada"]}},
    "expect": {
        "payload": {"type": "inventory.search.response", "data": {"total": 0, "limit": 20, "vehicles": []}},
    },
}


@pytest.mark.parametrize(
    "change",
    [
        {"expect": {"payload": {"type": "inventory.search.response", "data": {"total": 1, "limit": 20}}}},
        {"expect": {"error": {"code": "INVALID_CURSOR", "message": {"$any": "string"}, "retryable": False}}},
        {"expect": {"equals": "first"}},
        {"expect": {"status": 500}},
        {"expect": {"headers": {"content-type": None}}},
        {"expect": {"headers": {"content-type": "text/html"}}},
        {"expect": {"text": "nothing"}},
        {"expect": {"body": {"jsonrpc": "2.0"}}},
        {"never": ["inventory.search.response"]},
        {"payload": {"type": "vehicle.reserve.request"}},
    ],
)
@pytest.mark.parametrize("binding", BINDINGS)
def test_a_case_that_expects_something_else_does_not_hold(
    binding: str, change: dict[str, Any], servers: ServerFarm
) -> None:
    server = servers.get(f"{DEMO}@{binding}")
    assert BINDINGS[binding](_HOLDS, server) == []
    assert BINDINGS[binding]({**_HOLDS, **change}, server) != []


@pytest.mark.parametrize(("binding", "file"), _PAIRS, ids=[f"{binding}-{_name(file)}" for binding, file in _PAIRS])
def test_the_case_holds(binding: str, file: Path, farm: ServerFarm) -> None:
    case = _read(file)
    if "skip" in case:
        pytest.skip(case["skip"])
    assert BINDINGS[binding](case, farm.get(_server(binding, file))) == []


@pytest.mark.requirement("ERR-INTRO-ONE-OBJECT")
@pytest.mark.parametrize("file", [file for file in _FILES if _is_a_question(file)], ids=_name)
def test_every_binding_gives_the_same_payload(file: Path, farm: ServerFarm) -> None:
    (exchange,) = exchanges(_read(file))
    asked = _bindings(file)
    # The server with the most bindings: that of PAP has the others too.
    server = farm.get(_server("pap" if "pap" in asked else "a2a", file))
    payloads = {name: _settled(ask(exchange, server)) for name, ask in _ASKED.items() if name in asked}
    assert len(payloads) == (3 if exchange.contract == "3.1" else 2)
    assert [(name, payload) for name, payload in payloads.items() if payload != payloads["a2a"]] == []


def test_no_server_has_logged_anything_of_a_shopper(farm: ServerFarm) -> None:
    # Every shopper of the cases has an address at example.com or a number in E.164, and marked texts say so.
    shopper = re.compile(r"example\.com|\+\d{7}|arked")
    assert [(name, found.group()) for name, log in farm.logs().items() if (found := shopper.search(log))] == []
