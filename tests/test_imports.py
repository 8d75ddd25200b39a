"""Dependencies point one way: the table of rooms, and who may import whom, held against every import in the source.

A room is a module or a package directly under `forecourt`. A new room needs a line here, with its reasons.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).resolve().parent.parent / "src" / "forecourt"

ROOT: Final = "forecourt"
"""The package's own `__init__`: the version and lazily the public names."""

_LEAF: Final = frozenset({"errors", "model"})

ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    # Nothing of ours.
    "a2a": frozenset(),
    "address": frozenset(),  # which network addresses may be called: the server, leads' deliveries and the client ask
    "identifier": frozenset(),
    "model": frozenset(),
    "vocabulary": frozenset(),
    "errors": frozenset({"identifier"}),
    # The pure middle.
    "contract": _LEAF,
    "binding": frozenset({"errors", "identifier", "a2a", "contract"}),
    "catalog": _LEAF,
    "feed": frozenset({"model", "vocabulary"}),
    "store": _LEAF,
    "lead": _LEAF | {"address", "identifier", "store"},
    "cursor": _LEAF,
    "agent": _LEAF | {"identifier", "cursor", "catalog", "store", "lead"},
    "demo": frozenset({"vocabulary"}),
    # The outside.
    "server": _LEAF | {
        ROOT, "address", "identifier", "vocabulary", "a2a", "contract", "binding", "catalog", "feed", "store", "lead",
        "cursor", "agent", "demo",
    },
    "client": _LEAF | {ROOT, "a2a", "address", "contract"},
    "check": frozenset({ROOT, "client"}),
    "cli": _LEAF | {
        ROOT, "address", "identifier", "vocabulary", "a2a", "contract", "binding", "catalog", "feed", "store", "lead",
        "cursor", "agent", "demo", "server", "client", "check",
    },
    # The public names.
    ROOT: frozenset({"errors", "a2a", "server", "client"}),
}  # fmt: skip
"""Room -> the rooms that it may import besides itself."""

FACES: Final[Mapping[str, frozenset[str]]] = {
    "store": frozenset({"forecourt.store"}),
    "contract": frozenset(
        {"forecourt.contract", "forecourt.contract.interface", "forecourt.contract.skill",
         "forecourt.contract.validation"}
    ),
    "catalog": frozenset({"forecourt.catalog"}),
}  # fmt: skip
"""Rooms that others see by an interface alone: an implementation is found by its name and never imported."""

WORDS_FOR_NOTHING: Final = frozenset({"utils", "util", "helpers", "helper", "manager", "common", "base", "misc"})


@cache
def modules() -> list[Path]:
    """Every module of the package."""
    return sorted(SOURCE.rglob("*.py"))


def name_of(path: Path) -> str:
    """Return the dotted name of a module."""
    parts = (ROOT, *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(name: str) -> str:
    """Return the room of a dotted name in our package."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ROOT


@cache
def known() -> frozenset[str]:
    """Return the dotted names of all modules."""
    return frozenset(map(name_of, modules()))


def imports_of(text: str, own: str) -> Iterator[str]:
    """Yield the dotted name of everything that a module imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{own} imports relatively, which this test does not read"
            assert node.module is not None
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known() else node.module


def trespasses(text: str, own: str) -> list[str]:
    """Return what a module imports of ours and may not."""
    room = room_of(own)
    found = []
    for name in imports_of(text, own):
        if name.split(".")[0] != ROOT:
            continue
        other = room_of(name)
        if other == room:
            continue
        if other not in ALLOWED[room] or (other in FACES and name not in FACES[other]):
            found.append(name)
    return found


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_module_imports_only_what_its_room_may(path: Path) -> None:
    assert trespasses(path.read_text(encoding="utf-8"), name_of(path)) == []


@pytest.mark.parametrize(
    ("own", "line", "found"),
    [
        ("forecourt.model", "from forecourt.errors import AAPError", ["forecourt.errors"]),
        ("forecourt.a2a.card", "import forecourt.model", ["forecourt.model"]),
        ("forecourt.agent", "from forecourt.contract import Contract", ["forecourt.contract"]),
        ("forecourt.agent", "from forecourt import contract", ["forecourt.contract"]),
        ("forecourt.catalog", "def f():\n    from forecourt.store import Store", ["forecourt.store"]),
        ("forecourt.lead.submit", "from forecourt.store.sqlite import SQLiteStore", ["forecourt.store.sqlite"]),
        ("forecourt.binding.a2a", "from forecourt.contract.v3_1 import Contract31", ["forecourt.contract.v3_1"]),
        ("forecourt.binding.a2a", "from forecourt.binding.json_text import decode", []),
        ("forecourt.lead.submit", "from forecourt.store import Store", []),
        ("forecourt.server.cards", "from forecourt import __version__", []),
        ("forecourt.binding", "from forecourt import __version__", ["forecourt"]),
    ],
)
def test_an_import_that_is_not_allowed_is_found(own: str, line: str, found: list[str]) -> None:
    assert trespasses(line, own) == found


def test_every_room_has_a_line_in_the_table() -> None:
    assert {room_of(name_of(path)) for path in modules()} <= ALLOWED.keys()


def test_the_rooms_allow_no_circle() -> None:
    order: list[str] = []
    rest = {room: allowed - {ROOT} for room, allowed in ALLOWED.items() if room != ROOT}
    while rest:
        free = [room for room, allowed in rest.items() if allowed <= set(order)]
        assert free, f"these import one another: {sorted(rest)}"
        order += free
        for room in free:
            del rest[room]


def test_the_a2a_package_needs_nothing_but_the_standard_library() -> None:
    for path in SOURCE.joinpath("a2a").rglob("*.py"):
        for name in imports_of(path.read_text(encoding="utf-8"), name_of(path)):
            assert name.split(".")[0] in sys.stdlib_module_names or name.startswith("forecourt.a2a"), (path, name)


@pytest.mark.parametrize("room", ["model", "errors", "identifier", "contract", "binding", "a2a", "catalog", "cursor"])
def test_the_inner_rooms_do_no_input_or_output(room: str) -> None:
    outward = {
        "socket",
        "asyncio",
        "http",
        "sqlite3",
        "subprocess",
        "uvicorn",
        "starlette",
        "urllib.request",
    }
    for path in modules():
        if room_of(name_of(path)) == room:
            assert not outward & set(imports_of(path.read_text(encoding="utf-8"), name_of(path)))


def test_sockets_are_for_the_server_the_client_the_commands_and_deliveries_alone() -> None:
    for path in modules():
        # `address` asks for the addresses of names; a delivery sends what a lead is for.
        inside = room_of(name_of(path)) in ("server", "client", "cli", "address")
        if not inside and not name_of(path).startswith("forecourt.lead.delivery."):
            names = set(imports_of(path.read_text(encoding="utf-8"), name_of(path)))
            assert not {"socket", "http.client", "http.server", "uvicorn", "httpx", "aiosmtplib"} & names, path


def test_no_module_has_a_name_that_says_nothing() -> None:
    parts = {part for path in modules() for part in path.relative_to(SOURCE).with_suffix("").parts}
    assert not parts & WORDS_FOR_NOTHING
