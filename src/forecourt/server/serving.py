"""How the application is put on a socket: uvicorn with uvloop and httptools, and what those leave open."""

import asyncio
import logging
from typing import Any, Final, cast

import uvicorn

from forecourt.server.app import Application
from forecourt.server.protocol import BoundedProtocol

__all__ = ["DRAIN_SECONDS", "HEADER_SECONDS", "DealerProtocol", "uvicorn_config"]

HEADER_SECONDS: Final = 10.0
"""How long a request's headers may take to arrive before the connection is closed."""
DRAIN_SECONDS: Final = 30
"""How long requests that are under way may take after a signal to stop."""
_MUCH: Final = 16_384
_PIECES: Final = 16
"""How long a piece of an answer is that is not held back, and how many shorter ones are."""


class _JoinedWrites:
    """A transport that sends what is written within one turn of the event loop together.

    uvicorn writes the head of an answer and its body one after the other, and each would be a call of the system that
    wakes the client. Everything but writing is the transport's own.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send `data` at the next turn of the loop, with what is written until then; at once when that is much."""
        if not self._held:
            self._loop.call_soon(self._send)
        self._held.append(data)
        if len(data) >= _MUCH or len(self._held) >= _PIECES:
            self._send()

    def _send(self) -> None:
        held, self._held = self._held, []
        if held and not self._transport.is_closing():
            self._transport.write(b"".join(held))

    def get_write_buffer_size(self) -> int:
        """Return how many bytes are not on their way yet."""
        return sum(map(len, self._held)) + self._transport.get_write_buffer_size()

    def write_eof(self) -> None:
        """Send what was written, then say that there is no more."""
        self._send()
        self._transport.write_eof()

    def close(self) -> None:
        """Send what was written, then close."""
        self._send()
        self._transport.close()


class DealerProtocol(BoundedProtocol):
    """HTTP/1.1 within its bounds; headers that never end, and clients that never read, are not waited for."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request's headers."""
        super().connection_made(cast("asyncio.Transport", _JoinedWrites(transport, self.loop)))
        self._headers_since: float | None = self.loop.time()
        self._watch = self.loop.call_later(HEADER_SECONDS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._watch.cancel()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Begin to wait for this request's headers."""
        self._headers_since = self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop waiting until the next request begins."""
        self._headers_since = None
        super().on_headers_complete()

    def shutdown(self) -> None:
        """Close the connection when nothing is under way on it; a request whose headers are arriving is."""
        if self.scope is None or (self.cycle is not None and self.cycle.scope is self.scope):
            super().shutdown()

    def _look(self) -> None:
        # One timer a connection, looked at now and then, costs less than one a request.
        waited = 0.0 if self._headers_since is None else self.loop.time() - self._headers_since
        if self.overdue():
            self.refused("slow_reader")
            self.transport.abort()
            return
        if waited >= HEADER_SECONDS and not self.transport.is_closing():
            self.refused("slow_headers")
            self.transport.close()
        # Until the connection is lost: what is closed may still wait for its client to read.
        self._watch = self.loop.call_later(
            HEADER_SECONDS - waited if waited < HEADER_SECONDS else HEADER_SECONDS, self._look
        )


class _NoInterruptions(logging.Filter):
    """Lets through everything but ends that are no faults: by a second signal, and by clients that hung up."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, RuntimeError):
            # What uvloop says of a connection that was reset in this moment; every client could fill the log with it.
            return "handler is closed" not in str(error)
        return not isinstance(error, asyncio.CancelledError)


_NO_INTERRUPTIONS: Final = _NoInterruptions()


def uvicorn_config(app: Application, **changes: Any) -> uvicorn.Config:
    """Return the settings under which the application is served; `changes` are for tests and benchmarks.

    Forwarding headers are believed from `server.trusted_proxies` only: from anybody else they would let a client choose
    the address that it is counted by.
    """
    proxies = list(app.deployment.config.server.trusted_proxies)
    settings: dict[str, Any] = {
        "http": DealerProtocol,
        "loop": "auto",
        "ws": "none",
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "date_header": False,
        "proxy_headers": bool(proxies),
        "forwarded_allow_ips": proxies or None,
        "timeout_graceful_shutdown": DRAIN_SECONDS,
        "lifespan": "on",
        **changes,
    }
    app.deployment.connections.fit()
    config = uvicorn.Config(app, **settings)
    logging.getLogger("uvicorn.error").addFilter(_NO_INTERRUPTIONS)
    return config
