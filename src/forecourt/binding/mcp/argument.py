"""Arguments that came as text: several hosts send the arrays and objects in a call's arguments as JSON strings.

They are read by the schema: a string becomes what it spells only where the schema wants an array or an object and no
string. A text that merely looks like JSON stays a text, and what cannot be read stays for the contract to refuse.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from forecourt.binding.json_text import MalformedJSONError, decode

__all__ = ["reader"]

_BRANCHES: Final = ("anyOf", "oneOf", "allOf")
_CONTAINERS: Final[Mapping[str, type]] = {"array": list, "object": dict}
_OBJECT_WORDS: Final = frozenset({"properties", "required", "additionalProperties"})

Read = Callable[[Any], Any]


def reader(schema: Mapping[str, Any]) -> Read:
    """Return a function that gives back a value with its JSON strings read; it changes the value that it is given.

    The schema has no references (`SchemaSet.inlined`).
    """
    return _reader([schema]) or (lambda value: value)


def _reader(schemas: Iterable[Any]) -> Read | None:
    """Return the function for a place that all of these schemas are about, None where no string is ever read."""
    rules = list(_rules(schemas))
    if not rules:
        return None
    wanted = _wanted(rules)
    members: dict[str, list[Any]] = {}
    for rule in rules:
        for name, inner in rule.get("properties", {}).items():
            members.setdefault(name, []).append(inner)
    inside = {name: found for name, inner in members.items() if (found := _reader(inner))}
    others = _reader([rule["additionalProperties"] for rule in rules if "additionalProperties" in rule])
    items = _reader([rule["items"] for rule in rules if "items" in rule])
    if not (wanted or inside or others or items):
        return None

    def read(value: Any) -> Any:
        if type(value) is str and wanted:
            value = _spelled(value, wanted)
        if type(value) is dict:
            for name, read_member in inside.items():
                if name in value:
                    value[name] = read_member(value[name])
            if others:
                for name in value:
                    if name not in members:
                        value[name] = others(value[name])
        elif items and type(value) is list:
            value[:] = map(items, value)
        return value

    return read


def _rules(schemas: Iterable[Any]) -> Iterable[Mapping[str, Any]]:
    """Yield the schemas and every alternative and addition in them."""
    for schema in schemas:
        if isinstance(schema, dict):
            yield schema
            for branch in _BRANCHES:
                yield from _rules(schema.get(branch, ()))
            yield from _rules(schema[word] for word in ("then", "else") if word in schema)


def _wanted(rules: Iterable[Mapping[str, Any]]) -> tuple[type, ...]:
    """Return the types that a string may be read as here; none where a string is allowed."""
    types: set[str] = set()
    for rule in rules:
        named = rule.get("type", "object" if _OBJECT_WORDS & rule.keys() else ())
        types |= {named} if isinstance(named, str) else set(named)
        for value in (*rule.get("enum", ()), *((rule["const"],) if "const" in rule else ())):
            if isinstance(value, str):
                types.add("string")
    return () if "string" in types else tuple(_CONTAINERS[name] for name in sorted(types & _CONTAINERS.keys()))


def _spelled(text: str, wanted: tuple[type, ...]) -> Any:
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        value = decode(text.encode())
    except (MalformedJSONError, UnicodeEncodeError):
        return text
    return value if isinstance(value, wanted) else text
