"""Nothing of a shopper leaves a running server but to where leads go: neither logs nor answers nor pages hold any.

A real process is sent marked data, in leads that are taken and in every way of failing; then all that it wrote is
searched. Only the database and what is delivered may hold the marks.
"""

import asyncio
import contextlib
import http.client
import json
import socket
import sqlite3
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any, Final

import pytest
from tests.lead.delivery.mail_server import MailServer, mail_server
from tests.server.running import aap_error, envelope
from tests.server_process import ServerProcess

from forecourt.demo import profile
from forecourt.lead.adf import check

MARK: Final = "Zq7Xmark"
MARKS: Final = ("zq7xmark", "5550173", "555-0173")
"""What is searched for, in small letters: the mark of every text, and the digits of the phone."""

PATIENCE: Final = 40


def lead(number: int, **changes: Any) -> dict[str, Any]:
    """Return a lead whose every text is marked."""
    return {
        "type": "lead.submit.request",
        "customer": {
            "first_name": f"First{MARK}",
            "last_name": f"Last{MARK}",
            "email": f"mail{number}{MARK}@example.com",
            "phone": "+14155550173",
            "preferred_contact": "email",
            "address": {"address_line_1": f"1 {MARK} Street", "city": f"City{MARK}", "state": "CA", "zip": "94107"},
        },
        "consent": {
            "granted_at": (datetime.now(UTC) - timedelta(minutes=1)).isoformat(),
            "allowed_channels": ["email"],
            "consent_text": f"Write to me, says {MARK}.",
            "scope": ["lead_submission"],
        },
        "trade_in": {"year": 2019, "make": "Honda", "model": f"Model{MARK}", "notes": f"Notes{MARK}"},
        "message": f"A message of {MARK}.",
        "source_agent": {"name": f"agent{MARK}"},
        **changes,
    }


def failures() -> Iterator[dict[str, Any]]:
    """Yield leads that are refused, each for a reason of its own."""
    whole = lead(0)
    yield lead(0, consent={**whole["consent"], "granted_at": "2099-01-01T00:00:00Z"})
    yield lead(0, consent={**whole["consent"], "expires_at": "2020-01-01T00:00:00Z"})
    yield lead(0, consent={**whole["consent"], "scope": [MARK]})
    yield lead(0, consent={**whole["consent"], "allowed_channels": [MARK]})
    yield lead(0, consent={**whole["consent"], "granted_at": MARK})
    yield lead(0, consent={**whole["consent"], "allowed_channels": ["phone"]})
    yield lead(0, consent=MARK)
    yield lead(0, customer={**whole["customer"], "email": f"no email {MARK}"})
    yield lead(0, customer={**whole["customer"], "preferred_contact": MARK})
    yield lead(0, customer={**whole["customer"], f"{MARK} 12": 1})
    yield lead(0, customer={"first_name": MARK})
    yield lead(0, message=[MARK])
    yield lead(0, message=MARK * 2000)
    yield lead(0, vehicle_of_interest={"vin": f"{MARK}0000000000"[:17]})
    yield lead(0, vehicle_of_interest={"stock": MARK})
    yield lead(0, appointment={"appointment_type": MARK})
    yield lead(0, appointment={"appointment_type": "test_drive", "notes": MARK})
    yield lead(0, appointment={"appointment_type": "sales", "appointment_at": MARK})
    yield lead(0, dealer_id=MARK)
    yield lead(0, idempotency_key=[MARK])
    yield {"type": f"lead.submit.{MARK}", **{name: value for name, value in whole.items() if name != "type"}}


