"""Reading JSON from strangers: strict, bounded, and the same on every binding.

Refused: what RFC 8259 does not allow (NaN, trailing text, bad UTF-8), what two readers could take differently
(a member twice in one object; RFC 8259 section 4, RFC 7493 section 2.3), text that cannot be written back (lone
surrogates), numbers beyond a double, and nesting deeper than any payload of ours.
"""

import json
from typing import Any, Final

import msgspec

__all__ = ["MalformedJSONError", "decode", "encode"]

_MAX_DEPTH: Final = 100
_SPACE: Final = b" \t\r\n"

_strict = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode


class MalformedJSONError(ValueError):
    """The bytes are not JSON that is read here; the message says what is wrong and shows nothing of them."""


def decode(body: bytes) -> Any:
    """Return the JSON value of `body` (UTF-8, with or without a byte order mark), or raise MalformedJSONError.

    Integers of any size that Python reads stay integers, other numbers are floats.
    """
    if body.startswith(b"\xef\xbb\xbf"):
        body = body[3:]
    if not body or body.isspace():
        raise MalformedJSONError("the body is empty")
    try:
        value = _strict.decode(body)
        # What reads like the value written again, spaces aside, has no member twice. Nor has a text with no more
        # colons than the value has members, since every member has one and strings may hold more. Otherwise the
        # slower reader, which sees every member, has to look.
        if body.count(b"{") + body.count(b"[") <= _MAX_DEPTH:
            again = encode(value)
            if again == body or again.translate(None, _SPACE) == body.translate(None, _SPACE):
                return value
        if body.count(b":") == _members(value):
            return value
        return _reader.decode(body.decode())
    except MalformedJSONError:
        raise
    except RecursionError:
        raise MalformedJSONError(f"the body is nested more than {_MAX_DEPTH} deep") from None
    except ValueError:
        raise MalformedJSONError(_why_not(body)) from None


def encode(value: Any) -> bytes:
    """Return `value` as compact JSON; integers keep all their digits."""
    try:
        return _encode(value)
    except (OverflowError, ValueError):
        # msgspec writes integers of 64 bits; a larger one (an id that came in) is written by the standard library.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _members(value: Any) -> int:
    """Count the members of all objects in `value`, by level; MalformedJSONError for too many levels."""
    count = 0
    level = [value]
    for _ in range(_MAX_DEPTH):
        deeper: list[Any] = []
        for inner in level:
            if type(inner) is dict:
                count += len(inner)
                inner = inner.values()
            elif type(inner) is not list:
                continue
            deeper += [part for part in inner if type(part) is dict or type(part) is list]
        if not deeper:
            return count
        level = deeper
    raise MalformedJSONError(f"the body is nested more than {_MAX_DEPTH} deep")


def _why_not(body: bytes) -> str:
    try:
        body.decode()
    except UnicodeDecodeError:
        return "the body is not UTF-8"
    return "the body is not well-formed JSON"


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise MalformedJSONError("an object has the same member twice")
    return found


_reader = json.JSONDecoder(object_pairs_hook=_unique)
