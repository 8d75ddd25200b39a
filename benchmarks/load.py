"""A closed-loop load generator for loopback: so many connections, each with one request under way.

It speaks just enough HTTP/1.1 to be much cheaper than any server that it measures: a request is bytes made
beforehand, and of an answer it reads the length and the first line. It is bounded in requests and in time.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from typing import Final, cast

__all__ = ["ADDRESSES", "Measured", "http_request", "measure"]

ADDRESSES: Final = tuple(f"127.0.0.{number}" for number in range(2, 34)) if sys.platform == "linux" else ()
"""Addresses of this machine that connections come from in turn, as from many clients; none where there is but one."""

_LONGEST_SECONDS: Final = 60.0
_LENGTH: Final = b"content-length:"


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run showed: answers per second, and latencies in milliseconds."""

    requests: int
    failures: int
    seconds: float
    latencies_ms: Sequence[float]

    @property
    def rate(self) -> float:
        """Answers per second."""
        return self.requests / self.seconds

    def percentile(self, share: float) -> float:
        """Return the latency that `share` (0 to 1) of the answers did not exceed, in milliseconds."""
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def http_request(path: str, body: bytes, headers: Sequence[tuple[str, str]] = ()) -> bytes:
    """Return a POST as it goes over the wire."""
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers]
    lines += [f"content-length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


class _Connection(asyncio.Protocol):
    """One connection that sends the next request when the answer to the last one is complete."""

    def __init__(self, next_request: Callable[[], bytes | None], done: Callable[[float, bool], None]) -> None:
        self._next = next_request
        self._done = done
        self._left = 0
        self._head = b""
        self._began = 0.0
        self._ok = True
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do what asyncio's do without deriving from them.
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def _send(self) -> None:
        request = self._next()
        if request is None:
            self._transport.close()
            return
        self._began = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self._left:
            self._left -= len(data)
        else:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._head[:end].lower()
            self._ok = head.startswith((b"http/1.1 200", b"http/1.0 200"))
            place = head.find(_LENGTH)
            length = int(head[place + len(_LENGTH) :].split(b"\r\n", 1)[0]) if place >= 0 else 0
            self._left = length - (len(self._head) - end - 4)
            self._head = b""
        if self._left <= 0:
            self._left = 0
            self._done((time.perf_counter() - self._began) * 1000, self._ok)
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        if not self.closed.done():
            self.closed.set_result(None)


async def _run(
    port: int, requests: Sequence[bytes], connections: int, seconds: float, total: int | None = None
) -> Measured:
    loop = asyncio.get_running_loop()
    latencies: list[float] = []
    failures = sent = 0
    ends = time.perf_counter() + seconds

    def next_request() -> bytes | None:
        nonlocal sent
        if time.perf_counter() >= ends or sent == total:
            return None
        sent += 1
        return requests[sent % len(requests)]

    def done(latency: float, ok: bool) -> None:
        nonlocal failures
        latencies.append(latency)
        failures += not ok

    began = time.perf_counter()
    opened = [
        (await loop.create_connection(partial(_Connection, next_request, done), "127.0.0.1", port, local_addr=here))[1]
        for here in islice(cycle([(address, 0) for address in ADDRESSES] or [None]), connections)
    ]
    async with asyncio.timeout(_LONGEST_SECONDS):
        await asyncio.gather(*(connection.closed for connection in opened))
    return Measured(len(latencies), failures, time.perf_counter() - began, latencies)


def measure(
    port: int, requests: Sequence[bytes], *, connections: int, seconds: float, total: int | None = None
) -> Measured:
    """Send `requests` in turn over so many connections for so long, `total` at most, and return what was seen."""
    import uvloop

    return uvloop.run(_run(port, requests, connections, min(seconds, _LONGEST_SECONDS / 2), total))
