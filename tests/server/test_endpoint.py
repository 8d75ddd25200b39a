"""A POST over a real socket: whatever comes, a protocol error or an answer goes out, and the next one is served."""

import contextlib
import http.client
import json
import logging
import re
import socket
import sqlite3
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.running import JSON, Reply, RunningAgent, aap_error, envelope, lead, running, search

BODY = json.dumps(envelope(search())).encode()
PATHS = ("/v1.1/a2a", "/v3.1/a2a", "/a2a")


def head(length: int | None = len(BODY), path: str = "/v3.1/a2a", more: str = "") -> bytes:
    """Return the head of a POST of JSON."""
    sized = "" if length is None else f"Content-Length: {length}\r\n"
    return f"POST {path} HTTP/1.1\r\nHost: agent\r\nContent-Type: application/json\r\n{sized}{more}\r\n".encode()


def refused(reply: Reply, number: int) -> dict[str, Any]:
    """Return the error of a reply after checking it; nothing of the inner workings shows."""
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    answer: dict[str, Any] = reply.json()
    assert answer["jsonrpc"] == "2.0"
    assert answer["error"]["code"] == number
    assert b"Traceback" not in reply.body
    assert b".py" not in reply.body
    error: dict[str, Any] = answer["error"]
    return error


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAgent]:
    """An agent that takes short bodies only, and not for long."""
    limits = {"max_body_bytes": 2048, "body_seconds": 0.3}
    with running(tmp_path_factory.mktemp("small"), server=limits) as agent:
        yield agent


