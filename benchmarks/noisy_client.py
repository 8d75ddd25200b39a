"""`python -m benchmarks.noisy_client`: what a client at a hundred times its limit does to another one's latency.

One server process, with a limit of 600 requests a minute. Polite clients send searches at a fixed, gentle rate that is
within it, each at its time whether the one before was answered or not, and count latency from the time at which they
meant to send: what waits in a queue is not left out. Rounds with them alone and rounds beside a noisy client alternate,
so that a noisy machine is noisy for both; the ratio is that of the medians of the rounds' 99th percentiles. The clients
differ by their addresses, the noisy one at 127.0.0.2 and the polite ones from 127.0.0.3 on, or by their keys at one
address.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from benchmarks.a2a_search import free_port
from benchmarks.load import http_request
from benchmarks.servers import SEARCH, envelope, running, temporary_folder

__all__ = ["KINDS", "main"]

LIMIT: Final = 600
"""Requests a minute that one client may send."""
TIMES: Final = 100
"""How many times its limit the noisy client sends."""
_NOISY: Final = "127.0.0.2"
_POLITE: Final = 6
"""How many polite clients there are."""
_LEAST_RATIO: Final = 1.5
_SETTLE_SECONDS: Final = 1.0
_CONNECTIONS: Final = 32
_BIG: Final = 256 * 1024
_A2A: Final = [("A2A-Version", "1.0")]


def search(key: str | None = None) -> bytes:
    """Return a search as it goes over the wire."""
    more = [] if key is None else [("X-API-Key", key)]
    return http_request("/a2a", envelope(SEARCH), [*_A2A, *more])


def _big(key: str | None) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"x": "y" * _BIG}}).encode()
    return http_request("/a2a", body, [*_A2A, *([] if key is None else [("X-API-Key", key)])])


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to be noisy: what is sent, on a connection that is kept or on a new one each time, at what rate."""

    request: Callable[[str | None], bytes]
    fresh: bool = False
    share: float = 1.0
    """Of the full rate, where a request is many times larger than others."""


KINDS: Final[dict[str, Kind]] = {
    "searches": Kind(search),
    "invalid JSON": Kind(lambda _: http_request("/a2a", b'{"jsonrpc": "2.0", "id": 1,')),
    "unknown paths": Kind(lambda _: b"GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n"),
    "big bodies": Kind(_big, share=0.1),
    "new connections": Kind(search, fresh=True),
    "slow headers": Kind(lambda _: b"POST /a2a HTTP/1.1\r\nhost: x\r\nx-slow: ", fresh=True),
}


# The noisy client, in a process of its own


class _Noise(asyncio.Protocol):
    """A connection that sends what it is told to and throws answers away."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self.transport = None


async def _noise(port: int, kind: Kind, seconds: float, key: str | None) -> int:
    loop = asyncio.get_running_loop()
    request = kind.request(key)
    rate = LIMIT / 60 * TIMES * kind.share
    kept: list[_Noise] = []
    sent = 0

    async def connect() -> _Noise:
        _, made = await loop.create_connection(_Noise, "127.0.0.1", port, local_addr=(_NOISY, 0))
        return made

    async def once() -> None:
        with suppress(OSError):
            made = await connect()
            if made.transport is not None:
                made.transport.write(request)
                loop.call_later(0.5, made.transport.abort)

    began = time.perf_counter()
    tasks: set[asyncio.Task[None]] = set()
    while (passed := time.perf_counter() - began) < seconds:
        due = int(passed * rate)
        while sent < due:
            sent += 1
            if kind.fresh:
                task = asyncio.create_task(once())
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                continue
            place = sent % _CONNECTIONS
            if place >= len(kept):
                kept.append(await connect())
                continue
            transport = kept[place].transport
            if transport is None or transport.is_closing():
                with suppress(OSError):
                    kept[place] = await connect()
            elif transport.get_write_buffer_size() < 4 * _BIG:
                transport.write(request)
        await asyncio.sleep(0.002)
    for each in kept:
        if each.transport is not None:
            each.transport.abort()
    return sent


@contextmanager
def noise(port: int, kind: str, seconds: float, key: str | None) -> Iterator[None]:
    """Make noise of a kind in a process of its own while the block runs."""
    words = [sys.executable, "-m", "benchmarks.noisy_client", "--noise", kind, "--port", str(port)]
    process = subprocess.Popen([*words, "--seconds", str(seconds + 3), *(["--key", key] if key else [])])
    try:
        time.sleep(0.7)
        yield
    finally:
        process.terminate()
        process.wait(30)
        # What the server has yet to accept and throw away belongs to no quiet round.
        time.sleep(_SETTLE_SECONDS)


# The polite clients

Client = tuple[str, str | None]
"""An address and a key."""


class _Polite(asyncio.Protocol):
    """A connection with one request under way at a time, made anew where it ends."""

    def __init__(self, client: int, done: Callable[["_Polite", bool], None]) -> None:
        self.client = client
        self._done = done
        self._read = bytearray()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._read += data
        head = self._read.find(b"\r\n\r\n")
        if head < 0:
            return
        length = int(self._read[:head].lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(self._read) >= head + 4 + length:
            ok = self._read.startswith(b"HTTP/1.1 200") and b"RATE_LIMITED" not in self._read
            self._read.clear()
            self._done(self, ok)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self.transport = None


async def _polite(port: int, rate: float, seconds: float, clients: list[Client]) -> tuple[list[float], int]:
    """Return the latencies in milliseconds, and how many requests failed or were refused."""
    loop = asyncio.get_running_loop()
    requests = [search(key) for _, key in clients]
    latencies: list[float] = []
    failed = 0
    free: list[list[_Polite]] = [[] for _ in clients]
    meant: dict[_Polite, float] = {}

    def done(connection: _Polite, ok: bool) -> None:
        nonlocal failed
        if connection not in meant:
            return  # refused as it came: what is sent on it later is never answered
        latencies.append((time.perf_counter() - meant.pop(connection)) * 1000)
        failed += not ok
        free[connection.client].append(connection)

    async def connect(client: int) -> _Polite:
        source = (clients[client][0], 0)
        made = await loop.create_connection(lambda: _Polite(client, done), "127.0.0.1", port, local_addr=source)
        return made[1]

    async def send(at: float, client: int) -> None:
        nonlocal failed
        while free[client]:
            connection = free[client].pop()
            if connection.transport is not None and not connection.transport.is_closing():
                break
        else:
            try:
                connection = await connect(client)
            except OSError:
                failed += 1
                return
        meant[connection] = at
        assert connection.transport is not None
        connection.transport.write(requests[client])

    for client, mine in enumerate(free):
        mine.append(await connect(client))
    began = time.perf_counter() + 0.05
    total = int(rate * seconds)
    tasks = set()
    for number in range(total):
        at = began + number / rate
        wait = at - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        task = asyncio.create_task(send(at, number % len(clients)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    for _ in range(500):
        if not meant:
            break
        await asyncio.sleep(0.01)
    return latencies, failed + len(meant)


def percentile(values: list[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def keys(folder: str) -> list[str]:
    """Make a key in a server's database for each client."""
    from datetime import UTC, datetime

    from forecourt.server.api_keys import new_key
    from forecourt.store import open_store

    async def work() -> list[str]:
        store = open_store(f"sqlite:{Path(folder) / 'forecourt.db'}")
        await store.open()
        made = []
        for _ in range(_POLITE + 1):
            text, key = new_key("benchmark", datetime.now(UTC))
            await store.add_api_key(key)
            made.append(text)
        await store.close()
        return made

    return asyncio.run(work())


