"""The Redis or Valkey of the tests: named by FORECOURT_TEST_REDIS, else the one at its usual port."""

import os
import socket
import uuid
from typing import Final

import pytest

__all__ = ["REDIS", "needs_redis", "own_prefix"]

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
