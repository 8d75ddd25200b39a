"""What a service manager is told and hands over, tried with sockets like its own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from forecourt.server.service_manager import SocketError, notify, reloading, take_listener

TAKE = """
import os, sys
from forecourt.server.service_manager import SocketError, take_listener
for case in sys.argv[1:]:
    number, other, count = map(int, case.split(","))
    os.dup2(number, 3)
    os.environ.update(LISTEN_PID=str(os.getpid() + other), LISTEN_FDS=str(count), LISTEN_FDNAMES="http")
    try:
        taken = take_listener()
        print(taken and taken.getsockname()[1], sorted(name for name in os.environ if name.startswith("LISTEN_")))
        taken and taken.detach()
    except SocketError as error:
        print(error)
"""


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A service manager's socket, at a path or at an abstract address."""
    address = str(tmp_path / "notify") if request.param == "path" else f"@forecourt-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address.replace("@", "\0"))
        listening.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        yield listening


def test_the_service_manager_hears_line_by_line(manager: socket.socket) -> None:
    notify("READY=1", "STATUS=2 of 2 workers serve")
    assert manager.recv(1000) == b"READY=1\nSTATUS=2 of 2 workers serve"


def test_a_reload_is_told_with_its_time_on_the_monotonic_clock(manager: socket.socket) -> None:
    before = time.monotonic()
    reloading()
    first, second = manager.recv(1000).decode().splitlines()
    assert first == "RELOADING=1"
    name, _, number = second.partition("=")
    assert name == "MONOTONIC_USEC"
    assert before - 1e-5 <= int(number) / 1e6 <= time.monotonic()


@pytest.mark.parametrize("address", ["", "/nobody/is/here", "nothing"])
def test_without_a_service_manager_nothing_happens(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify("READY=1")


def take(*cases: tuple[socket.socket, int, int]) -> list[str]:
    """Run a process that is handed each socket as number 3, for a process so many numbers on, as one of so many."""
    arguments = [f"{handed.fileno()},{other},{count}" for handed, other, count in cases]
    ended = subprocess.run(
        [sys.executable, "-c", TAKE, *arguments],
        pass_fds=[handed.fileno() for handed, _, _ in cases],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return ended.stdout.splitlines()


def test_one_listening_socket_that_is_handed_over_is_taken_and_all_else_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as silent:
        port = listener.getsockname()[1]
        with socket.socket(socket.AF_UNIX) as local:
            found = take((listener, 0, 1), (listener, 1, 1), (listener, 0, 2), (silent, 0, 1), (local, 0, 1))
    no_listener = "what the service manager handed over is no listening TCP socket (ListenStream= is)"
    assert found == [
        f"{port} []",
        "None []",
        "the service manager handed over 2 sockets; one is listened at",
        no_listener,
        no_listener,
    ]


def test_without_a_hand_over_there_is_none() -> None:
    assert take_listener({}) is None
    assert take_listener({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "0"}) is None
    with pytest.raises(SocketError):
        take_listener({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "3"})
