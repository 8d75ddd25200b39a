"""The Redis or Valkey of the tests: named by FORECOURT_TEST_REDIS, else the one at its usual port.

A test that takes it away has a server of its own.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

__all__ = ["REDIS", "OwnRedis", "needs_redis", "own_prefix", "own_redis"]

_PATIENCE: Final = 30
_PROGRAMS: Final = ("valkey-server", "redis-server")

REDIS: Final = os.environ.get("FORECOURT_TEST_REDIS", "redis://127.0.0.1:6379/0")


def _answers() -> bool:
    host, _, port = REDIS.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")
    try:
        with socket.create_connection((host, int(port or 6379)), 2) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(7).startswith((b"+PONG", b"-NOAUTH"))
    except OSError:
        return False


def _unavailable() -> bool:
    answers = _answers()
    assert answers or not os.environ.get("CI"), "CI needs a Redis server: FORECOURT_TEST_REDIS, or one at port 6379"
    return not answers


needs_redis = pytest.mark.skipif(_unavailable(), reason="no Redis: name one in FORECOURT_TEST_REDIS")


def own_prefix() -> str:
    """Return the name of a client that no other test counts."""
    return uuid.uuid4().hex


class OwnRedis:
    """A server of our own that keeps nothing on a disk, at a port that stays its own; it can go away and come back."""

    def __init__(self, program: str, folder: Path, host: str) -> None:
        self._program = program
        self._folder = folder
        self.host = host
        with socket.create_server((host, 0)) as free:
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where it is."""
        return f"redis://{self.host}:{self.port}/0"

    def start(self) -> None:
        """Start it and return once it answers."""
        options = {"port": str(self.port), "bind": self.host, "save": "", "appendonly": "no", "protected-mode": "no"}
        command = [self._program, "--dir", str(self._folder), "--daemonize", "no"]
        command += [word for name, value in options.items() for word in (f"--{name}", value)]
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        end = time.monotonic() + _PATIENCE
        while not self._answers():
            assert time.monotonic() < end, "the Redis server does not start"
            time.sleep(0.02)

    def stop(self) -> None:
        """End it, and with it what it has counted."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_PATIENCE)
            self._process = None

    def _answers(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(7).startswith(b"+PONG")
        except OSError:
            return False


@contextlib.contextmanager
def own_redis(host: str = "127.0.0.1") -> Iterator[OwnRedis]:
    """Run a server of our own until the block ends; skip where none is installed, fail where everything must be."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        assert not os.environ.get("CI"), "CI needs valkey-server or redis-server"
        pytest.skip("neither valkey-server nor redis-server is installed")
    with tempfile.TemporaryDirectory(prefix="forecourt-redis-") as folder:
        server = OwnRedis(program, Path(folder), host)
        server.start()
        try:
            yield server
        finally:
            server.stop()
