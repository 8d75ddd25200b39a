"""One worker process: `python -m forecourt.server.worker NUMBER CONTROL LISTENER`, which `server.workers` starts.

It keeps nothing that others need. Its orders come through a socket from the process that started it; the end of that
socket is the end of that process, and then the worker ends, too, after finishing what is under way.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from types import FrameType
from typing import Final

import msgspec
import uvicorn

from forecourt.server.app import create_app
from forecourt.server.config import Config, ConfigError
from forecourt.server.connections import raise_file_limit
from forecourt.server.deployment import Deployment
from forecourt.server.draining import DrainingServer
from forecourt.server.logs import configure
from forecourt.server.metrics import count_as
from forecourt.server.serving import uvicorn_config

__all__ = [
    "ASKED",
    "BEAT",
    "BEAT_SECONDS",
    "READY",
    "Drain",
    "Order",
    "WorkerServer",
    "main",
    "read_order",
    "write_order",
]

READY: Final = b"ready\n"
"""Said once, when requests are answered."""
BEAT: Final = b"beat\n"
"""Said every BEAT_SECONDS while the event loop turns."""
ASKED: Final = b"asked\n"
"""Said when somebody has sent SIGTERM to this process alone."""
BEAT_SECONDS: Final = 1.0

_LENGTH_BYTES: Final = 8
_LONGEST_ORDER: Final = 1 << 28

_log = logging.getLogger("forecourt.server")


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is started with; it comes by the socket, since it may hold passwords."""

    config: Config
    tls: dict[str, str] = {}
    """What uvicorn is told beside the configuration."""
    counts_as: str
    """The name under which it counts for the metrics."""


class Drain(msgspec.Struct, frozen=True):
    """The order to end; see `DrainingServer.drain`."""

    accept: float
    replaced: bool


def write_order(order: Order) -> bytes:
    """Return an order as it is sent: its length, then JSON."""
    text = msgspec.json.encode(order)
    return len(text).to_bytes(_LENGTH_BYTES, "big") + text


def read_order(control: socket.socket) -> Order | None:
    """Wait for the order and return it; None when the sender is gone. Raises ValueError for what is none."""
    length = int.from_bytes(_exactly(control, _LENGTH_BYTES), "big")
    if length > _LONGEST_ORDER:
        raise ValueError("the order is too long")
    text = _exactly(control, length)
    return msgspec.json.decode(text, type=Order) if text else None


def _exactly(control: socket.socket, length: int) -> bytes:
    found = bytearray()
    while len(found) < length:
        chunk = control.recv(min(length - len(found), 1 << 20))
        if not chunk:
            return b""
        found += chunk
    return bytes(found)


def main() -> None:
    """Serve as ordered. Status 1: it could not start, and the log says why."""
    control, listener = (socket.socket(fileno=int(argument)) for argument in sys.argv[2:4])
    for handed in (control, listener):
        # No child of ours may keep either open.
        handed.set_inheritable(False)
    # Whoever presses Ctrl+C or closes the terminal speaks to the process that started this one.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _pass_over)
    order = read_order(control)
    if order is None:
        return
    raise SystemExit(0 if _serve(order, control, listener) else 1)


def _pass_over(number: int, frame: FrameType | None) -> None:
    del number, frame


class WorkerServer(DrainingServer):
    """A server that takes its orders from a socket and says there how it is."""

    def __init__(self, config: uvicorn.Config, deployment: Deployment, control: socket.socket) -> None:
        super().__init__(config, deployment)
        self._control = control
        self._saying: asyncio.StreamWriter | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until ordered to end."""
        self._control.setblocking(False)
        hearing, self._saying = await asyncio.open_connection(sock=self._control)
        tasks = [asyncio.create_task(self._obey(hearing)), asyncio.create_task(self._beat())]
        try:
            await super().serve(sockets)
        finally:
            for task in tasks:
                task.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the deployment, then accept, then say so."""
        await super().startup(sockets)
        if self.started:
            self._say(READY)

    def asked_to_stop(self) -> None:
        """Pass a signal on: the process that started this one knows whether all are to end or this one is replaced."""
        self._say(ASKED)

    async def on_tick(self, counter: int) -> bool:
        """Pass every signal on once."""
        ended = await super().on_tick(counter)
        self._asked = False
        return ended

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take SIGTERM alone for us."""
        del frame
        if sig == signal.SIGTERM:
            self._asked = True

    async def _obey(self, hearing: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while line := await hearing.readline():
                order = msgspec.json.decode(line, type=Drain)
                self.drain(order.accept, replaced=order.replaced)
        if not self.started:
            # Nobody has been answered yet, and what the store had begun is undone.
            os._exit(1)
        if not self.is_draining:
            _log.warning("the process that started this worker is gone; the worker ends")
        self.drain(0.0)

    async def _beat(self) -> None:
        while True:
            self._say(BEAT)
            await asyncio.sleep(BEAT_SECONDS)

    def _say(self, word: bytes) -> None:
        if self._saying is not None:
            transport = self._saying.transport
            # One who does not listen, a process that was stopped, gets no pile of old beats later.
            if not transport.is_closing() and (word is not BEAT or not transport.get_write_buffer_size()):
                transport.write(word)


def _serve(order: Order, control: socket.socket, listener: socket.socket) -> bool:
    configure(order.config.log, among_others=True)
    count_as(order.counts_as)
    try:
        app = create_app(order.config)
    except ConfigError as error:
        # A file that the configuration names was changed since it was checked.
        _log.error("the configuration cannot be used any more: %s", error)
        return False
    raise_file_limit(order.config.server.max_connections)
    server = WorkerServer(uvicorn_config(app, **order.tls), app.deployment, control)
    # Where the start fails, uvicorn returns or exits, by its version; the reason is logged.
    with contextlib.suppress(SystemExit):
        server.run([listener])
    return bool(server.started)


if __name__ == "__main__":
    main()
