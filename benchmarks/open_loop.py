"""An open-loop load generator: requests have times at which they are due, whether or not earlier ones were answered.

A closed loop, as in `benchmarks.load`, waits for an answer before it asks again. When the server stalls it stops
asking, and the requests that would have waited are never seen: Gil Tene's "coordinated omission". As in his wrk2
(https://github.com/giltene/wrk2, README), latency is counted here from the moment a request was due, not from the one
at which it could be sent. What waits for a free connection waits at the caller's side, and that counts too.

Requests are due at random (a Poisson process): callers know nothing of each other, and bunches are what a server has
to bear. The event loop's timers go by the millisecond, so that a latency may be up to a millisecond too long, never
too short. `lag` says how much later than due the generator itself looked at requests, and `busy` what share of a
processor it took: a generator that is at its end measures itself.

Everything is bounded: the requests, the connections, and how far a run may fall behind before it is given up.
"""

import asyncio
import gc
import ssl
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
import numpy.typing as npt

__all__ = ["Due", "Seen", "arrivals", "run"]

MOST_REQUESTS: Final = 400_000
_LENGTH: Final = b"content-length:"
_TICK_SECONDS: Final = 0.0005
_START_SECONDS: Final = 0.05
_PATIENCE_SECONDS: Final = 5.0
"""How long answers are waited for when everything has been sent."""
_BUSY: Final = 0.85
_LAG_MS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Due:
    """A request as it goes over the wire. A good answer has one of these statuses, and `mark` somewhere."""

    wire: bytes
    mark: bytes = b""
    statuses: tuple[bytes, ...] = (b"200",)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run showed. Latencies are in milliseconds, one for each request that was due before the run ended."""

    offered: float
    """Requests a second that were due."""
    seconds: float
    """From the first that was due to the last answer."""
    latencies_ms: npt.NDArray[np.float64]
    answered: int
    failures: int
    """Answers that were not what they should be, and requests that had none."""
    gave_up: bool
    """Whether the run fell so far behind that it was ended."""
    lag_ms: float
    """The 99th percentile of how much later than due the generator looked at a request."""
    busy: float
    """The share of one processor that the generator took."""

    @property
    def achieved(self) -> float:
        """Answers a second."""
        return self.answered / self.seconds

    @property
    def excuse(self) -> str:
        """Why the figures are not the server's: the generator was at its end, or not let run in time; else ""."""
        if self.busy > _BUSY:
            return f"the generator is at its end ({self.busy:.0%} of a processor)"
        if self.lag_ms > _LAG_MS:
            return f"the machine is busy with something else (requests were looked at {self.lag_ms:.0f} ms late)"
        return ""

    def percentile(self, share: float) -> float:
        """Return the latency that `share` (0 to 1) of the requests did not exceed, in milliseconds.

        The nearest rank: a latency that was seen, never one between two. Infinite where there were no requests.
        """
        if not len(self.latencies_ms):
            return float("inf")
        return float(np.quantile(self.latencies_ms, share, method="inverted_cdf"))


def arrivals(rate: float, seconds: float, seed: int = 1) -> npt.NDArray[np.float64]:
    """Return the times, from 0 on, at which requests are due: `rate` a second on average, at random."""
    count = min(int(rate * seconds), MOST_REQUESTS)
    gaps = np.random.default_rng(seed).exponential(1 / rate, count)
    return cast("npt.NDArray[np.float64]", np.cumsum(gaps))


