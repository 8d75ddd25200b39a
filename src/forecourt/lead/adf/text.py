"""Text in XML: what XML 1.0 forbids is taken out, markup is escaped, and a 7-bit form is made for email."""

import re
from typing import Final

__all__ = ["LONGEST_LINE", "clean", "escape", "to_ascii_xml", "written"]

LONGEST_LINE: Final = 998
"""How many octets a line of an email may have without its end (RFC 5322 section 2.1.1)."""

_FORBIDDEN: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_ENDS: Final = re.compile("\r\n?")
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
_LONGEST_TAG: Final = 200
"""More than the indentation and the tag of any line take, whose spaces are no place to break."""
_MOST: Final = 10**15


def clean(text: str) -> str:
    r"""Return `text` without the characters that no XML 1.0 document can hold, not even as references.

    Those are the control characters other than tab and line ends, surrogates, U+FFFE and U+FFFF (XML 1.0 section
    2.2). Line ends become ``\n``, which is what every XML parser reads them as (section 2.11).
    """
    return _LINE_ENDS.sub("\n", _FORBIDDEN.sub("", text))


def written(value: object) -> str | None:
    """Return a member of a payload as clean text, None where it says nothing: absent, blank, no text and no number.

    Integral numbers are written without a fraction: JSON Schema takes 2024.0 for an integer.
    """
    if isinstance(value, str):
        text = clean(value)
        return text if text.strip() else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not -_MOST < value < _MOST:
        return None
    return str(int(value)) if value == int(value) else str(value)


def escape(text: str) -> str:
    """Return clean text with its markup escaped, fit for the content of an element and for an attribute."""
    return text.translate(_ESCAPES)


def to_ascii_xml(xml: bytes) -> bytes:
    """Return a document of `to_adf` in the form for email: 7-bit, and no line too long for one.

    What is not ASCII becomes a numeric character reference, so that the declared encoding, UTF-8, stays true. A
    line of more than `LONGEST_LINE` octets is broken at a space, or where it has none between two characters; a
    shopper's long text so gains line ends and loses nothing.
    """
    ascii_xml = xml.decode("utf-8").encode("ascii", "xmlcharrefreplace")
    if max(map(len, ascii_xml.split(b"\n"))) <= LONGEST_LINE:
        return ascii_xml
    return b"\n".join(part for line in ascii_xml.split(b"\n") for part in _folded(line))


def _folded(line: bytes) -> list[bytes]:
    parts = []
    while len(line) > LONGEST_LINE:
        # Not at a space of the indentation, which would gain nothing.
        space = line.rfind(b" ", _LONGEST_TAG, LONGEST_LINE + 1)
        cut = space if space >= 0 else _between_characters(line)
        parts.append(line[:cut])
        line = line[cut + 1 if space >= 0 else cut :]
    return [*parts, line]


def _between_characters(line: bytes) -> int:
    """Return the last place to break that is neither inside a reference nor inside a tag."""
    for opening, closing in ((b"&", b";"), (b"<", b">")):
        start = line.rfind(opening, 0, LONGEST_LINE)
        if start > 0 and line.find(closing, start, LONGEST_LINE) < 0:
            return start
    return LONGEST_LINE
