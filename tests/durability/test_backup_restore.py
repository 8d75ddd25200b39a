"""A backup that is taken under load, restored elsewhere after the server was killed, has every lead that was there.

With the commands of docs/operations/backup-and-restore.md, over every store.
"""

import http.client
import itertools
import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from tests.durability.dealer import configure, lead, serving, submit, visit
from tests.server.running import JSON, envelope
from tests.server_process import ServerProcess
from tests.store.conftest import DATABASES
from tests.store.elsewhere import elsewhere

SHOPPERS: Final = 4
BEFORE: Final = 25
PATIENCE: Final = 120
SAME: Final = {
    "lead": "lead_id, dealer_id, rooftop, listing_id, status, business, receipt, snapshot",
    "consent_grant": "lead_id, body",
    "appointment": "lead_id, appointment_id, department, kind, status, starts_at, ends_at",
    "delivery": "lead_id, delivery_id, target, kind, content",
    "idempotency": "lead_id, scope, key, fingerprint, receipt, expires_at",
}
"""What of each table is as it was, whatever has been delivered since; the lead's id comes first."""


@dataclass(slots=True)
class Shoppers:
    """Shoppers in threads, who hand leads in one after the other until the server is gone."""

    server: ServerProcess
    payloads: dict[str, dict[str, Any]] = field(default_factory=dict)
    receipts: dict[str, bytes] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def shop(self, number: int) -> None:
        at = datetime.now(UTC).replace(hour=20, minute=0, second=0, microsecond=0)
        for count in itertools.count():
            key = f"shopper-{number}-{count}"
            wish = visit((at + timedelta(days=3 + count % 20)).isoformat()) if number == 0 else {}
            payload = lead(key, **wish)
            try:
                answer = submit(self.server, payload)
            except (OSError, http.client.HTTPException, ValueError):
                # The server is killed, in the middle of an answer for some.
                return
            assert answer.error is None, answer.error
            with self.changed:
                self.payloads[key], self.receipts[key] = payload, answer.payload
                self.changed.notify_all()

    def more_than(self, count: int) -> dict[str, bytes]:
        """Return the receipts once there are more than so many."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.receipts) > count, PATIENCE)
            return dict(self.receipts)


def forecourt(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as an operator does."""
    command = [sys.executable, "-m", "forecourt.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def key_opens(server: ServerProcess, key: str) -> bool:
    connection = server.connect(PATIENCE)
    headers = {**JSON, "Authorization": f"Bearer {key}"}
    connection.request("POST", "/v3.1/a2a", json.dumps(envelope({"type": "dealer.information.request"})), headers)
    answer = connection.getresponse().read()
    connection.close()
    return b"dealer.information.response" in answer


@pytest.mark.parametrize("kind", DATABASES)
def test_what_was_acknowledged_before_a_backup_is_there_after_its_restore(kind: str, tmp_path: Path) -> None:
    database = DATABASES[kind]
    file = tmp_path / "forecourt.backup"
    access = '[access]\nkeys = true\npublic = ["lead.submit"]\n'
    with database.fresh(tmp_path) as address, elsewhere(address, tmp_path) as other:
        config = configure(tmp_path, address, access)
        (tmp_path / "other").mkdir()
        restored_config = configure(tmp_path / "other", other, access)
        key = forecourt("keys", "create", "agent", "--config", str(config)).stdout.strip()
        with serving(tmp_path / "server", config) as server:
            shoppers = Shoppers(server)
            threads = [threading.Thread(target=shoppers.shop, args=(each,), daemon=True) for each in range(SHOPPERS)]
            for thread in threads:
                thread.start()
            before = shoppers.more_than(BEFORE)
            made = forecourt("backup", str(file), "--config", str(config), "--json")
            assert made.returncode == 0, made.stderr
            shoppers.more_than(len(shoppers.receipts))
            refused = forecourt("restore", str(file), "--config", str(config))
            assert refused.returncode == 1
            assert ("is using" if kind == "sqlite" else "stop its servers") in refused.stderr
            server.kill()
            for thread in threads:
                thread.join(PATIENCE)
        told = json.loads(made.stdout)
        assert len(before) <= told["leads"] <= len(shoppers.receipts) + SHOPPERS
        done = forecourt("restore", str(file), "--config", str(restored_config), "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == told
        ids = {json.loads(receipt)["data"]["lead_id"] for receipt in before.values()}
        for table, columns in SAME.items():
            rows = [
                sorted(
                    (row for row in database.execute(each, f"SELECT {columns} FROM {table}") if row[0] in ids), key=repr
                )
                for each in (address, other)
            ]
            assert rows[1] == rows[0], table
            assert {row[0] for row in rows[1]} == ids or table == "appointment", table
        with serving(tmp_path / "other-server", restored_config) as server:
            replayed = {each: submit(server, shoppers.payloads[each]).payload for each in before}
            assert replayed == before
            assert key_opens(server, key)
            assert not key_opens(server, key[:-1] + ("A" if key[-1] != "A" else "B"))
            # One that came after the backup is taken as new, and one that never came before as well.
            assert submit(server, lead("new")).error is None
        count = database.execute(other, "SELECT count(*) FROM lead")[0][0]
        assert count == told["leads"] + 1
