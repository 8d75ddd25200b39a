"""`python -m benchmarks.network_start`: how soon a large network of sellers answers, and how fast from then on.

    python -m benchmarks.network_start                              2,000 sellers, 300,000 listings, SQLite
    python -m benchmarks.network_start --postgresql
    python -m benchmarks.network_start --sellers 200 --listings 30000

A configuration with a profile in a file for each seller is served by `forecourt serve` in a process of its own, begun
with nothing but what is on the disk. The clock runs from the start of the process until `/readyz` is 200 and the first
search has been answered. Then questions, no two alike, are asked one at a time and timed at the caller: what HTTP costs
is in it, and the same over a bare request (`GET /healthz`) is printed beside it. Inside, the same questions are asked
of the same catalog without HTTP, as `benchmarks.catalog_speed` does. What making the stock takes is not counted.
"""

import argparse
import asyncio
import http.client
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from benchmarks.a2a_search import free_port
from benchmarks.catalog_speed import pace, questions
from benchmarks.network import Network
from benchmarks.processes import served
from benchmarks.servers import SEARCH, envelope
from benchmarks.traffic import add_network_options, network_of
from forecourt.agent import Caller
from forecourt.model import Filters, SearchRequest, Sort
from forecourt.server import create_app, load

_MOST_SECONDS: Final = 20.0
_SEARCH_MS: Final = 0.3
_FACETS_MS: Final = 1.5
_CHECK_SECONDS: Final = 10.0
_MOST_READY_BYTES: Final = 65_536


def timed(calls: Iterable[Callable[[], Any]]) -> tuple[float, float]:
    """Make the calls and return the median and the 99th percentile of their times in milliseconds."""
    taken = []
    for call in calls:
        began = time.perf_counter()
        call()
        taken.append((time.perf_counter() - began) * 1000)
    p50, p99 = np.quantile(taken, (0.5, 0.99), method="inverted_cdf")
    return float(p50), float(p99)


def yes(good: bool) -> str:
    """Return the verdict as all benchmarks print it."""
    return "yes" if good else "NO"


def payloads(count: int, kind: str) -> list[dict[str, Any]]:
    """Return so many questions, no two alike."""
    found = []
    for number, (filters, _) in enumerate(questions(count, seed=11)):
        told: dict[str, Any] = {name: list(texts) for name, texts in filters.terms.items()}
        told["price_max"] = 12_000 + 29 * number
        found.append({"type": f"inventory.{kind}.request", "filters": told})
    return found


def over_http(port: int, sellers: Sequence[str], count: int) -> None:
    """Ask one question after the other over one connection, and print a line each kind."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    chance = random.Random(5)

    def post(path: str, payload: dict[str, Any]) -> None:
        connection.request("POST", path, envelope(payload), {"content-type": "application/json"})
        response = connection.getresponse()
        body = response.read()
        assert response.status == http.HTTPStatus.OK, body[:300]
        assert b".response" in body, body[:300]

    def healthz() -> None:
        connection.request("GET", "/healthz")
        connection.getresponse().read()

    searches, facets = payloads(2 * count, "search"), payloads(2 * count, "facets")

    def own() -> str:
        return f"/dealers/{chance.choice(sellers)}/a2a"

    lines: dict[str, list[Callable[[], None]]] = {
        "nothing (GET /healthz)": [healthz] * count,
        "search, whole network": [partial(post, "/a2a", asked) for asked in searches[:count]],
        "facets, whole network": [partial(post, "/a2a", asked) for asked in facets[:count]],
        "search, one seller": [partial(post, own(), asked) for asked in searches[count:]],
        "facets, one seller": [partial(post, own(), asked) for asked in facets[count:]],
    }
    for name, calls in lines.items():
        p50, p99 = timed(calls)
        print(f"  over HTTP  {name:24} p50 {p50:7.3f} ms   p99 {p99:7.3f} ms", flush=True)
    connection.close()


async def inside(network: Network, count: int) -> None:
    """Open the same deployment in this process, ask its agent, and print a line each kind with the verdicts."""
    app = create_app(load(network.config))
    await app.deployment.open()
    try:
        agent, chance = app.deployment.agent, random.Random(6)
        asked = questions(2 * count, seed=13)
        whole = Caller()

        def one() -> Caller:
            seller = chance.choice(network.sellers)
            return Caller(seller, (seller,))

        def search(asked: tuple[Filters, Sort], caller: Caller) -> None:
            agent._search(SearchRequest(*asked, limit=20), caller)

        def facets(asked: tuple[Filters, Sort], caller: Caller) -> None:
            app.deployment.inventory.catalog().facets(asked[0], dealers=caller.sellers)

        lines: dict[str, tuple[list[Callable[[], None]], float]] = {
            "search, whole network": ([partial(search, each, whole) for each in asked[:count]], _SEARCH_MS),
            "facets, whole network": ([partial(facets, each, whole) for each in asked[:count]], _FACETS_MS),
            "search, one seller": ([partial(search, each, one()) for each in asked[count:]], _SEARCH_MS),
            "facets, one seller": ([partial(facets, each, one()) for each in asked[count:]], _FACETS_MS),
        }
        for name, (calls, most) in lines.items():
            timed(calls[:50])
            p50, p99 = timed(calls)
            print(
                f"  inside     {name:24} p50 {p50:7.3f} ms   p99 {p99:7.3f} ms  "
                f" p50 at most {most}: {yes(p50 <= most)}",
                flush=True,
            )
    finally:
        await app.deployment.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add_network_options(parser, 2000, 300_000)
    parser.add_argument("--questions", type=int, default=1000, help="of each kind")
    chosen = parser.parse_args()
    with network_of(chosen) as network:
        print(f"one step of a plain loop takes {pace():.0f} ns here")
        began = time.perf_counter()
        command = [sys.executable, "-m", "forecourt.cli", "config", "check", "--config", str(network.config)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        checked = time.perf_counter() - began
        print(f"forecourt config check: {checked:.1f} s; at most {_CHECK_SECONDS:g}: {yes(checked <= _CHECK_SECONDS)}")
        began = time.perf_counter()
        with served(network.config, free_port()) as server:
            first = timed([lambda: _first(server.port)])
            taken = time.perf_counter() - began
            held = server.held()
            print(
                f"forecourt serve: ready after {server.ready_seconds:.1f} s ({server.cpu_seconds():.1f} s of CPU), the"
                f" first search {first[0]:.1f} ms later: {taken:.1f} s; at most {_MOST_SECONDS:g}:"
                f" {yes(taken <= _MOST_SECONDS)}"
            )
            print(f"memory: {held.rss_mib:.0f} MiB, of it {held.anonymous_mib:.0f} MiB not file-backed")
            sizes = {path: len(server.get(path)[1]) for path in ("/readyz", "/metrics", "/.well-known/agent-card.json")}
            print("bytes: " + ", ".join(f"{path} {size:,}" for path, size in sizes.items()), end="; ")
            print(f"/readyz at most {_MOST_READY_BYTES:,}: {yes(sizes['/readyz'] <= _MOST_READY_BYTES)}", flush=True)
            over_http(server.port, network.sellers, chosen.questions)
            held = server.held()
            print(f"memory: {held.rss_mib:.0f} MiB, of it {held.anonymous_mib:.0f} MiB not file-backed", flush=True)
        asyncio.run(inside(network, chosen.questions))


def _first(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", "/a2a", envelope(SEARCH), {"content-type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    assert answer["result"]["message"]["parts"], answer
    connection.close()


if __name__ == "__main__":
    main()
