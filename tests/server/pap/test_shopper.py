"""The command that `forecourt serve --pap-dev` tells newcomers to run."""

import re
import subprocess
import sys
from pathlib import Path

from tests.server_process import ServerProcess


def shop(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "forecourt.server.pap.shopper", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_what_the_server_prints_can_be_run(server: ServerProcess) -> None:
    printed = (server.folder / "stdout.txt").read_text(encoding="utf-8")
    assert "PAP                https://dealer.localhost/.well-known/poppy.json\n" in printed
    found = re.search(r"python -m forecourt\.server\.pap\.shopper (.+)$", printed, re.MULTILINE)
    assert found is not None
    run = shop(*found[1].split())
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[0] == "Found Demo Auto Group by its domain dealer.localhost"
    assert lines[2].startswith("Started Session ses_")
    assert "inventory.search.request was answered with a inventory.search.response" in lines
    assert len(lines) == 8


def test_without_a_demonstration_it_says_what_to_start(tmp_path: Path) -> None:
    run = shop("--data", str(tmp_path))
    assert run.returncode == 2
    assert "forecourt serve --pap-dev" in run.stderr


def test_a_server_that_is_not_there_is_told_in_one_line(server: ServerProcess) -> None:
    run = shop("--data", str(server.folder / "data"), "--port", "1")
    assert run.returncode == 1
    assert "Traceback" not in run.stderr
