"""Cursors: where a search stands, as text that only this deployment can have written.

A cursor holds the place it continues after, the generation of the inventory in whose order that place is, and when it
ends to be good. It is signed, together with what it belongs to
(the normalised request, the tenant and the caller), by BLAKE2b with a key (RFC 7693) that the store keeps for all
processes; it names its key, so that keys can be exchanged while cursors live. Whatever is wrong with one, the answer is
the same INVALID_CURSOR, which does not say what ("Errors and retries", section "Important distinctions").
"""

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from forecourt.errors import AAPError, Problem
from forecourt.model import Place

__all__ = ["CURSOR_PURPOSE", "CursorKey", "Cursors", "Standing", "invalid_cursor", "new_key_bytes"]

CURSOR_PURPOSE: Final = "cursor"
"""What the keys are called in the store."""

LIFETIME_SECONDS: Final = 30 * 60
_SIGNATURE_BYTES: Final = 16
_URL_ALPHABET: Final = bytes.maketrans(b"+/", b"-_")


class CursorKey(Protocol):
    """A signing key and its name."""

    @property
    def key_id(self) -> str:
        """The name that cursors carry, at most 16 ASCII characters."""
        ...

    @property
    def value(self) -> bytes:
        """The key itself, 32 random bytes."""
        ...


def new_key_bytes() -> bytes:
    """Return a key for signing."""
    return os.urandom(32)


class Standing(NamedTuple):
    """Where a walk stands: after `place`, in the order that the inventory had at `generation`, when the walk began."""

    place: Place
    generation: int


class _Content(msgspec.Struct, array_like=True):
    key_id: str
    expires_at: int
    listing_id: str
    value: str | int | float | None
    generation: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Content).decode


class Cursors:
    """Signs with the first of `keys` and reads what any of them signed."""

    def __init__(self, keys: Sequence[CursorKey], lifetime_seconds: int = LIFETIME_SECONDS) -> None:
        self._newest = keys[0]
        self._values = {key.key_id: key.value for key in keys}
        self._lifetime = lifetime_seconds

    def issue(self, standing: Standing, *, request: str, tenant: str, caller: str | None, now: float) -> str:
        """Return the cursor that continues from where a walk stands; `now` is in seconds since 1970."""
        key, (place, generation) = self._newest, standing
        expires_at = int(now) + self._lifetime
        content = _encode(_Content(key.key_id, expires_at, place.listing_id, place.value, generation))
        signature = _sign(key.value, content, (request, tenant, caller))
        return _spelled(signature + content)

    def resume(self, cursor: str, *, request: str, tenant: str, caller: str | None, now: float) -> Standing:
        """Return where `cursor` continues from; AAPError INVALID_CURSOR unless all of it fits."""
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            signature, signed = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
            content = _decode(signed)
            value = self._values[content.key_id]
        except (binascii.Error, ValueError, KeyError, RecursionError):
            raise invalid_cursor() from None
        # A second spelling of the same bytes (unused bits, padding) is no cursor of ours either.
        if (
            not hmac.compare_digest(signature, _sign(value, signed, (request, tenant, caller)))
            or _spelled(raw) != cursor
            or content.expires_at <= now
        ):
            raise invalid_cursor()
        return Standing(Place(content.listing_id, content.value), content.generation)

    def lacks_key_of(self, cursor: str) -> bool:
        """Tell whether `cursor` has the shape of one, and a key that is not among these: perhaps a newer one."""
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            return _decode(raw[_SIGNATURE_BYTES:]).key_id not in self._values
        except (binascii.Error, ValueError, RecursionError):
            return False


def _spelled(raw: bytes) -> str:
    """Return bytes in the alphabet for URLs (RFC 4648 section 5), without padding."""
    return binascii.b2a_base64(raw, newline=False).rstrip(b"=").translate(_URL_ALPHABET).decode()


def _sign(key: bytes, content: bytes, scope: tuple[str, str, str | None]) -> bytes:
    """Sign a cursor's content together with what it belongs to, which it need not carry: whoever resumes names it.

    Both are MessagePack, which says where it ends, so no two pairs of them are the same bytes.
    """
    return hashlib.blake2b(content + _encode(scope), key=key, digest_size=_SIGNATURE_BYTES).digest()


def invalid_cursor() -> AAPError:
    """Return the one refusal of a cursor, whatever is wrong with it."""
    return AAPError(
        "INVALID_CURSOR",
        problems=[Problem("/pagination/cursor", "cursor", "is expired, or was not made for this search")],
    )
