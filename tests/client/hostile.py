"""A dealer over real sockets that misbehaves on demand: it stands before a true one, or makes its answers up.

Each POST takes the next act of a list, and good service when the list has ended; GETs (the card) are served as they
are. What arrived is kept, with the headers, so that a test can look for what must not be there.
"""

import asyncio
import contextlib
import functools
import gzip
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

__all__ = ["Act", "Hostile", "Request", "answer", "hostile"]

_MOST: Final = 1 << 20


@dataclass(slots=True)
class Request:
    """One request that arrived."""

    head: bytes
    body: bytes

    @property
    def method(self) -> str:
        """The method."""
        return self.head.split(b" ", 1)[0].decode()

    @property
    def everything(self) -> bytes:
        """Head and body."""
        return self.head + self.body


Act = Callable[["Hostile", Request, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Hostile:
    """The server: `upstream` is the true dealer that good service comes from."""

    upstream: str
    acts: list[Act]
    card: Act | None = None
    """What happens to GETs; None is good service."""
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    serving: list[asyncio.Task[Any]] = field(default_factory=list)
    never: asyncio.Event = field(default_factory=asyncio.Event)
    """What silence waits for."""

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def posts(self) -> list[Request]:
        """The POSTs that arrived."""
        return [request for request in self.requests if request.method == "POST"]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, one request long."""
        task = asyncio.current_task()
        assert task is not None
        # Kept here, since nothing else holds the task of a connection that its client has left.
        self.serving.append(task)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError), contextlib.closing(writer):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                ),
                0,
            )
            request = Request(head, await reader.readexactly(min(length, _MOST)))
            self.requests.append(request)
            act = self._act_for(request)
            await act(self, request, writer)

    def _act_for(self, request: Request) -> Act:
        if request.method != "POST":
            return self.card or serve
        return self.acts.pop(0) if self.acts else serve

    async def fetch(self, request: Request) -> bytes:
        """Return what the true dealer answers, bytes for bytes."""
        parts = urlsplit(self.upstream)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        head = b"\r\n".join(
            line for line in request.head.split(b"\r\n") if not line.lower().startswith((b"connection", b"accept-enc"))
        )
        writer.write(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1) + request.body)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer


def answer(body: bytes, status: str = "200 OK", kind: str = "application/json", *more: str) -> bytes:
    """Return an HTTP answer."""
    headers = [
        f"HTTP/1.1 {status}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *more,
    ]
    return "\r\n".join([*headers, "", ""]).encode() + body


@functools.cache
def _bomb() -> bytes:
    return gzip.compress(b" " * (64 << 20), 1)


# What can happen to a request


async def serve(server: Hostile, request: Request, writer: asyncio.StreamWriter) -> None:
    """Be a good dealer."""
    writer.write(await server.fetch(request))
    await writer.drain()


async def drop_before(server: Hostile, request: Request, writer: asyncio.StreamWriter) -> None:
    """Hang up; the dealer never sees the request."""


async def drop_after(server: Hostile, request: Request, writer: asyncio.StreamWriter) -> None:
    """Let the dealer do its work, and hang up without a word."""
    await server.fetch(request)


async def drop_during(server: Hostile, request: Request, writer: asyncio.StreamWriter) -> None:
    """Let the dealer do its work, and hang up in the middle of its answer."""
    whole = await server.fetch(request)
    writer.write(whole[: len(whole) - 20])
    await writer.drain()


async def reset(server: Hostile, request: Request, writer: asyncio.StreamWriter) -> None:
    """Let the dealer do its work, and reset the connection."""
    await server.fetch(request)
    writer.transport.abort()


async def garbage(server: Hostile, request: Request, writer: asyncio.StreamWriter) -> None:
    """Answer with what is no HTTP."""
    await server.fetch(request)
    writer.write(b"\x00\xffSSH-2.0-OpenSSH\r\n\r\n")


async def silence(server: Hostile, request: Request, writer: asyncio.StreamWriter) -> None:
    """Let the dealer do its work, and say nothing for ever."""
    await server.fetch(request)
    await server.never.wait()


async def drip(server: Hostile, request: Request, writer: asyncio.StreamWriter) -> None:
    """Answer a byte at a time, each just soon enough for a timeout between bytes."""
    await server.fetch(request)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)


async def huge(server: Hostile, request: Request, writer: asyncio.StreamWriter) -> None:
    """Answer without end."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    while True:
        writer.write(b"[" * 65536)
        await writer.drain()


async def bomb(server: Hostile, request: Request, writer: asyncio.StreamWriter) -> None:
    """Answer with a little gzip that is a lot of text."""
    writer.write(answer(_bomb(), "200 OK", "application/json", "Content-Encoding: gzip"))
    await writer.drain()


def say(body: Any, status: str = "200 OK", kind: str = "application/json", *more: str) -> Act:
    """Answer with this, whatever the dealer would say; the dealer does not see the request."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def act(server: Hostile, request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(text, status, kind, *more))
        await writer.drain()

    return act


def work_and_say(body: Any, status: str = "200 OK", kind: str = "application/json", *more: str) -> Act:
    """Let the dealer do its work, and answer with this instead."""
    said = say(body, status, kind, *more)

    async def act(server: Hostile, request: Request, writer: asyncio.StreamWriter) -> None:
        await server.fetch(request)
        await said(server, request, writer)

    return act


@contextlib.contextmanager
def hostile(upstream: str, *played: Act, card: Act | None = None) -> Iterator[Hostile]:
    """Run a hostile server that plays these acts, in a thread of its own."""
    server = Hostile(upstream, list(played), card)
    _bomb()
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    async def live() -> None:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=_MOST)
        server.port = listening.sockets[0].getsockname()[1]
        ready.set()
        async with listening:
            await listening.serve_forever()

    task = loop.create_task(live())

    def work() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        # A connection may have been taken whose task begins only now; and closed transports say so to their sockets in
        # the turn after.
        for _ in range(5):
            rest = [each for each in server.serving if not each.done()]
            for each in rest:
                each.cancel()
            if rest:
                loop.run_until_complete(asyncio.wait(rest))
            loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(10)
