"""Conformance cases: reading them, filling their templates, comparing answers with what they expect.

A case (case.schema.json) is data that any language can run; this module is how Python does it. It knows no binding:
`over_a2a` sends exchanges and hands what came back to `differences`.

Templates, in requests and expectations, are objects with one of these members:

- `{"$now": "+3d"}`: a time from now on (s, m, h, d; "+0d" is now) as RFC 3339 in UTC with seconds. `zone` writes it
  with that zone's offset; `weekday` moves it to that day of the week, on or after, and `later` by days from there;
  `date` moves it to that day of the year ("12-24"), on or after; `at` sets the clock; `"as": "utc"` writes the result
  in UTC all the same, the name of another zone in that one.
- `{"$day": -1, "then": "T10:15:00Z"}`: a day, counted from the one on which the server was started, and more text.
- `{"$unique": "anna-{number}@example.com"}`: a text of its own for each run of a case. `{number}` counts runs;
  `{area}` is an area code for a phone number.
- `{"$from": "name#/pointer"}`: what stands at a JSON Pointer in the answer to an earlier exchange.
- `{"$join": [...]}` joins texts, `{"$repeat": "[", "times": 9}` repeats one.

Matchers, in expectations only:

- `{"$any": "timestamp"}`: any value of a kind (`KINDS`).
- `{"$pattern": "..."}`: a text that fits the regular expression as a whole.
- `{"$not": value}`: anything but this value.
- `{"$subset": {...}}`: an object with at least these members.
- `{"$items": {"/vehicle_id": [...]}}`: a list that shows, item by item, these values at each of these pointers.
- `{"$each": value}`: a list of one item or more, each of which fits.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

__all__ = [
    "CASES",
    "KINDS",
    "CaseError",
    "Exchange",
    "Filler",
    "at_pointer",
    "case_files",
    "differences",
    "exchanges",
    "expected_error",
]

CASES: Final = Path(__file__).parent / "cases"

_MOMENT: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"
_SORTABLE: Final = r"[0-9a-zA-Z]{16,40}"

KINDS: Final[Mapping[str, str]] = {
    "appointment_id": f"appt_{_SORTABLE}",
    "cursor": r"[A-Za-z0-9_-]{20,2048}",
    "date": r"\d{4}-\d\d-\d\d",
    "error_id": f"err_{_SORTABLE}",
    "lead_id": f"lead_{_SORTABLE}",
    "message_id": r"[0-9a-zA-Z-]{16,64}",
    "string": r"(?s).+",
    "timestamp": _MOMENT,
}
"""Kinds of generated texts, as regular expressions that the whole text fits; `integer` is the kind beside them."""

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHOWN: Final = 300

_runs = itertools.count(1)


class CaseError(Exception):
    """A case cannot be run as it is written: a template or a reference in it makes no sense."""


# Reading ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request of a case and what is expected of its answer; `payload` or `request` is what is sent."""

    contract: str
    sent: Mapping[str, Any]
    expect: Mapping[str, Any] | None
    name: str | None = None
    seller: str | None = None


def case_files() -> list[Path]:
    """Return the files of all cases, sorted."""
    return sorted(CASES.rglob("*.json"))


def exchanges(case: Mapping[str, Any]) -> Iterator[Exchange]:
    """Yield the exchanges of a case in order, the one that it is about last."""
    for step in (*case.get("given", ()), case):
        sent = {kind: step[kind] for kind in ("payload", "request") if kind in step}
        contract = step.get("contract", case["contract"])
        yield Exchange(contract, sent, step.get("expect"), step.get("name"), step.get("seller"))


def expected_error(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole `aap.error` that a case's short form stands for ("One automotive error")."""
    return {"type": "aap.error", "error_id": {"$any": "error_id"}, **error, "created_at": {"$any": "timestamp"}}


# Templates ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Filler:
    """Puts values in the place of templates, for one run of one case against one server."""

    started_on: date
    answers: dict[str, Any] = field(default_factory=dict)
    """What named exchanges were answered, which references look into."""
    run: int = field(default_factory=lambda: next(_runs))

    def fill(self, value: Any) -> Any:
        """Return `value` with every template replaced; matchers stay. Raises CaseError."""
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if not isinstance(value, dict):
            return value
        for mark, fill in self._templates().items():
            if mark in value:
                return fill(value)
        return {name: self.fill(member) for name, member in value.items()}

    def _templates(self) -> Mapping[str, Callable[[Mapping[str, Any]], Any]]:
        return {
            "$now": _moment,
            "$day": lambda value: f"{self.started_on + timedelta(days=value['$day'])}{value.get('then', '')}",
            "$unique": lambda value: value["$unique"].format(number=self.run, area=201 + self.run % 700),
            "$from": lambda value: self._referred(value["$from"]),
            "$join": lambda value: "".join(map(self.fill, value["$join"])),
            "$repeat": lambda value: value["$repeat"] * value["times"],
        }

    def _referred(self, reference: str) -> Any:
        name, _, pointer = reference.partition("#")
        if name not in self.answers:
            raise CaseError(f"no earlier exchange is called {name}")
        found = at_pointer(self.answers[name], pointer)
        if found is _NOTHING:
            raise CaseError(f"the answer to {name} has nothing at {pointer}")
        return found


def _moment(template: Mapping[str, Any]) -> str:
    span = re.fullmatch(r"([+-]\d+)([smhd])", template["$now"])
    if span is None:
        raise CaseError(f"{template['$now']} is no span of time")
    moment = datetime.now(UTC).replace(microsecond=0) + timedelta(**{_UNITS[span[2]]: int(span[1])})
    if "zone" in template:
        moment = moment.astimezone(ZoneInfo(template["zone"]))
    if "weekday" in template:
        ahead = (_WEEKDAYS.index(template["weekday"]) - moment.weekday()) % len(_WEEKDAYS)
        moment += timedelta(days=ahead + template.get("later", 0))
    if "date" in template:
        while moment.strftime("%m-%d") != template["date"]:
            moment += timedelta(days=1)
    if "at" in template:
        moment = datetime.combine(moment.date(), time.fromisoformat(template["at"]), moment.tzinfo)
    if "zone" not in template or template.get("as") == "utc":
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if "as" in template:
        moment = moment.astimezone(ZoneInfo(template["as"]))
    return moment.isoformat()


# Comparing ----------------------------------------------------------------------------------------

_NOTHING: Final = object()


def at_pointer(document: Any, pointer: str) -> Any:
    """Return what stands at a JSON Pointer (RFC 6901), or a value of its own that equals nothing."""
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list) and name.isdigit() and int(name) < len(document):
            document = document[int(name)]
        elif isinstance(document, dict) and name in document:
            document = document[name]
        else:
            return _NOTHING
    return document


