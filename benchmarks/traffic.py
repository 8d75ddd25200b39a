"""`python -m benchmarks.traffic`: how many requests a second a server sustains, of all kinds and over all bindings.

    python -m benchmarks.traffic                                    20 sellers, 10,000 listings, SQLite, one process
    python -m benchmarks.traffic --sellers 2000 --listings 300000
    python -m benchmarks.traffic --workers 2 --postgresql

The requests are what assistants ask, in shares that are an assumption and are printed: searches, half of them unlike
any before, pages that follow, facets, vehicles, dealers, leads each with a key of its own, and requests that are wrong;
to the whole network and to single sellers; over A2A, MCP and PAP. PAP needs its demonstration, which is one process's:
with workers its share goes over A2A.

They come open-loop (`benchmarks.open_loop`) from a process of its own, at rates that rise step by step. A rate is
sustained when the 99th percentile of the latency, counted from when requests were due, stays under a bound, all answers
are what they should be and as many came as were asked for. The highest such rate is the result. A step at which the
generator was at its end instead of the server, or the machine busy with something else, says so and is no result.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from benchmarks.a2a_search import free_port
from benchmarks.catalog_speed import questions
from benchmarks.lead_rate import payload as lead_payload
from benchmarks.load import ADDRESSES, http_request, measure
from benchmarks.network import (
    LOCAL_POSTGRESQL,
    Network,
    make_network,
    postgresql_schema,
    share_of,
    stock_number,
)
from benchmarks.open_loop import Due, Seen, arrivals, run
from benchmarks.pap_call import Served as PAPCaller
from benchmarks.processes import served
from benchmarks.servers import envelope, temporary_folder
from forecourt.server.pap.demonstration import prepare

__all__ = ["BOUND_MS", "SHARES", "Generator", "Mix", "capacity", "is_sustained", "sustained"]

BOUND_MS: Final = 50.0
"""The 99th percentile that a sustained rate keeps under, unless another is asked for."""

SHARES: Final = {
    "search": 46,
    "next page": 8,
    "facets": 12,
    "vehicle": 18,
    "dealer": 6,
    "tools": 2,
    "lead": 4,
    "wrong": 4,
}
"""How many of a hundred requests are of which kind: an assumption, since nobody has measured such agents' traffic."""

BINDINGS: Final = {"a2a": 70, "mcp": 25, "pap": 5}
"""How many of a hundred calls come by which binding; an assumption as well."""

_OF_ONE_SELLER: Final = 0.5
"""The share of requests at a seller's own address, in a network."""
_POPULAR: Final = 0.5
"""The share of searches that are among the few that everybody asks."""
_MCP_HEADERS: Final = [("Accept", "application/json, text/event-stream"), ("MCP-Protocol-Version", "2025-11-25")]
_MOST_ERRORS: Final = 0.001
_LEAST_ACHIEVED: Final = 0.97


@dataclass(frozen=True, slots=True)
class Mix:
    """Which requests there are: everything that the generator's process needs to make them."""

    sellers: tuple[str, ...]
    listings: int
    pap_folder: str | None = None
    """Where the data of PAP's demonstration is; None sends nothing over PAP."""
    keys: tuple[str, ...] = ()
    """API keys, one of which comes with every second request over A2A and MCP."""
    clients: int = 0
    """From how many addresses requests say that they come, by X-Forwarded-For; 0 says nothing."""
    changing: bool = False
    """Whether the stock changes meanwhile, so that a vehicle may be gone when it is asked for."""
    cursors: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Paths and payloads, as JSON, of searches that go on from a cursor."""

    def vehicle(self, chance: random.Random) -> tuple[str, str]:
        """Return some seller and the stock number of a vehicle of its."""
        number = chance.randrange(len(self.sellers))
        return self.sellers[number], stock_number(chance.choice(share_of(len(self.sellers), self.listings, number)))


def search_payloads(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield searches: half of them from a few dozen that everybody asks, half unlike any other."""
    chance = random.Random(seed)
    popular = [_as_payload(*asked) for asked in questions(40, seed=3)]
    for number, asked in enumerate(questions(count, seed)):
        if chance.random() < _POPULAR:
            yield chance.choice(popular)
        else:
            own = _as_payload(*asked)
            own.setdefault("filters", {})["price_max"] = 15_000 + (number * 37 + seed * 13) % 80_000
            yield own


