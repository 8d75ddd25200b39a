"""Cursors ("Errors and retries", section "Important distinctions"; CONTRACTS.md section 5, "Continuation")."""

import base64
import string
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecourt.cursor import LIFETIME_SECONDS, Cursors, Standing, _sign, new_key_bytes
from forecourt.errors import AAPError
from forecourt.model import Place
from forecourt.store import Secret

OLD: Final = Secret("key-old", b"o" * 32)
NEW: Final = Secret("key-new", b"n" * 32)
CURSORS: Final = Cursors([NEW, OLD])
NOW: Final = 1_777_800_000.5
PLACE: Final = Standing(Place("dealer-a/42", 26_780), 7)
SCOPE: Final[dict[str, Any]] = {"request": '[{"make":["honda"]},null,null]', "tenant": "dealer-a", "caller": "agent-1"}
CURSOR: Final = CURSORS.issue(PLACE, **SCOPE, now=NOW)
ALPHABET: Final = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
"""The digits of base 64 for URLs, in the order of their values (RFC 4648 section 5)."""


def is_refused(cursor: str, cursors: Cursors = CURSORS, now: float = NOW, **changes: Any) -> bool:
    """Tell whether the cursor is refused, and check that the refusal does not say why."""
    try:
        cursors.resume(cursor, **{**SCOPE, **changes}, now=now)
    except AAPError as error:
        payload = error.to_payload()
        assert (payload["code"], payload["retryable"]) == ("INVALID_CURSOR", False)
        assert payload["details"] == {
            "errors": [
                {
                    "instanceLocation": "/pagination/cursor",
                    "keyword": "cursor",
                    "error": "is expired, or was not made for this search",
                }
            ],
            "hint": "Restart the search without a cursor; never continue from a made-up position.",
        }
        return True
    return False


def signed(content: Any, key: Secret = NEW) -> str:
    """Return text that a holder of the key could have made."""
    raw = content if isinstance(content, bytes) else msgspec.msgpack.encode(content)
    signature = _sign(key.value, raw, (SCOPE["request"], SCOPE["tenant"], SCOPE["caller"]))
    return base64.urlsafe_b64encode(signature + raw).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "place",
    [
        PLACE.place,
        Place("a/1"),
        Place("a/1", "Škoda"),
        Place("a/1", 0),
        Place("a/1", 299.5),
        Place("a/" + "x" * 300, ""),
    ],
)
def test_a_cursor_gives_back_where_its_walk_stands(place: Place) -> None:
    found = CURSORS.resume(CURSORS.issue(Standing(place, 1 << 40), **SCOPE, now=NOW), **SCOPE, now=NOW)
    assert found == (place, 1 << 40)
    assert type(found.place.value) is type(place.value)


def test_a_cursor_is_text_for_urls_without_padding() -> None:
    assert set(CURSOR) <= set(ALPHABET)
    assert "dealer-a" not in CURSOR


def test_a_cursor_is_good_until_it_expires() -> None:
    assert LIFETIME_SECONDS == 30 * 60
    assert not is_refused(CURSOR, now=NOW + LIFETIME_SECONDS - 1)
    assert is_refused(CURSOR, now=NOW + LIFETIME_SECONDS)
    short = Cursors([NEW], lifetime_seconds=5)
    assert is_refused(short.issue(PLACE, **SCOPE, now=NOW), short, now=NOW + 5)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"request": "other"}, marks=pytest.mark.requirement("ERR-CURSOR-SCOPE-REQUEST")),
        pytest.param({"request": ""}, marks=pytest.mark.requirement("ERR-CURSOR-SCOPE-REQUEST")),
        pytest.param({"tenant": "dealer-b"}, marks=pytest.mark.requirement("ERR-CURSOR-SCOPE-TENANT")),
        pytest.param({"tenant": ""}, marks=pytest.mark.requirement("ERR-CURSOR-SCOPE-TENANT")),
        pytest.param({"caller": "agent-2"}, marks=pytest.mark.requirement("ERR-CURSOR-SCOPE-AUTHORIZATION")),
        pytest.param({"caller": None}, marks=pytest.mark.requirement("ERR-CURSOR-SCOPE-AUTHORIZATION")),
        pytest.param({"caller": ""}, marks=pytest.mark.requirement("ERR-CURSOR-SCOPE-AUTHORIZATION")),
    ],
)
def test_a_cursor_belongs_to_its_request_its_tenant_and_its_caller(change: dict[str, Any]) -> None:
    assert is_refused(CURSOR, **change)


@pytest.mark.requirement("ERR-CURSOR-SCOPE-AUTHORIZATION")
def test_no_caller_and_a_caller_without_a_name_are_two() -> None:
    anonymous = CURSORS.issue(PLACE, request="r", tenant="", caller=None, now=NOW)
    named = CURSORS.issue(PLACE, request="r", tenant="", caller="", now=NOW)
    assert is_refused(anonymous, request="r", tenant="", caller="")
    assert is_refused(named, request="r", tenant="", caller=None)
    assert not is_refused(named, request="r", tenant="", caller="")


def test_parts_of_the_scope_do_not_run_into_each_other() -> None:
    cursor = CURSORS.issue(PLACE, request="a1:b", tenant="c", caller=None, now=NOW)
    for request, tenant in (("a", "1:bc"), ("a1", ":bc"), ("a1:bc", ""), ("", "a1:bc")):
        assert is_refused(cursor, request=request, tenant=tenant, caller=None)


