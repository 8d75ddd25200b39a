"""`python -m benchmarks.sizing`: the table of docs/operations/sizing.md, as Markdown.

    python -m benchmarks.sizing                 some minutes; the machine should have nothing else to do
    python -m benchmarks.sizing --million       one seller with a million listings as well, as long again
    python -m benchmarks.sizing --quick         very small deployments and a moment of load: a smoke test
    python -m benchmarks.sizing --postgresql

For each deployment a network is made in an empty folder, its feeds are imported as `forecourt import` does, one after
the other, and `forecourt serve` is started with one process. The mixed traffic of `benchmarks.traffic` then comes
open-loop at rates that rise until the 99th percentile passes 50 ms; the last rate before that is the sustained one, and
at half of it the latencies of the table are taken. Leads are measured by themselves, 32 callers at a time, each lead
durable before it is answered and delivered into a folder. Progress goes to standard error, the table to standard
output.
"""

import argparse
import os
import platform
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.a2a_search import free_port
from benchmarks.catalog_speed import pace
from benchmarks.lead_rate import payload as lead_payload
from benchmarks.load import http_request, measure
from benchmarks.network import LOCAL_POSTGRESQL, Network, make_network, postgresql_schema
from benchmarks.processes import served
from benchmarks.servers import envelope, temporary_folder
from benchmarks.traffic import BOUND_MS, capacity, generator, line, mix_of, rising, serve_options, sustained

__all__ = ["COLUMNS", "ROWS", "Row", "Sized", "table"]

_CLIENTS: Final = 32


@dataclass(frozen=True, slots=True)
class Row:
    """A deployment that the table has a row of."""

    name: str
    sellers: int
    listings: int

    def smaller(self) -> "Row":
        """Return the same deployment with a hundredth of the sellers and a thousandth of the stock."""
        sellers = max(1, self.sellers // 100)
        return Row(self.name, sellers, max(3 * sellers, self.listings // 1000))


ROWS: Final = (
    Row("one dealer, 500 listings", 1, 500),
    Row("20 dealers, 10,000 listings", 20, 10_000),
    Row("200 dealers, 50,000 listings", 200, 50_000),
    Row("2,000 dealers, 300,000 listings", 2000, 300_000),
)
MILLION: Final = Row("one seller, 1,000,000 listings", 1, 1_000_000)


@dataclass(frozen=True, slots=True)
class Sized:
    """What one deployment showed."""

    start_seconds: float
    memory_mib: float
    disk_mb: float
    import_seconds: float
    requests: float
    leads: float
    p50_ms: float
    p99_ms: float


COLUMNS: Final[Mapping[str, Callable[[Sized], str]]] = {
    "start s": lambda sized: f"{sized.start_seconds:.1f}",
    "memory MiB": lambda sized: f"{sized.memory_mib:.0f}",
    "disk MB": lambda sized: f"{sized.disk_mb:.0f}",
    "import s": lambda sized: f"{sized.import_seconds:.1f}",
    "requests/s": lambda sized: f"{sized.requests:.0f}" if sized.requests else "none",
    "leads/s": lambda sized: f"{sized.leads:.0f}",
    "p50 ms": lambda sized: f"{sized.p50_ms:.1f}",
    "p99 ms": lambda sized: f"{sized.p99_ms:.1f}",
}
"""The columns beside the deployment's name, and how each is written."""


def table(found: Sequence[tuple[Row, Sized]]) -> str:
    """Return the table as Markdown."""
    lines = ["| deployment | " + " | ".join(COLUMNS) + " |", "|---|" + "---:|" * len(COLUMNS)]
    lines += [
        f"| {row.name} | " + " | ".join(write(sized) for write in COLUMNS.values()) + " |" for row, sized in found
    ]
    return "\n".join(lines)


def size(row: Row, *, quick: bool = False, postgresql: str | None = None) -> Sized:
    """Measure one deployment."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(temporary_folder()))
        address = None if postgresql is None else stack.enter_context(postgresql_schema(postgresql))
        network = make_network(folder, row.sellers, row.listings, address)
        _say(f"{row.name}: imported in {network.import_seconds:.1f} s")
        with served(network.config, free_port(), *serve_options(1)) as server:
            mix = mix_of(network)
            with generator(server.port, mix) as source:
                source.step(20 if quick else 200, 0.5 if quick else 2.0)
                about = capacity(server.port, mix, 0.2 if quick else 2.0)
                _say(f"ready in {server.ready_seconds:.1f} s; some {about:.0f} requests/s at the most")
                rates = [20.0] if quick else rising(about)
                best, _ = sustained(source, rates, 0.5 if quick else 3.0, BOUND_MS, show=_say)
                seen = source.step(max(best / 2, 10.0), 0.5 if quick else 5.0)
                _say(line(max(best / 2, 10.0), seen, good=True))
            leads = leads_per_second(server.port, network, 0.3 if quick else 4.0)
            held = server.held()
        return Sized(
            server.ready_seconds,
            held.rss_mib,
            _bytes_below(folder / "data", address) / 1e6,
            network.import_seconds,
            best,
            leads,
            seen.percentile(0.5),
            seen.percentile(0.99),
        )


def leads_per_second(port: int, network: Network, seconds: float) -> float:
    """Return how many leads a second are taken of 32 callers, each lead under a key of its own. Raises SystemExit."""
    name = uuid.uuid4().hex[:12]
    requests = []
    for number in range(int(2000 * seconds)):
        lead = {**lead_payload(f"{name}-{number}"), "dealer_id": network.sellers[number % len(network.sellers)]}
        requests.append(http_request("/a2a", envelope(lead)))
    seen = measure(port, requests, connections=_CLIENTS, seconds=seconds, total=len(requests))
    if seen.failures:
        raise SystemExit(f"of {seen.requests} leads {seen.failures} failed")
    return seen.rate


def machine() -> str:
    """Return what the figures are of, in a sentence."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
        model = next((each.partition(":")[2].strip() for each in lines if each.startswith("model name")), model)
    return (
        f"{os.cpu_count()} processors ({model}), {platform.system()}, Python {platform.python_version()}; one step of a"
        f" plain loop took {pace():.0f} ns"
    )


def _bytes_below(folder: Path, address: str | None) -> int:
    if address is not None:
        import psycopg

        with psycopg.connect(address) as connection:
            tables = "FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
            found = connection.execute(f"SELECT sum(pg_total_relation_size(oid)) {tables}".encode()).fetchone()
            return int(found[0]) if found else 0
    return sum(file.stat().st_size for file in folder.rglob("forecourt.db*"))


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    local = os.environ.get("FORECOURT_TEST_POSTGRES", LOCAL_POSTGRESQL)
    parser.add_argument("--quick", action="store_true", help="very small deployments and a moment of load")
    parser.add_argument("--million", action="store_true", help="one seller with a million listings as well")
    parser.add_argument("--rows", type=int, nargs="*", metavar="N", help="only these rows, counted from 1")
    parser.add_argument("--postgresql", nargs="?", const=local, metavar="ADDRESS", help="keep all in PostgreSQL")
    chosen = parser.parse_args(arguments)
    rows = [*ROWS, MILLION] if chosen.million else list(ROWS)
    if chosen.rows:
        rows = [rows[number - 1] for number in chosen.rows]
    began = time.perf_counter()
    found = []
    for row in rows:
        sized = size(row.smaller() if chosen.quick else row, quick=chosen.quick, postgresql=chosen.postgresql)
        found.append((row, sized))
    _say(f"took {time.perf_counter() - began:.0f} s")
    print(table(found))
    print(f"\nMeasured on {machine()}.")


if __name__ == "__main__":
    main()