def _as_payload(filters: Any, sort: Any) -> dict[str, Any]:
    told: dict[str, Any] = {member: list(texts) for member, texts in filters.terms.items()}
    told |= {f"{member}_min": bound for member, bound in filters.at_least.items()}
    told |= {f"{member}_max": bound for member, bound in filters.at_most.items()}
    order = "desc" if sort.descending else "asc"
    return {
        "type": "inventory.search.request",
        "filters": told,
        "sort": {"field": sort.field, "order": order},
        "pagination": {"limit": 20},
    }


class Requests:
    """Makes requests of a mix. `pap` is a caller with a Session, where there is PAP."""

    def __init__(self, mix: Mix, seed: int, pap: PAPCaller | None = None) -> None:
        self._mix = mix
        self._chance = random.Random(seed)
        self._seed = seed
        self._pap = pap
        self._run = uuid.uuid4().hex[:12]

    def make(self, count: int) -> list[Due]:
        """Return so many requests, in the shares of the mix and in random order."""
        kinds = self._chance.choices(list(SHARES), list(SHARES.values()), k=count)
        searches = search_payloads(count, self._seed)
        return [self._one(kind, number, searches) for number, kind in enumerate(kinds)]

    def _one(self, kind: str, number: int, searches: Iterator[dict[str, Any]]) -> Due:
        mix, chance = self._mix, self._chance
        seller, stock = mix.vehicle(chance)
        alone = len(mix.sellers) == 1
        whole = alone or chance.random() >= _OF_ONE_SELLER
        prefix = "" if whole else f"/dealers/{seller}"
        named = {"dealer_id": seller} if whole and not alone else {}
        mark = ""
        binding = chance.choices(list(BINDINGS), list(BINDINGS.values()))[0]
        payload: dict[str, Any]
        if kind == "tools":
            return self._mcp(prefix, "tools/list", {}, b"aap_inventory_search")
        if kind == "next page" and mix.cursors:
            path, text = chance.choice(mix.cursors)
            # A walk belongs to who began it, who showed no key.
            request = http_request(path, envelope(json.loads(text)), [("A2A-Version", "1.0")])
            return Due(request, b"inventory.search.response")
        if kind in ("search", "next page"):
            payload, mark = next(searches), "inventory.search.response"
        elif kind == "facets":
            payload, mark = {**next(searches), "type": "inventory.facets.request"}, "inventory.facets.response"
            del payload["sort"], payload["pagination"]
        elif kind == "vehicle":
            payload = {"type": "inventory.vehicle.request", "stock": stock, **named}
            mark = "inventory.vehicle.response"
        elif kind == "dealer":
            payload, mark = {"type": "dealer.information.request", **named}, "dealer.information.response"
        elif kind == "lead":
            payload = {**lead_payload(f"{self._run}-{number}"), "vehicle_of_interest": {"stock": stock}, **named}
            mark = "lead.submit.response"
        else:
            payload, mark = self._wrong(chance.randrange(3), named)
            if payload["type"] == "lead.submit.request":
                binding = "a2a"
        if mix.changing and kind in ("vehicle", "lead"):
            mark = ""
        if binding == "pap" and self._pap is not None and kind not in ("wrong", "lead"):
            return self._over_pap(prefix, payload, mark.encode())
        if binding == "mcp" and kind != "wrong":
            name = f"aap_{payload['type'].removesuffix('.request').replace('.', '_')}"
            arguments = {member: value for member, value in payload.items() if member != "type"}
            return self._mcp(prefix, "tools/call", {"name": name, "arguments": arguments}, mark.encode())
        return self._a2a(f"{prefix}/a2a", payload, mark.encode())

    def _wrong(self, which: int, named: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Return a request that is refused, and what the refusal says."""
        if which == 0:
            wrong = {"type": "inventory.search.request", "filters": {"yaer_min": 2020}}
            return wrong, "SCHEMA_VALIDATION_FAILED"
        if which == 1:
            return {"type": "inventory.vehicle.request", "stock": f"gone-{self._chance.randrange(10**6)}", **named}, (
                "VEHICLE_NOT_FOUND"
            )
        return {"type": "inventory.everything.request"}, '"error"'

    def _common(self) -> list[tuple[str, str]]:
        headers = []
        if self._mix.clients:
            number = self._chance.randrange(self._mix.clients)
            headers.append(("X-Forwarded-For", f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"))
        if self._mix.keys and self._chance.random() < 0.5:
            headers.append(("X-API-Key", self._chance.choice(self._mix.keys)))
        return headers

    def _a2a(self, path: str, payload: dict[str, Any], mark: bytes) -> Due:
        return Due(http_request(path, envelope(payload), [("A2A-Version", "1.0"), *self._common()]), mark)

    def _mcp(self, prefix: str, method: str, params: dict[str, Any], mark: bytes) -> Due:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        return Due(http_request(f"{prefix}/mcp", body, [*_MCP_HEADERS, *self._common()]), mark)

    def _over_pap(self, prefix: str, payload: dict[str, Any], mark: bytes) -> Due:
        assert self._pap is not None
        path = f"{prefix}/api/{payload['type'].removesuffix('.request')}"
        proven = [(name.decode(), value.decode()) for name, value in self._pap.headers(path)[2:]]
        # Without a mark: the vehicle may be gone, which is another status here.
        statuses = (b"200",) if mark else (b"200", b"409")
        return Due(http_request(path, json.dumps(payload).encode(), proven), mark, statuses)


def _generate(port: int, mix: Mix, rate: float, seconds: float, seed: int, connections: int) -> Seen:
    """Make the requests of one step, send them, and return what was seen. Runs in the generator's process."""
    pap = None
    if mix.pap_folder is not None:
        pap = PAPCaller(port, prepare(Path(mix.pap_folder)).agent_key)
        asyncio.run(pap.start())
    times = arrivals(rate, seconds, seed)
    requests = Requests(mix, seed, pap).make(len(times))
    return run(port, requests, times, connections=connections, addresses=ADDRESSES)


class Generator:
    """The process that the requests come from; it stays from step to step."""

    def __init__(self, port: int, mix: Mix, connections: int = 64) -> None:
        self._port, self.mix, self._connections = port, mix, connections
        self._seed = int(time.time()) % 100_000
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))

    def step(self, rate: float, seconds: float) -> Seen:
        """Send requests at a rate for so long, and return what was seen. No two steps send the same leads."""
        self._seed += 1
        return self._pool.submit(_generate, self._port, self.mix, rate, seconds, self._seed, self._connections).result()

    def close(self) -> None:
        """End the process."""
        self._pool.shutdown()


