"""JSON from strangers: whole numbers exact, everything bounded, one kind of failure."""

import json
from typing import Any, NoReturn

__all__ = ["decode", "encode"]


def decode(text: bytes | str) -> Any:
    """Return the value of a JSON text; ValueError for whatever is none.

    Integers stay integers of any size that JSON can carry; NaN, Infinity, invalid UTF-8, numbers of thousands of digits
    and nesting beyond all sense are refused.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def encode(value: Any) -> bytes:
    """Return a value as compact JSON; ValueError for NaN and Infinity, which JSON does not have."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")
