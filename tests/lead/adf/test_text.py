"""Text as XML can hold it, and the form for email (XML 1.0 sections 2.2 and 2.11; RFC 5322 section 2.1.1)."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecourt.lead.adf.element import document, leaf
from forecourt.lead.adf.text import LONGEST_LINE, clean, escape, to_ascii_xml, written


@pytest.mark.parametrize("number", [0, 8, 0xB, 0xC, 0x1F, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xFFFE, 0xFFFF])
def test_what_xml_forbids_is_taken_out(number: int) -> None:
    assert clean(f"a{chr(number)}b") == "ab"


@pytest.mark.parametrize(
    "sign", ["\t", "\n", " ", "\x7f", "\x85", "\ud7ff", "\ue000", "\ufffd", "\U00010000", "\U0010ffff"]
)
def test_what_xml_allows_stays(sign: str) -> None:
    assert clean(f"a{sign}b") == f"a{sign}b"


def test_line_ends_are_what_a_parser_reads_them_as() -> None:
    assert clean("a\r\nb\rc\nd\r\r\n") == "a\nb\nc\nd\n\n"


def test_markup_is_escaped() -> None:
    assert escape('<a b="c">&amp;]]>\'') == "&lt;a b=&quot;c&quot;&gt;&amp;amp;]]&gt;'"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (" a ", " a "), ("", None), (" \n\x00", None), (0, "0"), (2024, "2024"), (2024.0, "2024"), (1.5, "1.5"),
        (True, None), (None, None), ([], None), ({}, None), (float("nan"), None), (float("inf"), None),
        (10**15, None), (1 - 10**15, "-999999999999999"),
    ],
)  # fmt: skip
def test_a_member_is_text_or_nothing(value: object, text: str | None) -> None:
    assert written(value) == text


def test_what_is_not_ascii_becomes_a_decimal_reference() -> None:
    assert to_ascii_xml("<a>Zoë 花 🚗</a>".encode()) == b"<a>Zo&#235; &#33457; &#128663;</a>"


def test_a_line_of_the_longest_length_is_left_alone() -> None:
    line = b"<a>" + b"x" * (LONGEST_LINE - 7) + b"</a>"
    assert len(line) == LONGEST_LINE
    assert to_ascii_xml(line + b"\n") == line + b"\n"


def test_a_longer_line_is_broken_at_its_last_space() -> None:
    words = " ".join(["nine-byte"] * 150)
    folded = to_ascii_xml(f"<a>{words}</a>".encode())
    assert [len(line) for line in folded.split(b"\n")] == [992, 513]
    assert ElementTree.fromstring(folded).text == words[:989] + "\n" + words[990:]


def test_a_text_without_spaces_is_broken_between_characters_never_inside_a_reference() -> None:
    text = "田" * 300
    folded = to_ascii_xml(f"<a>{text}</a>".encode())
    assert max(map(len, folded.split(b"\n"))) <= LONGEST_LINE
    read = ElementTree.fromstring(folded).text
    assert read is not None
    assert read.replace("\n", "") == text
    assert read.count("\n") == 2


def test_a_tag_at_the_limit_is_not_torn() -> None:
    for length in range(LONGEST_LINE - 12, LONGEST_LINE + 3):
        folded = to_ascii_xml(b"<a>" + b"x" * length + b"</a>")
        assert max(map(len, folded.split(b"\n"))) <= LONGEST_LINE
        assert re.sub(r"\s", "", ElementTree.fromstring(folded).text or "") == "x" * length


@given(st.text(st.characters() | st.sampled_from('<&>" 田🚗'), max_size=400).map(lambda text: text * 4))
def test_the_form_for_email_is_7_bit_in_short_lines_and_loses_nothing(text: str) -> None:
    folded = to_ascii_xml(document(leaf("a", text)))
    assert folded.isascii()
    assert max(map(len, folded.split(b"\n"))) <= LONGEST_LINE
    read = ElementTree.fromstring(folded).text or ""
    assert "".join(read.split()) == "".join(clean(text).split())
