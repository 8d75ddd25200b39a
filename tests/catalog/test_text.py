"""How texts are compared (CONTRACTS.md section 5, text filters and query: ours)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecourt.catalog import normalise
from forecourt.catalog.text import letters, tokens


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("  Citroën ", "citroen"), ("F 150", "f 150"), ("F \t 150", "f 150"), ("STRASSE", "strasse"),
        ("Straße", "strasse"), ("\uff28\uff4f", "ho"), ("\u212b", "a"), ("", ""), (" \u00a0 ", ""), ("a\0b", "a b"),
    ],
)  # fmt: skip
def test_a_normal_form_has_no_case_accents_or_spare_spaces(text: str, normal: str) -> None:
    assert normalise(text) == normal


@given(st.text(st.characters(max_codepoint=0x2FFF)))
def test_a_normal_form_is_its_own_normal_form(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


def test_a_word_is_found_joined_and_in_pieces() -> None:
    assert tokens("CR-V F-150's ¡hola! --") == {"cr", "v", "crv", "f", "150", "s", "f150s", "hola"}


def test_a_word_of_a_query_loses_its_punctuation() -> None:
    assert [letters(word) for word in ("CR-V", "É.T.", "a_b", "--")] == ["crv", "et", "ab", ""]
