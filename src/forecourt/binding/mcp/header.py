"""What MCP's headers say: the types that a client sends and takes, and names in a form that any text fits.

Source: MCP 2026-07-28, Streamable HTTP, sections "Sending messages" and "Value encoding".
"""

import base64
import binascii
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

__all__ = ["HEADERS", "NAMED", "decoded_name", "encoded_name", "is_json", "takes_json"]

HEADERS: Final = (
    b"content-type",
    b"accept",
    b"mcp-protocol-version",
    b"mcp-method",
    b"mcp-name",
    b"host",
    b"origin",
)
"""The request headers that this binding and its endpoint read, in lower case."""

NAMED: Final[Mapping[str, str]] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose Mcp-Name header repeats a member of their params."""

_LONGEST: Final = 300
"""How long a header may be that is remembered."""

_BEGIN: Final = "=?base64?"
_END: Final = "?="


def is_json(content_type: str | None) -> bool:
    """Tell whether a Content-Type is JSON in UTF-8, the one form of request."""
    return _is_json(content_type) if len(content_type or "") <= _LONGEST else False


def takes_json(accept: str | None) -> bool:
    """Tell whether an Accept header takes JSON; one that is absent takes everything (RFC 9110 section 12.5.1)."""
    # What is remembered stays small: nobody fills the memory with headers.
    return _takes_json(accept) if len(accept or "") <= _LONGEST else _takes_json.__wrapped__(accept)


@lru_cache(maxsize=128)
def _is_json(content_type: str | None) -> bool:
    essence, _, parameters = (content_type or "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    return essence.strip().lower() == "application/json" and charset in ("", "utf-8", "utf8")


@lru_cache(maxsize=128)
def _takes_json(accept: str | None) -> bool:
    if accept is None:
        return True
    types = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return not types.isdisjoint(("application/json", "application/*", "*/*"))


def decoded_name(value: str | None) -> str | None:
    """Return the text of an Mcp-Name header, None when it is absent or its Base64 form is broken.

    Texts that no header can carry come as `=?base64?...?=`, in UTF-8.
    """
    if value is None or not (value.startswith(_BEGIN) and value.endswith(_END) and len(value) >= len(_BEGIN + _END)):
        return value
    encoded = value[len(_BEGIN) : -len(_END)]
    try:
        plain = base64.b64decode(encoded, validate=True)
        # Two spellings of one name would let an intermediary see another name than we do.
        return plain.decode() if base64.b64encode(plain).decode() == encoded else None
    except (binascii.Error, ValueError):
        return None


def encoded_name(text: str) -> str:
    """Return a text as an Mcp-Name header carries it."""
    plain = text.isascii() and text.isprintable() and text == text.strip()
    if plain and not (text.startswith(_BEGIN) and text.endswith(_END)):
        return text
    return f"{_BEGIN}{base64.b64encode(text.encode()).decode()}{_END}"
