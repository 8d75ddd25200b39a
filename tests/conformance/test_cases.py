"""Every conformance case is well formed and holds, over A2A and a real socket."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.conformance.over_a2a import faults
from tests.conformance.runner import CASES, case_files
from tests.server_process import CONFIGS, DEMO, ServerFarm

_SCHEMA = json.loads((CASES.parent / "case.schema.json").read_text(encoding="utf-8"))
_FILES = case_files()


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def _name(file: Path) -> str:
    return file.relative_to(CASES).with_suffix("").as_posix()


@pytest.fixture(scope="module")
def farm(servers: ServerFarm) -> ServerFarm:
    """The session's farm, in which every server that a case names has been started."""
    servers.start({_read(file)["server"] for file in _FILES})
    return servers


def test_every_case_fits_the_schema_of_cases() -> None:
    validator = jsonschema_rs.validator_for(_SCHEMA)
    broken = [f"{_name(file)}: {error.message}" for file in _FILES for error in validator.iter_errors(_read(file))]
    assert broken == []


def test_every_case_lies_in_the_folder_of_its_contract_and_binding() -> None:
    for file in _FILES:
        case = _read(file)
        folders = file.relative_to(CASES).parent.parts
        steps = (case, *case.get("given", ()))
        expected = (case["contract"], "a2a") if any("request" in step for step in steps) else (case["contract"],)
        assert folders == expected, _name(file)


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
        {"never": ["ROLE_AGENT"]},
        {"payload": {"type": "vehicle.reserve.request"}},
    ],
)
def test_a_case_that_expects_something_else_does_not_hold(change: dict[str, Any], servers: ServerFarm) -> None:
    server = servers.get(DEMO)
    assert faults(_HOLDS, server) == []
    assert faults({**_HOLDS, **change}, server) != []


@pytest.mark.parametrize("file", _FILES, ids=_name)
def test_the_case_holds(file: Path, farm: ServerFarm) -> None:
    case = _read(file)
    if "skip" in case:
        pytest.skip(case["skip"])
    assert faults(case, farm.get(case["server"])) == []


def test_no_server_has_logged_anything_of_a_shopper(farm: ServerFarm) -> None:
    # Every shopper of the cases has an address at example.com or a number in E.164, and marked texts say so.
    shopper = re.compile(r"example\.com|\+\d{7}|arked")
    assert [(name, found.group()) for name, log in farm.logs().items() if (found := shopper.search(log))] == []
