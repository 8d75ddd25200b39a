"""Passes MCP messages on to a dealer's endpoint over HTTP, for assistants that only start programs.

Nothing in a message is changed. What HTTP wants beside it is added: the headers that repeat the message, the revision
that the handshake agreed on, the session where a server insists on one. Answers come back as JSON or, from servers that
stream, as events, of which the answer is passed on. Source: MCP 2026-07-28 and 2025-11-25, Streamable HTTP.
"""

import asyncio
import http.client
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from forecourt import __version__
from forecourt.binding.json_text import MalformedJSONError, decode, encode
from forecourt.binding.mcp import request_headers

__all__ = ["Relay", "endpoint_of"]

_SECONDS: Final = 60.0
"""How long one answer may take, and how long its server may be silent."""
_LARGEST: Final = 32 << 20
_CHUNK: Final = 1 << 16
_FAILED: Final = -32603
_SCHEMES: Final = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}


class _NoAnswerError(Exception):
    """The dealer gave no MCP answer; the message says why, in our words."""


def endpoint_of(address: str) -> str:
    """Return the MCP endpoint of a dealer's address: itself if it ends in /mcp, else /mcp below it.

    Raises ValueError for what is no http or https address, or one with a password in it.
    """
    parts = urlsplit(address)
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise ValueError("not an http or https address")
    if parts.username is not None or parts.password is not None:
        raise ValueError("an address must not hold a user or a password")
    path = parts.path.rstrip("/")
    if not path.endswith("/mcp"):
        path += "/mcp"
    # The port is read here, so that a wrong one is told now.
    _ = parts.port
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


class Relay:
    """One dealer's endpoint. Several messages may be under way at once, each on a connection of its own.

    `headers` are credentials that go with every message; no answer leads them anywhere else, for none is followed.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        headers: Mapping[str, str] | None = None,
        seconds: float = _SECONDS,
        largest: int = _LARGEST,
    ) -> None:
        self._parts = urlsplit(endpoint)
        self._credentials = dict(headers or {})
        self._seconds = seconds
        self._largest = largest
        self._revision: str | None = None
        self._session: str | None = None
        self._lock = threading.Lock()
        self._order = asyncio.Lock()

    async def answer(self, line: bytes) -> bytes | None:
        """Pass a message on and return its answer, None where there is none.

        What comes after a handshake's message waits for it, since a server may insist on their order; other messages
        overtake one another. A failure on the way is answered as MCP's own, with the id of the message.
        """
        try:
            message = decode(line)
        except MalformedJSONError as error:
            return _failure(None, -32700, f"Parse error: {error}")
        request_id = message.get("id") if isinstance(message, dict) else None
        opening = request_id is None or message.get("method") == "initialize"
        try:
            async with self._order:
                if opening:
                    return await asyncio.to_thread(self._exchange, line, message)
            return await asyncio.to_thread(self._exchange, line, message)
        except _NoAnswerError as error:
            return None if request_id is None else _failure(request_id, _FAILED, str(error))

    def _exchange(self, line: bytes, message: Any) -> bytes | None:
        until = time.monotonic() + self._seconds
        connection = self._connection()
        try:
            target = urlunsplit(("", "", self._parts.path, self._parts.query, ""))
            connection.request("POST", target, line, self._headers(message))
            response = connection.getresponse()
            with self._lock:
                self._session = response.getheader("mcp-session-id") or self._session
            answer = self._read(response, message, until)
        except ssl.SSLCertVerificationError:
            raise _NoAnswerError("The dealer's certificate cannot be trusted") from None
        except TimeoutError:
            raise _NoAnswerError(f"The dealer did not answer within {self._seconds:g} seconds") from None
        except (OSError, http.client.HTTPException):
            raise _NoAnswerError("The dealer cannot be reached") from None
        finally:
            connection.close()
        if isinstance(message, dict) and message.get("method") == "initialize":
            self._agree(answer)
        return None if answer is None else encode(answer)

    def _connection(self) -> http.client.HTTPConnection:
        host = self._parts.hostname or ""
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, self._parts.port, timeout=self._seconds, context=context)
        return http.client.HTTPConnection(host, self._parts.port, timeout=self._seconds)

    def _headers(self, message: Any) -> dict[str, str]:
        headers = {
            **self._credentials,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "User-Agent": f"forecourt/{__version__}",
            **request_headers(message),
        }
        with self._lock:
            if self._revision is not None and "MCP-Protocol-Version" not in headers:
                headers["MCP-Protocol-Version"] = self._revision
            if self._session is not None:
                headers["Mcp-Session-Id"] = self._session
        return headers

    def _agree(self, answer: Any) -> None:
        try:
            revision = answer["result"]["protocolVersion"]
        except (KeyError, TypeError):
            return
        if isinstance(revision, str) and revision.isprintable() and revision.isascii():
            with self._lock:
                self._revision = revision

    def _read(self, response: http.client.HTTPResponse, message: Any, until: float) -> Any:
        """Return the answer to the message; what else comes on a stream (progress, logs) is passed over."""
        request_id = message.get("id") if isinstance(message, dict) else None
        kind = (response.getheader("content-type") or "").partition(";")[0].strip().lower()
        if kind == "text/event-stream" and response.status == http.client.OK:
            for data in _events(_lines(self._chunks(response, until))):
                said = _decoded(data)
                if isinstance(said, dict) and "method" not in said and said.get("id") == request_id:
                    return said
            raise _NoAnswerError("The dealer ended its stream without an answer")
        body = b"".join(self._chunks(response, until))
        if request_id is None:
            return None
        said = _decoded(body) if kind == "application/json" and body else None
        if not isinstance(said, dict) or ("result" not in said and "error" not in said):
            raise _NoAnswerError(f"The dealer answered with HTTP {response.status} and no MCP message")
        # What was refused before it was read came without an id; the assistant waits for the one that it sent.
        return {**said, "id": request_id} if said.get("id") is None else said

    def _chunks(self, response: http.client.HTTPResponse, until: float) -> Iterator[bytes]:
        """Yield the body as it comes: looked at after each piece, so that a server that drips is not waited for."""
        read = 0
        while chunk := response.read1(_CHUNK):
            read += len(chunk)
            if read > self._largest:
                raise _NoAnswerError(f"The dealer's answer is longer than {self._largest} bytes")
            if time.monotonic() > until:
                raise TimeoutError
            yield chunk


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of a body; what comes after the last break is one, too."""
    open_pieces: list[bytes] = []
    for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            yield b"".join((*open_pieces, piece))
            open_pieces = []
        open_pieces.append(rest)
    yield b"".join(open_pieces)


def _events(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the data of each server-sent event (HTML, section 9.2)."""
    data: list[bytes] = []
    for line in lines:
        stripped = line.rstrip(b"\r")
        if stripped.startswith(b"data:"):
            data.append(stripped[5:].removeprefix(b" "))
        elif not stripped and data:
            yield b"\n".join(data)
            data = []
    if data:
        yield b"\n".join(data)


def _decoded(text: bytes) -> Any:
    try:
        return decode(text)
    except MalformedJSONError:
        raise _NoAnswerError("The dealer's answer is not JSON") from None


def _failure(request_id: Any, code: int, message: str) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}})
