"""Addresses of photos and pages (FEEDS.md, point 6)."""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from forecourt.feed.normalise.text import parsed_list, text
from forecourt.feed.row import Cell

__all__ = ["NOT_HTTP", "address", "photos"]

NOT_HTTP: Final = "what is no http(s) address was left out"

_SPLIT: Final = re.compile(r"[|,;\s]+(?=https?:)|\|", re.IGNORECASE)
_SCHEME_LENGTH: Final = 8
_PLAIN: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~!$&'()*+,;=:@/?|-"
_ENDS: Final = " \t\r\n|,;\"'"
# The characters of RFC 3986, with every percent sign followed by two hexadecimal digits.
_TAIL: Final = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]++|%[0-9A-Fa-f]{2})*+"
_ADDRESS: Final = re.compile(
    rf"[Hh][Tt]{{2}}[Pp][Ss]?://[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)*+\.?(?::[0-9]{{1,5}})?(?:[/?]{_TAIL})?(?:#{_TAIL})?"
)
_BARE_PERCENT: Final = re.compile("%(?![0-9A-Fa-f]{2})")
_KEPT_SIGNS: Final = "._~!$&'()*+,;=:@/?#%-"
_MOST: Final = 200
_LONGEST: Final = 4096


def address(value: str) -> str | None:
    """Return an http(s) address, with what may not stand in one percent-encoded; None if it is something else."""
    if len(value) > _LONGEST:
        return None
    if _ADDRESS.fullmatch(value):
        return value
    if value[:4].lower() != "http":
        return None
    try:
        encoded = quote(_BARE_PERCENT.sub("%25", value), safe=_KEPT_SIGNS)
    except UnicodeEncodeError:
        return None
    return encoded if _ADDRESS.fullmatch(encoded) else None


def photos(cell: Cell) -> tuple[tuple[str, ...], bool]:
    """Return the addresses of a cell, each once, and whether something else was in it.

    A text is split on bars, and on commas, semicolons and spaces only where an address follows, since all three stand
    inside of addresses too.
    """
    if isinstance(cell, str):
        return _from_text(cell)
    found: dict[str, None] = {}
    dropped = False
    for item in cell:
        some, others = _from_text(item)
        found.update(dict.fromkeys(some))
        dropped = dropped or others
    return tuple(found)[:_MOST], dropped


def _from_text(cell: str) -> tuple[tuple[str, ...], bool]:
    plain = _plain_list(cell)
    if plain is not None:
        return tuple(dict.fromkeys(plain))[:_MOST], False
    if cell.lstrip()[:1] in ("[", "{"):
        parsed = parsed_list(cell)
        if parsed is not None:
            return photos([item for item in parsed if item.lstrip()[:1] not in ("[", "{")])
    found: dict[str, None] = {}
    dropped = False
    for part in _SPLIT.split(cell):
        url = part.strip(_ENDS)
        if known := address(url):
            found[known] = None
        elif text(url):
            dropped = True
    return tuple(found)[:_MOST], dropped


def _plain_list(cell: str) -> list[str] | None:
    """Split a list of good addresses of one host that cannot be misread, which most are; None for any other.

    Most of a photo list's time would go into looking at every address for itself: here the characters are looked at
    together, and the hosts are remembered.
    """
    separator = "|" if "|" in cell else ","
    count = cell.count(separator)
    end = cell.find("/", _SCHEME_LENGTH) + 1
    if not end or cell.count("http") != count + 1 or cell.count(separator + cell[:end]) != count:
        return None
    if len(cell) > _LONGEST or not cell.isascii() or cell.encode("ascii").translate(None, _PLAIN):
        return None
    return cell.split(separator) if _is_origin(cell[: end - 1]) else None


@lru_cache(maxsize=1024)
def _is_origin(start: str) -> bool:
    return "?" not in start and _ADDRESS.fullmatch(start) is not None
