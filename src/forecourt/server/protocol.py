"""HTTP/1.1 as uvicorn speaks it over httptools, with bounds: on heads, on what waits, and on how long anything takes.

httptools keeps a header that never ends, uvicorn queues whatever a client sends ahead, and neither ever gives up on a
client that reads nothing. Nothing that a client sent is said again in a refusal.
"""

import asyncio
import re
import time
from functools import lru_cache, partial
from typing import Any, Final, cast
from urllib.parse import unquote

import httptools
import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from forecourt.server.app import Application
from forecourt.server.exchange import EXCHANGE, Exchange
from forecourt.server.room import ARRIVED, CROWDED

__all__ = ["BoundedProtocol"]

MAX_TARGET: Final = 8 * 1024
"""Longest request target, in bytes (RFC 9112 section 3 asks for 8,000 at least)."""
MAX_HEAD: Final = 32 * 1024
"""Longest head of a request, target and headers together, in bytes."""
MAX_HEADERS: Final = 100
MAX_AHEAD: Final = 16
"""How many requests may wait on one connection for the answer to the one before them."""
WRITE_SECONDS: Final = 30.0
"""How long an answer may stay unread, or a connection that is closed may take to end."""
LINGER_SECONDS: Final = 1.0
"""How long what a refused client still sends is thrown away, so that it hears the refusal."""
MOST_LINGERING: Final = 64
"""How many refused connections are waited for at a time; further ones are closed at once."""

_SHORT: Final = 128
"""How long targets are that are remembered, in bytes."""

_MALFORMED: Final = (400, "malformed", b"Invalid HTTP request received.\n")
_TARGET: Final = (414, "target", b"The request's target is too long.\n")
_HEAD: Final = (431, "headers", b"The request's headers are too many or too long.\n")
_CODING: Final = (501, "coding", b"The only transfer coding here is chunked.\n")
_VERSION: Final = (505, "version", b"HTTP/1.1 and HTTP/1.0 are spoken here.\n")
_METHOD: Final = (501, "method", b"There is no such method here.\n")
_AHEAD: Final = (400, "ahead", b"Too many requests without waiting for an answer.\n")
_HOST: Final = re.compile(rb"[A-Za-z0-9._~!$&'()*+,;=:%\[\]-]*")
"""What a host and a port are written with (RFC 3986 section 3.2.2)."""
_CROWDED: Final = {
    "connections_per_client": (429, b"Too many connections from this address.\n"),
    "connections": (503, b"Too many connections.\n"),
}


class _RefusedError(Exception):
    """Leaves the parser; what is said is in `_refusal` by then."""


@lru_cache(1024)
def _target(url: bytes) -> tuple[str, bytes, bytes]:
    """Return a target's path, decoded and as it came, and its query."""
    parsed = httptools.parse_url(url)
    path = parsed.path.decode("ascii")
    return unquote(path) if "%" in path else path, parsed.path, parsed.query or b""


