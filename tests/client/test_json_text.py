"""JSON from strangers."""

import pytest

from forecourt.client.json_text import decode, encode


def test_integers_are_exact_and_floats_are_floats() -> None:
    assert decode(b"[12345678901234567890, 1.5]") == [12345678901234567890, 1.5]
    assert encode({"a": [1, "\u00e9"]}) == '{"a":[1,"é"]}'.encode()


@pytest.mark.parametrize("text", [b"", b"{", b"NaN", b"[Infinity]", b"\xff", b"[" * 100_000, b"9" * 5_000, b'"a" "b"'])
def test_what_is_no_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(text)


def test_what_json_does_not_have_is_not_written() -> None:
    with pytest.raises(ValueError, match=r"."):
        encode(float("nan"))
