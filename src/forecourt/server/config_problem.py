"""What is wrong with a configuration: every mistake at once, each with its key, in words for whoever wrote the file."""

import difflib
import re
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo

from forecourt.server.toml_place import Key, line_of, spelled

__all__ = ["ConfigError", "ConfigProblem", "mistakes"]

_KINDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "date": "a date",
    "time": "a time",
    "datetime": "a date and time",
}
_EXPECTED: Final = re.compile(r"Expected `(?P<kinds>[^`]+)`(?:, got `(?P<got>[^`]+)`)?(?P<rest>.*)")
_AT: Final = re.compile(r" - at `(?P<place>[^`]*)`$")
_KINDS_REMEMBERED: Final = 128
_STEP: Final = re.compile(r"\[(\d+)\]|\[\.\.\.\]|\.([^.\[]+)")


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One mistake. `key` is the way to it, empty for the file as a whole; `variable` the environment's name for it."""

    key: Key
    text: str
    line: int | None = None
    variable: str | None = None

    @property
    def sentence(self) -> str:
        """The mistake with the name of its key."""
        name = self.variable or spelled(self.key)
        return f"{name}: {self.text}" if name else self.text


class ConfigError(ValueError):
    """The configuration cannot be used. `problems` are all that were found; `str()` tells the first, in one line."""

    def __init__(self, problems: Sequence[ConfigProblem] | str, *key: str | int, file: str | None = None) -> None:
        """Take what is wrong: problems, or one sentence about `key`."""
        self.problems = (
            (ConfigProblem(key, " ".join(problems.split())),) if isinstance(problems, str) else tuple(problems)
        )
        self.file = file
        super().__init__(self.lines[0])

    @property
    def lines(self) -> tuple[str, ...]:
        """Every mistake as a line: `forecourt.toml:12: server.port: must be at most 65535`."""
        return tuple(_line(self.file, problem) for problem in self.problems)

    def inside(self, *key: str | int) -> "ConfigError":
        """Return the same error about what stands at `key`."""
        return ConfigError([replace(problem, key=(*key, *problem.key)) for problem in self.problems])

    def located(self, file: str, text: str) -> "ConfigError":
        """Return the same error with the lines of the file that the configuration came from, in their order."""
        placed = [
            problem if problem.variable else replace(problem, line=line_of(text, problem.key))
            for problem in self.problems
        ]
        return ConfigError(sorted(placed, key=lambda problem: problem.line or 0), file=file)


def _line(file: str | None, problem: ConfigProblem) -> str:
    if problem.variable:
        return f"environment: {problem.sentence}"
    if file is None:
        return problem.sentence
    return f"{file}:{f'{problem.line}:' if problem.line else ''} {problem.sentence}"


def mistakes(value: Any, kind: Any, key: Key = ()) -> Iterator[ConfigProblem]:
    """Yield everything in `value` that keeps it from being a `kind`, a msgspec struct of structs, lists and scalars."""
    kind = _table_kind(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if not isinstance(value, dict):
            yield ConfigProblem(key, f"must be a table, not {_named(value)}")
            return
        yield from _table_mistakes(value, kind, key)
    elif get_origin(kind) is dict and isinstance(value, dict):
        for name, entry in value.items():
            yield from mistakes(entry, get_args(kind)[1], (*key, name))
    elif get_origin(kind) is tuple and isinstance(value, list):
        for number, entry in enumerate(value):
            yield from mistakes(entry, get_args(kind)[0], (*key, number))
    else:
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            yield _told(str(error), kind, key)


def _table_mistakes(table: dict[str, Any], kind: type[msgspec.Struct], key: Key) -> Iterator[ConfigProblem]:
    fields = _fields(kind)
    for name in table:
        if name not in fields:
            close = difflib.get_close_matches(name, fields, 1)
            meant = f"; did you mean {close[0]}?" if close else ""
            yield ConfigProblem((*key, name), f"there is no such key{meant}")
    for name, field in fields.items():
        if name in table:
            yield from mistakes(table[name], field.type, (*key, name))
        elif field.required:
            yield ConfigProblem((*key, name), "is missing")


@lru_cache(_KINDS_REMEMBERED)
def _fields(kind: type[msgspec.Struct]) -> dict[str, FieldInfo]:
    """Return the fields of a struct by their names in the file; finding them out costs more than looking at a table."""
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def _table_kind(kind: Any) -> Any:
    """Return the struct of `Struct | None`, anything else as it is."""
    if get_origin(kind) in (Union, types.UnionType):
        some = [arm for arm in get_args(kind) if arm is not type(None)]
        if len(some) == 1:
            return some[0]
    return kind


def _described(kind: Any) -> str | None:
    """Return what a kind says of itself, for a value that has to be of a certain form."""
    if get_origin(kind) is Annotated:
        for note in get_args(kind)[1:]:
            if isinstance(note, msgspec.Meta) and note.description:
                return note.description
    return next((text for text in map(_described, get_args(kind)) if text), None) if get_origin(kind) else None


def _told(message: str, kind: Any, key: Key) -> ConfigProblem:
    """Return a sentence of msgspec's in our words, with the place inside the value that it speaks of."""
    at = _AT.search(message)
    if at:
        message = message[: at.start()]
        steps = _STEP.finditer(at["place"])
        key += tuple(int(step[1]) if step[1] else step[2] for step in steps if step[1] or step[2])
    match = _EXPECTED.fullmatch(message)
    if match is None:
        return ConfigProblem(key, message[:1].lower() + message[1:])
    kinds = " or ".join(_KINDS.get(kind, kind) for kind in match["kinds"].split(" | ") if kind != "null")
    described = _described(kind)
    if described and not match["got"]:
        return ConfigProblem(key, f"must be {described}")
    rest = match["rest"].strip()
    for sign, words in ((">= ", "of at least "), ("<= ", "of at most "), ("> ", "above "), ("< ", "below ")):
        rest = rest.replace(sign, words)
    rest = rest.replace("of length of", "of a length of").replace("matching regex", "of the form")
    got = f", not {_KINDS.get(match['got'], match['got'])}" if match["got"] else ""
    return ConfigProblem(key, f"must be {kinds}{f' {rest}' if rest else ''}{got}")


def _named(value: Any) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text", list: "a list"}
    return names.get(type(value), "a value")
