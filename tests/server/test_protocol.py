"""The bounds of HTTP itself, over real sockets: heads, requests ahead, offers to upgrade, connections, slow readers."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.running import JSON, Reply, RunningAgent, aap_error, envelope, lead, running, search
from tests.server.test_metrics import value

from forecourt.server import protocol, serving

PLAIN = json.dumps(envelope(search())).encode()
OFFER = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA")


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAgent]:
    """One agent for the tests that leave it as it is."""
    with running(tmp_path_factory.mktemp("protocol")) as started:
        yield started


def raw(*headers: str, body: bytes = PLAIN, target: str = "/a2a") -> bytes:
    """Return a POST as it goes over the wire."""
    lines = [f"POST {target} HTTP/1.1", "Host: x", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def refused(agent: RunningAgent, reason: str) -> float:
    """Return how often the agent has refused for a reason."""
    return value(agent.get("/metrics").body.decode(), "forecourt_refused_total", reason=reason)


def ended(connection: socket.socket) -> bool:
    """Tell whether the agent ends a connection in good time."""
    connection.settimeout(10)
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(65536):
            pass
    return True


# Heads


@pytest.mark.parametrize(
    ("sent", "status", "reason"),
    [
        (b"GET /" + b"t" * 8200 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, "target"),
        (b"GET /" + b"t" * 300_000, 414, "target"),
        (b"GET / HTTP/1.1\r\n" + b"X-Secret: yes\r\n" * 101 + b"\r\n", 431, "headers"),
        (b"GET / HTTP/1.1\r\nX-Secret: " + b"v" * 33_000 + b"\r\n\r\n", 431, "headers"),
        (b"GET / HTTP/1.1\r\nX-Secret: " + b"v" * 900_000, 431, "headers"),
        (b"GET / HTTP/1.1\r\n" + b"n" * 900_000, 431, "headers"),
        (b"GET / HTTP/1.1\r\n" + (b"X-Secret: " + b"v" * 500 + b"\r\n") * 80 + b"\r\n", 431, "headers"),
        (b"CONNECT secret.example.com:443 HTTP/1.1\r\nHost: secret.example.com\r\n\r\n", 501, "method"),
        (b"secret\r\n\r\n", 400, "malformed"),
    ],
)
def test_a_head_beyond_its_bounds_is_refused_without_a_word_of_it(
    agent: RunningAgent, sent: bytes, status: int, reason: str
) -> None:
    before = refused(agent, reason)
    with agent.connection() as connection:
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(sent)
        reply = Reply.read(connection)
        assert (reply.status, reply.headers["connection"]) == (status, "close")
        assert b"secret" not in reply.body.lower()
        assert len(reply.body) < 100
        assert ended(connection)
    assert refused(agent, reason) == before + 1
    assert agent.serves()


def test_a_head_within_its_bounds_is_served_in_however_many_pieces(agent: RunningAgent) -> None:
    head = raw(*(f"X-Long-{number}: {'v' * 300}" for number in range(90)))
    assert agent.exchange(head).status == 200
    with agent.connection() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(head), 4000):
            connection.sendall(head[start : start + 4000])
            time.sleep(0.002)
        assert Reply.read(connection).status == 200
    assert agent.exchange(raw(target="/a2a?" + "q" * 8000)).status == 200


def test_trailers_are_no_headers(agent: RunningAgent) -> None:
    chunks = b"%x\r\n" % len(PLAIN) + PLAIN + b"\r\n0\r\nX-API-Key: fck_guess\r\nContent-Type: text/plain\r\n\r\n"
    head = b"POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert "result" in agent.exchange(head + chunks).json()
    with agent.connection() as connection:
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(head + b"0\r\nX-Endless: " + b"v" * 900_000)
        assert ended(connection)


# Offers to upgrade


def test_an_offer_is_passed_over_wherever_the_packets_are_cut() -> None:
    body = b'{"a":"\nUpgrade: h2c\r\nupgrade: x"}'
    request = raw(*OFFER, body=body)
    again = raw(body=PLAIN)
    whole = request + again
    for place in range(1, len(whole)):
        seen = bodies(whole[:place], whole[place:])
        assert seen == [body, PLAIN], place
    assert bodies(*(whole[place : place + 1] for place in range(len(whole)))) == [body, PLAIN]
    assert bodies(request * 5) == [body] * 5


def bodies(*packets: bytes) -> list[bytes]:
    """Return the bodies that the protocol's parser finds in packets, with the protocol's own answer to offers."""
    import httptools

    class Reader(protocol.BoundedProtocol):
        def __init__(self) -> None:
            self.found: list[bytes] = []
            self.parser = httptools.HttpRequestParser(self)
            self.headers, self.url = [], b""
            self._offers = self._in_head = False

        def on_message_begin(self) -> None:
            self.headers, self.url, self._offers, self._in_head, self.body = [], b"", False, True, b""

        def on_headers_complete(self) -> None:
            self._offers = self.parser.should_upgrade()

        def on_body(self, body: bytes) -> None:
            self.body += body

        def on_message_complete(self) -> None:
            if not self._offers:
                self.found.append(self.body)

    reader = Reader()
    for packet in packets:
        data = packet
        while True:
            try:
                reader.parser.feed_data(data)
            except httptools.HttpParserUpgrade as offer:
                data = reader._head_without_offer() + data[offer.args[0] :]
                continue
            break
    return reader.found


def test_a_split_offer_is_answered_on_the_wire(agent: RunningAgent) -> None:
    request = raw(*OFFER)
    name = request.index(b"Upgrade: h2c")
    with agent.connection() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for place in (name, name + 3, name + 7, name + 8, name + 12, request.index(b"\r\n\r\n") + 2, len(request) - 9):
            connection.sendall(request[:place])
            time.sleep(0.01)
            connection.sendall(request[place:])
            assert Reply.read(connection).json()["result"]["message"]["role"] == "ROLE_AGENT"


def test_a_body_that_speaks_of_upgrades_arrives_as_it_was_sent(tmp_path: Path) -> None:
    # JSON escapes line breaks, but allows them between its tokens; a name there would be changed.
    body = json.dumps(envelope(search(upgrade=1))).replace('"upgrade"', '\n"upgrade"').encode()
    with running(tmp_path) as agent:
        problem = aap_error(agent.post(body).json())["details"]["errors"][0]
        assert problem["instanceLocation"] == "/upgrade"
        broken = agent.post(b'{\nupgrade: "h2c"}').json()
        assert broken["error"]["code"] == -32700
        for offers in ((), OFFER):
            sent = lead(message="first\nUpgrade: leather\r\nupgrade : wheels")
            assert "result" in agent.exchange(raw(*offers, body=json.dumps(envelope(sent)).encode())).json()


# Requests ahead


def test_requests_ahead_are_answered_in_order_up_to_a_bound_and_then_the_connection_ends(agent: RunningAgent) -> None:
    for sent, answered in ((10, 10), (400, protocol.MAX_AHEAD + 1)):
        requests = b"".join(raw(body=json.dumps(envelope(search(), number)).encode()) for number in range(sent))
        with agent.connection() as connection:
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                connection.sendall(requests)
            connection.settimeout(10)
            found = [read(connection) for _ in range(answered)]
            assert [reply["id"] for reply, _ in found] == list(range(answered))
            assert [closes for _, closes in found] == [False] * (answered - 1) + [sent != answered]


def read(connection: socket.socket) -> tuple[dict[str, int], bool]:
    """Read one answer, byte by byte in its head, so that nothing of the next is lost; and whether it is the last."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += connection.recv(1) or pytest.fail("the connection ended")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    body = b""
    while len(body) < length:
        body += connection.recv(length - len(body))
    return json.loads(body), b"connection: close" in head.lower()