class _Connection(asyncio.Protocol):
    """One connection: idle, or with one request under way."""

    def __init__(self, run: "_Run") -> None:
        self._run = run
        self.number = -1
        self._left = 0
        self._head = b""
        self._end = b""
        """The end of what came before, where what an answer is known by may begin."""
        self._good = self._marked = self._answering = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do what asyncio's do without deriving from them.
        self._transport = cast("asyncio.Transport", transport)
        self._run.opened(self)

    def send(self, number: int) -> None:
        """Send a request; the connection is idle."""
        self.number, self._answering, self._marked, self._end = number, False, False, b""
        self._transport.write(self._run.requests[number].wire)

    def close(self) -> None:
        """Hang up."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._answering = True
        due = self._run.requests[self.number]
        if not self._marked:
            seen = self._end + data
            self._marked = due.mark in seen
            self._end = seen[-len(due.mark) :]
        if self._left:
            self._left -= len(data)
        else:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._head[:end].lower()
            self._good = head[9:12] in due.statuses
            place = head.find(_LENGTH)
            length = int(head[place + len(_LENGTH) :].split(b"\r\n", 1)[0]) if place >= 0 else 0
            self._left = length - (len(self._head) - end - 4)
            self._head = b""
        if self._left <= 0:
            self._left = 0
            number, self.number = self.number, -1
            self._run.answered(number, good=self._good and self._marked)
            self._run.free(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._run.lost(self, answering=self._answering)


class _Run:
    """One run, on one event loop."""

    def __init__(
        self,
        port: int,
        requests: Sequence[Due],
        times: npt.NDArray[np.float64],
        connections: int,
        behind: float,
        addresses: Sequence[str],
        tls: ssl.SSLContext | None,
    ) -> None:
        self.requests = requests
        self._port, self._times, self._most, self._behind = port, times.tolist(), connections, behind
        self._addresses, self._tls = addresses, tls
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._idle: list[_Connection] = []
        self._connections: set[_Connection] = set()
        self._open = 0
        self._opened = 0
        self._waiting: deque[int] = deque()
        self._latencies = np.full(len(times), np.nan)
        self._lags = np.zeros(len(times))
        self._next = 0
        self._answers = 0
        self._bad = 0
        self._again: set[int] = set()
        self._gave_up = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def work(self) -> Seen:
        for _ in range(min(self._most, 4)):
            await self._connect()
        busy = time.process_time()
        self._began = self._loop.time() + _START_SECONDS
        self._loop.call_at(self._began, self._tick)
        length = (self._times[-1] if self._times else 0.0) + _START_SECONDS
        try:
            async with asyncio.timeout(length + self._behind + _PATIENCE_SECONDS):
                await self._ended
        except TimeoutError:
            self._gave_up = True
            self._end()
        ended = self._loop.time()
        busy = time.process_time() - busy
        for task in self._tasks:
            task.cancel()
        for connection in list(self._connections):
            connection.close()
        while self._connections and self._loop.time() < ended + 1:  # noqa: ASYNC110 - the end, not worth an event
            await asyncio.sleep(0.001)
        due = self._next
        latencies = self._latencies[:due]
        # What was never answered has waited until now, and would have waited longer.
        open_still = np.isnan(latencies)
        latencies[open_still] = (ended - self._began - np.array(self._times[:due])[open_still]) * 1000
        return Seen(
            offered=len(self._times) / max(self._times[-1], _TICK_SECONDS) if self._times else 0.0,
            seconds=max(ended - self._began, 1e-9),
            latencies_ms=latencies,
            answered=self._answers,
            failures=self._bad + int(open_still.sum()),
            gave_up=self._gave_up,
            lag_ms=float(np.quantile(self._lags[:due], 0.99)) if due else 0.0,
            busy=busy / max(ended - self._began, 1e-9),
        )

    def _tick(self) -> None:
        """Send what is due, and come back when the next is."""
        now = self._loop.time() - self._began
        times = self._times
        while self._next < len(times) and times[self._next] <= now:
            number = self._next
            self._next += 1
            self._lags[number] = (now - times[number]) * 1000
            self._dispatch(number)
        if self._waiting and now - times[self._waiting[0]] > self._behind:
            self._gave_up = True
            self._end()
        elif self._next < len(times):
            self._loop.call_at(self._began + max(times[self._next], now + _TICK_SECONDS), self._tick)

    def _dispatch(self, number: int) -> None:
        if self._idle:
            # The one that was used last: the server may be about to close one that was idle for long.
            self._idle.pop().send(number)
            return
        self._waiting.append(number)
        if self._open < self._most:
            task = self._loop.create_task(self._connect())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self) -> None:
        self._open += 1
        self._opened += 1
        here = (self._addresses[self._opened % len(self._addresses)], 0) if self._addresses else None
        try:
            await self._loop.create_connection(
                lambda: _Connection(self), "127.0.0.1", self._port, local_addr=here, ssl=self._tls
            )
        except OSError:
            self._open -= 1

    def opened(self, connection: _Connection) -> None:
        """Take a new connection."""
        self._connections.add(connection)
        self.free(connection)

    def free(self, connection: _Connection) -> None:
        """Give a connection that has nothing to do what waits longest."""
        if self._waiting:
            connection.send(self._waiting.popleft())
        else:
            self._idle.append(connection)

    def answered(self, number: int, *, good: bool) -> None:
        """Note an answer that is complete."""
        self._latencies[number] = (self._loop.time() - self._began - self._times[number]) * 1000
        self._answers += 1
        self._bad += not good
        if self._answers == len(self._times):
            self._end()

    def lost(self, connection: _Connection, *, answering: bool) -> None:
        """Note that a connection is closed. What it was asked is asked once more, unless the answer had begun."""
        self._open -= 1
        self._connections.discard(connection)
        number = connection.number
        if self._ended.done():
            return
        if number < 0:
            if connection in self._idle:
                self._idle.remove(connection)
        elif answering or number in self._again:
            self.answered(number, good=False)
        else:
            self._again.add(number)
            self._dispatch(number)

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)


async def _run(*arguments: object) -> Seen:
    return await _Run(*arguments).work()  # type: ignore[arg-type]


def run(
    port: int,
    requests: Sequence[Due],
    times: npt.NDArray[np.float64],
    *,
    connections: int = 64,
    behind: float = 2.0,
    addresses: Sequence[str] = (),
    tls: ssl.SSLContext | None = None,
) -> Seen:
    """Send `requests` at their `times` to a port of this machine, and return what was seen.

    At most so many connections are open, from `addresses` of this machine in turn. When a request has waited `behind`
    seconds for one the run is given up.
    """
    import uvloop

    assert len(requests) == len(times) <= MOST_REQUESTS
    gc.collect()
    gc.disable()
    try:
        return uvloop.run(_run(port, requests, times, connections, behind, tuple(addresses), tls))
    finally:
        gc.enable()
