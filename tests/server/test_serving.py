"""The application on a socket, where HTTP itself leaves gaps."""

import itertools
import json
import re
import time
from pathlib import Path

import pytest
from tests.server.running import JSON, Reply, envelope, running, search

from forecourt.server import serving

PLAIN = json.dumps(envelope(search())).encode()


def raw(*headers: str, body: bytes = PLAIN) -> bytes:
    """Return a POST as it goes over the wire."""
    lines = ["POST /a2a HTTP/1.1", "Host: dealer.example.com", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


@pytest.mark.parametrize("name", ["Upgrade", "upgrade", "UPGRADE"])
@pytest.mark.parametrize("connection", ["Upgrade, HTTP2-Settings", "upgrade"])
def test_an_offer_to_upgrade_is_passed_over_and_the_request_answered(
    tmp_path: Path, name: str, connection: str
) -> None:
    with running(tmp_path) as agent:
        offers = (f"Connection: {connection}", f"{name}: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA")
        reply = agent.exchange(raw(*offers))
        assert reply.status == 200
        assert reply.json()["result"]["message"]["role"] == "ROLE_AGENT"


def test_a_request_that_talks_of_upgrades_keeps_its_words(tmp_path: Path) -> None:
    body = json.dumps(envelope(search(filters={"query": "upgrade: leather\nupgrade: wheels"}))).encode()
    with running(tmp_path) as agent:
        assert agent.exchange(raw(body=body)).json()["result"]["message"]["parts"][0]["data"]["data"]["total"] == 0


def test_headers_that_never_end_are_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "HEADER_SECONDS", 0.3)
    with running(tmp_path) as agent:
        for begun in (b"", b"POST /a2a HTTP/1.1\r\nHost: x\r\nX-"):
            with agent.connection() as connection:
                connection.sendall(begun)
                connection.settimeout(5)
                assert connection.recv(100) == b""
        with agent.connection() as connection:
            connection.sendall(raw())
            assert Reply.read(connection).status == 200
            connection.sendall(b"POST /a2a HTTP/1.1\r\nHost")
            connection.settimeout(5)
            assert connection.recv(100) == b""
        assert agent.serves()


def test_a_connection_in_use_outlives_the_wait_for_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "HEADER_SECONDS", 0.2)
    with running(tmp_path) as agent, agent.connection() as connection:
        for _ in range(4):
            connection.sendall(raw())
            assert Reply.read(connection).status == 200
            time.sleep(0.1)


def test_an_answer_leaves_in_one_piece(tmp_path: Path) -> None:
    with running(tmp_path) as agent, agent.connection() as connection:
        for _ in range(20):
            connection.sendall(raw())
            first = connection.recv(1 << 20)
            head, _, body = first.partition(b"\r\n\r\n")
            (length,) = (line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: "))
            assert len(body) == int(length.removeprefix(b"content-length: ")) > 0


def test_requests_that_come_together_are_answered_in_their_order(tmp_path: Path) -> None:
    with running(tmp_path) as agent, agent.connection() as connection:
        ids = [f"number-{number}" for number in range(16)]
        bodies = [json.dumps({**envelope(search()), "id": each}).encode() for each in ids]
        connection.sendall(b"".join(raw(body=body) for body in bodies))
        connection.settimeout(10)
        answers = b""
        while (found := re.findall(rb'"jsonrpc":"2.0","id":"(number-[0-9]+)"', answers)) != [*map(str.encode, ids)]:
            assert found == [*map(str.encode, ids[: len(found)])]
            received = connection.recv(1 << 20)
            assert received, "the connection has ended"
            answers += received


def test_a_forwarded_address_counts_only_from_a_trusted_proxy(tmp_path: Path) -> None:
    limits = {"requests": 1, "seconds": 60}
    for proxies, code in (([], "RATE_LIMITED"), (["127.0.0.1"], None)):
        folder = tmp_path / str(len(proxies))
        with running(folder, limits=limits, server={"trusted_proxies": proxies}) as agent:
            found = []
            for number in (1, 2):
                reply = agent.post(PLAIN, "/v1.1/a2a", {**JSON, "X-Forwarded-For": f"192.0.2.{number}"}).json()
                found.append(reply["error"]["data"]["code"] if "error" in reply else None)
            assert found == [None, code]


def test_a_message_id_cannot_be_foretold(tmp_path: Path) -> None:
    with running(tmp_path) as agent:
        ids = [int(agent.call(search())["result"]["message"]["messageId"], 16) for _ in range(20)]
    steps = {later - earlier for earlier, later in itertools.pairwise(ids)}
    assert len(steps) == 19
    assert all(abs(step) > 1 << 64 for step in steps)


def test_a_path_with_a_slash_too_many_is_not_redirected(tmp_path: Path) -> None:
    with running(tmp_path) as agent:
        for path in ("/a2a/", "/healthz/", "/v1.1/a2a/"):
            reply = agent.request("POST", path, PLAIN, {**JSON, "Host": "elsewhere.example.com"})
            assert (reply.status, "location" in reply.headers) == (404, False)