class Client:
    """Sends to a server and keeps all that it says."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self.said: list[str] = []

    def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Send one request and return the answer's body."""
        connection = http.client.HTTPConnection(self._server.host, self._server.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            content = answer.read()
            self.said.append(f"{answer.status} {answer.getheaders()} {content.decode()}")
            return content

    def submit(self, payload: dict[str, Any], version: str = "3.1") -> dict[str, Any]:
        """Send a lead."""
        answer: dict[str, Any] = json.loads(
            self.request("POST", f"/v{version}/a2a", json.dumps(envelope(payload)).encode())
        )
        return answer


def closed_port() -> int:
    """Return a port of this machine that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def configuration(folder: Path, good: MailServer, bad: MailServer) -> Path:
    """Write the configuration of a seller whose leads go to good places, bad ones and none."""
    (folder / "dealer.json").write_text(json.dumps(profile()))
    (folder / "crm").mkdir()
    email = 'via = "email"\nhost = "127.0.0.1"\nstarttls = "no"\nsender = "a@example.com"\nto = ["crm@example.com"]\n'
    tables = [
        f'name = "good"\nport = {good.port}\n{email}',
        f'name = "rude"\nport = {bad.port}\n{email}',
        f'name = "down"\nport = {closed_port()}\n{email}',
        f'name = "notice"\nformat = "notice"\nport = {good.port}\n{email}',
        f'via = "https"\nurl = "https://127.0.0.1:{closed_port()}/"\nallow_private = true\nevents = true\n',
        'via = "folder"\npath = "crm"\n',
        'name = "gone"\nvia = "folder"\npath = "not-there"\n',
    ]
    config = folder / "forecourt.toml"
    config.write_text(
        '[dealer]\nid = "demo"\nprofile = "dealer.json"\n'
        + "".join(f"[[dealer.deliveries]]\n{table}" for table in tables)
        + "[leads]\nfirst_retry_seconds = 0.1\nmost_attempts = 2\n"
    )
    return config


def converse(server: ServerProcess, client: Client) -> None:
    """Send everything, and return once every delivery has been settled."""
    taken = []
    for number, version in enumerate(("3.1", "1.1"), 1):
        for payload in failures():
            assert "error" in client.submit(payload, version), payload
        taken.append(client.submit(lead(number, idempotency_key=f"key-{version}"), version))
        replay = client.submit(lead(number + 10, idempotency_key=f"key-{version}"), version)
        assert aap_error(replay)["code"] == "IDEMPOTENCY_CONFLICT"
    taken.append(client.submit(lead(3, appointment={"appointment_type": "sales", "notes": MARK})))
    twin = client.submit(lead(3, appointment={"appointment_type": "sales", "notes": MARK}))
    assert twin["result"]["message"]["parts"][0]["data"]["data"]["status"] == "duplicate"
    assert all("result" in answer for answer in taken)
    client.request("POST", "/v3.1/a2a", f'{{"jsonrpc": "2.0", "params": {{"{MARK}'.encode())
    client.request("POST", "/v3.1/a2a", json.dumps({"jsonrpc": "2.0", "id": 1, "method": MARK}).encode())
    with contextlib.closing(sqlite3.connect(server.database, isolation_level=None)) as other:
        # Longer than the server waits for a writer: the lead is refused as an internal error.
        other.execute("BEGIN IMMEDIATE")
        locked = client.submit(lead(4, idempotency_key="key-4"))
        assert (aap_error(locked)["code"], aap_error(locked)["retryable"]) == ("INTERNAL_ERROR", True)
        other.execute("ROLLBACK")
        assert "result" in client.submit(lead(4, idempotency_key="key-4")), "it recovers without a restart"
        until = time.monotonic() + PATIENCE
        while other.execute("SELECT count(*) FROM delivery WHERE status = 'waiting'").fetchone() != (0,):
            assert time.monotonic() < until
            time.sleep(0.05)
        assert other.execute("SELECT count(*) FROM lead").fetchone() == (4,)
        parked = dict(
            other.execute("SELECT target, max(reason) FROM delivery WHERE status = 'parked' GROUP BY target").fetchall()
        )
    assert parked == {
        "demo/rude": "the mail server refused the message (554 5.7.1)",
        "demo/down": "the mail server cannot be reached",
        "demo/https": "the host cannot be reached",
        "demo/gone": "the folder is not there",
    }
    for page in ("/readyz", "/healthz", "/metrics", "/", "/.well-known/agent-card.json"):
        client.request("GET", page)


def test_no_log_no_answer_and_no_page_holds_anything_of_a_shopper(tmp_path: Path) -> None:
    """Real mail servers receive the leads, one of which repeats what it was sent when it refuses."""
    good, bad = MailServer(), MailServer(answers={"DATA": [f"554 5.7.1 I do not like First{MARK} +14155550173"]})
    home = tmp_path / "server"
    home.mkdir()

    async def run() -> Client:
        async with mail_server(good), mail_server(bad):
            server = ServerProcess(home, configuration(tmp_path, good, bad))
            try:
                await asyncio.to_thread(server.wait)
                client = Client(server)
                await asyncio.to_thread(converse, server, client)
            finally:
                await asyncio.to_thread(server.stop)
            return client

    client = asyncio.run(run())
    written = [home / "stdout.txt", home / "stderr.txt"]
    others = [path for path in home.rglob("*") if path.is_file() and path.parent.name != "data" and path not in written]
    assert others == []
    said = {path.name: path.read_text() for path in written} | dict(enumerate(client.said))
    assert "is parked" in said["stderr.txt"] or "parked (" in said["stderr.txt"], "failures are logged"
    for place, text in said.items():
        for mark in MARKS:
            assert mark not in text.lower(), f"{place} holds {mark}"
    # The search finds what is there: the leads have arrived, whole.
    files = sorted((tmp_path / "crm").iterdir())
    assert len(files) == 4
    assert all(MARK.encode() in file.read_bytes() for file in files)
    mails = [message_from_bytes(each.content, policy=policy.SMTP) for each in good.received]
    documents = [mail.get_payload(decode=True) for mail in mails if b"<adf>" in (mail.get_payload(decode=True) or b"")]
    assert len(documents) == 4
    assert len(mails) == 8
    for document in documents:
        assert isinstance(document, bytes)
        assert check(document) == []
        assert f"Last{MARK}".encode() in document
    assert b"zq7xmark" in (home / "data" / "forecourt.db").read_bytes().lower()


@pytest.mark.parametrize("mark", MARKS)
def test_the_leads_really_hold_the_marks(mark: str) -> None:
    assert mark in json.dumps(lead(1)).lower() or mark == "555-0173"
