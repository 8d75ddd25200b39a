"""The Dockerfile as it is read for tests: its instructions, and what of the project goes into the build."""

import fnmatch
import re
from typing import Final

from tests.deploy.shipped import ROOT

__all__ = ["DOCKERFILE", "copied", "in_context", "instructions", "values", "variables"]

DOCKERFILE: Final = ROOT / "Dockerfile"


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile in order, each on one line and without comments."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines if line)]


def values(name: str) -> list[str]:
    """Return what follows each instruction of this name."""
    return [rest for instruction, rest in instructions() if instruction == name]


def copied() -> list[str]:
    """Return the names that COPY takes from the project, in order."""
    return [name for rest in values("COPY") if not rest.startswith("--from=") for name in rest.split()[:-1]]


def in_context(name: str) -> bool:
    """Tell whether .dockerignore lets a file of the project into the build; the last pattern that fits decides."""
    let_in = True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        wanted = line.removeprefix("!")
        parts = name.split("/")
        parents = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
        if wanted.startswith("**/"):
            fits = any(fnmatch.fnmatchcase(part, wanted[3:]) for part in parts)
        else:
            fits = any(fnmatch.fnmatchcase(parent, wanted) for parent in parents)
        if fits:
            let_in = line.startswith("!")
    return let_in


def variables() -> dict[str, str]:
    """Return the variables that the image sets for the one who runs."""
    return dict(pair.split("=", 1) for pair in values("ENV")[-1].split())
