"""Makes payloads from a schema without references: good ones, and ones with something broken.

Everything comes from a seeded `random.Random`, so that a run repeats.
"""

import copy
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

_BY_FORMAT: dict[str, list[str]] = {
    "date": ["2026-04-21", "2024-02-29"],
    "date-time": ["2026-05-03T11:00:00-07:00", "2026-04-30T08:42:00Z", "2026-04-30T08:42:00.123Z"],
    "email": ["ada@example.com", "a.b+c@example.org"],
    "uri": ["https://www.example.com/a?b=c", "urn:example:1"],
}

_BY_PATTERN: dict[str, list[str]] = {
    "^[A-HJ-NPR-Z0-9]{17}$": ["1HGCV1F30NA123456"],
    r"^\+[1-9]\d{1,14}$": ["+14155550123", "+10"],
    r"^([01]\d|2[0-3]):[0-5]\d$": ["09:00", "23:59"],
    "^[a-z][a-z0-9_]*$": ["price", "a1_"],
    r"^[a-z_]+(\.[a-z_]+){1,2}$": ["aap.error", "inventory.search.request"],
    r"^https://autoagentprotocol\.org/extensions/": ["https://autoagentprotocol.org/extensions/aap/v3.1"],
}

_ODD: list[Any] = [
    None, True, False, 0, -1, 1, 1.0, 26780.0, 0.5, 1899, 1900, 2100, 2101, 10**30, -(10**400), 1e300, "", " ", "x",
    "new", "good", "twenty", "2026-05-03", "2026-05-03T11:00:00", "2026-05-03 11:00:00Z", "2026-02-30T00:00:00Z",
    "2026-05-03t11:00:00z", "2026-05-03T11:00:00+24:00", "2026-02-29", "20260101", "ada", "a@b", "a b@example.com",
    "Ada <ada@example.com>", "/relative", "https://exämple.com", "https://example.com/a b", "mailto:a@example.com",
    "1hgcv1f30na123456", "1HGCV1F30NA12345O", "1HGCV1F30NA123456\n", "+14155550123\n", "+0123", "14155550123", "24:00",
    "9:00", "0\u0669:00", "\u00e9", "\U0001f697" * 3, "x" * 128, "x" * 129, "x" * 200, "x" * 201, "x" * 2000,
    "x" * 2001, "x" * 4001, "Upper", [], [None], ["x", "x"], [1, 1.0], ["sms", "sms"], {}, {"x": 1},
    {"a": {"a": {"a": []}}},
]  # fmt: skip
"""Values that are right in one place and wrong in most."""

_NAMES = [
    "x", "extra", "min_price", "skip", "cursor", "dealer_id", "data", "vin", "a b", "a/b", "m~n", "", "\u00e9",
    "x" * 60,
]  # fmt: skip


def make(schema: dict[str, Any], random: Random, share: float | None = None) -> Any:
    """Return an instance that fits the schema, in most cases.

    `share` is how many of the optional fields and list entries there are: 1.0 is all of them, None a chance choice.
    """
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return random.choice(schema["enum"])
    if "allOf" in schema and "properties" not in schema and "type" not in schema:
        return make(merged(schema), random, share)
    for keyword in ("oneOf", "anyOf"):
        if keyword in schema and "properties" not in schema:
            branch = schema[keyword][0] if share == 1.0 else random.choice(schema[keyword])
            return make(branch, random, share)
    kinds = schema.get("type", "object")
    kind = kinds if isinstance(kinds, str) else random.choice(kinds)
    match kind:
        case "object":
            return _object(schema, random, share)
        case "array":
            longest = min(schema.get("maxItems", 3), 3)
            length = random.randint(schema.get("minItems", 0), longest) if share is None else 1
            items = [make(schema["items"], random, share) for _ in range(length)]
            for part in (schema, *schema.get("allOf", ())):
                if "contains" in part and items and random.random() < 0.9:
                    items[0] |= make(part["contains"], random, share)
            if schema.get("uniqueItems"):
                items = [item for index, item in enumerate(items) if item not in items[:index]]
            return items
        case "string":
            return _text(schema, random)
        case "integer" | "number":
            low = schema.get("minimum", -5)
            high = schema.get("maximum", low + 100_000)
            number = random.choice([low, high, random.randint(low, high)])
            if kind == "number":
                return random.choice([number, float(number), number if number == high else number + 0.25])
            return random.choice([number, number, float(number)])
        case "boolean":
            return random.random() < 0.5
        case _:
            return None


def _object(schema: dict[str, Any], random: Random, share: float | None) -> dict[str, Any]:
    needed = set(schema.get("required", ()))
    for branch in schema.get("anyOf", ()):
        if random.random() < 0.7:
            needed.update(branch.get("required", ()))
    chance = random.choice([0.1, 0.4, 0.9]) if share is None else share
    made = {
        name: make(rule, random, share)
        for name, rule in schema.get("properties", {}).items()
        if name in needed or random.random() < chance
    }
    if schema.get("additionalProperties") is not False and random.random() < 0.2:
        made["x_extra"] = random.choice(["text", 1])
    for branch in schema.get("allOf", ()):
        asked = branch.get("if", {}).get("properties", {})
        if asked and all("const" in rule and rule["const"] == made.get(name) for name, rule in asked.items()):
            made |= {name: make(rule, random, share) for name, rule in branch["then"]["properties"].items()}
    return made


