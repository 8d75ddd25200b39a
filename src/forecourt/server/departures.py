"""Answers leave together: what all connections write within one turn of the event loop goes out at its end.

A client that sleeps is woken by the first packet that it gets, and on one machine (a proxy in front, a benchmark) that
is paid for by whoever sends: more than the sending itself. Sent one behind the other, the answers of one turn wake it
once. The head and the body of an answer leave together, too.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Final, cast

__all__ = ["Departures"]

_MUCH: Final = 65_536
_PIECES: Final = 16
"""How many bytes and pieces of one connection are held at the most."""


class Departures:
    """What waits for the end of this turn, of one process's connections."""

    def __init__(self) -> None:
        self._waiting: list[_Held] = []

    def transport(self, transport: asyncio.Transport) -> asyncio.Transport:
        """Return a transport that is `transport` in everything, but sends what is written at the end of the turn."""
        return cast("asyncio.Transport", _Held(transport, self))

    def add(self, held: "_Held") -> None:
        """Have something sent at the end of this turn."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._send)
        self._waiting.append(held)

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        for held in waiting:
            held.send()


class _Held:
    """A transport and what is still to be sent over it."""

    def __init__(self, transport: asyncio.Transport, departures: Departures) -> None:
        self._transport = transport
        self._departures = departures
        self._pieces: list[bytes] = []
        self._bytes = 0
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send `data` at the end of this turn, or when much is held."""
        pieces = self._pieces
        if not pieces:
            self._departures.add(self)
        pieces.append(data)
        self._bytes += len(data)
        if self._bytes > _MUCH or len(pieces) > _PIECES:
            self.send()

    def writelines(self, pieces: Iterable[bytes]) -> None:
        """Send pieces likewise, without putting them together."""
        for piece in pieces:
            self.write(piece)

    def send(self) -> None:
        """Send what is held."""
        pieces, self._pieces, self._bytes = self._pieces, [], 0
        if pieces and not self.is_closing():
            try:
                if len(pieces) == 1:
                    self._transport.write(pieces[0])
                else:
                    self._transport.writelines(pieces)
            except RuntimeError:
                # uvloop's word for a connection that was reset in this moment, which its protocol hears of by itself.
                self._transport.abort()

    def get_write_buffer_size(self) -> int:
        """Send what is held, and return how many bytes the client does not take."""
        self.send()
        return self._transport.get_write_buffer_size()

    def write_eof(self) -> None:
        """Send what was written, then say that there is no more."""
        self.send()
        self._transport.write_eof()

    def close(self) -> None:
        """Send what was written, then close."""
        self.send()
        self._transport.close()
