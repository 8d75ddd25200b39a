"""MCP on standard input and output: one message a line, as desktop assistants start it.

Source: MCP 2026-07-28 and 2025-11-25, Transports, section "stdio". Only messages are ever written to the output.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import IO, Final

__all__ = ["serve_lines"]

_AT_ONCE: Final = 16
"""How many messages are answered side by side; more of them wait unread."""
_CHUNK: Final = 1 << 16
_TOO_LONG: Final = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"The line is longer than %d bytes"}}'

Answering = Callable[[bytes], Awaitable[bytes | None]]


async def serve_lines(answer: Answering, incoming: IO[bytes], outgoing: IO[bytes], longest: int) -> None:
    """Answer every line of `incoming` until it ends, in whatever order the answers come; None is no answer.

    `incoming` gives what is there, without a buffer of its own: a thread that waits in one would hold its lock when the
    process ends, and Python aborts then. What was begun when the input ends is finished. A line beyond `longest` bytes
    is passed over and told.
    """
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    places = threading.Semaphore(_AT_ONCE)
    loop = asyncio.get_running_loop()

    def take(line: bytes | None) -> None:
        loop.call_soon_threadsafe(lines.put_nowait, line)

    # A thread of our own, not one of a pool: nobody waits for it, and it may wait for a line for ever.
    arguments = (incoming, longest, places, take)
    threading.Thread(target=_read, args=arguments, name="forecourt-stdin", daemon=True).start()
    writing = asyncio.Lock()

    async def respond(line: bytes) -> None:
        try:
            said = _TOO_LONG % longest if len(line) > longest else await answer(line)
            if said is not None:
                async with writing:
                    # A host that does not read must not stop the answers that are being made.
                    await asyncio.to_thread(_write, outgoing, said)
        except BrokenPipeError:
            pass  # The host is gone; the end of its input follows.
        finally:
            places.release()

    async with asyncio.TaskGroup() as answers:
        while (line := await lines.get()) is not None:
            answers.create_task(respond(line))


def _read(incoming: IO[bytes], longest: int, places: threading.Semaphore, take: Callable[[bytes | None], None]) -> None:
    """Hand over line after line, each when there is a place for it, and None at the end."""
    try:
        for line in _lines(incoming, longest):
            if line.strip():
                places.acquire()
                take(line)
        take(None)
    except RuntimeError:
        return  # The loop has stopped: nothing is served any more.


def _lines(incoming: IO[bytes], longest: int) -> Iterator[bytes]:
    """Yield the lines of the input, of those that are too long the beginning, which is still too long."""
    line = bytearray()
    while chunk := _chunk(incoming):
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            line += piece[: longest + 2 - len(line)]
            yield bytes(line.rstrip(b"\r"))
            line.clear()
        line += rest[: longest + 2 - len(line)]
    if line:
        yield bytes(line)


def _chunk(incoming: IO[bytes]) -> bytes:
    try:
        return incoming.read(_CHUNK) or b""
    except (OSError, ValueError):
        return b""


def _write(outgoing: IO[bytes], message: bytes) -> None:
    # JSON has no line breaks of its own here: they are escaped in texts.
    outgoing.write(message + b"\n")
    outgoing.flush()
