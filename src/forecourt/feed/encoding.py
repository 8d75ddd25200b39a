"""From bytes to text, whatever the exporter wrote: with or without a BOM, UTF-8, UTF-16, or a one-byte code page.

Nothing is read twice and no more than a chunk is held. Text that is not UTF-8 is Windows-1252, and ISO-8859-15 where a
character makes sense in that alone: both are one byte a character and differ in a few dozen places.
"""

import codecs
import io
import re
from collections.abc import Iterator
from typing import IO, Final

from forecourt.feed.error import FeedError

__all__ = ["Text"]

_CHUNK: Final = 1 << 16
_SNIFFED: Final = 4096
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ONE_BYTE: Final = "windows-1252 or iso-8859-15"

# The signs in which ISO-8859-15 differs from Windows-1252 above 0x9F, as Windows-1252 has them. The euro always wins,
# since nobody writes the general currency sign; capitals win at the start of a word, small letters next to a letter,
# the oe inside of one. An acute accent after a letter stays: it is a poor man's apostrophe.
_LATIN_9: Final = {
    "\xa4": "\u20ac", "\xa6": "\u0160", "\xa8": "\u0161", "\xb4": "\u017d", "\xb8": "\u017e", "\xbc": "\u0152",
    "\xbd": "\u0153",
}  # fmt: skip
_LETTER: Final = r"[^\W\d_]"
_IN_LATIN_9: Final = re.compile(
    rf"\xa4|(?<!{_LETTER})[\xa6\xb4](?={_LETTER})|(?<={_LETTER})[\xa8\xb8]|[\xa8\xb8](?={_LETTER})"
    rf"|(?<!\w)\xbc(?={_LETTER})|(?<={_LETTER})\xbd(?={_LETTER})"
)


def _stray(error: UnicodeError) -> tuple[str, int]:
    """Read the bytes that are not UTF-8 as Windows-1252."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


_STRAY: Final = "forecourt.feed.stray"
codecs.register_error(_STRAY, _stray)


class Text:
    """The text of a feed, in chunks with `\\n` for every kind of line end.

    `encoding` names what was found, so far. Raises FeedError while it is read if this is no text.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._newlines = io.IncrementalNewlineDecoder(None, translate=True)
        self._decoder: codecs.IncrementalDecoder | None = None
        self._held = b""
        self._last = ""
        self._ended = False
        self.encoding = "utf-8"
        self.mixed = False
        """Whether single bytes in a UTF-8 file were read as Windows-1252."""
        self._plain_so_far = True
        self._one_byte = False
        self.head = self._begin()
        """The beginning of the text: all of it, or more than 65,000 characters in most encodings."""

    def chunks(self) -> Iterator[str]:
        """Give the whole text; can be used once."""
        if self.head:
            yield self.head
        while not self._ended:
            if text := self._next():
                yield text

    def _begin(self) -> str:
        first = self._stream.read(_CHUNK)
        if not first:
            raise FeedError("the file is empty")
        for bom, name in _BOMS:
            if first.startswith(bom):
                first = first[len(bom) :]
                self._use(name)
                break
        else:
            self._sniff(first[:_SNIFFED])
        text = self._decode(first)
        while not text.strip() and not self._ended:
            text = self._next()
        if not text.strip():
            raise FeedError("the file is empty")
        return text

    def _sniff(self, sample: bytes) -> None:
        """Tell UTF-16 without a BOM by its zero bytes: ASCII characters have one each, on the same side."""
        zeros = sample.count(0)
        if not zeros:
            return
        odd = sample[1::2].count(0)
        if zeros * 4 > len(sample) and odd in (0, zeros):
            self._use("utf-16-le" if odd else "utf-16-be")
        elif zeros * 5 > len(sample):
            raise FeedError("the file is not a text file")

    def _use(self, name: str) -> None:
        self.encoding = name
        if name != "utf-8":
            self._decoder = codecs.getincrementaldecoder(name)("replace")

    def _next(self) -> str:
        data = self._stream.read(_CHUNK)
        self._ended = not data
        return self._decode(data)

    def _decode(self, data: bytes) -> str:
        if self._decoder:
            text = self._decoder.decode(data, self._ended)
        elif self._one_byte:
            text = self._from_one_byte(data)
        else:
            text = self._from_utf8(self._held + data)
        return self._newlines.decode(text, self._ended)

    def _from_utf8(self, data: bytes) -> str:
        self._held = b""
        if data.isascii():
            return data.decode("ascii")
        try:
            text, used = codecs.utf_8_decode(data, "strict", self._ended)
        except UnicodeDecodeError:
            valid = data.decode("utf-8", "ignore")
            stray = len(data) - len(valid.encode())
            sequences = len(valid) - len(valid.encode("ascii", "ignore"))
            # Letters of an old code page that happen to form UTF-8 are rare: the majority decides.
            if self._plain_so_far and stray > sequences:
                self._one_byte = True
                self.encoding = _ONE_BYTE
                return self._from_one_byte(data)
            self.mixed = True
            text, used = codecs.utf_8_decode(data, _STRAY, self._ended)
        self._plain_so_far = False
        self._held = data[used:]
        return text

    def _from_one_byte(self, data: bytes) -> str:
        text = self._last + data.decode("cp1252", "replace")
        read = _IN_LATIN_9.sub(lambda found: _LATIN_9[found[0]], text)
        given = max(len(self._last) - 1, 0)
        if self._ended:
            return read[given:]
        # What comes next decides about the last character, and the one before it is looked at again for that.
        self._last = text[-2:]
        return read[given:-1]
