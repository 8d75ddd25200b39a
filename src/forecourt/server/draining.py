"""An end that loses no request: what uvicorn's own shutdown leaves open.

From the signal on, every answer carries `Connection: close`, so that clients leave by themselves, and `/readyz` says
that the server stops. New connections may still be taken for a while, for whoever has not looked at `/readyz` yet. Only
then the listening socket is closed, and what is under way is finished.
"""

import asyncio
import os
import signal
import socket
from types import FrameType
from typing import Final, Literal

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from forecourt.server.deployment import Deployment
from forecourt.server.serving import DRAIN_SECONDS

__all__ = ["ARRIVAL_SECONDS", "DrainingServer", "Hangup"]

ARRIVAL_SECONDS: Final = 0.3
"""How long idle connections stay open after the listening socket was closed: a request may be on its way."""
_LOOK_SECONDS: Final = 0.05
_CLOSE: Final = (b"connection", b"close")


class DrainingServer(uvicorn.Server):
    """Serves until it is drained, by a signal or by a call."""

    def __init__(self, config: uvicorn.Config, deployment: Deployment) -> None:
        super().__init__(config)
        self._deployment = deployment
        self._asked = False
        self._accept_until: float | None = None
        self._idle_seconds = ARRIVAL_SECONDS

    @property
    def is_draining(self) -> bool:
        """Whether the end has begun."""
        return self._accept_until is not None

    def drain(self, accept: float, *, replaced: bool = False) -> None:
        """Begin to end, in the event loop: take connections for `accept` seconds more, then finish what is under way.

        A server that is `replaced` leaves its place to another that accepts at the same socket. Its readiness is
        nobody's concern, and it has the time to let idle connections end as they always do, so that none is closed
        while a request is on its way. A second call can only shorten the end.
        """
        until = asyncio.get_running_loop().time() + accept
        if self._accept_until is None:
            self._accept_until = until
            if replaced:
                self._idle_seconds = min(self.config.timeout_keep_alive + 1.0, DRAIN_SECONDS)
            self._take_leave()
        else:
            self._accept_until = min(self._accept_until, until)
            if not replaced:
                self._idle_seconds = ARRIVAL_SECONDS
        if not replaced:
            self._deployment.is_stopping = True

    def asked_to_stop(self) -> None:
        """Do what a first signal to stop is for."""
        self.drain(self._deployment.config.server.drain_seconds)

    def _take_leave(self) -> None:
        """Let every answer from now on be the last one of its connection."""
        # uvicorn takes the headers of all answers anew from its configuration every second.
        self.config.encoded_headers = [*self.config.encoded_headers, _CLOSE]
        self.server_state.default_headers = [*self.server_state.default_headers, _CLOSE]
        for connection in self.server_state.connections:
            if not isinstance(connection, HttpToolsProtocol):
                continue
            # Of requests that came one behind the other without waiting, the last is the one to end with.
            cycle = connection.pipeline[0][0] if connection.pipeline else connection.cycle
            if cycle is not None and not cycle.response_complete:
                cycle.keep_alive = False

    async def on_tick(self, counter: int) -> bool:
        """Tell, ten times a second, whether it is time to close the listening socket."""
        if self._asked and self._accept_until is None:
            self.asked_to_stop()
        ended = await super().on_tick(counter)
        return ended or (self._accept_until is not None and asyncio.get_running_loop().time() >= self._accept_until)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the listening socket, let requests that are on their way arrive, and finish everything."""
        if self._accept_until is None:
            self.drain(0.0)
        for server in self.servers:
            server.close()
        for listening in sockets or ():
            listening.close()
        loop = asyncio.get_running_loop()
        end = loop.time() + self._idle_seconds
        while self.server_state.connections and not self.force_exit and loop.time() < end:  # noqa: ASYNC110 - as uvicorn
            await asyncio.sleep(_LOOK_SECONDS)
        await super().shutdown()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal to stop as the end that was wished for, and a second SIGINT as impatience."""
        # uvicorn would raise the signal once more at the end: the status would be a failure's.
        del frame
        if self._asked and sig == signal.SIGINT:
            self.force_exit = self.should_exit = True
        self._asked = True


class Hangup:
    """Tells what SIGHUP means: that the terminal is gone, or a wish to reload. Made before the signal is handled."""

    def __init__(self) -> None:
        self._had_terminal = _has_terminal()
        # As `nohup` starts programs.
        self._outlives_terminal = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN

    def meaning(self) -> Literal["reload", "stop", "nothing"]:
        """Return what a SIGHUP that has just come is to do."""
        if self._had_terminal and not _has_terminal():
            return "nothing" if self._outlives_terminal else "stop"
        return "reload"


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