def differences(expected: Any, found: Any, at: str = "") -> list[str]:
    """Return where `found` is not what is expected, one sentence each; numbers keep their type (1 is not 1.0)."""
    if isinstance(expected, dict):
        for mark, compare in _MATCHERS.items():
            if mark in expected:
                return compare(expected[mark], found, at)
        if not isinstance(found, dict):
            return [_sentence(at, expected, found)]
        missing = [f"{at}/{name} is missing" for name in expected.keys() - found.keys()]
        surplus = [f"{at}/{name} is not expected: {_shown(found[name])}" for name in found.keys() - expected.keys()]
        return sorted(missing + surplus) + _members(expected, found, at)
    if isinstance(expected, list):
        if not isinstance(found, list):
            return [_sentence(at, expected, found)]
        if len(expected) != len(found):
            return [f"{at} has {len(found)} items, not {len(expected)}: {_shown(found)}"]
        pairs = enumerate(zip(expected, found, strict=True))
        return [line for place, (one, other) in pairs for line in differences(one, other, f"{at}/{place}")]
    same = type(expected) is type(found) and expected == found
    return [] if same else [_sentence(at, expected, found)]


def _members(expected: Mapping[str, Any], found: Mapping[str, Any], at: str) -> list[str]:
    shared = [name for name in expected if name in found]
    return [line for name in shared for line in differences(expected[name], found[name], f"{at}/{name}")]


def _any(kind: str, found: Any, at: str) -> list[str]:
    if kind == "integer":
        fits = isinstance(found, int) and not isinstance(found, bool)
    elif kind in KINDS:
        fits = isinstance(found, str) and re.fullmatch(KINDS[kind], found) is not None
    else:
        raise CaseError(f"{kind} is no kind of value")
    return [] if fits else [f"{at or '/'} is no {kind}: {_shown(found)}"]


def _pattern(pattern: str, found: Any, at: str) -> list[str]:
    fits = isinstance(found, str) and re.fullmatch(pattern, found) is not None
    return [] if fits else [f"{at or '/'} does not fit {pattern}: {_shown(found)}"]


def _not(unwanted: Any, found: Any, at: str) -> list[str]:
    return [] if differences(unwanted, found) else [f"{at or '/'} must be another than {_shown(unwanted)}"]


def _subset(expected: Mapping[str, Any], found: Any, at: str) -> list[str]:
    if not isinstance(found, dict):
        return [_sentence(at, expected, found)]
    missing = [f"{at}/{name} is missing" for name in expected if name not in found]
    return missing + _members(expected, found, at)


def _items(columns: Mapping[str, Sequence[Any]], found: Any, at: str) -> list[str]:
    if not isinstance(found, list):
        return [_sentence(at, columns, found)]
    lines = []
    for pointer, values in columns.items():
        shown = [at_pointer(item, pointer) for item in found]
        shown = ["(nothing)" if value is _NOTHING else value for value in shown]
        lines += differences(list(values), shown, f"{at}/*{pointer}")
    return lines


def _each(expected: Any, found: Any, at: str) -> list[str]:
    if not isinstance(found, list) or not found:
        return [f"{at or '/'} is no list with items: {_shown(found)}"]
    return [line for place, item in enumerate(found) for line in differences(expected, item, f"{at}/{place}")]


_MATCHERS: Final[Mapping[str, Callable[[Any, Any, str], list[str]]]] = {
    "$any": _any,
    "$pattern": _pattern,
    "$not": _not,
    "$subset": _subset,
    "$items": _items,
    "$each": _each,
}


def _sentence(at: str, expected: Any, found: Any) -> str:
    return f"{at or '/'} is {_shown(found)}, not {_shown(expected)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