def main() -> None:
    """Measure and print; exit status 1 where a ratio is not below what is asked for."""
    import uvloop

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=7, help="quiet and noisy ones of each kind")
    parser.add_argument("--seconds", type=float, default=4.0, help="per round")
    parser.add_argument("--rate", type=float, default=48.0, help="requests a second of the polite clients")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--by", nargs="*", default=["address", "key"], choices=["address", "key"])
    parser.add_argument("--noise", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--key", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.noise:
        uvloop.run(_noise(chosen.port, KINDS[chosen.noise], min(chosen.seconds, 60), chosen.key))
        return

    print(f"polite: {chosen.rate:g}/s of {_POLITE} clients; noisy: {LIMIT / 60 * TIMES:g}/s, {TIMES} times its limit")
    print(f"{chosen.rounds} rounds of {chosen.seconds:g} s each; load average before: {os.getloadavg()[0]:.2f}")
    print(f"{'noise':28} {'quiet p50':>10} {'p99 ms':>8} {'noisy p50':>10} {'p99 ms':>8} {'ratio':>6}  refused")
    bad = False
    for by in chosen.by:
        with temporary_folder() as folder:
            made = keys(folder) if by == "key" else []
            noisy_key = made.pop() if made else None
            clients: list[Client] = [(_NOISY, key) for key in made]
            clients = clients or [(f"127.0.0.{number + 3}", None) for number in range(_POLITE)]
            with running("forecourt_limited", free_port(), folder, by) as port:
                for name in chosen.kinds:
                    if by == "key" and name not in ("searches", "big bodies"):
                        continue  # what shows no key, a connection among it, belongs to its address
                    seen: dict[bool, list[list[float]]] = {False: [], True: []}
                    failed = 0
                    for number in range(2 * chosen.rounds):
                        noisy = number % 2 == 1
                        with noise(port, name, chosen.seconds, noisy_key) if noisy else nullcontext():
                            latencies, lost = uvloop.run(_polite(port, chosen.rate, chosen.seconds, clients))
                        seen[noisy].append(latencies)
                        failed += lost
                    bad |= report(f"{name}, by {by}", seen, failed)
    print(f"load average after: {os.getloadavg()[0]:.2f}")
    sys.exit(bad)


def report(name: str, seen: dict[bool, list[list[float]]], failed: int) -> bool:
    """Print one line, and tell whether it is not what is asked for."""
    row: list[Any] = []
    for noisy in (False, True):
        row += [statistics.median(percentile(each, share) for each in seen[noisy]) for share in (0.5, 0.99)]
    ratio = row[3] / row[1]
    good = ratio < _LEAST_RATIO and failed == 0
    print(
        f"{name:28} {row[0]:10.2f} {row[1]:8.2f} {row[2]:10.2f} {row[3]:8.2f} {ratio:6.2f}  {failed}"
        f"  below {_LEAST_RATIO}: {'yes' if good else 'NO'}",
        flush=True,
    )
    return not good


if __name__ == "__main__":
    main()
