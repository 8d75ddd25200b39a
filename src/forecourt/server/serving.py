"""How the application is put on a socket: uvicorn with uvloop and httptools, and what those leave open."""

import asyncio
import logging
from typing import Any, Final

import uvicorn

from forecourt.server.app import Application
from forecourt.server.protocol import BoundedProtocol

__all__ = ["DRAIN_SECONDS", "HEADER_SECONDS", "DealerProtocol", "uvicorn_config"]

HEADER_SECONDS: Final = 10.0
"""How long a request's headers may take to arrive before the connection is closed."""
DRAIN_SECONDS: Final = 30
"""How long requests that are under way may take after a signal to stop."""


class DealerProtocol(BoundedProtocol):
    """HTTP/1.1 within its bounds; headers that never end, and clients that never read, are not waited for."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request's headers."""
        super().connection_made(transport)
        self._headers_since = self.loop.time()
        self._watch = self.loop.call_later(HEADER_SECONDS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._watch.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection when nothing is under way on it; a request whose headers are arriving is."""
        if not self._in_head:
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
