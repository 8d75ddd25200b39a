"""A client far beyond its limit is refused all that is too much, whatever it sends, and the others notice nothing.

What it does to their latency is measured by `python -m benchmarks.noisy_client`; here are the counts, which a busy
machine does not change.
"""

import contextlib
import json
import re
import socket
import threading
from pathlib import Path

from tests.server.running import Reply, RunningAgent, envelope, running, search
from tests.server.test_metrics import value

LIMIT = 20
BODY = json.dumps(envelope(search())).encode()
SEARCH = (
    b"POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
)
BROKEN = b"POST /v1.1/a2a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{"
PAGE = b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"


class Noise(threading.Thread):
    """A client at an address that sends a request again and again and notes what becomes of it."""

    def __init__(self, agent: RunningAgent, address: str, request: bytes, times: int, *, fresh: bool = False) -> None:
        super().__init__()
        self._agent, self._address, self._request, self._times, self._fresh = agent, address, request, times, fresh
        self.served = self.refused = 0

    def run(self) -> None:
        """Send."""
        connection = self._connect()
        for _ in range(self._times):
            if self._fresh:
                connection.close()
                connection = self._connect()
            connection.sendall(self._request)
            reply = Reply.read(connection)
            if reply.status == 429 or b"RATE_LIMITED" in reply.body:
                self.refused += 1
            else:
                self.served += 1
        connection.close()

    def _connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._agent.port), 30, (self._address, 0))


def test_a_noisy_client_is_refused_all_beyond_its_limit_and_polite_ones_nothing(tmp_path: Path) -> None:
    with running(tmp_path, limits={"requests": LIMIT, "seconds": 600}) as agent:
        noisy = [
            Noise(agent, "127.0.0.3", SEARCH, 100 * LIMIT),
            Noise(agent, "127.0.0.4", BROKEN, 10 * LIMIT),
            Noise(agent, "127.0.0.5", PAGE, 10 * LIMIT),
            Noise(agent, "127.0.0.6", SEARCH, 5 * LIMIT, fresh=True),
        ]
        polite = [Noise(agent, f"127.0.0.{10 + number}", SEARCH, LIMIT) for number in range(3)]
        for thread in (*noisy, *polite):
            thread.start()
        for thread in (*noisy, *polite):
            thread.join(60)
        assert [(each.served, each.refused) for each in polite] == [(LIMIT, 0)] * 3
        # Pages have a limit of their own, of five times the calls and of 100 at the least.
        assert [each.served for each in noisy] == [LIMIT, LIMIT, 5 * LIMIT, LIMIT]
        assert [each.refused for each in noisy] == [99 * LIMIT, 9 * LIMIT, 5 * LIMIT, 4 * LIMIT]
        text = agent.get("/metrics").body.decode()
        # The first refusal of a client knows what it asked for; further ones are made before that is read.
        counted = [
            value(text, "forecourt_requests_total", outcome="RATE_LIMITED", contract="3.1", skill=skill)
            for skill in ("none", "inventory.search")
        ]
        assert sum(counted) == 103 * LIMIT
        assert value(text, "forecourt_refused_total", reason="pages") == 5 * LIMIT


def test_connections_and_what_they_hold_stay_bounded_under_a_flood_of_them(tmp_path: Path) -> None:
    with running(tmp_path, server={"max_connections_per_client": 20, "max_connections": 60}) as agent:
        with contextlib.ExitStack() as stack:
            before = memory()
            held = []
            for number in range(300):
                connection = socket.create_connection(("127.0.0.1", agent.port), 30, (f"127.0.0.{3 + number % 2}", 0))
                with contextlib.suppress(OSError):
                    connection.sendall(b"POST /a2a HTTP/1.1\r\nX-Slow: " + b"x" * 20_000)
                held.append(stack.enter_context(connection))
            polite = stack.enter_context(socket.create_connection(("127.0.0.1", agent.port), 30, ("127.0.0.9", 0)))
            for _ in range(5):
                polite.sendall(SEARCH)
                assert "result" in Reply.read(polite).json()
            assert agent.app.deployment.connections.open <= 60
            assert memory() - before < 100 * 1024 * 1024
        assert agent.serves()


def memory() -> int:
    """Return how much memory this process uses, in bytes."""
    status = Path("/proc/self/status")
    found = re.search(r"VmRSS:\s+(\d+)", status.read_text(encoding="ascii")) if status.exists() else None
    return int(found[1]) * 1024 if found else 0
