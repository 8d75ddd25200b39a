"""One MCP message: JSON-RPC 2.0, in either of the two ways in which MCP travels.

Up to revision 2025-11-25 a client begins with `initialize`, and a request says nothing of itself ("handshake" here).
From 2026-07-28 on each request stands alone ("single" here): `params._meta` carries the revision and the client's
capabilities, and over HTTP the headers repeat the revision, the method and the name of what is called. Source: MCP
2026-07-28, Base protocol and Streamable HTTP, sections on headers; MCP 2025-11-25, Lifecycle and Transports.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from forecourt.binding.mcp.header import NAMED, decoded_name, encoded_name

__all__ = [
    "HANDSHAKE_REVISIONS",
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "RESOURCE_NOT_FOUND",
    "SINGLE_REVISIONS",
    "UNSUPPORTED_VERSION",
    "ProtocolError",
    "Request",
    "RequestId",
    "check_single",
    "is_single",
    "read_request",
    "request_headers",
]

RequestId = str | int | None

HANDSHAKE_REVISIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""What `initialize` can agree on, newest first."""
SINGLE_REVISIONS: Final = ("2026-07-28",)
"""What a request can say of itself."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
"""Up to 2025-11-25 only; later revisions say INVALID_PARAMS."""
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022

_META: Final = "io.modelcontextprotocol/"
_META_VERSION: Final = f"{_META}protocolVersion"
_META_CAPABILITIES: Final = f"{_META}clientCapabilities"
_META_CLIENT: Final = f"{_META}clientInfo"


class ProtocolError(Exception):
    """MCP itself failed: a JSON-RPC error. Its message is ours, word for word, and holds nothing of the request."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code = code
        self.message = message
        self.data = data
        super().__init__(code, message)


class Request(msgspec.Struct, frozen=True):
    """A well-formed request. `single` tells whether it stands alone (2026-07-28)."""

    id: str | int
    method: str
    params: dict[str, Any]
    single: bool


def is_single(message: Any, version: str | None) -> bool:
    """Tell which of the two ways a message came by, from the version header and, without one, from its own `_meta`."""
    if version is not None:
        # A revision of no known kind is told so by the newer rules.
        return version not in HANDSHAKE_REVISIONS
    try:
        return _META_VERSION in message["params"]["_meta"]
    except (KeyError, TypeError):
        return False


def read_request(message: Any, *, single: bool) -> Request | None:
    """Return the request in a JSON value, None when it is a message that gets no answer. Raises ProtocolError.

    Nothing is asked of a client by us, so a response that it posts answers nothing; the older revisions take it in.
    """
    if not isinstance(message, dict):
        raise ProtocolError(INVALID_REQUEST, "The body must be one JSON-RPC request object; there are no batches")
    if message.get("jsonrpc") != "2.0":
        raise ProtocolError(INVALID_REQUEST, 'The member jsonrpc must be "2.0"')
    method, params = message.get("method"), message.get("params")
    if "method" not in message and not single and ("result" in message or "error" in message):
        return None
    if not isinstance(method, str):
        raise ProtocolError(INVALID_REQUEST, "The member method must be a string")
    if params is not None and not isinstance(params, dict):
        raise ProtocolError(INVALID_REQUEST, "The member params must be an object")
    if "id" not in message:
        return None
    id = message["id"]  # noqa: A001 - the member's name
    if type(id) is not str and type(id) is not int:
        raise ProtocolError(INVALID_REQUEST, "The member id must be a string or an integer")
    return Request(id, method, params or {}, single)


def check_single(request: Request, headers: Mapping[bytes, str] | None) -> None:
    """Check what a request says of itself, and its headers against it; ProtocolError for the first that is wrong.

    `headers` is None where there are none: on standard input.
    """
    meta = request.params.get("_meta")
    if not isinstance(meta, dict):
        raise ProtocolError(
            INVALID_PARAMS, f"params._meta must be an object with {_META_VERSION} and {_META_CAPABILITIES}"
        )
    missing = [key for key in (_META_VERSION, _META_CAPABILITIES) if key not in meta]
    if missing:
        raise ProtocolError(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}")
    version = meta[_META_VERSION]
    if headers is not None:
        _check_headers(request, version, headers)
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, f"{_META_VERSION} must be a string")
    check_version(version)
    if not isinstance(meta[_META_CAPABILITIES], dict):
        raise ProtocolError(INVALID_PARAMS, f"{_META_CAPABILITIES} must be an object")
    client = meta.get(_META_CLIENT)
    if client is not None and not is_implementation(client):
        raise ProtocolError(INVALID_PARAMS, f"{_META_CLIENT} must be an object with a name and a version")


def check_version(version: str) -> None:
    """Refuse a revision that no request can have here; the data says which ones can."""
    if version not in SINGLE_REVISIONS:
        # The revision that was asked for comes back, as the error's schema wants; no more of it than a revision needs.
        data = {"supported": list(SINGLE_REVISIONS), "requested": version[:64]}
        raise ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def is_implementation(value: Any) -> bool:
    """Tell whether a value names an implementation: `clientInfo`, in either kind of revision."""
    return isinstance(value, dict) and isinstance(value.get("name"), str) and isinstance(value.get("version"), str)


def request_headers(message: Any) -> dict[str, str]:
    """Return the headers that a client sends beside a message that says its own revision; none beside another.

    `message` is what is about to be sent, whatever it is; nothing in it can break a header.
    """
    try:
        version = message["params"]["_meta"][_META_VERSION]
        method = message["method"]
        named = message["params"].get(NAMED.get(method, ""))
    except (AttributeError, KeyError, TypeError):
        return {}
    if not (isinstance(version, str) and isinstance(method, str)):
        return {}
    headers = {"MCP-Protocol-Version": encoded_name(version), "Mcp-Method": encoded_name(method)}
    if isinstance(named, str):
        headers["Mcp-Name"] = encoded_name(named)
    return headers


def _check_headers(request: Request, version: Any, headers: Mapping[bytes, str]) -> None:
    if headers.get(b"mcp-protocol-version") != version or version is None:
        raise ProtocolError(
            HEADER_MISMATCH, f"The header MCP-Protocol-Version must be there and equal {_META_VERSION} in params._meta"
        )
    if headers.get(b"mcp-method") != request.method:
        raise ProtocolError(HEADER_MISMATCH, "The header Mcp-Method must be there and equal the member method")
    member = NAMED.get(request.method)
    if member is not None:
        named = request.params.get(member)
        if named is not None and decoded_name(headers.get(b"mcp-name")) != named:
            raise ProtocolError(HEADER_MISMATCH, f"The header Mcp-Name must be there and equal params.{member}")
