"""Opening a feed: its bytes tell what it is, and what it may become is bounded (FEEDS.md, point 11)."""

import gzip
import io
import zipfile
from pathlib import Path
from typing import cast

import pytest

from forecourt.feed import Expansion, FeedError, open_feed

FEED = b"vin,stock,make,model\n,S1,Honda,Civic\n"


def archive(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in files.items():
            opened.writestr(name.replace("__", "/", 1) if name.startswith("inner") else name.replace("_", "."), data)
    return packed.getvalue()


def content(source: "bytes | str | Path | io.BytesIO", expansion: Expansion | None = None) -> bytes:
    with open_feed(source, expansion) as stream:
        return stream.read()


@pytest.mark.parametrize(
    "packed",
    [FEED, gzip.compress(FEED), archive(stock_csv=FEED), archive(stock_gz=gzip.compress(FEED))],
    ids=["plain", "gzip", "zip", "gzip-in-zip"],
)
def test_plain_gzipped_and_zipped_feeds_are_the_same_feed(packed: bytes, tmp_path: Path) -> None:
    path = tmp_path / "feed.dat"
    path.write_bytes(packed)
    assert content(packed) == content(path) == content(str(path)) == content(io.BytesIO(packed)) == FEED


def test_a_zip_can_come_through_a_pipe() -> None:
    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self._data = io.BytesIO(archive(stock_csv=FEED))

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
            return self._data.readinto(memoryview(buffer)[:7])

    with open_feed(io.BufferedReader(cast("io.RawIOBase", Pipe()))) as stream:
        assert stream.read() == FEED


def test_of_several_files_in_a_zip_the_one_that_looks_like_a_feed_is_read() -> None:
    packed = archive(README_txt=b"x" * 5000, logo_png=b"y" * 9000, stock_csv=FEED, old_csv=b"a")
    assert content(packed) == FEED


def test_an_archive_without_a_feed_an_excel_workbook_and_a_missing_file_say_what_they_are(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        opened.writestr("[Content_Types].xml", "<x/>")
    for source, words in (
        (packed.getvalue(), "Excel"),
        (archive(), "no feed"),
        (tmp_path / "none.csv", "opened"),
        (archive(stock_csv=FEED * 50)[:-30], "damaged"),
        (b"", "empty"),
    ):
        with pytest.raises(FeedError, match=words):
            content(source)


def test_a_bomb_is_refused_before_it_has_expanded() -> None:
    bomb = gzip.compress(bytes(5_000_000))
    with pytest.raises(FeedError, match="expands"):
        content(bomb, Expansion(ratio=100, free=100_000))
    assert len(content(bomb, Expansion(ratio=2000, free=100_000))) == 5_000_000
    with pytest.raises(FeedError, match="expands"):
        content(archive(stock_csv=bytes(5_000_000)), Expansion(ratio=100, free=100_000))


def test_no_file_may_be_larger_than_the_bound() -> None:
    for packed in (FEED * 10, gzip.compress(FEED * 10), archive(stock_csv=FEED * 10)):
        with pytest.raises(FeedError, match="larger"):
            content(packed, Expansion(total=100))


def test_gzip_within_gzip_without_end_is_refused() -> None:
    packed = FEED
    for _ in range(4):
        packed = gzip.compress(packed)
    with pytest.raises(FeedError, match="too many times"):
        content(packed)
