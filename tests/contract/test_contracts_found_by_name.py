"""A contract is a module named after its version; adding one edits no list."""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import forecourt.contract
from forecourt.contract import Contract, contract_class, default_version, versions


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules are found beside the packaged contracts."""
    monkeypatch.setattr(forecourt.contract, "__path__", [*forecourt.contract.__path__, str(tmp_path)])
    versions.cache_clear()
    yield tmp_path
    versions.cache_clear()
    for name in [name for name in sys.modules if name.startswith("forecourt.contract.v10")]:
        del sys.modules[name]


def test_the_packaged_contracts_are_found_oldest_first() -> None:
    assert versions() == ("1.1", "3.1")
    assert default_version() == "3.1"


@pytest.mark.parametrize("version", ["1.1", "3.1"])
def test_a_version_gives_the_class_that_serves_it(version: str) -> None:
    found = contract_class(version)
    assert issubclass(found, Contract)
    assert found.version == version


@pytest.mark.parametrize("version", ["", "1", "1.2", "3_1", "v3.1", "alidation", "../3.1", "\N{SNOWMAN}"])
def test_a_version_that_is_not_there_is_a_key_error(version: str) -> None:
    with pytest.raises(KeyError):
        contract_class(version)


def test_a_new_module_is_a_new_contract_and_the_newest_is_the_default(beside: Path) -> None:
    beside.joinpath("v10_0.py").write_text(
        textwrap.dedent("""
            from forecourt.contract.v3_1 import Contract31

            class Contract100(Contract31):
                version = "10.0"

            CONTRACT = Contract100
        """)
    )
    assert versions() == ("1.1", "3.1", "10.0")
    assert default_version() == "10.0"
    assert contract_class("10.0").version == "10.0"


def test_other_modules_are_no_contracts(beside: Path) -> None:
    for name in ("validators", "v", "vx_1", "view"):
        beside.joinpath(f"{name}.py").write_text("")
    assert versions() == ("1.1", "3.1")
