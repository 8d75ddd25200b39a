"""How a worker is ordered about; what it does then is seen from outside, in test_workers.py."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from forecourt.server import load
from forecourt.server.worker import Order, read_order, write_order


def test_an_order_arrives_as_it_was_sent(tmp_path: Path) -> None:
    file = tmp_path / "forecourt.toml"
    file.write_text(
        """
        store = "postgresql://user:word@host/database"
        [[dealers]]
        id = "a"
        profile = "a.json"
        deliveries = [{via = "email", to = ["a@example.com"], port = 25}]
        [[feeds]]
        source = "a.csv"
        rooftop = {one = "One"}
        most_removed = 1
        [appointments.holidays]
        "2026-12-25" = false
        "2026-12-24" = {open = "09:00", close = "12:00"}
        [limits.skills."lead.submit"]
        requests = 3
        """
    )
    order = Order(config=load(file, environment={}), tls={"ssl_certfile": "c.pem"}, counts_as="1-2")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(write_order(order) + b"more")
        assert read_order(theirs) == order
        assert theirs.recv(10) == b"more"


@pytest.mark.parametrize("sent", [b"", b"\0\0\0", (100).to_bytes(8, "big") + b"{"])
def test_half_an_order_is_none(sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(sent)
        assert read_order(theirs) is None


def test_an_order_without_end_is_not_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"\xff" * 8)
        with pytest.raises(ValueError, match="too long"):
            read_order(theirs)


def test_a_worker_that_is_never_ordered_ends_with_whoever_started_it() -> None:
    ours, theirs = socket.socketpair()
    with socket.create_server(("127.0.0.1", 0)) as listener, theirs:
        fds = (theirs.fileno(), listener.fileno())
        command = [sys.executable, "-m", "forecourt.server.worker", "1", *map(str, fds)]
        process = subprocess.Popen(command, pass_fds=fds, stderr=subprocess.PIPE, text=True)
    ours.close()
    assert process.communicate(timeout=60)[1] == ""
    assert process.returncode == 0
