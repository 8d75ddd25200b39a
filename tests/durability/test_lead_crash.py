"""A server killed at any moment loses no acknowledged lead and doubles none (CONTRACTS.md section 6).

Shoppers repeat a submission under its key until they have a receipt, as "Errors and retries" tells them to; so in the
end every key has a receipt, and what is kept must be exactly what was acknowledged.
"""

import asyncio
import http.client
import itertools
import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from tests.durability.dealer import SCOPE, configure, lead, submit, visit
from tests.server_process import ServerProcess
from tests.store.conftest import DATABASES
from tests.store.database import Database

from forecourt.store import LeadRecord, Remembered, open_store

KILLS: Final = 50 if os.environ.get("FORECOURT_LONG") else 4
SHOPPERS: Final = 8
LONGEST_LIFE: Final = 0.8
"""Seconds of load before a kill, at the most."""
PATIENCE: Final = 120
DELIVERY_PATIENCE: Final = 240 if KILLS > 10 else 40


@dataclass(slots=True)
class Load:
    """Shoppers in threads, each with one lead after the other."""

    seed: int
    payloads: dict[str, dict[str, Any]] = field(default_factory=dict)
    receipts: dict[str, bytes] = field(default_factory=dict)
    repeats: int = 0
    _server: ServerProcess | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _ending: bool = False

    def serve(self, server: ServerProcess | None) -> None:
        """Tell the shoppers where the server is now; None while there is none."""
        with self._changed:
            self._server = server
            self._changed.notify_all()

    def end(self) -> None:
        """Let every shopper end once the lead that it is at is acknowledged."""
        self._ending = True

    def acknowledged(self, more_than: int) -> None:
        """Return once more leads than these are acknowledged."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.receipts) > more_than, PATIENCE)

    def shop(self, number: int) -> None:
        """Submit leads until told to end, some of them with an appointment that others want too."""
        chance = random.Random(self.seed + number)
        for count in itertools.count():
            if self._ending:
                return
            key = f"shopper-{number}-{count}"
            members = visit(_some_time(chance)) if chance.random() < 0.25 else {}
            self.payloads[key] = lead(key, **members)
            receipt = self._until_acknowledged(self.payloads[key])
            with self._changed:
                self.receipts[key] = receipt
                self._changed.notify_all()

    def _until_acknowledged(self, payload: dict[str, Any]) -> bytes:
        while True:
            with self._changed:
                assert self._changed.wait_for(lambda: self._server is not None, PATIENCE)
                server = self._server
            assert server is not None
            try:
                answer = submit(server, payload)
            except (OSError, http.client.HTTPException):
                self._wait_for_another(server)
                continue
            assert answer.error is None or answer.error["retryable"], answer.error
            if answer.error is None:
                return answer.payload

    def _wait_for_another(self, dead: ServerProcess) -> None:
        with self._changed:
            self.repeats += 1
            assert self._changed.wait_for(lambda: self._server is not dead, PATIENCE)


def _some_time(chance: random.Random) -> str:
    at = datetime.now(UTC) + timedelta(days=chance.randint(3, 40))
    return at.replace(hour=chance.randint(17, 23), minute=0, second=0, microsecond=0).isoformat()


@dataclass(slots=True)
class Kept:
    """What the store and the folder hold in the end."""

    leads: list[LeadRecord]
    known: dict[str, Remembered | None]
    deliveries: Counter[str]
    """By lead, those that are delivered."""
    waiting: int
    files: Counter[str]
    """By lead."""


async def look(address: str, keys: list[str], database: Database, files: Iterable[Path]) -> Kept:
    """Read everything, past the server."""
    store = open_store(address)
    await store.open()
    now = datetime.now(UTC)
    leads = list(await store.leads(None, 1_000_000))
    known = {key: await store.recall(SCOPE, key, now) for key in keys}
    await store.close()
    rows = database.execute(address, "SELECT lead_id, status FROM delivery")
    return Kept(
        leads,
        known,
        Counter(lead_id for lead_id, status in rows if status == "delivered"),
        sum(status != "delivered" for _, status in rows),
        Counter(path.name.partition("-")[0] for path in files),
    )


def wait_for_deliveries(address: str, database: Database) -> None:
    """Return once nothing waits to be sent, sooner than the lease of 45 seconds that is configured away would end."""
    end = time.monotonic() + DELIVERY_PATIENCE
    while database.execute(address, "SELECT count(*) FROM delivery WHERE status = 'waiting'")[0][0]:
        assert time.monotonic() < end, "deliveries still wait"
        time.sleep(0.1)


def run_and_kill(load: Load, config: Path, folder: Path, seed: int) -> ServerProcess:
    """Kill the server again and again under load; return the last one, which lives and has answered everybody."""
    folder.mkdir()
    chance = random.Random(seed)
    shoppers = [threading.Thread(target=load.shop, args=(number,), daemon=True) for number in range(SHOPPERS)]
    for shopper in shoppers:
        shopper.start()
    for _ in range(KILLS):
        server = ServerProcess(folder, config)
        try:
            server.wait()
            before = len(load.receipts)
            load.serve(server)
            load.acknowledged(before)
            time.sleep(chance.uniform(0, LONGEST_LIFE))
        finally:
            server.kill()
            load.serve(None)
    last = ServerProcess(folder, config)
    last.wait()
    load.end()
    load.serve(last)
    for shopper in shoppers:
        shopper.join(PATIENCE)
        assert not shopper.is_alive()
    return last


@pytest.mark.parametrize("kind", DATABASES)
def test_a_server_killed_under_load_loses_no_acknowledged_lead_doubles_none_and_delivers_all(
    kind: str, tmp_path: Path
) -> None:
    database = DATABASES[kind]
    load = Load(seed=4)
    with database.fresh(tmp_path) as address:
        server = run_and_kill(load, configure(tmp_path, address), tmp_path / "server", seed=4)
        try:
            wait_for_deliveries(address, database)
        finally:
            server.stop()
        files = (tmp_path / "server" / "data" / "leads").glob("*.adf.xml")
        kept = asyncio.run(look(address, list(load.payloads), database, files))
    messages = Counter(json.loads(row.business)["message"] for row in kept.leads)
    lost = [key for key in load.receipts if messages[load.payloads[key]["message"]] == 0]
    doubled = [message for message, count in messages.items() if count > 1]
    print(  # noqa: T201 - the figures, shown by -s or with a failure
        f"{kind}: {KILLS} kills, acknowledged {len(load.receipts)}, repeated {load.repeats}, kept {len(kept.leads)},"
        f" lost {len(lost)}, doubled {len(doubled)}, delivered {sum(kept.deliveries.values())},"
        f" files {sum(kept.files.values())}"
    )
    assert (lost, doubled) == ([], [])
    assert load.receipts.keys() == load.payloads.keys()
    assert len(kept.leads) == len(load.receipts) >= KILLS
    by_id = {row.lead_id: row for row in kept.leads}
    for key, receipt in load.receipts.items():
        told, known = json.loads(receipt), kept.known[key]
        row = by_id[told["data"]["lead_id"]]
        assert known is not None
        assert known.receipt == row.receipt
        assert {"type": told["type"], **json.loads(row.receipt)} == told
        # The grant as the shopper gave it, beside the lead that it is for.
        assert json.loads(row.grant) == load.payloads[key]["consent"]
        assert json.loads(row.business)["message"] == load.payloads[key]["message"]
    # Every lead went out under one delivery id, and its file is there once.
    assert kept.waiting == 0
    assert kept.deliveries == kept.files == Counter(by_id.keys())
    # Nobody was promised an hour that another has: this slot has room for one.
    slots = Counter(
        (row.rooftop, row.booking.department, row.booking.start)
        for row in kept.leads
        if row.booking is not None and row.booking.status == "confirmed"
    )
    assert slots
    assert set(slots.values()) == {1}
