"""Fields sealed at rest: bound to their place, opened by any key that is kept, and never half-trusted."""

import base64
import sys

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from forecourt.lead.sealing import KEY_BYTES, Sealer, SealError

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
PLACE = "lead_1/business"
PLAIN = b'{"customer":{"first_name":"Ada"}}'


def text(*keys: bytes) -> str:
    """Return keys as they are configured."""
    return " ".join(base64.b64encode(key).decode() for key in keys)


@given(st.binary().filter(lambda data: not data.startswith(b"sealed")), st.text(st.characters(codec="utf-8")))
def test_what_is_sealed_opens_in_its_place(plain: bytes, place: str) -> None:
    sealer = Sealer([NEW])
    sealed = sealer.seal(plain, place)
    assert sealed.isascii()
    assert sealed.startswith(b"sealed1:")
    assert sealer.open(sealed, place) == plain


def test_a_sealed_field_shows_nothing_and_is_never_the_same() -> None:
    sealer = Sealer([NEW])
    first, second = sealer.seal(PLAIN, PLACE), sealer.seal(PLAIN, PLACE)
    assert first != second
    assert b"Ada" not in first
    assert b"Ada" not in base64.urlsafe_b64decode(first.split(b":")[2])


def test_the_form_is_what_the_module_says() -> None:
    """Opened with nothing but the cipher: 12 bytes of nonce, then the ciphertext with its tag."""
    _, key_id, data = Sealer([NEW]).seal(PLAIN, PLACE).split(b":")
    raw = base64.urlsafe_b64decode(data)
    assert AESGCM(NEW).decrypt(raw[:12], raw[12:], PLACE.encode()) == PLAIN
    assert len(key_id) == 12


def test_the_newest_key_seals_and_every_key_opens() -> None:
    old, both = Sealer([OLD]), Sealer([NEW, OLD])
    before, after = old.seal(PLAIN, PLACE), both.seal(PLAIN, PLACE)
    assert both.open(before, PLACE) == both.open(after, PLACE) == PLAIN
    assert Sealer([NEW]).open(after, PLACE) == PLAIN
    assert not both.is_current(before)
    assert both.is_current(after)
    assert not both.is_current(PLAIN)


def test_a_key_that_is_gone_is_named_by_its_id_alone() -> None:
    old = Sealer([OLD])
    sealed = old.seal(PLAIN, PLACE)
    for without in (Sealer([NEW]), Sealer()):
        with pytest.raises(SealError) as caught:
            without.open(sealed, PLACE)
        assert str(caught.value) == f"the key {old.key_ids[0]} is missing"


def test_without_keys_everything_passes() -> None:
    sealer = Sealer()
    assert sealer.seal(PLAIN, PLACE) is PLAIN
    assert sealer.open(PLAIN, PLACE) is PLAIN
    assert sealer.is_current(PLAIN)
    assert not sealer.is_current(Sealer([NEW]).seal(PLAIN, PLACE))


@pytest.mark.parametrize("plain", [b"", b"{}", b"[]", b'"sealed1:"', b"null", b"true", b"false", b"-1", b" {}"])
def test_what_was_kept_before_there_was_a_key_is_read_as_it_is(plain: bytes) -> None:
    assert Sealer([NEW]).open(plain, PLACE) == plain


@pytest.mark.parametrize("place", ["lead_2/business", "lead_1/grant", "", "lead_1/business "])
def test_a_value_does_not_open_in_another_place(place: str) -> None:
    sealer = Sealer([NEW])
    with pytest.raises(SealError, match="altered, or belongs to another place"):
        sealer.open(sealer.seal(PLAIN, PLACE), place)


def test_no_altered_value_opens() -> None:
    sealer = Sealer([NEW])
    sealed = sealer.seal(PLAIN, PLACE)
    start = sealed.rindex(b":") + 1
    for index in range(start, len(sealed)):
        if sealed[index : index + 1] == b"=" or sealed[index + 1 : index + 2] == b"=":
            continue  # the last character before padding has bits that say nothing
        other = b"A" if sealed[index : index + 1] != b"A" else b"B"
        with pytest.raises(SealError) as caught:
            sealer.open(sealed[:index] + other + sealed[index + 1 :], PLACE)
        assert "Ada" not in str(caught.value)
        assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "stored",
    [
        b"sealed1:",
        b"sealed1::",
        b"sealed2:0123456789ab:AAAA",
        b"sealed1:short:AAAA",
        b"sealed1:ADA LOVELACE:AAAA",
        b"sealed1:\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff:AAAA",
    ],
)
def test_a_broken_form_is_an_error_that_shows_nothing(stored: bytes) -> None:
    with pytest.raises(SealError) as caught:
        Sealer([NEW]).open(stored, PLACE)
    assert "ADA" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"A", b"AAAA", b"!!!!", b"A" * 16, b"\xff"])
def test_broken_data_under_a_known_key_is_an_error(data: bytes) -> None:
    sealer = Sealer([NEW])
    with pytest.raises(SealError, match="altered"):
        sealer.open(b"sealed1:" + sealer.key_ids[0].encode() + b":" + data, PLACE)


def test_nothing_is_sealed_twice() -> None:
    for sealer in (Sealer([NEW]), Sealer()):
        with pytest.raises(SealError, match="already"):
            sealer.seal(Sealer([NEW]).seal(PLAIN, PLACE), PLACE)


@pytest.mark.parametrize("separator", [" ", "\n", ",", ", ", "\r\n\t"])
def test_keys_are_read_from_text_newest_first(separator: str) -> None:
    written = f" {separator.join(text(key) for key in (NEW, OLD))}\n"
    assert Sealer.from_text(written).key_ids == Sealer([NEW, OLD]).key_ids


def test_both_alphabets_of_base64_are_read() -> None:
    key = b"\xfb\xff" * 16
    assert Sealer.from_text(base64.urlsafe_b64encode(key).decode()).key_ids == Sealer([key]).key_ids


@pytest.mark.parametrize("nothing", [None, "", " \n", ","])
def test_no_text_is_no_keys(nothing: str | None) -> None:
    assert Sealer.from_text(nothing).key_ids == ()


@pytest.mark.parametrize(
    "wrong", [text(NEW[:31]), text(NEW + b"x"), "hunter2", text(NEW)[:-1], "ä" * 44, text(NEW) + "!"]
)
def test_a_key_that_is_none_is_told_by_its_place(wrong: str) -> None:
    with pytest.raises(SealError) as caught:
        Sealer.from_text(f"{text(OLD)} {wrong}")
    assert str(caught.value) == f"key 2 is not the base64 of {KEY_BYTES} bytes"
    assert caught.value.__cause__ is None


def test_the_same_key_twice_is_a_mistake() -> None:
    with pytest.raises(SealError, match="key 2 is there twice"):
        Sealer([NEW, NEW])


def test_keys_of_another_length_are_refused() -> None:
    with pytest.raises(SealError, match="key 1 is not 32 bytes long"):
        Sealer([b"short"])


def test_a_sealer_shows_no_key() -> None:
    shown = repr(Sealer([NEW, OLD]))
    assert shown == f"Sealer({', '.join(Sealer([NEW, OLD]).key_ids)})"
    assert text(NEW) not in shown


def test_without_the_package_a_key_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(SealError, match=r"install forecourt\[encryption\]"):
        Sealer([NEW])
    assert Sealer().seal(PLAIN, PLACE) == PLAIN
