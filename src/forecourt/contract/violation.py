"""Finds what is wrong with an instance that a schema has refused.

The engine that gives the verdict (jsonschema-rs) reports violations only all at once, which 200,000 wrong
items turn into seconds and hundreds of megabytes, and in sentences that quote the instance. So only its
verdicts are used: this module walks the schema, asks the engine about one part at a time, follows the parts
that are refused, and stops when enough is known. What counts as an integer or an email address is therefore
decided in one place only.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from jsonschema_rs import Draft202012Validator

from forecourt.contract import phrase
from forecourt.errors import Problem

__all__ = ["CUT_HINT", "PROBLEM_LIMIT", "Checker"]

PROBLEM_LIMIT: Final = 100
"""How many problems are returned at most; a request with more of them is not helped by reading on."""

CUT_HINT: Final = f"Only the first {PROBLEM_LIMIT} problems are listed."

_Schema = Mapping[str, Any]

_NO_RULES: Final = frozenset(
    ("$schema", "title", "description", "examples", "then", "else", "minContains", "maxContains")
)
"""Keywords that ask nothing, or that belong to a neighbour and are looked at together with it."""

_STRETCH: Final = 256

_TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {"contains": ("contains", "minContains", "maxContains")}


class Checker:
    """One schema without references, ready to judge instances and to explain its refusals."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._verdict = Draft202012Validator(schema, validate_formats=True)
        # Keyed by identity: the parts live as long as the schema that holds them.
        self._parts: dict[tuple[int, str], Draft202012Validator] = {}

    def is_valid(self, instance: Any) -> bool:
        """Tell whether the instance fits; a string that is no Unicode text (a lone surrogate) never does."""
        try:
            return self._verdict.is_valid(instance)
        except UnicodeEncodeError:
            return False

    def problems(self, instance: Any, location: str = "") -> list[Problem]:
        """Return what is wrong, sorted, at most `PROBLEM_LIMIT`; the first hints at it if there are more."""
        if self.is_valid(instance):
            return []
        found: dict[tuple[str, ...], Problem] = {}
        cut = False
        for problem in self._violations(self._schema, instance, location):
            key = (problem.location, problem.keyword)
            # Several fields may be missing at one place. Of other rules with one keyword at one place, the
            # later comes from where the object is used, and is the narrower one.
            place = (*key, problem.error) if problem.keyword == "required" else key
            if len(found) == PROBLEM_LIMIT and place not in found:
                cut = True
                break
            found[place] = problem
        if not found:
            # Where the schema says nothing of a member, only text in it can be what the engine stumbled over.
            return [Problem(location, "type", phrase.INVALID_TEXT)]
        problems = sorted(found.values())
        if cut:
            first = problems[0]
            hint = f"{first.hint} {CUT_HINT}" if first.hint else CUT_HINT
            problems[0] = Problem(first.location, first.keyword, first.error, hint)
        return problems

    def _fits(self, schema: _Schema, value: Any, keyword: str = "") -> bool:
        """Judge `value` by `schema`, or by one keyword of it alone."""
        key = (id(schema), keyword)
        validator = self._parts.get(key)
        if validator is None:
            names = _TOGETHER.get(keyword, (keyword,))
            part = {name: schema[name] for name in names if name in schema} if keyword else dict(schema)
            validator = self._parts[key] = Draft202012Validator(part, validate_formats=True)
        try:
            return validator.is_valid(value)
        except UnicodeEncodeError:
            return False

    def _violations(self, schema: _Schema, value: Any, at: str) -> Iterator[Problem]:
        if self._fits(schema, value):
            return
        if isinstance(value, str) and not _is_text(value):
            yield Problem(at, "type", phrase.INVALID_TEXT)
            return
        for keyword, rule in schema.items():
            match keyword:
                case "required":
                    if isinstance(value, dict):
                        for name in rule:
                            if name not in value:
                                yield Problem(at, "required", phrase.for_missing(name))
                case "properties":
                    if isinstance(value, dict):
                        for name, child in rule.items():
                            if name in value:
                                yield from self._violations(child, value[name], f"{at}/{_escaped(name)}")
                case "additionalProperties":
                    if isinstance(value, dict):
                        yield from self._additional(schema, value, at)
                case "items":
                    if isinstance(value, list):
                        yield from self._items(schema, value, at)
                case "allOf":
                    for branch in rule:
                        yield from self._violations(branch, value, at)
                case "anyOf" | "oneOf":
                    yield from self._alternatives(schema, keyword, value, at)
                case "if":
                    branch = schema.get("then" if self._fits(rule, value) else "else")
                    if branch is not None:
                        yield from self._violations(branch, value, at)
                case _:
                    if keyword not in _NO_RULES and not self._fits(schema, value, keyword):
                        error = phrase.for_keyword(schema, keyword)
                        yield Problem(at, keyword, error, _hint(schema, keyword, value, at))

    def _items(self, schema: _Schema, value: list[Any], at: str) -> Iterator[Problem]:
        """Explain the entries of an array, passing over stretches of good ones at the engine's speed."""
        rule: _Schema = schema["items"]
        for start in range(0, len(value), _STRETCH):
            stretch = value[start : start + _STRETCH]
            if not self._fits(schema, stretch, "items"):
                for index, item in enumerate(stretch, start):
                    yield from self._violations(rule, item, f"{at}/{index}")

    def _additional(self, schema: _Schema, value: dict[str, Any], at: str) -> Iterator[Problem]:
        """Explain members that `properties` does not name."""
        rule = schema["additionalProperties"]
        known = schema.get("properties", {})
        if rule is True:
            return
        unnamed = False
        for name in sorted(value.keys() - known.keys()):
            if rule is not False and self._fits(rule, value[name]):
                continue
            if not phrase.is_identifier(name):
                unnamed = True
            elif rule is False:
                place = f"{at}/{name}"
                hint = phrase.unknown_hint(name, known, self._places, _dotted(place))
                yield Problem(place, "additionalProperties", phrase.UNKNOWN_FIELD, hint)
            else:
                yield from self._violations(rule, value[name], f"{at}/{name}")
        if unnamed:
            error = phrase.UNKNOWN_NAMES if rule is False else phrase.UNNAMED_MEMBER
            yield Problem(at, "additionalProperties", error)

    def _alternatives(self, schema: _Schema, keyword: str, value: Any, at: str) -> Iterator[Problem]:
        branches: Sequence[_Schema] = schema[keyword]
        if self._fits(schema, value, keyword):
            return
        if all(branch.keys() == {"required"} for branch in branches):
            names = [name for branch in branches for name in branch["required"]]
            yield Problem(at, keyword, phrase.for_alternatives(names))
            return
        # One branch is of the value's type: that is the one that was meant, and its own problems say more.
        meant = [branch for branch in branches if "type" in branch and self._fits(branch, value, "type")]
        if len(meant) == 1:
            yield from self._violations(meant[0], value, at)
        else:
            yield Problem(at, keyword, phrase.for_keyword(schema, keyword))

    @cached_property
    def _places(self) -> Mapping[str, Sequence[str]]:
        """Where a field of some name exists: "" is the top, other entries the top-level field around it."""
        places: dict[str, list[str]] = {}
        top: Mapping[str, _Schema] = self._schema.get("properties", {})
        for name in top:
            places[name] = [""]
        for parent, child in top.items():
            for name in child.get("properties", {}):
                places.setdefault(name, []).append(parent)
        return places


def _hint(schema: _Schema, keyword: str, value: Any, at: str) -> str | None:
    if keyword == "type":
        return phrase.type_hint(schema, value, _dotted(at))
    if keyword == "enum":
        return phrase.enum_hint(schema["enum"], value, _dotted(at))
    return None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _escaped(name: str) -> str:
    """Return the name as a JSON Pointer token (RFC 6901 section 3)."""
    return name.replace("~", "~0").replace("/", "~1")


def _dotted(pointer: str) -> str:
    return pointer[1:].replace("/", ".").replace("~1", "/").replace("~0", "~")