def _text(schema: dict[str, Any], random: Random) -> str:
    if "format" in schema:
        return random.choice(_BY_FORMAT[schema["format"]])
    if "pattern" in schema:
        return random.choice(_BY_PATTERN[schema["pattern"]])
    longest: int = schema.get("maxLength", 12)
    shortest: int = schema.get("minLength", 0)
    return random.choice(["Honda", "\u00e9" * shortest, "x" * longest])


def merged(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of an `allOf` as one schema; the later rule for a field counts."""
    merged: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
    for branch in schema["allOf"]:
        merged["properties"] |= branch.get("properties", {})
        merged["required"] += branch.get("required", [])
    return merged


def changed_once(schema: dict[str, Any], fits: Callable[[Any], bool], random: Random) -> Iterator[Any]:
    """Yield instances of the schema that differ in one place from a full and from a bare one: every place, every way.

    The same object is yielded again and again, changed: judge it before asking for the next.
    """
    for share in (1.0, 1.0, 0.0):
        candidates = (make(schema, random, share) for _ in range(1000))
        instance = {"": next(filter(fits, candidates))}
        yield instance[""]
        for parent, key, rules in list(_places_with_rules(instance, {"": [schema]})):
            was = parent[key]
            for value in [*_ODD, *_edges(rules, was)]:
                parent[key] = value
                yield instance[""]
            if key != "" and isinstance(parent, dict):
                del parent[key]
                yield instance[""]
                for neighbour in list(parent):
                    kept = parent.pop(neighbour)
                    yield instance[""]
                    parent[neighbour] = kept
            parent[key] = was
            if isinstance(was, dict):
                for name in _NAMES:
                    if name not in was:
                        was[name] = 1
                        yield instance[""]
                        del was[name]


def _edges(rules: list[dict[str, Any]], was: Any) -> Iterator[Any]:
    """Yield values on both sides of every bound that the rules of a place name."""
    for rule in rules:
        yield from rule.get("enum", ())
        for keyword in ("minimum", "maximum"):
            if keyword in rule:
                yield from (rule[keyword] - 1, rule[keyword], rule[keyword] + 1)
        for keyword in ("minLength", "maxLength"):
            if keyword in rule:
                yield from ("a" * (rule[keyword] - 1), "a" * rule[keyword], "a" * (rule[keyword] + 1))
        if "items" in rule:
            for length in {0, 1, 2, *(rule.get(k, 0) + 1 for k in ("minItems", "maxItems"))}:
                yield [*was, *_distinct(rule["items"])][:length] if isinstance(was, list) else []
            if isinstance(was, list) and was:
                yield [was[0], was[0]]


def _distinct(rule: dict[str, Any]) -> list[Any]:
    return list(rule["enum"]) if "enum" in rule else [f"word_{number}" for number in range(60)]


def _places_with_rules(instance: Any, rules: dict[Any, list[dict[str, Any]]]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield every (parent, key, rules that hold there)."""
    items = instance.items() if isinstance(instance, dict) else enumerate(instance)
    for key, value in items:
        own = [branch for rule in rules.get(key, []) for branch in _branches(rule)]
        yield instance, key, own
        if isinstance(value, dict):
            inner: dict[Any, list[dict[str, Any]]] = {}
            for rule in own:
                for name, child in rule.get("properties", {}).items():
                    inner.setdefault(name, []).append(child)
            yield from _places_with_rules(value, inner)
        elif isinstance(value, list):
            each = [rule["items"] for rule in own if "items" in rule]
            yield from _places_with_rules(value, dict.fromkeys(range(len(value)), each))


def _branches(rule: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield rule
    for keyword in ("allOf", "anyOf", "oneOf"):
        for branch in rule.get(keyword, ()):
            yield from _branches(branch)
    for keyword in ("if", "then", "contains"):
        if keyword in rule:
            yield from _branches(rule[keyword])


def broken(instance: Any, random: Random) -> Any:
    """Return a copy of the instance in which one to four places are changed at random."""
    instance = {"": copy.deepcopy(instance)}
    for _ in range(random.choice([1, 1, 2, 4])):
        _break_one(instance, random)
    return instance[""]


def _break_one(instance: Any, random: Random) -> None:
    parent, key = random.choice(list(_places(instance)))
    value = parent[key]
    match random.randrange(7):
        case 0 if key != "":
            del parent[key]
        case 1 | 2 if isinstance(value, dict):
            value[random.choice(_NAMES)] = random.choice(_ODD)
        case 3 if isinstance(value, list):
            value.append(copy.deepcopy(random.choice(value)) if value else random.choice(_ODD))
        case 4 if isinstance(value, str):
            changed = [f"{value}x", value[1:], value.upper(), value.replace("0", "O"), f" {value}"]
            parent[key] = random.choice(changed)
        case 5 if isinstance(value, int | float) and not isinstance(value, bool):
            fraction = value + 0.5 if abs(value) < 1e9 else 0
            parent[key] = random.choice([value + 1, value - 1, -value, str(value), fraction])
        case _:
            parent[key] = copy.deepcopy(random.choice(_ODD))


def _places(instance: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every (parent, key) below the instance."""
    items = instance.items() if isinstance(instance, dict) else enumerate(instance)
    for key, value in items:
        yield instance, key
        if isinstance(value, dict | list):
            yield from _places(value)