# Time


def test_the_rest_of_a_request_that_is_answered_is_not_waited_for(
    agent: RunningAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "LINGER_SECONDS", 0.1)
    with agent.connection() as connection:
        connection.sendall(b"POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\nx")
        assert Reply.read(connection).status == 404
        assert ended(connection)
    with agent.connection() as connection:
        connection.sendall(b"POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nx")
        assert Reply.read(connection).status == 404
        connection.sendall(b"rest" + raw())
        assert Reply.read(connection).status == 200


def test_a_client_that_reads_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "HEADER_SECONDS", 0.2)
    monkeypatch.setattr(protocol, "WRITE_SECONDS", 0.3)
    full = raw(body=json.dumps(envelope({**search(), "pagination": {"limit": 100}})).encode())
    with running(tmp_path) as agent:
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", agent.port))
            deaf.settimeout(5)
            with contextlib.suppress(OSError):
                for _ in range(100):
                    deaf.sendall(full)
                    time.sleep(0.005)
            ends = time.monotonic() + 15
            while refused(agent, "slow_reader") == 0 and time.monotonic() < ends:
                time.sleep(0.05)
            assert refused(agent, "slow_reader") == 1
        # The question itself may still be ending.
        while agent.app.deployment.connections.under_way and time.monotonic() < ends:
            time.sleep(0.01)
        assert agent.app.deployment.connections.under_way == 0
        assert agent.serves()


