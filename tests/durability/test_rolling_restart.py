"""Workers that are replaced under load lose no request, reset no connection and double no lead.

The clients are as plain as can be: they keep their connections, and a request that fails in any way is never repeated.
"""

import contextlib
import http.client
import itertools
import json
import os
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from tests.durability.dealer import configure, lead
from tests.server.running import JSON, envelope, search
from tests.server.worker_processes import serving_with_workers, wait_for_workers, workers_of
from tests.server_process import ServerProcess
from tests.store.conftest import DATABASES

LONG: Final = bool(os.environ.get("FORECOURT_LONG"))
RESTARTS: Final = 20 if LONG else 2
WORKERS: Final = 2 if LONG else 1
"""One alone is the harder case: nobody else takes connections while it changes."""
READERS: Final = 6
SHOPPERS: Final = 3
_SECONDS: Final = 60


@dataclass(slots=True)
class Load:
    """Clients in threads, each with a connection that it keeps for as long as the server lets it."""

    server: ServerProcess
    answers: Counter[str] = field(default_factory=Counter)
    connections: int = 0
    failures: list[str] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    _ending: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _threads: list[threading.Thread] = field(default_factory=list)

    def begin(self) -> None:
        """Start all clients."""
        self._threads += [threading.Thread(target=self._read, daemon=True) for _ in range(READERS)]
        self._threads += [threading.Thread(target=self._shop, args=(at,), daemon=True) for at in range(SHOPPERS)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let every client finish what it is at."""
        self._ending = True
        for thread in self._threads:
            thread.join(_SECONDS)
            assert not thread.is_alive()

    def _read(self) -> None:
        connection = self.server.connect(_SECONDS)
        with contextlib.closing(connection):
            while not self._ending:
                self._ask(connection, "search", search())
                time.sleep(0.005)

    def _shop(self, number: int) -> None:
        connection = self.server.connect(_SECONDS)
        with contextlib.closing(connection):
            for count in itertools.count():
                if self._ending:
                    return
                key = f"shopper-{number}-{count}"
                if self._ask(connection, "lead", lead(key)):
                    self.acknowledged.append(key)
                time.sleep(0.01)

    def _ask(self, connection: http.client.HTTPConnection, kind: str, payload: Any) -> bool:
        is_new = connection.sock is None
        try:
            connection.request("POST", "/a2a", json.dumps(envelope(payload)), JSON)
            response = connection.getresponse()
            answer = json.loads(response.read())
            assert response.status == 200, response.status
            assert "result" in answer, answer
        except Exception as error:
            with self._lock:
                self.failures.append(f"{kind}: {error!r}")
            connection.close()
            return False
        with self._lock:
            self.answers[kind] += 1
            self.connections += is_new
        return True


@pytest.mark.parametrize("kind", DATABASES if LONG else ["sqlite"])
def test_no_request_is_lost_and_no_lead_doubled_while_workers_are_replaced(kind: str, tmp_path: Path) -> None:
    database = DATABASES[kind]
    with database.fresh(tmp_path) as address:
        with serving_with_workers(tmp_path, WORKERS, configure(tmp_path, address)) as server:
            load = Load(server)
            load.begin()
            for _ in range(RESTARTS):
                before = workers_of(server)
                time.sleep(0.3)
                server.signal(signal.SIGHUP)
                wait_for_workers(server, WORKERS, without=before)
            load.end()
            assert server.log == ""
        rows = database.execute(address, "SELECT key FROM idempotency")
        leads = database.execute(address, "SELECT count(*) FROM lead")
    assert load.failures == []
    assert load.answers["search"] > 50
    assert load.answers["lead"] > 10
    # Clients did change over to the new workers, and only at an answer that told them to.
    assert load.connections > READERS + SHOPPERS
    keys = [key.decode() if isinstance(key, bytes) else key for (key,) in rows]
    assert Counter(keys) == Counter(load.acknowledged)
    assert leads == [(len(load.acknowledged),)]
