"""One request and its answer on uvicorn's protocol: past ASGI's messages what is read and sent as a whole.

A body that came with its head needs no clock and no task that waits for it, and an answer that is there needs no two
messages, of which uvicorn makes a head anew each time. Under another server there is no `Exchange`, and what is here
does the same by messages.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from forecourt.binding import Answer

__all__ = ["EXCHANGE", "Exchange", "body_here", "give", "waits_with"]

EXCHANGE: Final = "forecourt.exchange"
"""In an ASGI scope: the `Exchange` of the request."""

_HEADS: Final = 128
"""How many heads of answers are remembered; there are few, but for challenges that name addresses."""

_SHORT: Final = 8192
"""How long a body is that is put behind its head, which costs less than sending two pieces, in bytes."""

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Exchange(RequestResponseCycle):
    """uvicorn's own for everything that streams."""

    def whole_body(self) -> bytes | None:
        """Return the body if all of it is here; None while it is not, or when nobody waits for an answer any more."""
        if self.more_body or self.disconnected:
            return None
        body = bytes(self.body)
        self.body = bytearray()
        return body

    async def give(self, answer: Answer) -> None:
        """Send an answer by one write, once the client has read enough of those before it."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        head, closes = _head(answer.status, answer.headers)
        body = answer.body
        if closes:
            self.keep_alive = False
        elif not self.keep_alive:
            head += b"connection: close\r\n"
        if answer.status == 204:
            self.transport.write(head + b"\r\n")
        else:
            head += b"content-length: %d\r\n\r\n" % len(body)
            if self.scope["method"] == "HEAD":
                self.transport.write(head)
            elif len(body) < _SHORT:
                self.transport.write(head + body)
            else:
                self.transport.writelines((head, body))
        # Whoever waits to hear that the client is gone, waits no longer.
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()

    @property
    def is_plain(self) -> bool:
        """Whether uvicorn adds nothing to an answer and logs none."""
        return not self.default_headers and not self.access_log


@lru_cache(_HEADS)
def _head(status: int, headers: tuple[tuple[bytes, bytes], ...]) -> tuple[bytes, bool]:
    """Return an answer's head as it is written, without its length and its end; and whether it ends the connection."""
    lines = [STATUS_LINE[status]]
    for name, value in headers:
        if b"\r" in value or b"\n" in value or b"\0" in value:
            raise ValueError("a header's value is one line")
        lines.append(b"%s: %s\r\n" % (name, value))
    return b"".join(lines), (b"connection", b"close") in headers


def waits_with(scope: MutableMapping[str, Any]) -> int | None:
    """Return the length of a body that the client keeps back until it is told to go on (RFC 9110 section 10.1.1).

    None where it does not wait, has told no length, or that is not known.
    """
    exchange: Exchange | None = scope.get(EXCHANGE)
    if exchange is None or not exchange.waiting_for_100_continue:
        return None
    return next((int(value) for name, value in scope["headers"] if name == b"content-length"), None)


def body_here(scope: MutableMapping[str, Any]) -> bytes | None:
    """Return the body of a request that is here as a whole; None where that is not known, and it is to be received."""
    exchange: Exchange | None = scope.get(EXCHANGE)
    return None if exchange is None else exchange.whole_body()


async def give(answer: Answer, scope: MutableMapping[str, Any], send: Send) -> None:
    """Send an answer as it is: 204 without a length, and to HEAD without the body."""
    # Taken out, since the two hold each other and would wait for the garbage collector.
    exchange: Exchange | None = scope.pop(EXCHANGE, None)
    if exchange is not None and exchange.is_plain:
        await exchange.give(answer)
        return
    headers = answer.headers
    if answer.status != 204:
        headers = (*headers, (b"content-length", b"%d" % len(answer.body)))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})