@pytest.mark.requirement("ERR-CURSOR-NO-FABRICATION")
def test_changing_any_bit_of_any_byte_is_noticed() -> None:
    raw = base64.urlsafe_b64decode(CURSOR + "=" * (-len(CURSOR) % 4))
    for position in range(len(raw)):
        for bit in range(8):
            changed = bytearray(raw)
            changed[position] ^= 1 << bit
            assert is_refused(base64.urlsafe_b64encode(changed).rstrip(b"=").decode())


@pytest.mark.requirement("ERR-CURSOR-NO-FABRICATION")
def test_changing_any_character_is_noticed() -> None:
    for position, original in enumerate(CURSOR):
        for character in ALPHABET + "=+/ \n\0é":
            if character != original:
                assert is_refused(CURSOR[:position] + character + CURSOR[position + 1 :])


@pytest.mark.requirement("ERR-CURSOR-NO-FABRICATION")
def test_cutting_or_lengthening_is_noticed() -> None:
    assert all(is_refused(CURSOR[:length]) for length in range(len(CURSOR)))
    assert all(is_refused(CURSOR[start:]) for start in range(1, len(CURSOR)))
    assert all(is_refused(CURSOR + more) for more in ("A", "AA", "AAAA", "=", "==", "\n", " ", CURSOR))
    assert is_refused(" " + CURSOR)


def test_a_second_spelling_of_the_same_bytes_is_no_cursor() -> None:
    for size in range(1, 12):
        cursor = CURSORS.issue(Standing(Place("x" * size), 1), **SCOPE, now=NOW)
        unused = {0: 0, 2: 4, 3: 2}[len(cursor) % 4]
        last = ALPHABET.index(cursor[-1])
        for bits in range(1, 1 << unused):
            assert is_refused(cursor[:-1] + ALPHABET[last | bits])
        assert is_refused(cursor + "=" * (-len(cursor) % 4 or 4))
    standard = CURSOR.replace("-", "+").replace("_", "/")
    assert standard == CURSOR or is_refused(standard)


def test_another_deployments_cursor_is_refused_even_under_the_same_key_name() -> None:
    foreign = Cursors([Secret("key-new", b"f" * 32)])
    assert is_refused(foreign.issue(PLACE, **SCOPE, now=NOW))
    assert is_refused(Cursors([Secret("key-else", NEW.value)]).issue(PLACE, **SCOPE, now=NOW))


def test_keys_can_be_exchanged_while_cursors_live() -> None:
    before, after, later = Cursors([OLD]), Cursors([NEW, OLD]), Cursors([NEW])
    cursor = before.issue(PLACE, **SCOPE, now=NOW)
    assert not is_refused(cursor, after)
    assert is_refused(cursor, later)
    renewed = after.issue(PLACE, **SCOPE, now=NOW)
    assert not is_refused(renewed, later)
    assert is_refused(renewed, before)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00",
        b"\xc1",
        [],
        ["key-new"],
        {"key_id": "key-new"},
        ["key-new", "soon", "a/1", 1, 1],
        ["key-new", 1 << 40, "a/1", 1],
        ["key-new", 1 << 40, 7, 1, 1],
        ["key-none", 1 << 40, "a/1", 1, 1],
        ["key-new", 1 << 40, "a/1", [], 1],
        ["key-new", 1 << 40, "a/1", 1, "1"],
        b"\x96\xa7key-new\x01\xa1a\xc0\x01" + b"\x91" * 100_000 + b"\xc0",
        b"\x96\xa7key-new\x01\xa1a\xc0\x01" + b"\xdd\xff\xff\xff\xff",
    ],
    ids=range(14),
)
def test_contents_of_another_shape_are_refused_before_and_after_the_signature(content: Any) -> None:
    cursor = signed(content)
    assert is_refused(cursor)
    assert is_refused("A" * 22 + cursor[22:])


@given(st.text(max_size=200))
@settings(max_examples=400, deadline=None)
def test_any_text_is_refused_with_the_one_code(text: str) -> None:
    assert is_refused(text)


@given(st.binary(max_size=200))
@settings(max_examples=400, deadline=None)
def test_any_bytes_are_refused_with_the_one_code(raw: bytes) -> None:
    assert is_refused(base64.urlsafe_b64encode(raw).rstrip(b"=").decode())


@given(st.integers(0, len(CURSOR)), st.integers(0, len(CURSOR)), st.text(ALPHABET, max_size=8))
@settings(max_examples=400, deadline=None)
def test_any_edit_of_a_cursor_is_refused(start: int, end: int, put: str) -> None:
    edited = CURSOR[:start] + put + CURSOR[end:]
    assert edited == CURSOR or is_refused(edited)


def test_text_that_utf8_cannot_write_is_refused() -> None:
    assert is_refused("\ud800")
    assert is_refused(CURSOR[:-1] + "\ud800")


def test_a_cursor_under_an_unknown_key_is_told_from_what_is_no_cursor() -> None:
    assert Cursors([OLD]).lacks_key_of(CURSOR)
    assert not CURSORS.lacks_key_of(CURSOR)
    assert not any(CURSORS.lacks_key_of(cursor) for cursor in ("", "x", "A" * 40, "\ud800", CURSOR[:-4], "=" * 9))


def test_new_keys_are_thirty_two_random_bytes() -> None:
    keys = {new_key_bytes() for _ in range(100)}
    assert len(keys) == 100
    assert {len(key) for key in keys} == {32}
