"""`python -m benchmarks.a2a_search`: how fast a search is answered over A2A, next to the least and to the official SDK.

Three servers run side by side, one worker each: (a) a bare ASGI application that parses the same request and sends the
same bytes, (b) the official a2a-sdk server doing the same search over the same listings, (c) Forecourt. They are
measured in turn, in many short rounds, so that a noisy machine is noisy for all of them; the ratios are their medians.

Forecourt remembers pages of the catalog of the moment, so it is measured twice: with one search again and again, and
with more different searches in turn than it remembers.
"""

import argparse
import socket
import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from benchmarks.load import Measured, http_request, measure
from benchmarks.servers import SEARCH, answer_of, envelope, running, temporary_folder

_LEAST_OF_BARE: Final = 0.4
_LEAST_OF_SDK: Final = 20.0


def free_port() -> int:
    """Return a port that nothing listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=0.7, help="per server and round")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--connections", type=int, default=32)
    chosen = parser.parse_args()

    body = envelope(SEARCH)
    headers = {"A2A-Version": "1.0"}
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        ours = stack.enter_context(running("forecourt", free_port(), folder))
        answer = Path(folder) / "answer.json"
        answer.write_bytes(answer_of(ours, "/a2a", body, headers))
        bare = stack.enter_context(running("bare", free_port(), str(answer)))
        sdk = stack.enter_context(running("a2a_sdk", free_port()))

        request = [http_request("/a2a", body, list(headers.items()))]
        different = [http_request("/a2a", envelope(search), list(headers.items())) for search in searches()]
        served = {
            "bare ASGI": (bare, request),
            "Forecourt": (ours, request),
            "Forecourt, all different": (ours, different),
            "a2a-sdk": (sdk, request),
        }
        runs: dict[str, list[Measured]] = {name: [] for name in served}
        for port, requests in served.values():
            measure(port, requests, connections=chosen.connections, seconds=0.5)
        for _ in range(chosen.rounds):
            for name, (port, requests) in served.items():
                runs[name].append(measure(port, requests, connections=chosen.connections, seconds=chosen.seconds))
        print(f"inventory.search, 20 of {len(answer.read_bytes())} bytes, {chosen.connections} connections, one worker")
        report(runs)


def searches() -> Iterator[dict[str, Any]]:
    """Yield 4,000 searches like the one that is measured, no two of them alike, most with a full page."""
    for step in range(4000):
        yield {**SEARCH, "filters": {**SEARCH["filters"], "price_max": 36_000 + 13 * step}}


def report(runs: dict[str, list[Measured]]) -> None:
    """Print a line a server, and the two ratios that are asked for."""
    print(f"{'server':24} {'requests/s':>11} {'p50 ms':>8} {'p99 ms':>8} {'failed':>7}")
    for name, seen in runs.items():
        rate = statistics.median(run.rate for run in seen)
        p50 = statistics.median(run.percentile(0.5) for run in seen)
        p99 = statistics.median(run.percentile(0.99) for run in seen)
        print(f"{name:24} {rate:11.0f} {p50:8.2f} {p99:8.2f} {sum(run.failures for run in seen):7}")
    for other, least in (("bare ASGI", _LEAST_OF_BARE), ("a2a-sdk", _LEAST_OF_SDK)):
        ratios = [mine.rate / theirs.rate for mine, theirs in zip(runs["Forecourt"], runs[other], strict=True)]
        ratio = statistics.median(ratios)
        verdict = "yes" if ratio >= least else "NO"
        print(
            f"Forecourt / {other}: {ratio:.2f} (rounds {min(ratios):.2f} to {max(ratios):.2f});"
            f" at least {least}: {verdict}"
        )


if __name__ == "__main__":
    main()
