"""Several processes on one socket: what dies is replaced, and what is wrong changes nothing."""

import contextlib
import itertools
import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.running import JSON, envelope, lead, search
from tests.server.test_metrics import value
from tests.server.worker_processes import serving_with_workers, until, wait_for_workers, workers_of
from tests.server_process import ServerProcess

from forecourt.server.workers import _pauses

WORKERS = 2
TWO = "[server]\nworkers = 2\n[limits]\nrequests = 1000000\n"
HASTY = "from forecourt.server import workers; workers.HANG_SECONDS = 3.0; from forecourt.cli import main; main()"
"""The command, with less patience for a worker that does not turn."""


def ask(server: ServerProcess, payload: object = None) -> dict[str, object]:
    """Send one request on a connection of its own."""
    connection = server.connect(30)
    with contextlib.closing(connection):
        connection.request("POST", "/a2a", json.dumps(envelope(payload or search())), JSON)
        answer: dict[str, object] = json.loads(connection.getresponse().read())
    return answer


def get(server: ServerProcess, path: str) -> str:
    """GET a page on a connection of its own."""
    connection = server.connect(30)
    with contextlib.closing(connection):
        connection.request("GET", path)
        return connection.getresponse().read().decode()


def serves(server: ServerProcess, times: int = 20) -> bool:
    """Tell whether so many requests are answered, one after the other."""
    return all("result" in ask(server) for _ in range(times))


def counted(server: ServerProcess) -> float:
    """Return how many searches were answered, as whichever worker tells it."""
    return value(get(server, "/metrics"), "forecourt_requests_total", skill="inventory.search", outcome="ok")


def connections(server: ServerProcess) -> float:
    """Return how many connections all workers have, as whichever of them tells it."""
    return value(get(server, "/metrics"), "forecourt_connections")


