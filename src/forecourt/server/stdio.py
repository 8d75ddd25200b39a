"""MCP on standard input and output: one message a line, as desktop assistants start it.

Source: MCP 2026-07-28 and 2025-11-25, Transports, section "stdio". Only messages are ever written to the output.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import IO, Final

__all__ = ["serve_lines"]

_AT_ONCE: Final = 16
"""How many messages are answered side by side; more of them wait unread."""
_TOO_LONG: Final = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"The line is longer than %d bytes"}}'

Answering = Callable[[bytes], Awaitable[bytes | None]]


async def serve_lines(answer: Answering, incoming: IO[bytes], outgoing: IO[bytes], longest: int) -> None:
    """Answer every line of `incoming` until it ends, in whatever order the answers come; None is no answer.

    What was begun when the input ends is finished. A line beyond `longest` bytes is passed over and told.
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
    line: bytes | None = b""
    while line is not None:
        line = _line(incoming, longest)
        if line is not None:
            if not line.strip():
                continue
            places.acquire()
        try:
            take(line)
        except RuntimeError:
            return  # The loop has stopped: nothing is served any more.


def _line(incoming: IO[bytes], longest: int) -> bytes | None:
    """Return the next line, only its beginning where it is too long; None at the end."""
    try:
        line = incoming.readline(longest + 2)
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = incoming.readline(longest + 2)
    except (OSError, ValueError):
        return None
    return line.rstrip(b"\r\n") if line else None


def _write(outgoing: IO[bytes], message: bytes) -> None:
    # JSON has no line breaks of its own here: they are escaped in texts.
    outgoing.write(message + b"\n")
    outgoing.flush()
