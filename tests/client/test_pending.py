"""A lead in a file: on the disk before it goes out, whole or not at all, and never in place of another."""

import json
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from forecourt.client import PendingError, Submission
from forecourt.client.pending import erase, keep, load


def submission(key: str = "k-1", dealer: str = "https://dealer.example.com:443", **more: Any) -> Submission:
    """Return a submission."""
    payload = {"type": "lead.submit.request", "customer": {"first_name": "Jordan"}, "idempotency_key": key, **more}
    return Submission(payload, dealer, "3.1")


def test_what_was_kept_is_what_is_loaded_and_its_outcome_is_doubtful(tmp_path: Path) -> None:
    place = tmp_path / "lead.json"
    kept = keep(submission(), place)
    assert kept.path == place
    assert kept.uncertain is False
    found = load(place)
    assert found.payload == kept.payload
    assert (found.dealer, found.contract, found.key, found.uncertain) == (kept.dealer, "3.1", "k-1", True)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["lead.json"]


def test_the_same_lead_takes_the_key_of_its_file(tmp_path: Path) -> None:
    keep(submission("first", submitted_at="2026-11-01T12:00:00Z"), tmp_path / "lead.json")
    again = keep(submission("second", submitted_at="2026-11-01T12:05:00Z"), tmp_path / "lead.json")
    assert again.key == "first"
    assert again.uncertain


@pytest.mark.parametrize("other", [submission("k-2", message="x"), submission("k-2", "https://other.example.com:443")])
def test_another_lead_is_refused_and_the_file_stays(tmp_path: Path, other: Submission) -> None:
    place = tmp_path / "lead.json"
    keep(submission(), place)
    before = place.read_bytes()
    with pytest.raises(PendingError, match="resume it first"):
        keep(other, place)
    assert place.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_of_many_at_once_one_key_wins(tmp_path: Path) -> None:
    place = tmp_path / "lead.json"
    with ThreadPoolExecutor(16) as threads:
        keys = {each.key for each in threads.map(lambda number: keep(submission(f"k-{number}"), place), range(64))}
    assert keys == {load(place).key}


def test_a_process_that_is_killed_leaves_the_whole_file_or_none(tmp_path: Path) -> None:
    place = tmp_path / "lead.json"
    program = (
        "import os, sys\nfrom forecourt.client.pending import Submission, keep\n"
        "payload = {'type': 'lead.submit.request', 'idempotency_key': 'k', 'message': 'x' * 100000}\n"
        "keep(Submission(payload, 'd', '3.1'), sys.argv[1])\nos.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(place)], check=False, timeout=60)
    assert load(place).payload["message"] == "x" * 100_000


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"{}", b'{"format": 2}', b"\xff",
     json.dumps({"format": 1, "dealer": "d", "contract": "3.1", "payload": {"type": "x"}}).encode(),
     json.dumps({"format": 1, "dealer": "d", "contract": "3.1", "payload": {"type": "lead.submit.request"}}).encode()],
)  # fmt: skip
def test_a_file_that_holds_no_lead_is_refused_and_left_alone(tmp_path: Path, text: bytes) -> None:
    place = tmp_path / "notes.txt"
    place.write_bytes(text)
    with pytest.raises(PendingError, match="is not a pending lead"):
        load(place)
    with pytest.raises(PendingError):
        keep(submission(), place)
    assert place.read_bytes() == text


def test_a_file_that_cannot_be_written_is_an_error_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        keep(submission(), tmp_path / "missing" / "lead.json")
    with pytest.raises(OSError, match="No such file"):
        load(tmp_path / "lead.json")


def test_a_lead_whose_outcome_is_known_is_erased(tmp_path: Path) -> None:
    kept = keep(submission(), tmp_path / "lead.json")
    erase(kept)
    erase(kept)
    assert list(tmp_path.iterdir()) == []
    assert kept.path is None


def test_the_payload_stays_out_of_logs() -> None:
    assert "Jordan" not in repr(submission())
