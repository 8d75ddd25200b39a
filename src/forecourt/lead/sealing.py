"""Personal fields encrypted at rest: AES-256-GCM, bound to the place where they are kept, with keys that can change.

A sealed value is ASCII: `sealed1:KEYID:DATA`, where KEYID names the key without giving it away and DATA is base64url of
a random nonce of 96 bits and the ciphertext with its tag (NIST SP 800-38D). JSON never begins with the letter s, so
that what was kept before there was a key is told from what is sealed.
"""

import base64
import binascii
import os
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

__all__ = ["KEY_BYTES", "SealError", "Sealer"]

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_PREFIX: Final = b"sealed1:"
_FAMILY: Final = re.compile(rb"sealed[0-9]+:")
_ID_LENGTH: Final = 12
_SPLIT: Final = re.compile(r"[\s,]+")


class SealError(Exception):
    """Something cannot be sealed or opened. The message holds neither data nor keys; the id of a key is no secret."""


class Sealer:
    """Seals with the first of its keys and opens with any of them; without keys everything passes as it is.

    May be used by several threads at once.
    """

    def __init__(self, keys: Sequence[bytes] = ()) -> None:
        """Take keys of `KEY_BYTES` random bytes, the newest first. Raises SealError."""
        for number, key in enumerate(keys, 1):
            if len(key) != KEY_BYTES:
                raise SealError(f"key {number} is not {KEY_BYTES} bytes long")
        self._ciphers: dict[str, Any] = {}
        for number, key in enumerate(keys, 1):
            key_id = _id_of(key)
            if key_id in self._ciphers:
                raise SealError(f"key {number} is there twice")
            self._ciphers[key_id] = _cipher(key)
        self._newest = next(iter(self._ciphers), None)

    @classmethod
    def from_text(cls, text: str | None) -> "Sealer":
        """Read keys in base64, the newest first, separated by spaces, lines or commas; None or blank is no keys.

        Raises SealError, which says which key is wrong and repeats none.
        """
        keys = []
        for number, part in enumerate(filter(None, _SPLIT.split(text or "")), 1):
            try:
                key = base64.b64decode(part.replace("-", "+").replace("_", "/"), validate=True)
            except (binascii.Error, ValueError):
                key = b""
            if len(key) != KEY_BYTES:
                raise SealError(f"key {number} is not the base64 of {KEY_BYTES} bytes")
            keys.append(key)
        return cls(keys)

    def __repr__(self) -> str:
        """Show which keys there are by their ids."""
        return f"Sealer({', '.join(self._ciphers)})"

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The ids of the keys, the one that seals first."""
        return tuple(self._ciphers)

    @property
    def beginning(self) -> bytes:
        """What everything begins with that the newest key has sealed. Raises SealError where there is no key."""
        if self._newest is None:
            raise SealError("there is no key to seal with")
        return _PREFIX + self._newest.encode() + b":"

    def seal(self, plain: bytes, place: str) -> bytes:
        """Return `plain` encrypted for `place`, which names the row and field that keep it; without keys as it is.

        Two calls never give the same. Raises SealError for what looks like a sealed value: JSON never does.
        """
        if _FAMILY.match(plain):
            raise SealError("what is to be sealed is sealed already")
        if self._newest is None:
            return plain
        nonce = os.urandom(_NONCE_BYTES)
        sealed: bytes = self._ciphers[self._newest].encrypt(nonce, plain, place.encode())
        return _PREFIX + self._newest.encode() + b":" + base64.urlsafe_b64encode(nonce + sealed)

    def open(self, stored: bytes, place: str) -> bytes:
        """Return what was sealed for `place`; what was never sealed passes as it is.

        Raises SealError when the key is missing, and when the value was altered or belongs to another place.
        """
        if not _FAMILY.match(stored):
            return stored
        key_id, _, data = stored.removeprefix(_PREFIX).partition(b":")
        if not stored.startswith(_PREFIX) or len(key_id) != _ID_LENGTH:
            raise SealError("a sealed value has a form that is not known")
        cipher = self._ciphers.get(key_id.decode("ascii", "replace"))
        if cipher is None:
            raise SealError(f"the key {_shown(key_id)} is missing")
        from cryptography.exceptions import InvalidTag

        try:
            raw = base64.b64decode(data, altchars=b"-_", validate=True)
            plain: bytes = cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], place.encode())
        except (InvalidTag, ValueError):
            raise SealError("a sealed value was altered, or belongs to another place") from None
        return plain

    def is_current(self, stored: bytes) -> bool:
        """Tell whether a value is as `seal` would make it now: by the newest key, or unsealed where there is none."""
        if self._newest is None:
            return not _FAMILY.match(stored)
        return stored.startswith(self.beginning)


def _id_of(key: bytes) -> str:
    """Return a key's id: a part of a hash of it, which says nothing about 32 random bytes."""
    return sha256(b"forecourt sealing key id\0" + key).hexdigest()[:_ID_LENGTH]


def _shown(key_id: bytes) -> str:
    """Return the id in a stored value if it is one, so that nothing else of the value is shown."""
    text = key_id.decode("ascii", "replace")
    return text if re.fullmatch(r"[0-9a-f]+", text) else "of that value"


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise SealError("encryption needs the package cryptography: install forecourt[encryption]") from error
    return AESGCM(key)
