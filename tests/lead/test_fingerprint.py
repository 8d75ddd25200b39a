"""Sameness of payloads (CONTRACTS.md section 6, idempotency_key; RFC 8785)."""

import hashlib
import json
import math
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from forecourt.lead.fingerprint import NotJSONError, fingerprint, is_plain

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=12,
)


def test_the_digest_is_that_of_the_canonical_form() -> None:
    # Sorted names, no white space, numbers as ECMAScript writes them: RFC 8785 sections 3.2.2 and 3.2.3.
    canonical = b'{"a":[1,2.5,1e+21,1e-7],"b":"\xc3\xa9\\n","c":null}'
    payload = {"c": None, "b": "é\n", "a": [1, 2.5, 1e21, 1e-7]}
    assert fingerprint(payload) == hashlib.sha256(canonical).hexdigest()


def test_names_are_sorted_by_utf_16_as_the_rfc_says() -> None:
    # U+1F600 starts with the surrogate D83D, which sorts before U+FB33 (RFC 8785 section 3.2.3).
    canonical = '{"\U0001f600":1,"\ufb33":2}'.encode()
    assert fingerprint({"\ufb33": 2, "\U0001f600": 1}) == hashlib.sha256(canonical).hexdigest()


def test_order_of_members_and_white_space_do_not_matter() -> None:
    one = json.loads('{"message": "hi", "customer": {"first_name": "Ada", "last_name": "Lovelace"}}')
    other = json.loads('{"customer":{"last_name":"Lovelace","first_name":"Ada"},"message":"hi"}')
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(MappingProxyType({"a": MappingProxyType({"b": (1,)})})) == fingerprint({"a": {"b": [1]}})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (26780, 26780.0),
        (0, -0.0),
        (2**53, float(2**53)),
        (2**60, float(2**60)),
        (10**22, 1e22),
        (-(2**70), -(2.0**70)),
    ],
)
def test_one_number_has_one_fingerprint_however_it_is_written(one: float, other: float) -> None:
    assert fingerprint({"price": one}) == fingerprint({"price": other})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        (1, "1"),
        (None, "null"),
        ([], {}),
        ([1, 2], [2, 1]),
        ("a", "A"),
        ("é", "e\u0301"),
        (2**53, 2**53 + 1),
        (2**53 + 1, 2**53 + 3),
        ([10**5000], [10**5000 + 1]),
        ("\ud800", "\ud801"),
        ("\ud800", "\\ud800"),
        (math.nan, "NaN"),
        (math.inf, -math.inf),
        (math.inf, [10**400]),
        (2**53 + 1, hex(2**53 + 1)),
    ],
)
def test_different_values_have_different_fingerprints(one: object, other: object) -> None:
    assert fingerprint({"a": one}) != fingerprint({"a": other})


@pytest.mark.parametrize("odd", [2**53 + 1, math.nan, "\ud800", {"\udfff": 1}])
def test_a_payload_beyond_i_json_is_still_compared_as_a_whole(odd: object) -> None:
    assert fingerprint({"a": odd, "b": 26780}) == fingerprint({"b": 26780.0, "a": odd})
    assert fingerprint({"a": odd, "b": -0.0}) == fingerprint({"b": 0, "a": odd})
    assert fingerprint({"a": odd, "b": 1}) != fingerprint({"a": odd, "b": 2})
    assert fingerprint({"a": odd, "b": [[1], 2]}) != fingerprint({"a": odd, "b": [[1, 2]]})


def nested(depth: int, core: object) -> dict[str, Any]:
    value: Any = core
    for _ in range(depth):
        value = [value]
    return {"a": value}


@pytest.mark.parametrize("depth", [62, 63, 64, 65, 2000])
def test_nesting_of_any_depth_is_compared(depth: int) -> None:
    assert fingerprint(nested(depth, 1)) == fingerprint(nested(depth, 1.0))
    assert fingerprint(nested(depth, 1)) != fingerprint(nested(depth, 2))
    assert fingerprint(nested(depth, 1)) != fingerprint(nested(depth + 1, 1))


@given(st.dictionaries(st.text(st.characters()), JSON, max_size=4))
def test_any_json_payload_has_a_fingerprint_and_keeps_it_over_a_round_trip(payload: dict[str, Any]) -> None:
    first = fingerprint(payload)
    assert len(first) == 64
    assert fingerprint(json.loads(json.dumps(payload))) == first
    assert fingerprint(dict(reversed(payload.items()))) == first


@pytest.mark.parametrize("value", [b"marked", {1: "marked"}, {"marked"}, [math.nan, {None: 1}], object()])
def test_what_is_no_json_is_a_documented_error_without_the_value(value: object) -> None:
    with pytest.raises(NotJSONError) as caught:
        fingerprint({"a": value})
    assert isinstance(caught.value, ValueError)
    assert "marked" not in str(caught.value)


def test_an_object_inside_itself_is_no_json() -> None:
    payload: dict[str, Any] = {}
    payload["a"] = [payload, payload]
    with pytest.raises(NotJSONError, match="contain itself"):
        fingerprint(payload)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(max_codepoint=127)), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(st.characters(max_codepoint=127)), PLAIN, max_size=5))
def test_a_plain_payload_has_the_fingerprint_of_the_library_and_the_bytes_of_the_standard_library(
    payload: dict[str, Any],
) -> None:
    assert is_plain(payload)
    assert fingerprint(payload) == hashlib.sha256(rfc8785.dumps(payload)).hexdigest()
    assert msgspec.json.encode(payload) == json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


def test_every_character_is_written_as_the_library_writes_it() -> None:
    # One text for each thousand characters: all of Unicode but the surrogates, which no text in UTF-8 has.
    signs = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    for begin in range(0, len(signs), 1000):
        payload = {"message": "".join(signs[begin : begin + 1000])}
        assert is_plain(payload)
        assert fingerprint(payload) == hashlib.sha256(rfc8785.dumps(payload)).hexdigest()


class _Text(str):
    """Not exactly a text."""

    __slots__ = ()


@pytest.mark.parametrize(
    "value",
    [{"a": 1.0}, {"a": [0.5]}, {"a": 2**53 + 1}, {"\u00e9": 1}, {"a": ("b",)}, {"a": _Text("b")}, {_Text("a"): 1},
     {"a": MappingProxyType({})}, {"a": {1}}],
)  # fmt: skip
def test_whatever_encoders_might_write_differently_is_not_plain(value: object) -> None:
    assert not is_plain(value)