@contextmanager
def generator(port: int, mix: Mix, connections: int = 64) -> Iterator[Generator]:
    """Run a generator until the block ends, its mix completed with cursors of this server's."""
    found = Generator(port, with_cursors(port, mix), connections)
    try:
        yield found
    finally:
        found.close()


def with_cursors(port: int, mix: Mix, count: int = 100) -> Mix:
    """Return the mix with searches that go on from where first pages ended."""
    cursors = []
    for payload in search_payloads(count, seed=random.randrange(10_000)):
        address = f"http://127.0.0.1:{port}/a2a"
        request = urllib.request.Request(address, envelope(payload), {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as response:
            answer = json.load(response)
        cursor = answer["result"]["message"]["parts"][0]["data"]["data"].get("next_cursor")
        if cursor:
            cursors.append(("/a2a", json.dumps({**payload, "pagination": {"limit": 20, "cursor": cursor}})))
    return replace(mix, cursors=tuple(cursors))


def is_sustained(seen: Seen, bound_ms: float) -> bool:
    """Tell whether a server kept up: by the latencies, by the answers, and by how many there were of them."""
    return (
        not seen.gave_up
        and not seen.excuse
        and seen.percentile(0.99) <= bound_ms
        and seen.failures <= _MOST_ERRORS * len(seen.latencies_ms)
        and seen.achieved >= _LEAST_ACHIEVED * seen.offered
    )


def capacity(port: int, mix: Mix, seconds: float = 1.0) -> float:
    """Return about how many requests a second are answered when each of 32 callers asks as soon as it may."""
    requests = [due.wire for due in Requests(mix, 5).make(int(4000 * seconds))]
    seen = measure(port, requests, connections=32, seconds=seconds, total=len(requests))
    return seen.rate


def sustained(
    source: Generator, rates: Sequence[float], seconds: float, bound_ms: float, show: Callable[[str], None] = print
) -> tuple[float, Seen | None]:
    """Send at the rates in turn, and return the highest that was sustained, with what was seen; 0 when none was.

    One step that fails may be the machine's fault and is tried again; two in a row are the end.
    """
    best: tuple[float, Seen | None] = 0.0, None
    for rate in rates:
        for _ in range(2):
            seen = source.step(rate, seconds)
            good = is_sustained(seen, bound_ms)
            show(line(rate, seen, good=good))
            if good:
                break
        if not good:
            break
        best = rate, seen
    return best


HEADING: Final = (
    f"{'due/s':>7} {'answers/s':>9} {'p50':>8} {'p90':>8} {'p99':>8} {'p99.9':>8} {'max':>8} {'errors':>6}  sustained"
)


def line(rate: float, seen: Seen, *, good: bool) -> str:
    """Return what one step showed, latencies in milliseconds."""
    parts = " ".join(f"{seen.percentile(share):8.2f}" for share in (0.5, 0.9, 0.99, 0.999, 1.0))
    verdict = "yes" if good else "NO"
    if seen.excuse:
        verdict = f"no result: {seen.excuse}"
    elif seen.gave_up:
        verdict = "NO, given up"
    return f"{rate:7.0f} {seen.achieved:9.0f} {parts} {seen.failures:6}  {verdict}"


def rising(about: float, steps: int = 9) -> list[float]:
    """Return rates from a third of a capacity to a little above it."""
    return [about * (0.3 + 0.1 * step) for step in range(steps)]


@contextmanager
def network_of(chosen: argparse.Namespace, more: str = "") -> Iterator[Network]:
    """Make the network that the options ask for, gone when the block ends."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(temporary_folder()))
        address = None
        if chosen.postgresql is not None:
            address = stack.enter_context(postgresql_schema(chosen.postgresql))
        began = time.perf_counter()
        network = make_network(folder, chosen.sellers, chosen.listings, address, more)
        store = address.partition(":")[0] if address else "SQLite"
        took = time.perf_counter() - began
        print(
            f"{chosen.sellers:,} sellers, {chosen.listings:,} listings in {store}: made in {took:.1f} s, of it"
            f" {network.import_seconds:.1f} s for importing them",
            flush=True,
        )
        yield network


def add_network_options(parser: argparse.ArgumentParser, sellers: int, listings: int) -> None:
    """Add the options that `network_of` reads."""
    local = os.environ.get("FORECOURT_TEST_POSTGRES", LOCAL_POSTGRESQL)
    parser.add_argument("--sellers", type=int, default=sellers)
    parser.add_argument("--listings", type=int, default=listings)
    parser.add_argument(
        "--postgresql", nargs="?", const=local, default=None, metavar="ADDRESS", help="keep all in PostgreSQL"
    )


def serve_options(workers: int) -> list[str]:
    """Return the options of `forecourt serve` for a mix with PAP where that can be."""
    return ["--workers", str(workers)] if workers > 1 else ["--pap-dev"]


def mix_of(network: Network, workers: int = 1, **more: Any) -> Mix:
    """Return the mix for a network that `served` was given with `serve_options`."""
    pap = str(network.folder / "data") if workers == 1 else None
    return Mix(network.sellers, network.listings, pap, **more)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add_network_options(parser, 20, 10_000)
    parser.add_argument("--workers", type=int, default=1, help="processes of the server")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each step")
    parser.add_argument("--bound", type=float, default=BOUND_MS, help="what p99 must stay under, in ms")
    parser.add_argument("--rates", type=float, nargs="*", help="instead of rates that rise to the capacity")
    parser.add_argument("--connections", type=int, default=64)
    chosen = parser.parse_args()
    with network_of(chosen) as network, served(network.config, free_port(), *serve_options(chosen.workers)) as server:
        mix = mix_of(network, chosen.workers)
        print("of 100 requests: " + ", ".join(f"{share} {kind}" for kind, share in SHARES.items()))
        over = BINDINGS if mix.pap_folder else {"a2a": 75, "mcp": 25}
        print("of 100 calls: " + ", ".join(f"{share} over {name}" for name, share in over.items()))
        with generator(server.port, mix, chosen.connections) as source:
            source.step(100, 1.0)
            rates = chosen.rates or rising(capacity(server.port, mix))
            print(f"latency in ms from when a request was due; sustained: p99 under {chosen.bound:g} ms\n{HEADING}")
            best, _ = sustained(source, rates, chosen.seconds, chosen.bound)
        held = server.held()
        print(f"sustained: {best:.0f} requests/s by {chosen.workers} process(es), {held.rss_mib:.0f} MiB together")


if __name__ == "__main__":
    main()
