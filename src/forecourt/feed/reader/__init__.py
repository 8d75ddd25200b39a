"""One module a format. A format is added by adding a module; nothing here lists them.

A module has `ORDER` (the lower, the sooner it is asked), `recognises(head)`, which tells by the beginning of the text
whether a file is in its format, and `rows(text, mapping, report)`, which gives the rows one by one. Rows that cannot be
read are refused in the report, and the others are given; FeedError is raised where the file breaks off.
"""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Protocol, cast

from forecourt.feed.encoding import Text
from forecourt.feed.error import FeedError
from forecourt.feed.report import Report
from forecourt.feed.row import Row

__all__ = ["Reader", "find_reader", "reader_names"]


class Reader(Protocol):
    """What a module of this package offers."""

    ORDER: int

    def recognises(self, head: str) -> bool:
        """Tell whether a text that begins so is in this format."""
        ...

    def rows(self, text: Text, mapping: Mapping[str, str], report: Report) -> Iterator[Row]:
        """Give the rows in the order of the file."""
        ...


@cache
def reader_names() -> tuple[str, ...]:
    """Return the names of the formats in the order in which they are asked."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    return tuple(sorted(names, key=lambda name: _reader(name).ORDER))


def find_reader(head: str, name: str | None = None) -> tuple[str, Reader]:
    """Return the reader called `name`, or the one that recognises `head`, with its name; FeedError if there is none."""
    if name is not None:
        if name not in reader_names():
            raise FeedError(f"no such format; there are {', '.join(reader_names())}")
        return name, _reader(name)
    for each in reader_names():
        if _reader(each).recognises(head):
            return each, _reader(each)
    raise FeedError("the format of the file is not known")


def _reader(name: str) -> Reader:
    return cast("Reader", importlib.import_module(f"{__name__}.{name}"))
