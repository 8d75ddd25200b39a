"""ADF documents as a stranger reads them: by the standard library's parser, and against a DTD."""

import importlib
import io
import os
from functools import cache
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest

__all__ = ["against_the_dtd", "parsed", "text_of"]

_DTD: Final = Path(__file__).parent / "adf.dtd"


def parsed(xml: bytes) -> ElementTree.Element:
    """Return the root of a document; fails where it is not well-formed."""
    return ElementTree.fromstring(xml)


def text_of(root: ElementTree.Element, place: str) -> str:
    """Return the text of the one element at a place; an element without any has an empty one."""
    (found,) = root.findall(place)
    return found.text or ""


def against_the_dtd(xml: bytes, *, condition_element: bool = False) -> list[str]:
    """Return what libxml2 finds wrong with a document by the DTD; skips where it is not installed, fails under CI."""
    etree: Any = _libxml2()
    text = _DTD.read_text("utf-8")
    if condition_element:
        text = text.replace("odometer?,", "odometer?, condition?,") + "<!ELEMENT condition (#PCDATA)>"
    dtd = etree.DTD(io.StringIO(text))
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    dtd.validate(etree.fromstring(xml, parser))
    return [entry.message for entry in dtd.error_log]


@cache
def _libxml2() -> Any:
    try:
        return importlib.import_module("lxml.etree")
    except ImportError:
        reason = "lxml is not installed; documents are not held against the DTD"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(reason)
        pytest.skip(reason)
