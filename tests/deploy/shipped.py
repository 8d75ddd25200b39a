"""The files that are shipped beside the package, and what the tests of several of them share."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

__all__ = ["DEPLOY", "ROOT", "check_configuration", "read_yaml", "tracked"]

ROOT: Final = Path(__file__).parents[2]
DEPLOY: Final = ROOT / "deploy"


def tracked() -> set[str]:
    """Return the files that are in version control, or about to be: what a fresh clone has."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name for name in listed.splitlines() if (ROOT / name).is_file()}


def read_yaml(name: str) -> list[Any]:
    """Return the documents of a shipped file."""
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


def check_configuration(path: Path, environment: Mapping[str, str]) -> str:
    """Run `forecourt config check` under this environment alone and return what it says; it must be good."""
    command = [sys.executable, "-c", "from forecourt.cli import main; main()", "config", "check"]
    ended = subprocess.run(
        command,
        env={"PYTHONPATH": ":".join(sys.path), "FORECOURT_CONFIG": str(path), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout
