"""`python -m benchmarks.soak`: whether memory, files, threads and the database stay bounded while requests go on.

    python -m benchmarks.soak                  some 60 seconds
    python -m benchmarks.soak --hour           360,000 requests, an hour of a dealer network's, as fast as they go
    python -m benchmarks.soak --postgresql

One server process takes the mixed traffic of `benchmarks.traffic` while its stock is imported again and again: prices
change, vehicles come and go. The requests name thousands of clients' addresses (by X-Forwarded-For of a trusted proxy)
under a limit per client, every second one shows one of many API keys, searches differ, walks go on from cursors of
stocks that are gone, leads are kept and delivered into a folder. So everything that remembers anything fills up.

Between rounds of requests the system is asked what the process holds, and the process what objects it has. The first
third warms up. After it, memory that no file stands behind may grow by 8 MiB in 100,000 requests, by a line through all
samples, and open files and threads by a few in all; the database's log stays under a bound all the time. What grows
rightly is not in this memory: leads are on the disk.
"""

import argparse
import asyncio
import csv
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.a2a_search import free_port
from benchmarks.network import Network, feed_of, import_feeds
from benchmarks.processes import Held, served
from benchmarks.traffic import Mix, add_network_options, capacity, generator, network_of, with_cursors
from forecourt.server.api_keys import new_key
from forecourt.store import open_store

__all__ = ["Sample", "growth", "settled", "verdicts"]

HOUR_REQUESTS: Final = 360_000
_GROWTH_MIB: Final = 8.0
"""How much memory may grow in 100,000 requests once it is warm."""
_NOISE_MIB: Final = 8.0
"""What memory goes up and down by without growing: a short run is not blown up to 100,000 requests."""
_LOG_MIB: Final = 64.0
_FILES: Final = 4
_THREADS: Final = 2
_KEYS: Final = 50
_CLIENTS: Final = 20_000
_IMPORT_PAUSE_SECONDS: Final = 1.0
_SHOWN: Final = 6

MORE: Final = """
[server]
trusted_proxies = ["127.0.0.0/8"]
[access]
keys = true
[limits]
requests = 100000
[pap]
enabled = true
domain = "dealer.localhost"
demonstration = true
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was there after so many requests."""

    requests: int
    held: Held
    log_mib: float


