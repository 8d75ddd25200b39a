"""Elements of an ADF document and how they are written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from forecourt.lead.adf.text import clean, escape, written

__all__ = ["UNKNOWN", "Element", "branch", "document", "leaf", "optional"]

UNKNOWN: Final = "Unknown"
"""Stands where ADF requires something that the shopper did not say (ours)."""

_PROLOG: Final = '<?xml version="1.0" encoding="UTF-8"?>\n<?adf version="1.0"?>\n'


@dataclass(frozen=True, slots=True, repr=False)
class Element:
    """One element: its content is text or other elements, never both. Not shown by repr: it is personal."""

    name: str
    content: str | tuple["Element", ...]
    attributes: Mapping[str, str]


def leaf(name: str, text: str, /, **attributes: str) -> Element:
    """Return an element that holds text."""
    return Element(name, clean(text), attributes)


def branch(name: str, *children: Element, **attributes: str) -> Element:
    """Return an element that holds elements."""
    return Element(name, children, attributes)


def optional(name: str, value: object, /, **attributes: str) -> tuple[Element, ...]:
    """Return the element, or nothing where the value says nothing."""
    text = written(value)
    return () if text is None else (leaf(name, text, **attributes),)


def document(root: Element) -> bytes:
    """Return the document in UTF-8: prolog, one line for each element that holds text, a line end at the end."""
    lines: list[str] = []
    _write(root, "", lines)
    return (_PROLOG + "\n".join(lines) + "\n").encode("utf-8")


def _write(element: Element, indent: str, lines: list[str]) -> None:
    attributes = "".join(f' {name}="{escape(clean(value))}"' for name, value in element.attributes.items())
    start, end = f"{indent}<{element.name}{attributes}>", f"</{element.name}>"
    if isinstance(element.content, str):
        lines.append(f"{start}{escape(element.content)}{end}")
        return
    lines.append(start)
    for child in element.content:
        _write(child, indent + "  ", lines)
    lines.append(indent + end)
