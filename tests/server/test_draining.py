"""A server that is asked to stop says so, answers what is under way and what still comes, and goes."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Final

import pytest
from tests.server.running import Reply, envelope, lead, search
from tests.server.worker_processes import until
from tests.server_process import ServerProcess

_SECONDS: Final = 20


def config(folder: Path, seconds: float) -> Path:
    """Write a configuration that drains for so long."""
    file = folder / "forecourt.toml"
    file.write_text(f"[server]\ndrain_seconds = {seconds}\n")
    return file


def connect(server: ServerProcess) -> socket.socket:
    """Open a connection."""
    return socket.create_connection((server.host, server.port), timeout=_SECONDS)


def get(connection: socket.socket, path: str) -> Reply:
    """GET on a connection that was opened before."""
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return Reply.read(connection)


def post(payload: object) -> tuple[bytes, bytes]:
    """Return the headers and the body of a POST."""
    body = json.dumps(envelope(payload)).encode()
    head = f"POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode(), body


@pytest.mark.parametrize("workers", [(), ("--workers", "1")])
def test_while_it_drains_it_says_so_takes_connections_and_lets_each_go_with_its_answer(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    server = ServerProcess(tmp_path, config(tmp_path, 5), arguments=workers)
    try:
        server.wait()
        with connect(server) as kept, connect(server) as slow:
            assert "connection" not in get(kept, "/readyz").headers
            head, body = post(lead())
            slow.sendall(head + body[:10])
            time.sleep(0.2)
            server.end()
            until(lambda: _readiness(server).status == 503)
            reply = _readiness(server)
            assert reply.json() == {"status": "unavailable", "reasons": ["the server is stopping"]}
            assert reply.headers["connection"] == "close"
            assert get(kept, "/healthz").headers["connection"] == "close"
            assert kept.recv(1) == b""
            with connect(server) as new:
                new.sendall(b"".join(post(search())))
                assert "result" in Reply.read(new).json()
            slow.sendall(body[10:])
            answer = Reply.read(slow)
            assert answer.json()["result"]["message"]["parts"][0]["data"]["data"]["status"] == "received"
            assert answer.headers["connection"] == "close"
        assert server.ended(_SECONDS) == 0
        assert server.log == ""
    finally:
        server.stop()


def _readiness(server: ServerProcess) -> Reply:
    with connect(server) as asking:
        return get(asking, "/readyz")


def test_what_is_on_its_way_when_the_listening_socket_closes_is_answered(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    try:
        server.wait()
        with connect(server) as begun, connect(server) as idle:
            get(begun, "/healthz")
            head, body = post(lead())
            # In the middle of the headers, where no request is known yet.
            begun.sendall(head[:30])
            server.signal(signal.SIGHUP)
            until(lambda: "SIGHUP reloads nothing without --workers" in server.log)
            get(idle, "/healthz")
            server.signal(signal.SIGTERM)
            # Idle connections go, and do not hold the end up.
            assert idle.recv(1) == b""
            begun.sendall(head[30:] + body)
            answer = Reply.read(begun)
            assert answer.json()["result"]["message"]["parts"][0]["data"]["data"]["status"] == "received"
            assert answer.headers["connection"] == "close"
        assert server.ended(_SECONDS) == 0
    finally:
        server.stop()


def test_a_terminal_that_is_closed_ends_the_server_in_peace(tmp_path: Path) -> None:
    terminal, theirs = os.openpty()
    command = [sys.executable, "-m", "forecourt.cli", "serve", "--port", "0", "--data", str(tmp_path)]
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    ) as process:
        os.close(theirs)
        assert process.stdout is not None
        assert b"answers AI agents at" in process.stdout.readline()
        os.close(terminal)
        assert process.wait(_SECONDS) == 0