def settled(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Return the samples after the first third of the requests, in which everything fills up."""
    last = samples[-1].requests
    return [sample for sample in samples if sample.requests * 3 >= last]


def growth(samples: Sequence[Sample]) -> float:
    """Return by how many MiB memory grew in a request.

    The median of the slopes between any two samples (Theil and Sen): one sample taken during an import, which needs
    memory for a moment, does not move it, as it would a least-squares line.
    """
    slopes = [
        (late.held.anonymous_mib - early.held.anonymous_mib) / (late.requests - early.requests)
        for number, early in enumerate(samples)
        for late in samples[number + 1 :]
        if late.requests > early.requests
    ]
    return float(np.median(slopes)) if slopes else 0.0


def verdicts(samples: Sequence[Sample]) -> list[tuple[str, bool]]:
    """Return what is asked for, in words with the figures, and whether it is so."""
    warm = settled(samples)
    requests = warm[-1].requests - warm[0].requests
    grown = growth(warm) * requests
    allowed = _NOISE_MIB + _GROWTH_MIB * requests / 100_000
    files = max(sample.held.files for sample in warm) - warm[0].held.files
    # The files of connections come and go with the generator's; what stays after the last is what counts.
    files = min(files, warm[-1].held.files - warm[0].held.files)
    threads = warm[-1].held.threads - warm[0].held.threads
    log = max(sample.log_mib for sample in samples)
    return [
        (f"memory grows by {grown:.1f} MiB in {requests:,} requests; at most {allowed:.1f}", grown <= allowed),
        (f"open files: {files:+}; at most {_FILES:+}", files <= _FILES),
        (f"threads: {threads:+}; at most {_THREADS:+}", threads <= _THREADS),
        (f"the database's log: at most {log:.1f} MiB; bound {_LOG_MIB:g}", log <= _LOG_MIB),
    ]


class Imports:
    """Exchanges the stock of one seller after the other, in a thread of its own."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._ended = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._work()), name="imports")
        self.done = 0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the import that is under way."""
        self._ended.set()
        self._thread.join()

    async def _work(self) -> None:
        chance = random.Random(8)
        while not self._ended.is_set():
            seller = chance.choice(self._network.sellers)
            _change(feed_of(self._network, seller), chance)
            await import_feeds(self._network, [seller], exactly=False)
            self.done += 1
            await asyncio.sleep(_IMPORT_PAUSE_SECONDS)


def _change(feed: Path, chance: random.Random) -> None:
    """Change the price of every fifth vehicle of a feed, and leave out a few, others than the last time."""
    whole = feed.with_suffix(".whole")
    if not whole.exists():
        feed.rename(whole)
    with whole.open(newline="", encoding="utf-8") as file, feed.open("w", newline="", encoding="utf-8") as changed:
        rows = csv.reader(file)
        writer = csv.writer(changed)
        heading = next(rows)
        price = heading.index("sellingprice")
        writer.writerow(heading)
        for row in rows:
            lot = chance.random()
            if lot < 0.2:
                row[price] = str(chance.randrange(5000, 90_000))
            if lot < 0.98:
                writer.writerow(row)


async def make_keys(address: str, count: int) -> tuple[str, ...]:
    """Make API keys, and return them as callers write them."""
    store = open_store(address)
    await store.open()
    try:
        made = [new_key(f"soak-{number}", datetime.now(UTC)) for number in range(count)]
        for _, key in made:
            await store.add_api_key(key)
    finally:
        await store.close()
    return tuple(text for text, _ in made)


def log_mib(network: Network) -> float:
    """Return the size of SQLite's write-ahead log; PostgreSQL's is the server's own."""
    file = network.folder / "data" / "forecourt.db-wal"
    return file.stat().st_size / 2**20 if file.exists() else 0.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add_network_options(parser, 20, 10_000)
    parser.add_argument("--hour", action="store_true", help=f"{HOUR_REQUESTS:,} requests")
    parser.add_argument("--seconds", type=float, default=60.0, help="about how long, without --hour")
    parser.add_argument("--round", type=float, default=4.0, help="seconds of each round of requests")
    parser.add_argument("--load", type=float, default=0.6, help="the share of its capacity that the server gets")
    parser.add_argument("--rate", type=float, help="requests a second, instead of a share of the capacity")
    chosen = parser.parse_args()
    with network_of(chosen, MORE) as network:
        keys = asyncio.run(make_keys(network.address, _KEYS))
        imports = Imports(network)
        with served(network.config, free_port()) as server:
            mix = Mix(network.sellers, network.listings, str(network.folder / "data"), keys, _CLIENTS, changing=True)
            imports.start()
            try:
                with generator(server.port, mix) as source:
                    source.step(50, 2.0)
                    rate = chosen.rate or chosen.load * capacity(server.port, mix, 2.0)
                    samples, before, after = _soak(chosen, network, server, source, rate)
            finally:
                imports.stop()
    print(f"{imports.done} imports meanwhile")
    print("objects that grew most since a third of the way: " + _grown(before, after))
    for words, good in verdicts(samples):
        print(f"{words}: {'yes' if good else 'NO'}")


def _soak(
    chosen: argparse.Namespace, network: Network, server: Any, source: Any, rate: float
) -> tuple[list[Sample], Counter[str], Counter[str]]:
    """Send rounds of requests and take a sample after each; return also the objects after a third and at the end."""
    total = HOUR_REQUESTS if chosen.hour else None
    samples: list[Sample] = []
    before: Counter[str] | None = None
    sent = failures = 0
    ends = time.monotonic() + (3600.0 if chosen.hour else chosen.seconds)
    print(f"{rate:.0f} requests/s in rounds of {chosen.round:g} s\n{'requests':>9} {'RSS MiB':>8} {'anon MiB':>9}"
          f" {'files':>6} {'threads':>8} {'log MiB':>8} {'objects':>9} {'p99 ms':>8} {'errors':>7}")  # fmt: skip
    began = time.monotonic()
    while True:
        # Walks begin anew all the time, in stocks that others have replaced before they end.
        source.mix = with_cursors(server.port, source.mix, 40)
        seen = source.step(rate, chosen.round)
        sent += seen.answered
        failures += seen.failures
        objects = server.objects()
        samples.append(Sample(sent, server.held(), log_mib(network)))
        held = samples[-1].held
        print(
            f"{sent:9,} {held.rss_mib:8.1f} {held.anonymous_mib:9.1f} {held.files:6} {held.threads:8}"
            f" {samples[-1].log_mib:8.1f} {sum(objects.values()):9,} {seen.percentile(0.99):8.1f} {seen.failures:7}",
            flush=True,
        )
        share = sent / total if total else (time.monotonic() - began) / chosen.seconds
        if before is None and share >= 1 / 3:
            before = objects
        if share >= 1 or time.monotonic() > ends:
            print(f"{failures} of {sent:,} requests were not answered as they should be")
            return samples, before or objects, objects


def _grown(before: Counter[str], after: Counter[str]) -> str:
    grown = after.copy()
    grown.subtract(before)
    return ", ".join(f"{name} {count:+,}" for name, count in grown.most_common(_SHOWN))


if __name__ == "__main__":
    main()
