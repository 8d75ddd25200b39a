"""Outgoing HTTP over real sockets: one place that opens connections, with a bound on everything."""

import asyncio
import socket
import ssl
import zlib
from pathlib import Path

import httpx
import pytest
from tests.client import hostile as acts
from tests.client.hostile import hostile

from forecourt.a2a import FailureKind
from forecourt.client.failure import Answer, TransportError
from forecourt.client.http import Http, HttpOptions


def post(url: str, options: HttpOptions | None = None, seconds: float = 5) -> Answer:
    """POST once."""

    async def whole() -> Answer:
        http = Http(options or HttpOptions())
        try:
            return await http.post(url, {"X-Own": "1"}, b"{}", seconds)
        finally:
            await http.close()

    return asyncio.run(whole())


def fails(url: str, options: HttpOptions | None = None, seconds: float = 5) -> TransportError:
    """Return the failure of a POST."""
    with pytest.raises(TransportError) as caught:
        post(url, options, seconds)
    return caught.value


def test_an_answer_is_kept_as_it_came() -> None:
    with hostile("", acts.say(b"[1]", "418 Teapot", "application/json", "X-A: 1", "X-A: 2")) as server:
        answer = post(server.url)
        assert (answer.status, answer.body, answer.headers["x-a"]) == (418, b"[1]", "1, 2")
        head = server.posts[0].head.lower()
    assert b"user-agent: forecourt/" in head
    assert b"accept-encoding: gzip\r\n" in head
    assert b"x-own: 1" in head


def test_gzip_is_opened() -> None:
    packed = zlib.compressobj(wbits=31)
    body = packed.compress(b"[1, 2]") + packed.flush()
    with hostile("", acts.say(body, "200 OK", "application/json", "Content-Encoding: gzip")) as server:
        assert post(server.url).body == b"[1, 2]"


def test_a_body_is_bounded_before_and_after_it_is_opened() -> None:
    with hostile("", acts.say(b"x" * 1001), acts.say(b"x" * 1000), acts.bomb) as server:
        options = HttpOptions(max_bytes=1000)
        assert fails(server.url, options).kind is FailureKind.UNREADABLE
        assert len(post(server.url, options).body) == 1000
        assert fails(server.url, options).kind is FailureKind.UNREADABLE


def test_nobody_at_home_is_known_to_have_received_nothing() -> None:
    failure = fails("http://127.0.0.1:9")
    assert (failure.kind, failure.sent) == (FailureKind.CONNECTION, False)


def test_a_name_that_nobody_has_is_a_failed_connection() -> None:
    failure = fails("http://nobody.invalid")
    assert (failure.kind, failure.sent) == (FailureKind.CONNECTION, False)


@pytest.mark.parametrize("act", [acts.drop_after, acts.garbage], ids=["dropped", "no http"])
def test_a_lost_answer_leaves_the_outcome_open(act: acts.Act, demo: str) -> None:
    with hostile(demo, act) as server:
        failure = fails(server.url)
    assert (failure.kind, failure.sent) == (FailureKind.CONNECTION, True)


def test_the_bound_on_time_is_on_all_of_it(demo: str) -> None:
    with hostile(demo, acts.drip) as server:
        failure = fails(server.url, seconds=0.3)
    assert failure.kind is FailureKind.TIMEOUT
    assert str(failure) == "the dealer did not answer within 0.3 seconds"


def test_what_waits_for_a_connection_waits_within_its_time(demo: str) -> None:
    with hostile(demo, acts.silence, acts.serve) as server:

        async def whole() -> list[BaseException | Answer]:
            http = Http(HttpOptions(max_connections=1))
            try:
                work = [http.post(server.url, {}, b"{}", seconds) for seconds in (1.0, 0.2)]
                return await asyncio.gather(*work, return_exceptions=True)
            finally:
                await http.close()

        outcomes = asyncio.run(whole())
    first, second = outcomes
    assert isinstance(first, TransportError)
    assert isinstance(second, TransportError)
    assert (first.kind, first.sent) == (FailureKind.TIMEOUT, True)
    assert (second.kind, second.sent) == (FailureKind.TOO_MANY_PENDING, False)
    assert len(server.requests) == 1


def test_a_connection_that_is_never_made_has_sent_nothing() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        # The queue of a listener that accepts nobody is full after two; the third waits for its connection.
        waiting = [socket.socket() for _ in range(3)]
        try:
            for each in waiting:
                each.setblocking(False)
                each.connect_ex(full.getsockname())
            failure = fails(f"http://127.0.0.1:{full.getsockname()[1]}", seconds=0.3)
        finally:
            for each in waiting:
                each.close()
    assert (failure.kind, failure.sent) == (FailureKind.TIMEOUT, False)


def test_a_proxy_is_used_when_it_is_given() -> None:
    with hostile("", acts.say(b"[3]")) as proxy:
        answer = post("http://dealer.example.com/a2a", HttpOptions(proxy=proxy.url))
        assert answer.body == b"[3]"
        assert proxy.posts[0].head.startswith(b"POST http://dealer.example.com/a2a HTTP/1.1")


def test_a_certificate_that_nobody_vouches_for_is_refused_and_one_of_our_own_authority_is_taken(tmp_path: Path) -> None:
    cryptography = pytest.importorskip("cryptography.x509")
    from datetime import UTC, datetime, timedelta
    from ipaddress import ip_address

    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = cryptography.Name([cryptography.NameAttribute(cryptography.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    builder = (
        cryptography.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
        .add_extension(cryptography.SubjectAlternativeName([cryptography.IPAddress(ip_address("127.0.0.1"))]), False)
        .add_extension(cryptography.BasicConstraints(True, None), True)
    )  # fmt: skip
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    place = tmp_path / "both.pem"
    place.write_bytes(pem + private)
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(place)

    async def whole(verify: bool | ssl.SSLContext) -> Answer:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(acts.answer(b"[1]"))
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=served)
        http = Http(HttpOptions(verify=verify))
        async with server:
            port = server.sockets[0].getsockname()[1]
            try:
                return await http.post(f"https://127.0.0.1:{port}/", {}, b"{}", 5)
            finally:
                await http.close()

    with pytest.raises(TransportError) as caught:
        asyncio.run(whole(True))
    assert (caught.value.kind, caught.value.sent) == (FailureKind.CONNECTION, False)
    own = ssl.create_default_context(cadata=pem.decode())
    assert asyncio.run(whole(own)).body == b"[1]"


def test_a_transport_of_ones_own_takes_the_place_of_the_network() -> None:
    network = httpx.MockTransport(lambda _: httpx.Response(200, json=[2]))
    assert post("https://dealer.example.com", HttpOptions(transport=network)).body == b"[2]"
