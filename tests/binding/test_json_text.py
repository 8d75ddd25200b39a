"""JSON from strangers (RFC 8259; RFC 7493, section 2.3; CONTRACTS.md section 3, "Malformed JSON")."""

import json
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forecourt.binding.json_text import MalformedJSONError, decode, encode

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
FREELY = settings(deadline=None, max_examples=150)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is empty"),
        (b" \t\r\n", "the body is empty"),
        (b"\xef\xbb\xbf", "the body is empty"),
        (b"\xff", "the body is not UTF-8"),
        (b'{"a":"\xc3"}', "the body is not UTF-8"),
        (b'"\xed\xa0\x80"', "the body is not UTF-8"),
        ('{"a":1}'.encode("utf-16"), "the body is not UTF-8"),
        (b'{"a":', "the body is not well-formed JSON"),
        (b'{"a":1}}', "the body is not well-formed JSON"),
        (b'{"a":1} {"b":2}', "the body is not well-formed JSON"),
        (b"{'a':1}", "the body is not well-formed JSON"),
        (b'{"a":1,}', "the body is not well-formed JSON"),
        (b"[1,]", "the body is not well-formed JSON"),
        (b"NaN", "the body is not well-formed JSON"),
        (b'{"a":NaN}', "the body is not well-formed JSON"),
        (b"[Infinity,-Infinity]", "the body is not well-formed JSON"),
        (b"[1e400]", "the body is not well-formed JSON"),
        (b"-1e999", "the body is not well-formed JSON"),
        (b"01", "the body is not well-formed JSON"),
        (b"+1", "the body is not well-formed JSON"),
        (b".5", "the body is not well-formed JSON"),
        (b"0x10", "the body is not well-formed JSON"),
        (b"True", "the body is not well-formed JSON"),
        (b"// a remark\n1", "the body is not well-formed JSON"),
        (b'"a\x00b"', "the body is not well-formed JSON"),
        (b'"a\nb"', "the body is not well-formed JSON"),
        (b'"\\x41"', "the body is not well-formed JSON"),
        (b'"\\ud800"', "the body is not well-formed JSON"),
        (b'"\\udc00\\ud800"', "the body is not well-formed JSON"),
        (b"\xef\xbb\xbf\xef\xbb\xbf1", "the body is not well-formed JSON"),
        (b"\x00", "the body is not well-formed JSON"),
        (b"9" * 5000, "the body is not well-formed JSON"),
    ],
)
def test_what_is_not_json_is_refused_with_the_reason(body: bytes, message: str) -> None:
    with pytest.raises(MalformedJSONError) as caught:
        decode(body)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"a":1}',
        b'{"a":1,"a":2}',
        b'{"a" : 1, "b" :2, "a"\n\t: 3}',
        b'{"a":1,"\\u0061":2}',
        b'{"":1,"":2}',
        b'[[[{"a":{"b":1,"c":[],"b":2}}]]]',
        b'[{"a":1},{"b":1,"b":1}]',
        b'{"note":"10:30 to 11:45","a":1,"a":2}',
        b'{":":1,":":2}',
        b'{"a":{"x":1},"a":{"x":1}}',
        b'{"a":[{"b":1}],"a":null}',
    ],
)
def test_a_member_given_twice_is_refused_at_any_depth(body: bytes) -> None:
    with pytest.raises(MalformedJSONError, match=r"^an object has the same member twice$"):
        decode(body)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"at":"10:30","note":"a:b:c"}', {"at": "10:30", "note": "a:b:c"}),
        (b'{"a:b":1,"a":{"a:b":2}}', {"a:b": 1, "a": {"a:b": 2}}),
        (b'{"a" :1, "b"\n:\t2}', {"a": 1, "b": 2}),
        (b'[{"a":1},{"a":1}]', [{"a": 1}, {"a": 1}]),
        (b'{"a":1,"A":2}', {"a": 1, "A": 2}),
    ],
)
def test_colons_in_texts_and_white_space_do_not_look_like_members(body: bytes, value: Any) -> None:
    assert decode(body) == value


@pytest.mark.parametrize("digits", [19, 20, 21, 40, 309, 400, 4000])
def test_integers_of_any_size_keep_every_digit(digits: int) -> None:
    text = b"1234567890" * 400
    value = decode(text[:digits])
    assert type(value) is int
    assert encode(value) == text[:digits]
    assert encode({"id": [-value]}) == b'{"id":[-' + text[:digits] + b"]}"


def test_a_large_integer_is_kept_by_the_slower_reader_as_well() -> None:
    assert decode(b'{"n":123456789012345678901234567890,"t":"a:b"}') == {
        "n": 123456789012345678901234567890,
        "t": "a:b",
    }


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_a_hundred_levels_are_read_and_one_more_is_not(opening: bytes, closing: bytes) -> None:
    value = decode(opening * 100 + b"1" + closing * 100)
    for _ in range(100):
        value = value[0] if isinstance(value, list) else value["a"]
    assert value == 1
    for levels in (101, 1_000, 10_000, 100_000):
        with pytest.raises(MalformedJSONError, match=r"^the body is nested more than 100 deep$"):
            decode(opening * levels + b"1" + closing * levels)


def test_empty_containers_count_as_levels() -> None:
    assert decode(b"[" * 100 + b"]" * 100) is not None
    with pytest.raises(MalformedJSONError, match="nested"):
        decode(b"[" * 101 + b"]" * 101)


def test_levels_never_closed_are_refused() -> None:
    with pytest.raises(MalformedJSONError):
        decode(b"[" * 100_000)


def test_one_byte_order_mark_is_passed_over() -> None:
    assert decode(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


@FREELY
@given(VALUES)
@example({"a:b": {"a:b": ":"}})
@example(-0.0)
def test_what_the_standard_library_writes_is_read_as_the_same(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=2)):
        assert _same(decode(text.encode()), value)


@FREELY
@given(VALUES)
def test_what_is_written_is_read_back_as_the_same(value: Any) -> None:
    assert _same(decode(encode(value)), value)
    assert _same(json.loads(encode(value)), value)


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=200) | st.text(alphabet='[]{}":,\\u0a1e.-tfn \n').map(str.encode))
@example(b'{"a":1e5,"b":[]}')
@example(b"\xf4\x90\x80\x80")
def test_any_bytes_are_a_value_or_malformed_and_nothing_else(body: bytes) -> None:
    try:
        value = decode(body)
    except MalformedJSONError:
        return
    assert _same(value, json.loads(body.removeprefix(b"\xef\xbb\xbf")))


def _same(one: Any, other: Any) -> bool:
    """Tell whether two values are equal in type as well: 1 is not 1.0, and not true."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return bool(one == other)
