"""schema.org `Car` and `Vehicle` objects as JSON-LD in the scripts of an HTML page."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from forecourt.feed.encoding import Text
from forecourt.feed.error import FeedError
from forecourt.feed.linked_data import vehicles
from forecourt.feed.nested import flat
from forecourt.feed.report import Report
from forecourt.feed.row import Columns, Row

__all__ = ["ORDER", "recognises", "rows"]

ORDER: Final = 10

_PAGE: Final = re.compile(r"<!doctype html|<html[\s>]|<script[^>]{0,200}application/ld\+json", re.IGNORECASE)
_BEGIN: Final = re.compile(r"<script\b[^>]{0,2000}application/ld\+json[^>]{0,2000}>", re.IGNORECASE)
_END: Final = re.compile(r"</script\s*>", re.IGNORECASE)
_WRAPPED: Final = re.compile(r"^\s*(?://\s*)?(?:<!--|<!\[CDATA\[)|(?://\s*)?(?:-->|\]\]>)\s*$")
_OPENING: Final = 4096
_LARGEST: Final = 16 << 20
_BROKEN: Final = "a JSON-LD script is not valid JSON"


def recognises(head: str) -> bool:
    """Tell whether the text begins as an HTML page does."""
    return head.lstrip()[:1] == "<" and bool(_PAGE.search(head[:_OPENING]) or "application/ld+json" in head)


def rows(text: Text, mapping: Mapping[str, str], report: Report) -> Iterator[Row]:  # noqa: ARG001
    """Give the vehicles of every JSON-LD script, at the line on which the script begins. Other scripts are skipped."""
    columns = Columns()
    for line, script in _scripts(text.chunks()):
        try:
            value = json.loads(_WRAPPED.sub("", script), strict=False)
        except (ValueError, RecursionError):
            report.refuse(line, _BROKEN)
            continue
        for vehicle in vehicles(value):
            yield columns.row(line, flat(vehicle))


def _scripts(chunks: Iterator[str]) -> Iterator[tuple[int, str]]:
    window, line, inside = "", 1, False
    for chunk in chunks:
        window += chunk
        while found := (_END if inside else _BEGIN).search(window):
            if inside:
                yield line, window[: found.start()]
            line += window.count("\n", 0, found.end())
            window, inside = window[found.end() :], not inside
        if inside and len(window) > _LARGEST:
            raise FeedError("a script of the page is larger than it may be")
        if not inside and len(window) > _OPENING:
            # The beginning of a script may stand at the end of what was read so far.
            line += window.count("\n", 0, len(window) - _OPENING)
            window = window[-_OPENING:]
    if inside:
        raise FeedError("the page ends inside of a script")
