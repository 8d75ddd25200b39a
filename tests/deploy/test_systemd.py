"""The units: systemd finds nothing wrong in them, rates what they could do to the machine, and they fit the server."""

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner
from tests.deploy.shipped import DEPLOY
from tests.interop.npm import missing

from forecourt.cli import main
from forecourt.server.serving import DRAIN_SECONDS

UNIT: Final = DEPLOY / "forecourt.service"
UNITS: Final = sorted(
    path.name for path in DEPLOY.glob("forecourt*.*") if path.suffix in (".service", ".socket", ".timer")
)
EXPOSED: Final = 2.0
"""systemd's figure for what a service could do to its machine, from 0 to 10; it calls up to 2 "OK" and 9.6 "UNSAFE"."""
_COMMAND: Final = "/srv/forecourt/bin/forecourt"


@pytest.fixture
def analyze(tmp_path: Path) -> list[str]:
    """The command, or a skip where systemd is not; the units at their place, with a command that there is."""
    command = shutil.which("systemd-analyze")
    if command is None:
        missing("systemd-analyze is not installed")
    for name in UNITS:
        text = (DEPLOY / name).read_text(encoding="utf-8")
        assert (_COMMAND in text) == name.endswith(".service")
        (tmp_path / name).write_text(text.replace(_COMMAND, sys.executable), encoding="utf-8")
    return [str(command)]


def run(analyze: list[str], *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*analyze, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": "0"},
    )


def section(name: str) -> configparser.SectionProxy:
    """Return a section; of keys that are said several times the last one."""
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.read_text(encoding="utf-8"))
    return parser[name]


def test_systemd_finds_nothing_wrong(analyze: list[str], tmp_path: Path) -> None:
    ended = run(analyze, "verify", "--man=no", *(tmp_path / name for name in UNITS))
    # What it says of other units of the machine is none of ours.
    assert [line for line in ended.stderr.splitlines() if "forecourt" in line] == []
    wrong = UNIT.read_text(encoding="utf-8").replace("UMask=0077", "UMask=many")
    (tmp_path / UNIT.name).write_text(wrong, encoding="utf-8")
    assert "Failed to parse mode value" in run(analyze, "verify", "--man=no", tmp_path / UNIT.name).stderr


@pytest.mark.parametrize("name", [name for name in UNITS if name.endswith(".service")])
def test_systemd_calls_a_service_safe(name: str, analyze: list[str], tmp_path: Path) -> None:
    ended = run(analyze, "security", "--offline=true", "--no-pager", tmp_path / name)
    found = re.search(r"Overall exposure level for forecourt[a-z-]*\.service: ([\d.]+)", ended.stdout)
    assert found is not None, ended.stdout + ended.stderr
    assert float(found[1]) <= EXPOSED


def test_requests_under_way_are_given_their_time() -> None:
    assert int(section("Service")["TimeoutStopSec"]) > DRAIN_SECONDS


def test_it_writes_only_to_its_own_folder() -> None:
    service = section("Service")
    assert service["ProtectSystem"] == "strict"
    assert "ReadWritePaths" not in service
    assert service["StateDirectory"] == "forecourt"
    text = UNIT.read_text(encoding="utf-8")
    assert "Environment=FORECOURT_DATA=%S/forecourt\n" in text


def test_it_runs_a_command_that_there_is_and_stops_for_good_at_a_mistake() -> None:
    service = section("Service")
    name, *arguments = service["ExecStart"].split()[1:]
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.make_context(name, arguments).params
    # What `forecourt` ends with where its configuration is wrong, as its page says.
    assert service["RestartPreventExitStatus"] == "2"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="changes the user, which root alone may")
def test_a_command_by_hand_has_what_the_service_has(tmp_path: Path) -> None:
    etc = tmp_path / "etc"
    etc.mkdir()
    assert CliRunner().invoke(main, ["init", str(etc)]).exit_code == 0
    (etc / "secrets.env").write_text(
        f"FORECOURT_STORE='sqlite:{tmp_path}/elsewhere.db'\nFORECOURT_SERVER__NAME='A $1 `b`'\n"
    )
    said = tmp_path / "said"
    said.write_text("#!/bin/sh\nexec env\n")
    said.chmod(0o755)
    script = (DEPLOY / "forecourtctl").read_text(encoding="utf-8")
    assert _COMMAND in script
    for one, other in (("/etc/forecourt", str(etc)), (_COMMAND, str(said)), ("-u forecourt", "-u root")):
        script = script.replace(one, other)
    (tmp_path / "forecourtctl").write_text(script)
    done = subprocess.run(
        ["sh", str(tmp_path / "forecourtctl")], capture_output=True, text=True, timeout=60, check=True
    )
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert seen["FORECOURT_STORE"] == f"sqlite:{tmp_path}/elsewhere.db"
    assert seen["FORECOURT_SERVER__NAME"] == "A $1 `b`"
    assert seen["FORECOURT_CONFIG"] == f"{etc}/forecourt.toml"
    assert seen["FORECOURT_DATA"] == "/var/lib/forecourt"
    unit = UNIT.read_text(encoding="utf-8")
    assert "Environment=FORECOURT_CONFIG=/etc/forecourt/forecourt.toml\n" in unit
    assert "Environment=FORECOURT_DATA=%S/forecourt\n" in unit
