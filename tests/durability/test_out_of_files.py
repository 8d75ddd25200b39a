"""A process that may open no more files goes on serving the clients that it has, and takes new ones when it can."""

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.running import Reply, envelope, search
from tests.server_process import ServerProcess

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are set on Linux alone")

BODY = json.dumps(envelope(search())).encode()
REQUEST = (
    b"POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A process of its own."""
    process = ServerProcess(tmp_path)
    try:
        process.wait()
        yield process
    finally:
        process.stop()


def seconds_of_processor(pid: int) -> float:
    """Return how long a process has worked."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_without_files_for_new_connections_the_old_ones_are_served_and_nothing_spins(server: ServerProcess) -> None:
    import resource

    with contextlib.ExitStack() as stack:
        here = stack.enter_context(socket.create_connection((server.host, server.port), 20))
        here.sendall(REQUEST)
        assert Reply.read(here).status == 200
        files = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
        before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (files + 4, before[1]))
        for _ in range(40):
            stack.enter_context(socket.create_connection((server.host, server.port), 20))
        for _ in range(3):
            here.sendall(REQUEST)
            assert Reply.read(here).status == 200
        worked = seconds_of_processor(server.pid)
        time.sleep(1.5)
        assert seconds_of_processor(server.pid) - worked < 0.75
        here.sendall(REQUEST)
        assert Reply.read(here).status == 200
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
    ends = time.monotonic() + 15
    while True:
        with (
            contextlib.suppress(OSError, ValueError),
            socket.create_connection((server.host, server.port), 5) as again,
        ):
            again.sendall(REQUEST)
            assert Reply.read(again).status == 200
            break
        assert time.monotonic() < ends
        time.sleep(0.1)
    # One word about it, or none; not one for each connection.
    assert server.log.count("\n") < 20
