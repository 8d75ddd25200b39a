"""Passing messages on to a dealer over HTTP: what is sent, what comes back, and every way in which it can fail."""

import asyncio
import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
from tests.server.running import RunningAgent

from forecourt.server.relay import Relay, endpoint_of

SINGLE: Final = "2026-07-28"
META: Final = {
    "io.modelcontextprotocol/protocolVersion": SINGLE,
    "io.modelcontextprotocol/clientCapabilities": {},
}
Respond = Callable[[BaseHTTPRequestHandler, bytes], None]


@pytest.mark.parametrize(
    ("address", "endpoint"),
    [
        ("https://dealer.example.com", "https://dealer.example.com/mcp"),
        ("https://dealer.example.com/", "https://dealer.example.com/mcp"),
        ("https://dealer.example.com/v1.1/mcp", "https://dealer.example.com/v1.1/mcp"),
        ("http://localhost:8000/dealers/north/", "http://localhost:8000/dealers/north/mcp"),
        ("https://dealer.example.com/mcp?tenant=1#part", "https://dealer.example.com/mcp?tenant=1"),
    ],
)
def test_a_dealers_address_leads_to_its_endpoint(address: str, endpoint: str) -> None:
    assert endpoint_of(address) == endpoint


@pytest.mark.parametrize(
    "address", ["", "dealer.example.com", "ftp://dealer.example.com", "https://", "https://u:p@x/", "https://x:99999/"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        endpoint_of(address)


@contextlib.contextmanager
def dealer(respond: Respond, certificate: Path | None = None) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Run a server that answers as it is told; give its address and the headers of what it was sent."""
    seen: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append({name.lower(): value for name, value in self.headers.items()})
            body = self.rfile.read(int(self.headers["content-length"]))
            with contextlib.suppress(OSError):
                respond(self, body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def send(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    headers = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def request(method: str, request_id: Any = 1, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode()


def passed_on(relay: Relay, line: bytes) -> Any:
    answer = asyncio.run(relay.answer(line))
    return None if answer is None else json.loads(answer)


def failure(respond: Respond, line: bytes | None = None, **bounds: Any) -> tuple[Any, int, str]:
    """Return the id, the code and the message of a failure."""
    with dealer(respond) as (address, _):
        answer = passed_on(Relay(address, **bounds), line or request("tools/list", "seven"))
    return answer["id"], answer["error"]["code"], answer["error"]["message"]


def test_credentials_go_with_every_message_and_nothing_takes_their_place() -> None:
    def respond(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        said = json.dumps({"jsonrpc": "2.0", "id": json.loads(body).get("id"), "result": {}}).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(said)))
        handler.end_headers()
        handler.wfile.write(said)

    with dealer(respond) as (address, seen):
        relay = Relay(address, headers={"X-API-Key": "fck_example"})
        passed_on(relay, request("initialize"))
        passed_on(relay, request("tools/list"))
    assert [headers["x-api-key"] for headers in seen] == ["fck_example", "fck_example"]
    assert {headers["content-type"] for headers in seen} == {"application/json"}


def test_a_message_reaches_a_real_dealer_and_its_answer_comes_back(demo: RunningAgent) -> None:
    relay = Relay(endpoint_of(demo.base_url))
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    assert passed_on(relay, request("initialize", 0, **client))["result"]["protocolVersion"] == "2025-06-18"
    assert passed_on(relay, b'{"jsonrpc":"2.0","method":"notifications/initialized"}') is None
    found = passed_on(relay, request("tools/call", 2, name="aap_inventory_search", arguments={}))
    assert found["result"]["structuredContent"]["data"]["total"] == 554
    alone = passed_on(relay, request("tools/call", 3, name="aap_dealer_information", _meta=META))
    assert alone["result"]["resultType"] == "complete"


def test_the_headers_say_what_the_message_says() -> None:
    with dealer(lambda handler, _: send(handler, b'{"jsonrpc":"2.0","id":1,"result":{}}')) as (address, seen):
        passed_on(Relay(address), request("resources/read", uri="aap://größe", _meta=META))
    assert seen[0]["mcp-protocol-version"] == SINGLE
    assert seen[0]["mcp-method"] == "resources/read"
    assert seen[0]["mcp-name"] == "=?base64?YWFwOi8vZ3LDtsOfZQ==?="
    assert seen[0]["accept"] == "application/json, text/event-stream"


def test_the_agreed_revision_and_the_session_are_repeated() -> None:
    agreed = b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}'
    with dealer(lambda handler, _: send(handler, agreed, Mcp_Session_Id="s-1")) as (address, seen):
        relay = Relay(address)
        passed_on(relay, request("initialize"))
        passed_on(relay, request("tools/list"))
    assert not {"mcp-protocol-version", "mcp-session-id"} & seen[0].keys()
    assert (seen[1]["mcp-protocol-version"], seen[1]["mcp-session-id"]) == ("2025-06-18", "s-1")


def test_an_answer_that_streams_is_read_to_its_end() -> None:
    events = (
        b": ping\r\n\r\n"
        b'event: message\r\ndata: {"jsonrpc":"2.0","method":"notifications/progress"}\r\n\r\n'
        b'data: {"jsonrpc":"2.0",\ndata:  "id":1,"result":{"a":1}}\n\n'
        b'data: {"never":"read"}\n\n'
    )
    with dealer(lambda handler, _: send(handler, events, Content_Type="text/event-stream")) as (address, _):
        assert passed_on(Relay(address), request("tools/list")) == {"jsonrpc": "2.0", "id": 1, "result": {"a": 1}}


def test_a_handshake_is_over_before_the_next_message_goes_out_and_then_messages_overtake() -> None:
    arrived: list[str] = []
    both = threading.Barrier(2, timeout=10)

    def respond(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        message = json.loads(body)
        if message["method"] == "tools/call":
            # Answered only when both are here: neither waits for the other.
            both.wait()
        arrived.append(f"{message['method']} begins")
        if "initial" in message["method"]:
            time.sleep(0.1)
        arrived.append(f"{message['method']} ends")
        send(handler, json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": {}}).encode())

    async def talk(address: str) -> list[Any]:
        relay = Relay(address)
        lines = [
            request("initialize", 0),
            b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
            request("tools/call", 1),
            request("tools/call", 2),
        ]
        return await asyncio.gather(*map(relay.answer, lines))

    with dealer(respond) as (address, _):
        answers = asyncio.run(talk(address))
    assert [json.loads(answer)["id"] for answer in answers if answer] == [0, 1, 2]
    assert arrived[:4] == [
        "initialize begins",
        "initialize ends",
        "notifications/initialized begins",
        "notifications/initialized ends",
    ]


def test_a_refusal_without_an_id_is_given_the_one_that_is_waited_for() -> None:
    refusal = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}'
    assert failure(lambda handler, _: send(handler, refusal, 403)) == ("seven", -32600, "no")


def test_an_answer_of_several_lines_becomes_one() -> None:
    with dealer(lambda handler, _: send(handler, b'{\n "jsonrpc": "2.0",\n "id": 1,\n "result": {}\n}')) as (
        address,
        _,
    ):
        answer = asyncio.run(Relay(address).answer(request("ping")))
    assert answer == b'{"jsonrpc":"2.0","id":1,"result":{}}'


@pytest.mark.parametrize(
    ("respond", "words"),
    [
        (lambda handler, _: send(handler, b"<html>secret", 502, Content_Type="text/html"), "HTTP 502"),
        (lambda handler, _: send(handler, b"", 202), "HTTP 202"),
        (lambda handler, _: send(handler, b"[]"), "no MCP message"),
        (lambda handler, _: send(handler, b'{"ok":true}'), "no MCP message"),
        (lambda handler, _: send(handler, b"{secret"), "not JSON"),
        (lambda handler, _: send(handler, b"", 307, Location="http://127.0.0.1:1/"), "HTTP 307"),
        (lambda handler, _: send(handler, b": x\n\n", Content_Type="text/event-stream"), "without an answer"),
        (lambda handler, _: send(handler, b"data: {secret\n\n", Content_Type="text/event-stream"), "not JSON"),
        (lambda handler, _: handler.connection.shutdown(socket.SHUT_RDWR), "cannot be reached"),
        (lambda handler, _: handler.wfile.write(b"no HTTP\r\n\r\n"), "cannot be reached"),
    ],
)
def test_what_is_no_answer_is_a_failure_in_our_words(respond: Respond, words: str) -> None:
    request_id, code, message = failure(respond)
    assert (request_id, code) == ("seven", -32603)
    assert words in message
    assert "secret" not in message


def test_an_answer_that_is_too_long_is_not_read_on() -> None:
    assert "longer than 1000 bytes" in failure(lambda handler, _: send(handler, b" " * 100_000), largest=1000)[2]


def hold(until: threading.Event) -> None:
    until.wait(10)


def test_a_dealer_that_is_silent_is_not_waited_for() -> None:
    done = threading.Event()
    try:
        assert "within 0.2 seconds" in failure(lambda *_: hold(done), seconds=0.2)[2]
    finally:
        done.set()


def test_a_dealer_that_drips_is_not_waited_for() -> None:
    def drip(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.05)

    began = time.monotonic()
    assert "within 0.3 seconds" in failure(drip, seconds=0.3)[2]
    assert time.monotonic() - began < 4


def test_a_dealer_that_is_not_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    answer = passed_on(Relay(f"http://127.0.0.1:{port}/mcp"), request("ping"))
    assert "cannot be reached" in answer["error"]["message"]


def test_a_certificate_that_is_not_trusted_is_told(tmp_path: Path) -> None:
    with dealer(lambda handler, _: send(handler, b"{}"), _own_certificate(tmp_path)) as (address, seen):
        answer = passed_on(Relay(address.replace("http:", "https:")), request("ping"))
    assert "certificate cannot be trusted" in answer["error"]["message"]
    assert seen == []


def test_a_dealer_without_encryption_is_not_spoken_to_where_it_is_asked_for() -> None:
    with dealer(lambda handler, _: send(handler, b"{}")) as (address, seen):
        answer = passed_on(Relay(address.replace("http:", "https:")), request("ping"))
    assert "cannot be reached" in answer["error"]["message"]
    assert seen == []


def _own_certificate(folder: Path) -> Path:
    """Write a key and a certificate that nobody vouches for."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    path = folder / "own.pem"
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    path.write_bytes(
        key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
        + builder.sign(key, hashes.SHA256()).public_bytes(encoding)
    )
    return path


def test_a_line_that_is_no_json_is_not_sent() -> None:
    with dealer(lambda handler, _: send(handler, b"{}")) as (address, seen):
        assert passed_on(Relay(address), b"{")["error"]["code"] == -32700
    assert seen == []


def test_a_notification_that_fails_is_passed_over() -> None:
    line = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    with dealer(lambda handler, _: send(handler, b"x", 500, Content_Type="text/plain")) as (address, _):
        assert passed_on(Relay(address), line) is None
