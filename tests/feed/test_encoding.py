"""Decoding does not depend on where the chunks end (FEEDS.md, point 1)."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecourt.feed.encoding import Text
from forecourt.feed.error import FeedError

LETTERS = "vin,stock\r\n2HG,Métallisé 20 € “x” 車"


def decoded(data: bytes) -> str:
    return "".join(Text(io.BytesIO(data)).chunks())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("padding", range(65_530, 65_540))
def test_a_character_on_the_edge_of_a_chunk_is_whole(encoding: str, padding: int) -> None:
    text = "x" * padding + LETTERS * 3
    assert decoded(text.encode(encoding)) == text.replace("\r\n", "\n")


@pytest.mark.parametrize("padding", range(65_534, 65_538))
def test_a_sign_of_iso_8859_15_on_the_edge_of_a_chunk_is_read_like_any_other(padding: int) -> None:
    text = "é" + "," * padding + "cœur Škoda 1 €,½ ton"
    assert decoded(text.encode("iso-8859-15", "ignore")).endswith("cœur Škoda 1 €, ton")


@given(st.binary(min_size=1, max_size=300))
def test_any_bytes_are_text_or_refused(data: bytes) -> None:
    try:
        text = decoded(data)
    except FeedError:
        return
    assert "\r" not in text


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).filter(str.strip))
def test_utf_8_comes_out_as_it_went_in(text: str) -> None:
    assert decoded(text.encode("utf-8-sig")) == text.removeprefix("\ufeff") or text.startswith("\ufeff")