class BoundedProtocol(HttpToolsProtocol):
    """One connection.

    A request that offers an upgrade (JDK clients offer h2c with every plain request) is answered as it is, as RFC 9110
    section 7.8 allows. httptools would end HTTP there and throw the body away, so it is given the head once more,
    without the offer.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._book = cast("Application", config.app).deployment.connections
        self._asgi_version = config.asgi_version
        proxied = config.loaded_app
        self._trusted = proxied.trusted_hosts if isinstance(proxied, ProxyHeadersMiddleware) else None
        self._address = ""
        self._counted = False
        self._deaf = False
        """Whether nothing more is read: the connection ends."""
        self._refusal: tuple[int, str, bytes] | None = None
        self._in_head = False
        self._in_message = False
        self._began_here = False
        """Whether the message began in the packet that is being read."""
        self._packet = 0
        self._head_bytes = 0
        """Bytes of packets that held nothing but this head."""
        self._quiet_bytes = 0
        """Bytes of packets since the head that brought no byte of the body."""
        self._offers = False
        self._headers_since: float | None = None
        """Since when headers are waited for, None while none are."""
        self._idle_since: float | None = None
        """Since when nothing is under way, None while something is."""
        self._idle_watch: asyncio.TimerHandle | None = None
        self._running: RequestResponseCycle | None = None
        self._paused_at: float | None = None
        self._closing_at: float | None = None

    # From the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection in, or say that there is no room for it."""
        super().connection_made(self._book.departures.transport(transport))
        self._address = self.client[0] if self.client else ""
        word = self._book.enter(self, self._address)
        if word is None:
            self._counted = True
        else:
            status, text = _CROWDED[word]
            self._refuse(status, word, text, retry_after=1)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the room back."""
        if self._idle_watch is not None:
            self._idle_watch.cancel()
        self._book.lingering.discard(self)
        if self._counted:
            self._counted = False
            self._book.leave(self, self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what came."""
        if self._deaf:
            return
        self._packet = len(data)
        self._began_here = False
        if self._in_message:
            self._quiet_bytes += len(data)
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as offer:
                # Met once for each head that offers one: the head that is put before the rest has no offer in it.
                data = self._head_without_offer() + data[offer.args[0] :]
                continue
            except httptools.HttpParserError:
                self._refuse(*(self._refusal or _MALFORMED))
                return
            break
        if self._in_head:
            if not self._began_here:
                self._head_bytes += len(data)
                if self._head_bytes > MAX_HEAD:
                    self._refuse(*_HEAD)
        elif self._quiet_bytes > MAX_HEAD + self._packet:
            # Extensions of chunks, or trailers, without end.
            self._refuse(*_MALFORMED)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Take it that the client sends no more; whether the connection stays open, for answers that are due.

        Who shuts its side down after a request (`nc -N`, some proxies) waits for the answer all the same.
        """
        self._deaf = True
        if not self.transport.can_write_eof():
            # TLS, which has no half of a connection.
            return False
        cycle = self.cycle
        in_body = self._in_message and not self._in_head
        if cycle is None or cycle.response_complete or self._gives_up(cycle, in_body):
            # Nothing is due, or nothing but a request that will never be whole.
            self.transport.close()
        return True

    def pause_writing(self) -> None:
        """Begin to wait for the client to read."""
        self._paused_at = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Stop waiting."""
        self._paused_at = None
        super().resume_writing()

    def give_way(self) -> None:
        """Close the idle connection for another one."""
        self._deaf = True
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def refused(self, word: str) -> None:
        """Count an end that was made to a client."""
        self._book.refused(word)

    def overdue(self) -> bool:
        """Tell whether the client has read nothing for too long; to be asked now and then, also while closing."""
        now = self.loop.time()
        if self.transport.is_closing() and self._closing_at is None:
            self._closing_at = now
        return any(since is not None and now - since >= WRITE_SECONDS for since in (self._paused_at, self._closing_at))

    # From the parser

    def on_message_begin(self) -> None:
        """Begin a head; until here the wait for a request goes on, whatever else comes."""
        self._in_head = self._in_message = self._began_here = True
        self._head_bytes = self._quiet_bytes = 0
        self._offers = self.expect_100_continue = False
        self._headers_since = self.loop.time()
        self._idle_since = None
        self.url = b""
        self.headers = []

    def on_url(self, url: bytes) -> None:
        """Take a piece of the target."""
        self.url += url
        if len(self.url) > MAX_TARGET:
            self._stop(_TARGET)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Begin the request, unless it offers an upgrade: then it comes again without."""
        if not self._began_here or self._packet > MAX_HEAD:
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > MAX_HEAD:
                self._stop(_HEAD)
        self._look_at_frame()
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                self._stop(_METHOD)
            self._offers = True
            return
        if self.cycle is not None and not self.cycle.response_complete and len(self.pipeline) >= MAX_AHEAD:
            self._stop(_AHEAD)
        self._in_head = False
        self._headers_since = None
        self._book.busy(self)
        before = self.cycle
        cycle = self.cycle = self._exchange()
        # The request has its list. Trailers are read into another and are no part of anything (RFC 9110 section 6.5.1).
        self.headers = []
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def _exchange(self) -> Exchange:
        """Return the request whose head is here, as ASGI describes it (HTTP Connection Scope, 2.3)."""
        version = self.parser.get_http_version()
        path, raw_path, query = _target(self.url) if len(self.url) <= _SHORT else _target.__wrapped__(self.url)
        if self.root_path:
            path, raw_path = self.root_path + path, self.root_path.encode("ascii") + raw_path
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": self._asgi_version, "spec_version": "2.3"},
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": self.root_path,
            "headers": self.headers,
            "state": self.app_state.copy(),
            "method": self.parser.get_method().decode("ascii"),
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
        }
        exchange = Exchange(
            scope=scope,  # type: ignore[arg-type]
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        scope[EXCHANGE] = exchange
        return exchange

    def _look_at_frame(self) -> None:
        """Look at what says whom a request is for, and how it is framed (RFC 9112 sections 3.2 and 6.1)."""
        headers = self.headers
        if len(headers) > MAX_HEADERS:
            self._stop(_HEAD)
        host = coding = None
        for name, value in headers:
            if name == b"host":
                if host is not None or _HOST.fullmatch(value) is None:
                    self._stop(_MALFORMED)
                host = value
            elif name == b"transfer-encoding":
                if value.strip().lower() != b"chunked":
                    self._stop(_CODING)
                coding = value
            elif name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
        version = self.parser.get_http_version()
        if version == "1.1":
            if host is None:
                self._stop(_MALFORMED)
        elif version != "1.0":
            self._stop(_VERSION)
        elif coding is not None:
            # A framing that proxies of HTTP/1.0 do not know.
            self._stop(_MALFORMED)

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._quiet_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request."""
        if self._offers:
            return
        self._in_message = False
        super().on_message_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            # It was answered before it was here as a whole, and is over now.
            self._rest()

    # From the application

    def on_response_complete(self) -> None:
        """Go on to the next request; where this one is still coming, its rest is not waited for long."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        if not self.cycle.response_complete:
            return
        if self._in_message:
            self.loop.call_later(LINGER_SECONDS, self._end_unread, self.cycle)
        else:
            self._rest()

    def _rest(self) -> None:
        """Know that nothing is under way, and wait for the next request for as long as connections are kept."""
        self._book.idle(self)
        self._idle_since = self.loop.time()
        if self._idle_watch is None:
            # One timer a connection, and not one a request: it looks at what was since, and waits on.
            self._idle_watch = self.loop.call_later(self.timeout_keep_alive, self._look_at_rest)

    def _look_at_rest(self) -> None:
        self._idle_watch = None
        if self._idle_since is None or self.transport.is_closing():
            return
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._idle_watch = self.loop.call_later(left, self._look_at_rest)
        else:
            self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Start a request, and count it to its client until its task is done."""
        self._running = cycle
        book = self._book
        scope: dict[str, Any] = cycle.scope  # type: ignore[assignment]
        client = book.client_of(scope["headers"], self._forwarded(scope))
        counted = book.begin(client)
        if counted:
            scope[ARRIVED] = time.monotonic()
        else:
            scope[CROWDED] = True
            book.refused("concurrent")
        task = self.loop.create_task(cycle.run_asgi(app))
        self.tasks.add(task)
        task.add_done_callback(partial(self._ended, client) if counted else self.tasks.discard)

    def _ended(self, client: str, task: "asyncio.Task[None]") -> None:
        self.tasks.discard(task)
        self._book.end(client)

    def _forwarded(self, scope: dict[str, Any]) -> str:
        """Return the address that a request comes from: what a trusted proxy says, else the connection's."""
        if self._trusted is None or self._address not in self._trusted:
            return self._address
        said = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
        if not said:
            return self._address
        host, _ = self._trusted.get_trusted_client_address(b", ".join(said).decode("latin-1"))
        return host or self._address

    # Ends

    def _head_without_offer(self) -> bytes:
        """Return the head that was read last as it came, but for what it offers to upgrade to."""
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/" + self.parser.get_http_version().encode()]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def _stop(self, refusal: tuple[int, str, bytes]) -> None:
        """Leave the parser with a refusal. Never returns."""
        self._refusal = refusal
        raise _RefusedError

    def _refuse(self, status: int, word: str, text: bytes, *, retry_after: int | None = None) -> None:
        """Read nothing more. What is under way is answered first, and then there is no place for a refusal."""
        self._book.refused(word)
        self._deaf = True
        cycle, in_body = self.cycle, self._in_message and not self._in_head
        if cycle is not None and (in_body or not cycle.response_complete) and not self._gives_up(cycle, in_body):
            return
        lines = [b"content-type: text/plain; charset=utf-8", b"content-length: %d" % len(text), b"connection: close"]
        if retry_after is not None:
            lines.append(b"retry-after: %d" % retry_after)
        self.transport.write(STATUS_LINE[status] + b"\r\n".join([*lines, b"", b""]) + text)
        if len(self._book.lingering) < MOST_LINGERING and self.transport.can_write_eof():
            # Closed while bytes of the client's wait to be read, the connection would be reset and the answer lost.
            self._book.lingering.add(self)
            self.transport.write_eof()
            self.loop.call_later(LINGER_SECONDS, self.transport.abort)
        else:
            self.transport.close()

    def _gives_up(self, newest: RequestResponseCycle, in_body: bool) -> bool:
        """See to what is due before an end; tell whether nothing is, but the newest request that is not whole."""
        # What still comes is thrown away: left unread, it would make the end a reset, and the answers were lost.
        self.flow.resume_reading()
        if not in_body:
            # What came as a whole is answered, and with the last answer the connection ends.
            newest.keep_alive = False
            return False
        # The fault is in the body of the newest.
        if self.pipeline:
            self.pipeline.popleft()
            last = self.pipeline[0][0] if self.pipeline else self._running
            if last is not None:
                last.keep_alive = False
            return False
        if newest.response_started:
            self.transport.close()
            return False
        newest.disconnected = True
        newest.message_event.set()
        return True

    def _end_unread(self, cycle: RequestResponseCycle) -> None:
        if self.cycle is cycle and self._in_message and not self.transport.is_closing():
            self._book.refused("unread")
            self.transport.close()