def counting_folder(pid: int) -> Path:
    """Return where a worker counts."""
    for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
        if entry.startswith(b"PROMETHEUS_MULTIPROC_DIR="):
            return Path(entry.partition(b"=")[2].decode())
    raise AssertionError("it counts for itself")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server whose tests each leave it with two workers that serve."""
    folder = tmp_path_factory.mktemp("workers")
    file = folder / "forecourt.toml"
    file.write_text(TWO)
    started = ServerProcess(folder, file, program=HASTY)
    try:
        started.wait()
        counts = counting_folder(min(wait_for_workers(started, WORKERS)))
        yield started
        assert started.stop() == 0
        assert not counts.exists()
        assert "Traceback" not in started.log
    finally:
        started.stop()


@contextlib.contextmanager
def configured(server: ServerProcess, text: str) -> Iterator[None]:
    """Let the configuration of a server have other words for a while; nobody is told."""
    assert server.config is not None
    before = server.config.read_text()
    server.config.write_text(text)
    try:
        yield
    finally:
        server.config.write_text(before)


def test_a_worker_that_is_killed_is_replaced_and_neither_service_nor_counts_are_gone(server: ServerProcess) -> None:
    assert server.log == "warning: limits.store is not set: each worker counts requests for itself\n"
    before = workers_of(server)
    began = counted(server)
    assert serves(server, 40)
    assert {counted(server) for _ in range(10)} == {began + 40}
    assert value(get(server, "/metrics"), "forecourt_listings") == 554
    with contextlib.ExitStack() as held:
        for _ in range(16):
            held.enter_context(socket.create_connection((server.host, server.port)))
        until(lambda: connections(server) >= 16)
        killed = min(before)
        os.kill(killed, signal.SIGKILL)
        until(lambda: killed not in workers_of(server))
    # What the killed one had open is not counted for ever.
    until(lambda: connections(server) <= 2)
    assert serves(server)
    wait_for_workers(server, WORKERS, without={killed})
    assert before - {killed} <= workers_of(server)
    assert re.search(rf"worker \d \(process {killed}\) has ended by SIGKILL; another is started", server.log)
    assert serves(server)
    assert {counted(server) for _ in range(10)} == {began + 80}


def test_a_worker_that_is_asked_to_end_is_replaced_first(server: ServerProcess) -> None:
    asked = min(workers_of(server))
    os.kill(asked, signal.SIGTERM)
    until(lambda: len(workers_of(server)) == WORKERS + 1)
    assert asked in workers_of(server)
    wait_for_workers(server, WORKERS, without={asked})
    assert f"process {asked}" not in server.log
    assert serves(server)


def test_a_worker_whose_event_loop_stands_still_is_killed_and_replaced(server: ServerProcess) -> None:
    hanging = min(workers_of(server))
    os.kill(hanging, signal.SIGSTOP)
    wait_for_workers(server, WORKERS, without={hanging})
    assert re.search(rf"worker \d \(process {hanging}\) hangs and is killed", server.log)
    assert serves(server)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[server]\nprot = 1\n",
            "stay as they are, since the configuration cannot be used: {file}:2: server.prot",
        ),
        # Only a worker opens it.
        ("store = 'sqlite:{folder}/no.db'\n", "the new worker did not become ready; 2 workers stay as they are"),
    ],
)
def test_a_reload_of_what_cannot_be_used_leaves_the_workers_as_they_are(
    server: ServerProcess, text: str, told: str
) -> None:
    server.folder.joinpath("no.db").write_bytes(b"no database at all, but long enough to be looked at" * 20)
    before = workers_of(server)
    with configured(server, text.format(folder=server.folder)):
        server.signal(signal.SIGHUP)
        until(lambda: told.format(file=server.config) in server.log)
    wait_for_workers(server, WORKERS)
    assert workers_of(server) == before
    assert serves(server)


def test_a_reload_brings_what_the_configuration_says_now(server: ServerProcess) -> None:
    before = workers_of(server)
    began = counted(server)
    text = """
    [server]
    name = "Renamed"
    host = "127.0.0.2"
    workers = 1
    [log]
    format = "json"
    level = "info"
    """
    with configured(server, text):
        server.signal(signal.SIGHUP)
        until(lambda: len(workers_of(server)) == WORKERS + 1)
        (starting,) = workers_of(server) - before
        os.kill(starting, signal.SIGSTOP)
        try:
            # One that accepted before it was ready would keep its share of these for ever.
            assert serves(server, 60)
            assert before <= workers_of(server)
        finally:
            os.kill(starting, signal.SIGCONT)
        after = wait_for_workers(server, 1, without=before)
    assert after == {starting}
    assert all('"name": "Renamed"' in get(server, "/.well-known/agent-card.json") for _ in range(10))
    assert "a reload keeps the address" in server.log
    assert "result" in ask(server, lead())
    until(lambda: '"forecourt.leads"' in server.log)
    line = next(line for line in server.log.splitlines() if '"forecourt.leads"' in line)
    assert json.loads(line)["process"] in after
    assert serves(server)
    assert {counted(server) for _ in range(10)} == {began + 80}
    server.signal(signal.SIGHUP)
    wait_for_workers(server, WORKERS, without=after)
    assert serves(server)
    # However often workers are replaced, few files are added up.
    assert len(list(counting_folder(min(workers_of(server))).iterdir())) <= 3 * (WORKERS + 2)


def test_who_dies_again_and_again_is_waited_for_longer_up_to_a_bound() -> None:
    pauses = list(itertools.islice(_pauses(), 20))
    assert 0.4 <= pauses[0] <= 0.6
    assert pauses[0] < pauses[2] < pauses[4]
    assert all(24 <= pause <= 36 for pause in pauses[7:])


def test_a_worker_speaks_tls_and_ends_by_itself_when_the_process_that_started_it_is_killed(tmp_path: Path) -> None:
    with serving_with_workers(tmp_path, 1, pap=True) as server:
        assert server.base_url.startswith("https://")
        assert serves(server, 1)
        (worker,) = workers_of(server)
        server.kill()
        until(lambda: not Path(f"/proc/{worker}").exists())
        with pytest.raises(ConnectionRefusedError):
            ask(server)
    assert "the process that started this worker is gone; the worker ends" in server.log
