"""Web servers over loopback that keep what they are posted, and answer byte for byte what a test says."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["ACCEPTED", "Posted", "WebServer", "answer", "web_server"]

HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Posted:
    """One request: its first line, its headers by lower-case names, each as often as it came, and its body."""

    line: str
    headers: Mapping[str, list[str]]
    body: bytes


def answer(status: str, *headers: str, body: bytes = b"") -> bytes:
    """Return an HTTP answer."""
    head = "\r\n".join([f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", ""])
    return head.encode() + body


ACCEPTED: Final = answer("202 Accepted")


@dataclass(slots=True)
class WebServer:
    """What a server answers, in order, the last again and again; an answer that is callable is given the streams."""

    answers: list[bytes | Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]] = field(
        default_factory=lambda: [ACCEPTED]
    )
    port: int = 0
    posted: list[Posted] = field(default_factory=list)
    connections: int = 0
    names: list[str | None] = field(default_factory=list)
    """What the clients asked for by SNI."""

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line, *rest = head.removesuffix("\r\n\r\n").split("\r\n")
                headers: dict[str, list[str]] = {}
                for each in rest:
                    name, _, value = each.partition(":")
                    headers.setdefault(name.lower(), []).append(value.strip())
                body = await reader.readexactly(int(headers.get("content-length", ["0"])[0]))
                self.posted.append(Posted(line, headers, body))
                act = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if callable(act):
                    await act(reader, writer)
                    break
                writer.write(act)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def web_server(server: WebServer, context: ssl.SSLContext | None = None) -> AsyncIterator[WebServer]:
    """Run a web server on a free port of this machine."""
    if context is not None:
        context.sni_callback = lambda _socket, name, _context: server.names.append(name)
    tasks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        await server.talk(reader, writer)
        tasks.discard(task)

    running = await asyncio.start_server(talk, HOST, 0, ssl=context)
    server.port = running.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        running.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
