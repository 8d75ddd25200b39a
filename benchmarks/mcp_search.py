"""How many `tools/call` of a search a second, next to the official MCP SDK's low-level server with the same tool.

Both answer the same request over the same listings, in turns, each from one process on one core: stateless, plain JSON,
revision by revision. Run it with `python -m benchmarks.mcp_search`; it needs the extra `dev`.
"""

import argparse
import json
import statistics
from contextlib import ExitStack
from typing import Any, Final

from benchmarks.a2a_search import free_port
from benchmarks.load import Measured, http_request, measure
from benchmarks.servers import SEARCH, answer_of, running, temporary_folder

_LEAST_OF_SDK: Final = 3.0
_TOOL: Final = "aap_inventory_search"
_SINGLE: Final = "2026-07-28"


def request(revision: str) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of the call that is measured."""
    arguments = {name: value for name, value in SEARCH.items() if name != "type"}
    params: dict[str, Any] = {"name": _TOOL, "arguments": arguments}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": revision}
    if revision == _SINGLE:
        meta = {"protocolVersion": revision, "clientCapabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()}
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": _TOOL}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode(), headers


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=0.7, help="per server and round")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--connections", type=int, default=32)
    chosen = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        ports = {
            "Forecourt": stack.enter_context(running("forecourt", free_port(), folder)),
            "mcp SDK": stack.enter_context(running("mcp_sdk", free_port())),
        }
        for revision in (_SINGLE, "2025-11-25"):
            body, headers = request(revision)
            found = {name: answer_of(port, "/mcp", body, headers) for name, port in ports.items()}
            vehicles = {name: _vehicles(answer) for name, answer in found.items()}
            assert vehicles["Forecourt"] == vehicles["mcp SDK"], "the servers answer differently"
            requests = [http_request("/mcp", body, list(headers.items()))]
            runs: dict[str, list[Measured]] = {name: [] for name in ports}
            for port in ports.values():
                measure(port, requests, connections=chosen.connections, seconds=0.5)
            for _ in range(chosen.rounds):
                for name, port in ports.items():
                    runs[name].append(measure(port, requests, connections=chosen.connections, seconds=chosen.seconds))
            length = len(found["Forecourt"])
            print(f"tools/call of a search, revision {revision}, {length} bytes, {chosen.connections} connections")
            report(runs)


def _vehicles(answer: bytes) -> list[str]:
    result = json.loads(answer)["result"]
    return [vehicle["vehicle_id"] for vehicle in result["structuredContent"]["data"]["vehicles"]]


def report(runs: dict[str, list[Measured]]) -> None:
    """Print a line a server, and the ratio that is asked for."""
    print(f"{'server':12} {'requests/s':>11} {'p50 ms':>8} {'p99 ms':>8} {'failed':>7}")
    for name, seen in runs.items():
        rate = statistics.median(run.rate for run in seen)
        p50 = statistics.median(run.percentile(0.5) for run in seen)
        p99 = statistics.median(run.percentile(0.99) for run in seen)
        print(f"{name:12} {rate:11.0f} {p50:8.2f} {p99:8.2f} {sum(run.failures for run in seen):7}")
    ratios = [mine.rate / theirs.rate for mine, theirs in zip(runs["Forecourt"], runs["mcp SDK"], strict=True)]
    ratio = statistics.median(ratios)
    verdict = "yes" if ratio >= _LEAST_OF_SDK else "NO"
    print(
        f"Forecourt / mcp SDK: {ratio:.2f} (rounds {min(ratios):.2f} to {max(ratios):.2f});"
        f" at least {_LEAST_OF_SDK}: {verdict}\n"
    )


if __name__ == "__main__":
    main()