# Connections and requests at a time


def test_an_address_beyond_its_connections_hears_it_and_others_do_not(tmp_path: Path) -> None:
    with running(tmp_path, server={"max_connections_per_client": 3}) as agent, contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(agent.connection()).sendall(b"")
        while agent.app.deployment.connections.open < 3:
            time.sleep(0.01)
        with agent.connection() as connection:
            reply = Reply.read(connection)
            assert (reply.status, reply.headers["retry-after"], reply.headers["connection"]) == (429, "1", "close")
        other = stack.enter_context(socket.create_connection(("127.0.0.1", agent.port), 10, ("127.0.0.2", 0)))
        other.sendall(raw())
        assert Reply.read(other).status == 200
        other.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        text = Reply.read(other).body.decode()
        assert value(text, "forecourt_refused_total", reason="connections_per_client") == 1
        assert value(text, "forecourt_connections") == 4
        assert value(text, "forecourt_requests_under_way") == 1


def test_at_the_cap_of_all_connections_the_idle_give_way_and_the_busy_stay(tmp_path: Path) -> None:
    with running(tmp_path, server={"max_connections": 16}) as agent, contextlib.ExitStack() as stack:
        busy = [stack.enter_context(agent.connection()) for _ in range(15)]
        for connection in busy:
            connection.sendall(raw()[:-5])
        idle = stack.enter_context(agent.connection())
        while agent.app.deployment.connections.open < 16 or agent.app.deployment.connections.under_way < 15:
            time.sleep(0.01)
        new = stack.enter_context(agent.connection())
        new.sendall(raw()[:-5])
        assert ended(idle)
        while agent.app.deployment.connections.under_way < 16:
            time.sleep(0.01)
        with agent.connection() as connection:
            assert Reply.read(connection).status == 503
        for connection in (*busy, new):
            connection.sendall(raw()[-5:])
            assert Reply.read(connection).status == 200


def test_a_client_has_so_many_requests_under_way_in_every_protocol(tmp_path: Path) -> None:
    with running(tmp_path, limits={"concurrent": 2}) as agent, contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(agent.connection()).sendall(raw()[:-5])
        while agent.app.deployment.connections.under_way < 2:
            time.sleep(0.01)
        answer = agent.post(PLAIN).json()
        assert answer["id"] == 1
        assert aap_error(answer)["details"]["retry_after_ms"] == 1000
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "aap_inventory_search", "arguments": {}},
        }
        headers = {**JSON, "Accept": "application/json, text/event-stream"}
        failed = agent.post(json.dumps(call).encode(), "/mcp", headers)
        assert failed.json()["result"]["isError"] is True
        assert failed.json()["result"]["structuredContent"]["code"] == "RATE_LIMITED"
        listing = agent.post(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode(), "/mcp", headers)
        assert (listing.status, listing.headers["retry-after"]) == (429, "1")
        page = agent.get("/")
        assert (page.status, page.headers["retry-after"]) == (429, "1")
        with socket.create_connection(("127.0.0.1", agent.port), 10, ("127.0.0.2", 0)) as other:
            other.sendall(raw())
            assert Reply.read(other).status == 200
            other.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            assert value(Reply.read(other).body.decode(), "forecourt_refused_total", reason="concurrent") == 4


