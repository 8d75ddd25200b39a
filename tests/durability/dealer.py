"""A dealer agent in a process of its own over a named store, and the shoppers that write to it.

The dealer is the demo's, whose leads go into a folder beside its data.
"""

import contextlib
import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from tests.server.running import JSON, aap_error, envelope
from tests.server.running import lead as sample_lead
from tests.server_process import ServerProcess

from forecourt.demo import DEALER_ID

__all__ = ["SCOPE", "TABLES", "Answer", "all_at_once", "configure", "lead", "serving", "submit", "visit"]

Result = TypeVar("Result")

SCOPE: Final = json.dumps([DEALER_ID, None])
"""In what a key is unique: the seller, and no caller (CONTRACTS.md section 6)."""

TABLES: Final = ("lead", "consent_grant", "lead_person", "idempotency", "appointment", "delivery")
"""Where a lead is kept."""

_SECONDS: Final = 60
_PAYLOAD: Final = '{"type":"lead.submit.response"'
_VIN: Final = "2HGFE1F78NH000001"
"""A car of the demo stock."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the payload as its bytes stood in the envelope, or the error object."""

    payload: bytes = b""
    error: Mapping[str, Any] | None = None

    @property
    def data(self) -> dict[str, Any]:
        """The outcome that a receipt tells."""
        found: dict[str, Any] = json.loads(self.payload)["data"]
        return found


def configure(folder: Path, address: str, sections: str = "") -> Path:
    """Write a configuration over the store at `address` whose deliveries are taken over soon after a crash."""
    file = folder / "forecourt.toml"
    head = f"store = {json.dumps(address)}\n"
    file.write_text(f"{head}{sections}\n[leads]\nlease_seconds = 2\nparallel = 16\n", encoding="utf-8")
    return file


@contextlib.contextmanager
def serving(folder: Path, config: Path) -> Iterator[ServerProcess]:
    """Run a server in `folder` until the block ends."""
    folder.mkdir(exist_ok=True)
    server = ServerProcess(folder, config)
    try:
        server.wait()
        yield server
    finally:
        server.stop()


def lead(key: str, **members: Any) -> dict[str, Any]:
    """Return a lead of a shopper of its own, under a key which its message repeats."""
    customer = {"first_name": "Ida", "last_name": "Example", "email": f"{key}@example.com"}
    return sample_lead(customer=customer, idempotency_key=key, message=f"Enquiry {key}.", **members)


def visit(at: str) -> dict[str, Any]:
    """Return what a lead has besides when it asks for a test drive at a time."""
    return {
        "vehicle_of_interest": {"vin": _VIN},
        "appointment": {"appointment_type": "test_drive", "appointment_at": at, "duration_minutes": 60},
    }


def submit(server: ServerProcess, payload: Mapping[str, Any], path: str = "/v3.1/a2a") -> Answer:
    """Send a lead over A2A on a connection of its own; OSError or HTTPException when no whole answer came."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=_SECONDS)
    with contextlib.closing(connection):
        connection.request("POST", path, json.dumps(envelope(payload)), JSON)
        text = connection.getresponse().read().decode()
    answer = json.loads(text)
    if "error" in answer:
        return Answer(error=aap_error(answer))
    begin = text.index(_PAYLOAD)
    _, end = json.JSONDecoder().raw_decode(text, begin)
    return Answer(payload=text[begin:end].encode())


def all_at_once(works: Sequence[Callable[[], Result]]) -> list[Result]:
    """Do all of it at one moment, each in a thread of its own."""
    gate = threading.Barrier(len(works))

    def wait_and_do(work: Callable[[], Result]) -> Result:
        gate.wait(_SECONDS)
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(wait_and_do, works))