# Bodies


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("body", "number"),
    [
        (BODY[:-10], -32700),
        (b"", -32700),
        (b" ", -32700),
        (b"[" + BODY + b"]", -32600),
        (b"[]", -32600),
        (BODY.replace(b"m-1", b"\xff"), -32700),
        (BODY.replace(b'"m-1"', b"[" * 10_000 + b"]" * 10_000), -32700),
        (BODY.replace(b'"id"', b'"id": 2, "id"'), -32700),
        (BODY.replace(b'"limit": 1', b'"limit": 1, "limit": 2'), -32700),
        (BODY.replace(b'"limit": 1', b'"limit": NaN'), -32700),
        (BODY.replace(b'"limit": 1', b'"limit": 1e999'), -32700),
        (BODY.replace(b'"id": 1', b'"id": [1]'), -32600),
        (b"<html></html>", -32700),
        (b"\x00\x01\x02", -32700),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_malformed_body_is_a_protocol_error_and_the_next_request_is_served(
    demo: RunningAgent, path: str, body: bytes, number: int
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", demo.port, timeout=20)
    with contextlib.closing(connection):
        connection.request("POST", path, body, JSON)
        refused(Reply.of(connection.getresponse()), number)
        connection.request("POST", path, BODY, JSON)
        assert "result" in Reply.of(connection.getresponse()).json()


def test_a_body_of_20_mb_is_refused_and_the_limit_named(demo: RunningAgent) -> None:
    error = refused(demo.post(b'{"x":"' + b"x" * 20_000_000 + b'"}'), -32600)
    assert "1048576 bytes" in error["message"]
    assert demo.serves()


@pytest.mark.parametrize("length", [2049, 4096, 200_000, 3_000_000])
def test_a_body_beyond_the_configured_limit_is_refused(small: RunningAgent, length: int) -> None:
    error = refused(small.post(b" " * length), -32600)
    assert "2048 bytes" in error["message"]
    assert small.serves()


def test_a_body_of_exactly_the_limit_is_read(small: RunningAgent) -> None:
    assert "result" in small.post(BODY + b" " * (2048 - len(BODY))).json()


def test_a_length_that_is_only_promised_costs_nothing(small: RunningAgent) -> None:
    refused(small.exchange(head(10**12) + b"{"), -32600)
    assert small.serves()


def test_a_slow_body_is_refused_when_its_time_is_up(small: RunningAgent) -> None:
    error = refused(small.exchange(head() + BODY[:20]), -32600)
    assert "within 0.3 seconds" in error["message"]
    assert small.serves()


def test_a_body_that_trickles_is_refused_all_the_same(small: RunningAgent) -> None:
    with small.connection() as connection:
        connection.sendall(head())
        for place in range(20):
            with contextlib.suppress(OSError):
                connection.sendall(BODY[place : place + 1])
            time.sleep(0.03)
        refused(Reply.read(connection), -32600)
    assert small.serves()


def test_a_caller_who_hangs_up_in_the_middle_leaves_no_trace(
    demo: RunningAgent, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for rest in (b"", BODY[:30]):
            with demo.connection() as connection:
                connection.sendall(head() + rest)
                # Zero seconds to linger: the connection is torn down instead of ended.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with demo.connection() as connection:
                connection.sendall(head() + rest)
        assert demo.serves()
    assert caplog.records == []


# HTTP's own ways of sending


def test_a_chunked_body_is_read(demo: RunningAgent) -> None:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (BODY[:1], BODY[1:60], BODY[60:]))
    reply = demo.exchange(head(None, more="Transfer-Encoding: chunked\r\n") + chunks + b"0\r\n\r\n")
    assert "result" in reply.json()


def test_a_chunked_body_beyond_the_limit_is_refused(small: RunningAgent) -> None:
    chunk = b"400\r\n" + b" " * 1024 + b"\r\n"
    reply = small.exchange(head(None, more="Transfer-Encoding: chunked\r\n") + chunk * 3 + b"0\r\n\r\n")
    refused(reply, -32600)
    assert small.serves()


def test_who_asks_whether_to_continue_is_told_to(demo: RunningAgent) -> None:
    with demo.connection() as connection:
        connection.sendall(head(more="Expect: 100-continue\r\n"))
        told = b""
        while not told.endswith(b"\r\n\r\n"):
            told += connection.recv(1)
        assert told.startswith(b"HTTP/1.1 100 ")
        connection.sendall(BODY)
        assert "result" in Reply.read(connection).json()


def test_pipelined_requests_are_answered_in_their_order(demo: RunningAgent) -> None:
    bodies = [json.dumps(envelope(search(), place)).encode() for place in range(5)]
    bodies[2] = b"{"
    with demo.connection() as connection:
        connection.sendall(b"".join(head(len(body)) + body for body in bodies))
        with connection.makefile("rb") as stream:
            assert [_answer(stream)["id"] for _ in bodies] == [0, 1, None, 3, 4]


def _answer(stream: Any) -> dict[str, Any]:
    """Read one of several answers that may have arrived together."""
    assert stream.readline().startswith(b"HTTP/1.1 200")
    length = 0
    while (line := stream.readline()) != b"\r\n":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    answer: dict[str, Any] = json.loads(stream.read(length))
    return answer


def test_what_is_no_http_ends_its_own_connection_only(demo: RunningAgent) -> None:
    reply = demo.exchange(b"\x16\x03\x01 not http\r\n\r\n")
    assert reply.status == 400
    assert b"Traceback" not in reply.body
    assert demo.serves()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "content_type", [None, "text/plain", "application/json; charset=latin-1", "multipart/form-data"]
)
def test_another_content_type_is_not_supported(demo: RunningAgent, path: str, content_type: str | None) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    refused(demo.post(BODY, path, headers), -32005)


@pytest.mark.parametrize("text", ["1", "1.5", '"a"', "null", "123456789012345678901234567890", '""'])
def test_ids_of_every_type_come_back(demo: RunningAgent, text: str) -> None:
    answer = demo.post(BODY.replace(b'"id": 1', b'"id": ' + text.encode())).json()
    assert answer["id"] == json.loads(text)
    assert "result" in answer


def test_a_notification_gets_204_and_no_body_and_stores_nothing(demo: RunningAgent) -> None:
    body = envelope(lead())
    del body["id"]
    reply = demo.post(json.dumps(body).encode())
    assert (reply.status, reply.body) == (204, b"")
    assert demo.run(demo.app.deployment.store.leads(None, 1)) == []


def test_headers_that_come_twice_are_one_list(demo: RunningAgent) -> None:
    uri = "https://autoagentprotocol.org/extensions/aap/v3.1"
    two = f"A2A-Extensions: https://example.com/x\r\nA2A-Extensions: {uri}\r\n"
    assert "result" in demo.exchange(head(more=two) + BODY).json()
    refused(demo.exchange(head(more="A2A-Extensions: https://example.com/x\r\n") + BODY), -32008)
    refused(demo.exchange(head(more="A2A-Version: 0.3\r\n") + BODY), -32009)
    refused(demo.exchange(head(more="A2A-Version:\r\n") + BODY), -32009)


@pytest.mark.parametrize("path", PATHS)
def test_answers_name_their_length_and_their_contract(demo: RunningAgent, path: str) -> None:
    reply = demo.post(BODY, path)
    version = "1.1" if "1.1" in path else "3.1"
    assert reply.headers["a2a-extensions"] == f"https://autoagentprotocol.org/extensions/aap/v{version}"
    assert int(reply.headers["content-length"]) == len(reply.body)


# Errors that are raised on the way


@pytest.mark.requirement("A2A-UNAUTHENTICATED-HOOK", "A2A-UNAUTHENTICATED-HTTP", "ERR-PROTOCOL-MISSING-TOKEN")
def test_a_refusal_of_credentials_on_the_way_is_http_401_with_its_challenge(tmp_path: Path) -> None:
    with running(tmp_path, access={"public": [], "keys": True}) as agent:
        reply = agent.post(BODY)
    assert reply.status == 401
    assert reply.headers["www-authenticate"] == 'Bearer realm="forecourt"'
    assert reply.json()["error"] == {"code": -32600, "message": "This needs a credential of this dealer agent's"}
    assert reply.json()["id"] == 1


# Something unforeseen


@pytest.mark.requirement("ERR-DETAILS-NO-STACK-TRACE", "ERR-OBJECT-ERROR-ID", "ERR-OBJECT-ID-FOR-SUPPORT")
def test_an_unforeseen_failure_is_an_internal_error_whose_id_the_log_has_and_nothing_of_the_shopper(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(tmp_path) as agent:
        with contextlib.closing(sqlite3.connect(agent.database)) as database:
            database.executescript("PRAGMA foreign_keys=OFF; DROP TABLE lead;")
        with caplog.at_level(logging.DEBUG):
            answers = [agent.call(lead(idempotency_key="key-of-zephyrine"), path) for path in PATHS]
        assert agent.serves()
    for answer in answers:
        assert answer["error"]["code"] == -32603
        error = aap_error(answer)
        assert (error["code"], error["retryable"]) == ("INTERNAL_ERROR", True)
        told = [record for record in caplog.records if error["error_id"] in record.getMessage()]
        assert [record.levelno for record in told] == [logging.ERROR]
        assert re.search(r"StoreError at .*\.py:\d+", told[0].getMessage())
    for text in (json.dumps(answers), caplog.text):
        assert not re.search(r"zephyrine|quartermain|roadster|DROP|no such table", text, re.IGNORECASE)
    assert not re.search(r"Traceback|StoreError|\.py|sqlite", json.dumps(answers))
