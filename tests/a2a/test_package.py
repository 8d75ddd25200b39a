"""`forecourt.a2a` as a module that is useful alone (ARCHITECTURE: it imports nothing of ours)."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import forecourt.a2a
from forecourt.a2a import STREAM_LAGGED_MARKER, A2AError

_LOADED = """
import json, sys
before = set(sys.modules)
import forecourt.a2a
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_importing_it_loads_the_standard_library_and_itself_only() -> None:
    answer = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, check=True, text=True)
    ours = {"forecourt", "forecourt.a2a"}
    strangers = [
        name
        for name in json.loads(answer.stdout)
        if name.partition(".")[0] not in sys.stdlib_module_names
        and name not in ours
        and not name.startswith("forecourt.a2a.")
    ]
    assert strangers == []


def test_its_source_imports_nothing_else_of_forecourt() -> None:
    for source in Path(forecourt.a2a.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                top = name.partition(".")[0]
                assert top in sys.stdlib_module_names or name.startswith("forecourt.a2a"), (source.name, name)


def test_every_public_name_is_there() -> None:
    for name in forecourt.a2a.__all__:
        assert hasattr(forecourt.a2a, name)
    for name in forecourt.a2a.envelope.__all__:
        assert hasattr(forecourt.a2a.envelope, name)


@pytest.mark.requirement("A2A-LAG-SHARED-MARKER")
def test_the_lag_marker_is_written_out_in_one_place_beside_the_error_type() -> None:
    assert A2AError.stream_lagged(7).data == {STREAM_LAGGED_MARKER: 7}
    package = Path(forecourt.a2a.__file__).parent.parent
    places = [
        source.relative_to(package).as_posix()
        for source in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(source.read_text("utf-8")))
        if isinstance(node, ast.Constant) and node.value == STREAM_LAGGED_MARKER
    ]
    assert places == ["a2a/error.py"]
