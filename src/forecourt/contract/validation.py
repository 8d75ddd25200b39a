"""The JSON Schemas of one contract: served as they are, and applied with every format asserted.

"Errors and retries", section "One automotive error", asks for every detectable problem with a JSON Pointer, a
keyword and a safe explanation; `SchemaSet.problems` gives them.
"""

import copy
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urldefrag, urljoin

from forecourt.contract.violation import Checker
from forecourt.errors import Problem

__all__ = ["SchemaSet"]

_SUFFIX: Final = ".schema.json"
# Not importlib.resources, whose import costs as much as everything else here.
_FOLDER: Final = Path(__file__).with_name("schema")


class SchemaSet:
    """Every schema of one contract, by file name ("vehicle.schema.json", "_primitives/address.schema.json").

    Nothing in it changes after it was built. A schema is compiled when it is first used. KeyError is raised
    for a file that is not in the set.
    """

    __slots__ = ("_checkers", "_documents", "_inlined", "_texts")

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        self._texts = dict(sorted(texts.items()))
        self._documents: dict[str, dict[str, Any]] = {}
        for text in self._texts.values():
            document = json.loads(text)
            self._documents[document["$id"]] = document
        self._inlined: dict[str, dict[str, Any]] = {}
        self._checkers: dict[str, Checker] = {}

    @classmethod
    def load(cls, version: str) -> "SchemaSet":
        """Return the packaged schemas of the contract `version` ("3.1"); KeyError if there are none."""
        return _packaged(version)

    @classmethod
    def from_folder(cls, folder: Path) -> "SchemaSet":
        """Read every schema in `folder` and below it."""
        paths = folder.rglob(f"*{_SUFFIX}")
        return cls({path.relative_to(folder).as_posix(): path.read_bytes() for path in paths})

    def files(self) -> tuple[str, ...]:
        """Return the file names, sorted."""
        return tuple(self._texts)

    def text(self, file: str) -> bytes:
        """Return the schema as it is served."""
        return self._texts[file]

    def is_valid(self, file: str, instance: Any) -> bool:
        """Tell whether the instance (parsed JSON) fits the schema; formats count."""
        return self.checker(file).is_valid(instance)

    def checker(self, file: str) -> Checker:
        """Return what checks instances of this file, for whoever checks many."""
        return self._checkers.get(file) or self._checker(file)

    def problems(self, file: str, instance: Any, location: str = "") -> list[Problem]:
        """Return everything that is wrong with the instance, sorted; an empty list if it fits.

        `location` is the JSON Pointer of the instance in what was sent, put before every problem's own. A
        missing field is reported at the object that lacks it, an unknown one at itself. Values never appear,
        nor do names that do not look like field names. At most 100 problems are returned; where there were
        more, the hint of the first says so.
        """
        return self.checker(file).problems(instance, location)

    def inlined(self, file: str) -> dict[str, Any]:
        """Return a copy of the schema in which every `$ref` is replaced by what it refers to.

        It has no `$id`, since it is not the published text.
        """
        return copy.deepcopy(self._without_refs(file))

    def _checker(self, file: str) -> Checker:
        # Two threads may both compile; either result serves.
        return self._checkers.setdefault(file, Checker(self._without_refs(file)))

    def _without_refs(self, file: str) -> dict[str, Any]:
        found = self._inlined.get(file)
        if found is None:
            document = json.loads(self._texts[file])
            root = {key: value for key, value in document.items() if key not in ("$id", "$defs")}
            found = self._inlined.setdefault(file, self._resolved(root, document["$id"], ()))
        return found

    def _resolved(self, part: Any, base: str, open_refs: tuple[str, ...]) -> Any:
        """Return `part` of the document `base` without references; `open_refs` are being replaced."""
        if isinstance(part, list):
            return [self._resolved(item, base, open_refs) for item in part]
        if not isinstance(part, dict):
            return part
        beside = {key: self._resolved(value, base, open_refs) for key, value in part.items() if key != "$ref"}
        if not isinstance(part.get("$ref"), str):
            return beside
        target = urljoin(base, part["$ref"])
        if target in open_refs:
            raise ValueError(f"the schema refers to itself: {target}")
        home, pointer = urldefrag(target)
        referred: Any = self._documents[home]
        for token in pointer.split("/")[1:]:
            referred = referred[token.replace("~1", "/").replace("~0", "~")]
        bare = {key: value for key, value in referred.items() if key not in ("$schema", "$id", "$defs")}
        resolved: dict[str, Any] = self._resolved(bare, home, (*open_refs, target))
        # What stands beside a reference describes it for this place; a rule there would have to hold as well.
        if beside.keys() <= {"title", "description", "examples"}:
            return {**resolved, **beside}
        return {**beside, "allOf": [resolved, *beside.get("allOf", [])]}


@cache
def _packaged(version: str) -> SchemaSet:
    if version not in {folder.name for folder in _FOLDER.iterdir()}:
        raise KeyError(version)
    return SchemaSet.from_folder(_FOLDER / version)
