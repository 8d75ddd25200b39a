"""From a path, standard input or bytes to the plain bytes of a feed: unpacked, and bounded in what it may become.

What a file is, is told by its first bytes, never by its name: exporters call compressed files `.csv`, and pipes have
no name at all.
"""

import contextlib
import gzip
import io
import re
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

from forecourt.feed.error import FeedError

__all__ = ["Expansion", "open_feed"]

_GZIP: Final = b"\x1f\x8b"
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_OLD_EXCEL: Final = b"\xd0\xcf\x11\xe0"
_PDF: Final = b"%PDF"
_NESTING: Final = 2
_MEMBERS: Final = 1000
_CHUNK: Final = 1 << 16
_FEED_NAME: Final = re.compile(r"\.(csv|tsv|tab|txt|psv|xml|rss|json|jsonl|ndjson|jsonld|html?)(\.gz)?$", re.IGNORECASE)
_NO_FEED_NAME: Final = re.compile(r"(^|/)(__macosx/|\.|read_?me|licen[cs]e|manifest|schema)", re.IGNORECASE)
_UNPACKING: Final = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)


@dataclass(frozen=True, slots=True)
class Expansion:
    """How much a compressed file may become; FeedError is raised where it would become more.

    `ratio` is bytes out per byte in, looked at once `free` bytes came out; `total` is bytes out, for files that are
    not compressed too.
    """

    ratio: int = 250
    free: int = 16 << 20
    total: int = 8 << 30


@contextlib.contextmanager
def open_feed(source: str | Path | bytes | IO[bytes], expansion: Expansion | None = None) -> Iterator[IO[bytes]]:
    """Open a feed and give its plain bytes as a stream.

    `source` is a path, the bytes themselves, or a binary stream, which stays open. Of a zip archive with several
    files, the one whose name looks like a feed's is read, of several such the largest. Raises FeedError if the file
    is missing, empty, encrypted, an archive without a feed, or damaged (that, and too large an expansion, while it is
    read).
    """
    bounds = expansion or Expansion()
    with contextlib.ExitStack() as stack:
        stream: IO[bytes]
        if isinstance(source, bytes):
            stream = io.BytesIO(source)
        elif isinstance(source, str | Path):
            try:
                stream = stack.enter_context(Path(source).open("rb"))
            except OSError as error:
                raise FeedError("the file cannot be opened") from error
        else:
            stream = source
        yield io.BufferedReader(_unpacked(stream, bounds, stack), _CHUNK)


def _unpacked(stream: IO[bytes], bounds: Expansion, stack: contextlib.ExitStack) -> io.RawIOBase:
    counted = _Counted(stream, bounds)
    current: _Counted = counted
    for _ in range(_NESTING + 1):
        head = current.peek()
        if not head:
            raise FeedError("the file is empty")
        if head.startswith(_GZIP):
            unzipped: IO[bytes] = cast("IO[bytes]", gzip.open(io.BufferedReader(current, _CHUNK)))  # noqa: SIM115 - ends with what it reads
        elif head.startswith(_ZIP):
            unzipped = _member(current, bounds, stack)
        elif head.startswith(_OLD_EXCEL):
            raise FeedError("the file is an Excel workbook; export it as CSV")
        elif head.startswith(_PDF):
            raise FeedError("the file is a PDF document, not a feed")
        else:
            return current
        current = _Counted(unzipped, bounds, counted)
    raise FeedError("the file is compressed too many times over")


def _member(packed: "_Counted", bounds: Expansion, stack: contextlib.ExitStack) -> IO[bytes]:
    """Return the feed inside of a zip archive, which is copied first since a pipe cannot be read backwards."""
    copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    while chunk := packed.read(_CHUNK):
        copy.write(chunk)
    try:
        archive = stack.enter_context(zipfile.ZipFile(copy))
        members = archive.infolist()
        if any(member.filename == "[Content_Types].xml" for member in members):
            raise FeedError("the file is an Excel workbook; export it as CSV")
        files = [member for member in members[:_MEMBERS] if not member.is_dir() and member.file_size]
        feeds = [member for member in files if not _NO_FEED_NAME.search(member.filename)]
        if not feeds:
            raise FeedError("the archive holds no feed")
        chosen = max(feeds, key=lambda member: (bool(_FEED_NAME.search(member.filename)), member.file_size))
        if chosen.flag_bits & 1:
            raise FeedError("the archive is encrypted")
        if chosen.file_size > bounds.total:
            raise FeedError("the file is larger than it may be")
        return stack.enter_context(archive.open(chosen))
    except _UNPACKING as error:
        raise FeedError("the archive is damaged") from error


class _Counted(io.RawIOBase):
    """Reads another stream and counts; turns what goes wrong below into a FeedError."""

    def __init__(self, stream: IO[bytes], bounds: Expansion, packed: "_Counted | None" = None) -> None:
        self._stream = stream
        self._bounds = bounds
        self._packed = packed
        self._head = b""
        self.taken = 0

    def peek(self) -> bytes:
        """Return the first bytes, which are read again afterwards."""
        while len(self._head) < 4 and (more := self._take(4 - len(self._head))):
            self._head += more
        return self._head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        data = self._head[: len(buffer)] or self._take(len(buffer))
        self._head = self._head[len(data) :]
        buffer[: len(data)] = data
        return len(data)

    def _take(self, size: int) -> bytes:
        try:
            data = self._stream.read(size)
        except FeedError:
            raise
        except _UNPACKING as error:
            raise FeedError("the file is damaged or ends too early") from error
        self.taken += len(data)
        if self.taken > self._bounds.total:
            raise FeedError("the file is larger than it may be")
        if self._packed and self.taken > max(self._bounds.free, self._bounds.ratio * self._packed.taken):
            raise FeedError("the file expands to more than it may")
        return data
