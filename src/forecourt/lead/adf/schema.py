"""The structure of ADF as data, and the check of a document against it before it leaves.

What is checked: that it is well-formed, carries no document type (so no entities), has ADF's prolog, and every
element's children, their order and number, its attributes with their values, and the kind of its text.
Source: ADF.md, "Order and content".
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Final
from xml.parsers import expat

__all__ = ["MOST_PROBLEMS", "check"]

MOST_PROBLEMS: Final = 20
"""How many problems of one document are told at most."""

_MOST_DEPTH: Final = 20
_PROLOG: Final = ("adf", 'version="1.0"')
_TEXTS: Final[Mapping[str, re.Pattern[str]]] = {
    "any": re.compile(r"[\s\S]*"),
    "filled": re.compile(r"[\s\S]*\S[\s\S]*"),
    "number": re.compile(r"[0-9]+(?:\.[0-9]+)?"),
    "time": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)", re.ASCII),
}


@dataclass(frozen=True, slots=True)
class _Rule:
    """What one element may hold. `children` are (name, least, most); most is None for any number."""

    children: tuple[tuple[str, int, int | None], ...] = ()
    text: str | None = None
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    open: bool = False


@dataclass(slots=True, repr=False)
class _Node:
    name: str
    attributes: Mapping[str, str]
    children: list["_Node"] = field(default_factory=list)
    text: list[str] = field(default_factory=list)


class _RefusedError(Exception):
    """The document is not read any further; the message says why and repeats nothing of it."""


def check(xml: bytes, *, condition_element: bool = False) -> list[str]:
    """Return what is wrong with a document, at most `MOST_PROBLEMS`; an empty list when nothing is.

    `condition_element` also accepts the non-standard condition of a vehicle. A problem names the place and the
    rule, and no text of the document: that is a shopper's.
    """
    try:
        root, instructions = _parse(xml)
    except expat.ExpatError as error:
        return [f"not well-formed XML: line {error.lineno}, column {error.offset + 1}"]
    except _RefusedError as error:
        return [error.args[0]]
    problems = [] if instructions == [_PROLOG] else ['the prolog must be the one instruction <?adf version="1.0"?>']
    rules, name = _rules(condition_element)
    if root.name == name:
        problems += _problems(root, name, rules)
    else:
        problems.append(f"the root element must be {name}")
    return problems[:MOST_PROBLEMS]


def _parse(xml: bytes) -> tuple[_Node, list[tuple[str, str]]]:
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    holder = _Node("", {})
    path = [holder]
    instructions: list[tuple[str, str]] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(path) > _MOST_DEPTH:
            raise _RefusedError("elements are nested too deep")
        node = _Node(name, attributes)
        path[-1].children.append(node)
        path.append(node)

    def end(_name: str) -> None:
        path.pop()

    def text(data: str) -> None:
        path[-1].text.append(data)

    def instruction(target: str, data: str) -> None:
        instructions.append((target, data))

    def document_type(*_: object) -> None:
        raise _RefusedError("a document type is not allowed")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.ProcessingInstructionHandler = instruction
    parser.StartDoctypeDeclHandler = document_type
    parser.Parse(xml, True)
    return holder.children[0], instructions


def _problems(node: _Node, place: str, rules: Mapping[str, _Rule]) -> Iterator[str]:
    rule = rules[node.name]
    if rule.open:
        return
    for name, value in node.attributes.items():
        if name not in rule.attributes:
            yield f"{place}: no attribute of this name is allowed"
        elif rule.attributes[name] and value not in rule.attributes[name]:
            yield f"{place}: {name} must be one of {', '.join(rule.attributes[name])}"
    for name in rule.required:
        if not node.attributes.get(name):
            yield f"{place}: {name} is missing"
    text = "".join(node.text)
    if rule.text is not None:
        if not _TEXTS[rule.text].fullmatch(text):
            yield f"{place}: the text must be {_SAID[rule.text]}"
    elif text.strip():
        yield f"{place}: no text is allowed between its elements"
    yield from _order(node, place, rule)
    seen: dict[str, int] = {}
    for child in node.children:
        seen[child.name] = seen.get(child.name, 0) + 1
        if any(child.name == name for name, _, _ in rule.children):
            yield from _problems(child, f"{place}/{child.name}[{seen[child.name]}]", rules)


_SAID: Final[Mapping[str, str]] = {
    "any": "text",
    "filled": "more than blanks",
    "number": "a number",
    "time": "an ISO 8601 time with an offset",
}


def _order(node: _Node, place: str, rule: _Rule) -> Iterator[str]:
    """Walk the children along the rule; each is where the rule has it, or one problem says what is amiss there."""
    position = 0
    for name, least, most in rule.children:
        count = 0
        while position < len(node.children) and node.children[position].name == name:
            count += 1
            position += 1
        if count < least:
            yield f"{place}: {name} is missing here"
        if most is not None and count > most:
            yield f"{place}: more than {most} {name}"
    if position < len(node.children):
        yield f"{place}: child {position + 1} is not allowed, or not in this place"


@cache
def _rules(condition_element: bool) -> tuple[Mapping[str, _Rule], str]:
    table = tomllib.loads(resources.files("forecourt.lead.adf").joinpath("schema.toml").read_text("utf-8"))
    elements: dict[str, dict[str, Any]] = table["element"]
    if condition_element:
        for name, extension in table["extension"].items():
            siblings: list[str] = elements[extension["parent"]]["children"]
            siblings.insert(siblings.index(extension["after"]) + 1, f"{name}?")
            elements[name] = {"text": extension["text"]}
    rules = {name: _rule(entry) for name, entry in elements.items()}
    return rules, table["root"]


_COUNTS: Final[Mapping[str, tuple[int, int | None]]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}


def _rule(entry: Mapping[str, Any]) -> _Rule:
    children = []
    for child in entry.get("children", ()):
        least, most = _COUNTS.get(child[-1], (1, 1))
        children.append((child.rstrip("?*+"), least, most))
    attributes = {name: tuple(values) for name, values in entry.get("attributes", {}).items()}
    return _Rule(tuple(children), entry.get("text"), attributes, tuple(entry.get("required", ())), "open" in entry)