def test_where_too_much_is_under_way_the_rest_waits_for_a_moment_and_is_told_to_come_again(tmp_path: Path) -> None:
    with running(tmp_path, server={"max_running": 1}) as agent:
        room = agent.app.deployment.room
        assert room.enter_now()
        error = aap_error(agent.call(search()))
        assert (error["code"], error["retryable"], error["details"]["retry_after_ms"]) == ("RATE_LIMITED", True, 1000)
        agent.loop.call_soon_threadsafe(room.leave)
        assert agent.serves()
        assert refused(agent, "overload") == 1


# What the other side has shut down, or never begins


@pytest.mark.parametrize("wait", [0.0, 0.05])
@pytest.mark.parametrize("times", [1, 3])
def test_who_sends_no_more_is_answered_what_is_due(tmp_path: Path, times: int, wait: float) -> None:
    with running(tmp_path) as agent:
        for _ in range(5):
            with agent.connection() as connection:
                connection.settimeout(10)
                connection.sendall(raw() * times)
                time.sleep(wait)
                connection.shutdown(socket.SHUT_WR)
                received = b"".join(iter(lambda: connection.recv(1 << 20), b""))
            assert received.count(b'"result"') == times
            # What follows as a piece of a request is none, and costs those before it nothing.
            for piece in (raw()[:-9], raw()[:20]):
                with agent.connection() as connection:
                    connection.settimeout(10)
                    connection.sendall(raw() * times + piece)
                    time.sleep(wait)
                    connection.shutdown(socket.SHUT_WR)
                    received = b"".join(iter(lambda: connection.recv(1 << 20), b""))
                assert received.count(b'"result"') == times
        # Half a request is none, and nothing is due on an idle connection.
        for sent in (raw()[:-5], b"", raw()[:20]):
            with agent.connection() as connection:
                connection.settimeout(10)
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(1 << 20) == b""
        assert agent.app.deployment.connections.under_way == 0


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/a2a", "Content-Length: 100\r\n", 200),
        ("/a2a", "Content-Length: 100\r\nExpect: 100-continue\r\n", 200),
        ("/a2a", "Transfer-Encoding: chunked\r\n", 200),
        ("/mcp", "Content-Length: 100\r\nAccept: application/json, text/event-stream\r\n", 408),
    ],
)
def test_a_body_that_never_begins_is_not_waited_for(tmp_path: Path, path: str, headers: str, status: int) -> None:
    with running(tmp_path, server={"body_seconds": 0.2}) as agent:
        host = f"Host: 127.0.0.1:{agent.port}\r\n"
        head = f"POST {path} HTTP/1.1\r\n{host}Content-Type: application/json\r\n{headers}\r\n"
        with agent.connection() as connection:
            connection.settimeout(10)
            connection.sendall(head.encode())
            received = b"".join(iter(lambda: connection.recv(1 << 20), b""))
        assert f"HTTP/1.1 {status} ".encode() in received
        assert b"must arrive within 0.2 seconds" in received


@pytest.mark.parametrize(("path", "status"), [("/a2a", 200), ("/mcp", 413)])
def test_who_asks_before_sending_a_body_that_is_too_long_is_refused_at_once(
    tmp_path: Path, path: str, status: int
) -> None:
    with running(tmp_path) as agent:
        host = f"Host: 127.0.0.1:{agent.port}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
        head = f"POST {path} HTTP/1.1\r\n{host}Accept: application/json, text/event-stream\r\n"
        with agent.connection() as connection:
            connection.settimeout(10)
            connection.sendall(f"{head}Content-Length: 99999999\r\n\r\n".encode())
            reply = Reply.read(connection)
            assert reply.status == status
            assert b"must not be longer than" in reply.body
            # The rest is not waited for.
            assert ended(connection)
        with agent.connection() as connection:
            connection.settimeout(10)
            connection.sendall(f"{head}Content-Length: {len(PLAIN)}\r\n\r\n".encode())
            assert connection.recv(1 << 20) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(PLAIN)
            assert Reply.read(connection).status < 500


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: <a>\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200),
        (b"GET /healthz HTTP/1.1\r\nHost:\r\n\r\n", 200),
        (b"GET /healthz HTTP/1.0\r\n\r\n", 200),
        (b"GET /healthz HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (b"POST /a2a HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST /a2a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    ],
)
def test_a_head_says_whom_it_is_for_and_how_it_is_framed(tmp_path: Path, head: bytes, status: int) -> None:
    with running(tmp_path) as agent:
        assert agent.exchange(head).status == status
