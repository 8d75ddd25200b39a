"""Packages of npm for tests: installed once, in exactly the versions of a package.json, into pytest's cache.

Node and npm are found by FORECOURT_NODE and FORECOURT_NPM (default: on the path). Without them a test is skipped, but
fails under `CI=true`.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

__all__ = ["NODE", "installed", "missing"]

NODE: Final = os.environ.get("FORECOURT_NODE", "node")
NPM: Final = os.environ.get("FORECOURT_NPM", "npm")
_INSTALL_SECONDS: Final = 180


def missing(reason: str) -> None:
    """Skip, but never where everything should be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def installed(scripts: Path, config: pytest.Config) -> Path:
    """Return a folder with a copy of these scripts, beside the packages that their package.json names."""
    if shutil.which(NODE) is None or shutil.which(NPM) is None:
        missing("Node and npm are not installed")
    cache = config.cache
    assert cache is not None
    folder = cache.mkdir(scripts.name)
    for script in scripts.iterdir():
        shutil.copy(script, folder)
    wanted: dict[str, str] = json.loads((scripts / "package.json").read_text(encoding="utf-8"))["dependencies"]
    if any(_version(folder, name) != version.rpartition("@")[2] for name, version in wanted.items()):
        command = [NPM, "install", "--no-audit", "--no-fund", "--no-package-lock"]
        ended = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False
        )
        if ended.returncode != 0:
            missing(f"npm cannot install the packages of {scripts.name}")
    return folder


def _version(folder: Path, name: str) -> str | None:
    described = folder / "node_modules" / name / "package.json"
    if not described.is_file():
        return None
    version: str = json.loads(described.read_text(encoding="utf-8"))["version"]
    return version
