"""Whether two payloads say the same: a digest of their canonical form.

Source: CONTRACTS.md section 6, `idempotency_key`; RFC 8785 (JSON Canonicalization Scheme).
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import rfc8785

__all__ = ["NotJSONError", "fingerprint", "is_plain"]

_CANONICAL_DEPTH: Final = 64
"""Nesting up to which the library, which recurses, is asked."""

_DEEPEST: Final = 10_000
"""Nesting at which a value is taken to contain itself."""

_EXACT: Final = 1 << 53
"""Up to here every integer is a double, and RFC 8785 writes it by its digits."""

_encode_in_order = msgspec.json.Encoder(order="deterministic").encode


class NotJSONError(ValueError):
    """A value that no JSON text has: a foreign type, a name that is not a string, an object inside itself."""


def fingerprint(business: Mapping[str, Any], plain: bool | None = None) -> str:
    """Return the SHA-256, in hex, of the canonical JSON (RFC 8785) of a payload.

    Order of members, white space and the spelling of a number do not matter: 26780 and 26780.0 are one number
    (JSON Schema 2020-12 says so), as are 0 and -0.0. Texts are compared code point by code point.

    RFC 8785 covers I-JSON only. A payload beyond it still has a fingerprint, over a form of our own that is
    never equal to a canonical one: integers that no double holds (compared exactly, so that near ones stay
    different), lone surrogates, NaN and infinities, nesting deeper than 64.

    `plain` is what `is_plain` says of it, where it was asked already. Raises NotJSONError for what is no JSON value at
    all, without repeating it.
    """
    try:
        if is_plain(business) if plain is None else plain:
            # Then the encoder's order and escapes are those of RFC 8785, at a twentieth of the library's time.
            return hashlib.sha256(_encode_in_order(business)).hexdigest()
    except UnicodeEncodeError:
        pass  # a lone surrogate
    try:
        canonical = rfc8785.dumps(_canonical(business, _CANONICAL_DEPTH))
    except _BeyondIJSONError:
        digest = hashlib.sha256(b"\0")
        for token in _tokens(business):
            digest.update(token)
        return digest.hexdigest()
    return hashlib.sha256(canonical).hexdigest()


def is_plain(value: Any, depth: int = _CANONICAL_DEPTH) -> bool:
    """Tell whether every JSON encoder writes this value alike, order apart.

    Plain are dicts with ASCII names, lists, texts, booleans, None and integers that every double holds, `depth` levels
    at the most: no float, whose spelling differs, and no name beyond ASCII, whose order does. Types count exactly.
    """
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True
    if kind is int:
        return bool(-_EXACT <= value <= _EXACT)
    if depth == 0:
        return False
    if kind is dict:
        for name, member in value.items():
            if type(name) is not str or not name.isascii():
                return False
            if type(member) is not str and not is_plain(member, depth - 1):
                return False
        return True
    if kind is list:
        return all(type(entry) is str or is_plain(entry, depth - 1) for entry in value)
    return False


class _BeyondIJSONError(Exception):
    """RFC 8785 has no form for this payload."""


def _canonical(value: Any, depth: int) -> Any:
    """Return `value` in the types that the library takes: plain dicts and lists, and numbers as doubles."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, int | float):
        return _double(value)
    if depth == 0:
        raise _BeyondIJSONError
    if isinstance(value, Mapping):
        return {_encodable(_name(name)): _canonical(member, depth - 1) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(entry, depth - 1) for entry in value]
    raise NotJSONError("a payload holds JSON values only")


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise NotJSONError("the names in a JSON object are strings")
    return name


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _BeyondIJSONError from None
    return text


def _double(number: float) -> float:
    try:
        double = float(number)
    except OverflowError:
        raise _BeyondIJSONError from None
    if double != number or math.isinf(double):  # rounding changed an integer, or NaN, which equals nothing
        raise _BeyondIJSONError
    return double


def _tokens(payload: Mapping[str, Any]) -> Iterator[bytes]:
    """Write any JSON value so that equal ones give equal bytes and others never do; without recursion."""
    stack: list[Iterator[bytes | object]] = [_parts(payload)]
    while stack:
        part = next(stack[-1], None)
        if part is None:
            stack.pop()
        elif isinstance(part, bytes):
            yield part
        else:
            assert isinstance(part, _Child)
            if len(stack) == _DEEPEST:
                raise NotJSONError("a JSON value does not contain itself")
            stack.append(_parts(part.value))


class _Child:
    """A value inside another, still to be written."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _parts(value: Any) -> Iterator[bytes | object]:
    if isinstance(value, Mapping):
        yield b"{"
        for name in sorted(map(_name, value)):
            yield json.dumps(name).encode("ascii") + b":"
            yield _Child(value[name])
            yield b","
        yield b"}"
    elif isinstance(value, list | tuple):
        yield b"["
        for entry in value:
            yield _Child(entry)
            yield b","
        yield b"]"
    else:
        yield _scalar(value)


def _scalar(value: object) -> bytes:
    if value is None or isinstance(value, bool | str):
        return json.dumps(value).encode("ascii")
    if isinstance(value, float):
        if not value.is_integer():
            return value.hex().encode("ascii")
        value = int(value)
    if isinstance(value, int):
        # Hexadecimal: Python limits how many digits it writes in decimal.
        return hex(value).encode("ascii")
    raise NotJSONError("a payload holds JSON values only")
