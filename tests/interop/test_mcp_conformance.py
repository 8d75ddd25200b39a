"""The scenarios of `@modelcontextprotocol/conformance` against a running server, under the Node that npm brings.

The released package knows MCP 2025-06-18 and 2025-11-25. The next one, which is not released yet, knows 2026-07-28 and
is run twice: every scenario at the revision that the package takes for it, and what there is of 2026-07-28. Which
scenarios pass, and why each other cannot, is said in mcp_conformance/scenarios.toml.
"""

import json
import re
import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.interop.npm import installed, missing
from tests.server_process import DEMO, ServerFarm

SCRIPTS: Final = Path(__file__).with_name("mcp_conformance")
DATA: Final[dict[str, Any]] = tomllib.loads((SCRIPTS / "scenarios.toml").read_text(encoding="utf-8"))
PASSES: Final[list[str]] = DATA["passes"]
EXCEPTED: Final[dict[str, str]] = DATA["except"]
SKIPPED: Final = {name: group for group in DATA["skipped"] for name in group["scenarios"]}
RUNS: Final = (
    ("conformance", ()),
    ("conformance-next", ()),
    ("conformance-next", ("--spec-version", "2026-07-28")),
)
_FOLDER: Final = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT[\dZ-]+")
_WIRE: Final = "wire-schema-valid"
"""A check that belongs to every scenario: that each message fits MCP's own schema."""

Checks = list[dict[str, Any]]


class Suite:
    """What the packages list, and what came of each scenario in each run."""

    def __init__(self, folder: Path, url: str, out: Path) -> None:
        self._folder = folder
        self.listed = {package: self._list(package) for package, _ in RUNS}
        self.results: list[dict[str, Checks]] = []
        for number, (package, options) in enumerate(RUNS):
            results = out / str(number)
            self._run(package, "server", "--url", url, "--suite", "all", *options, "--output-dir", str(results))
            self.results.append(dict(_read(results)))

    def of(self, scenario: str) -> Checks:
        """Return the checks of a scenario in all runs that have it."""
        return [check for results in self.results for check in results.get(scenario, [])]

    def _list(self, package: str) -> set[str]:
        ours = self._run(package, "list").partition("Server scenarios")[2].partition("Client scenarios")[0]
        return set(re.findall(r"^  - (\S+) \[", ours, re.MULTILINE))

    def _run(self, package: str, *arguments: str) -> str:
        modules = self._folder / "node_modules"
        command = [str(modules / "node" / "bin" / "node"), str(modules / package / "dist" / "index.js"), *arguments]
        run = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, timeout=120, check=False)
        # 1 says that a scenario failed; which one may is for the tests to say.
        assert run.returncode in (0, 1), run.stderr
        return run.stdout


def _read(results: Path) -> Iterable[tuple[str, Checks]]:
    for checks in results.glob("*/checks.json"):
        named = _FOLDER.fullmatch(checks.parent.name)
        assert named is not None, checks
        yield named[1], json.loads(checks.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def suite(servers: ServerFarm, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Suite:
    folder = installed(SCRIPTS, request.config)
    if not (folder / "node_modules" / "node" / "bin" / "node").is_file():
        missing("npm did not install Node 22 (the package node has an install script)")
    return Suite(folder, f"{servers.get(DEMO).base_url}/mcp", tmp_path_factory.mktemp("conformance"))


def _unmet(checks: Checks) -> Checks:
    return [check for check in checks if check["status"] in ("FAILURE", "WARNING")]


def _is_excepted(check: dict[str, Any]) -> bool:
    # What the package could have tried and found wrong is never excepted.
    untried = check["status"] == "WARNING" or check["details"].get("untestable") is True
    return check["id"] in EXCEPTED and untried


def _shown(checks: Checks) -> Checks:
    return [check for check in checks if check["status"] == "SUCCESS" and check["id"] != _WIRE]


def test_every_scenario_of_the_packages_is_accounted_for(suite: Suite) -> None:
    listed = set().union(*suite.listed.values())
    assert {"server-initialize", "tools-list", "dns-rebinding-protection"} <= listed
    assert listed == {*PASSES, *SKIPPED}
    assert not {*PASSES} & SKIPPED.keys()


def test_every_scenario_was_run(suite: Suite) -> None:
    for (package, options), results in zip(RUNS, suite.results, strict=True):
        if options:
            assert results.keys() & suite.listed[package]
        else:
            assert results.keys() == suite.listed[package]


def test_every_message_fits_the_schema_of_mcp(suite: Suite) -> None:
    checks = [check for results in suite.results for name in results for check in results[name] if check["id"] == _WIRE]
    assert len(checks) > 60
    assert [check for check in checks if check["status"] != "SUCCESS"] == []


@pytest.mark.parametrize("scenario", PASSES)
def test_a_scenario_passes(scenario: str, suite: Suite) -> None:
    checks = suite.of(scenario)
    assert _shown(checks)
    assert [check for check in _unmet(checks) if not _is_excepted(check)] == []


@pytest.mark.parametrize("scenario", SKIPPED)
def test_a_scenario_that_is_skipped_has_a_reason_and_does_not_pass(scenario: str, suite: Suite) -> None:
    group = SKIPPED[scenario]
    assert len(group["reason"].split()) > 8
    passed = any(
        _shown(results[scenario]) and not _unmet(results[scenario]) for results in suite.results if scenario in results
    )
    assert passed is group.get("vacuous", False)


@pytest.mark.parametrize("check", EXCEPTED)
def test_an_exception_is_still_needed(check: str, suite: Suite) -> None:
    assert check in {unmet["id"] for scenario in PASSES for unmet in _unmet(suite.of(scenario))}
