"""Answers that go out as a whole: the same on the wire as by messages, under uvicorn and under any other server."""

import asyncio
import gc
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.server.running import Reply, envelope, running, search
from tests.server.test_protocol import raw

from forecourt.binding import Answer
from forecourt.server.exchange import Exchange, body_here, give
from forecourt.server.serving import uvicorn_config

OK = Answer(200, ((b"content-type", b"application/json"),), b"{}")


def messages(answer: Answer, method: str = "POST") -> list[dict[str, Any]]:
    """Return what is sent to a server that is not ours."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(give(answer, {"method": method}, send))
    return sent


def test_under_another_server_an_answer_is_two_messages_and_no_body_is_known_to_be_here() -> None:
    start, body = messages(OK)
    assert start["headers"] == ((b"content-type", b"application/json"), (b"content-length", b"2"))
    assert (start["status"], body["body"]) == (200, b"{}")
    assert messages(OK, "HEAD")[0] == start
    assert messages(OK, "HEAD")[1]["body"] == b""
    assert messages(Answer(204, (), b""))[0]["headers"] == ()
    assert body_here({"method": "POST"}) is None


def test_an_answer_has_its_length_and_says_when_it_is_the_last(tmp_path: Path) -> None:
    with running(tmp_path) as agent:
        with agent.connection() as connection:
            connection.sendall(raw())
            first = Reply.read(connection)
            connection.sendall(raw("Connection: close"))
            last = Reply.read(connection)
            assert connection.recv(1) == b""
        assert "connection" not in first.headers
        assert last.headers["connection"] == "close"
        assert int(first.headers["content-length"]) == len(first.body)
        assert first.headers["content-type"] == "application/json"
        old = raw().replace(b"HTTP/1.1", b"HTTP/1.0")
        assert agent.exchange(old).headers["connection"] == "close"


def test_a_long_answer_and_a_short_one_keep_their_order(tmp_path: Path) -> None:
    long = json.dumps(envelope({**search(), "pagination": {"limit": 100}}, 1)).encode()
    short = b'{"jsonrpc":"2.0","id":2,"method":"Unknown"}'
    with running(tmp_path) as agent, agent.connection() as connection:
        connection.settimeout(10)
        connection.sendall(raw(body=long) + raw(body=short) + raw("Connection: close", body=long))
        received = b"".join(iter(lambda: connection.recv(1 << 20), b""))
    places = [received.index(b'"id":1,'), received.index(b'"id":2,'), received.rindex(b'"id":1,')]
    assert places == sorted(places)
    assert len({*places}) == 3
    assert received.count(b"HTTP/1.1 200 OK\r\n") == 3


@pytest.mark.parametrize("method", ["HEAD", "GET", "OPTIONS", "POST"])
def test_answers_of_every_method_are_framed_as_http_says(tmp_path: Path, method: str) -> None:
    with running(tmp_path) as agent, agent.connection() as connection:
        connection.settimeout(10)
        for path in ("/mcp", "/a2a", "/.well-known/agent-card.json", "/nothing"):
            head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{agent.port}\r\nContent-Length: 0\r\n\r\n"
            # What comes next on the connection would be taken for a body that should not be there.
            connection.sendall(head.encode() + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            received = b""
            while b"HTTP/1.1 200 OK" not in received or not received.endswith(b'{"status":"ok"}'):
                received += connection.recv(65536) or pytest.fail("the connection ended")
            first = received[: received.rindex(b"HTTP/1.1 200 OK")]
            named, _, body = first.partition(b"\r\n\r\n")
            length = int(named.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
            assert len(body) == (0 if method == "HEAD" else length), path


def test_a_request_that_is_answered_is_forgotten_without_the_garbage_collector(tmp_path: Path) -> None:
    with running(tmp_path) as agent, agent.connection() as connection:
        connection.settimeout(10)
        mcp = (f"Host: 127.0.0.1:{agent.port}", "Accept: application/json, text/event-stream")
        ping = raw(*mcp, body=b'{"jsonrpc":"2.0","id":1,"method":"ping"}', target="/mcp").replace(b"Host: x\r\n", b"")
        page = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        gc.disable()
        try:
            for request in [raw(), ping, page] * 5:
                connection.sendall(request)
                assert Reply.read(connection).status == 200
            kept = sum(isinstance(each, Exchange) for each in gc.get_objects())
        finally:
            gc.enable()
    # The connection has the last one, and the one before may still be ending.
    assert kept <= 2


def test_a_header_of_two_lines_is_never_sent() -> None:
    from forecourt.server.exchange import _head

    with pytest.raises(ValueError, match="one line"):
        _head(200, ((b"x-told", b"a\r\nset-cookie: b"),))


def test_a_connection_without_requests_is_kept_for_a_while_and_a_busy_one_is_not_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    briefly = partial(uvicorn_config, timeout_keep_alive=1)
    monkeypatch.setattr("tests.server.running.uvicorn_config", briefly)
    with running(tmp_path) as agent, agent.connection() as idle, agent.connection() as busy:
        idle.settimeout(10)
        began = time.monotonic()
        idle.sendall(raw())
        Reply.read(idle)
        for _ in range(8):
            busy.sendall(raw())
            assert Reply.read(busy).status == 200
            time.sleep(0.25)
        assert time.monotonic() - began > 1.5
        assert idle.recv(1) == b""
        busy.settimeout(10)
        assert busy.recv(1) == b""
