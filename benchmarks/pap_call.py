"""`python -m benchmarks.pap_call`: what a verified PAP call costs, next to the same call over A2A and one ES256 check.

The calls are `inventory.search` of the demo dealer, many at a time as at a busy server; every PAP call has a token and
a proof of its own, and its mark is durable in the store before it is answered. Measured is the CPU time of the whole
server process, the store's threads with it, in short rounds taken in turn; the medians are compared.

Twice: served over HTTP, as callers have it, and inside, the application driven through ASGI in this process, where
neither side hides behind the cost of HTTP.
"""

import argparse
import asyncio
import base64
import contextlib
import hashlib
import http.client
import json
import os
import secrets
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, cast

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from jwt.algorithms import ECAlgorithm

from benchmarks.a2a_search import free_port
from benchmarks.load import http_request, measure
from benchmarks.servers import SEARCH, envelope, running, temporary_folder
from forecourt.server import Application, create_app, load
from forecourt.server.pap.demonstration import AGENT_ID, DOMAIN, KEY_ID, prepare

_MOST: Final = 1.6
_BASE: Final = f"https://{DOMAIN}"
_PATH: Final = "/api/inventory.search"
_TOKEN_PATH: Final = "/oauth/token"
_JSON: Final = (b"content-type", b"application/json")


class Caller:
    """Sends requests straight into the application, and has the key of a Session."""

    def __init__(self, app: Application, identity: ec.EllipticCurvePrivateKey) -> None:
        self._app = app
        self._identity = identity
        self.key = ec.generate_private_key(ec.SECP256R1())
        self._jwk = json.loads(ECAlgorithm.to_jwk(self.key.public_key()))
        self._token = ""

    async def send(self, path: str, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bytes:
        """POST a body and return the answer's, which must be a success."""
        scope = {
            "type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers,
            "client": ("127.0.0.1", 1),
        }  # fmt: skip
        told: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            told.append(message)

        await self._app(scope, receive, send)
        assert told[0]["status"] == 200, told
        answer: bytes = told[1]["body"]
        return answer

    async def start(self) -> None:
        """Start a Session."""

        def assertion(subject: str) -> str:
            now = int(time.time())
            claims = {"iss": AGENT_ID, "sub": subject, "aud": _BASE, "iat": now, "exp": now + 60, "jti": _fresh()}
            return jwt.encode(claims, self._identity, "ES256", headers={"kid": KEY_ID})

        fields = {
            "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
            "assertion": assertion("usr_benchmark"),
            "client_id": AGENT_ID,
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "client_assertion": assertion(AGENT_ID),
        }
        headers = [
            (b"content-type", b"application/x-www-form-urlencoded"),
            (b"dpop", self.proof(_TOKEN_PATH).encode()),
        ]
        body = "&".join(f"{name}={value.replace(':', '%3A').replace('/', '%2F')}" for name, value in fields.items())
        self._token = json.loads(await self.send(_TOKEN_PATH, headers, body.encode()))["access_token"]

    def proof(self, path: str) -> str:
        """Return a proof for a POST."""
        claims = {"jti": _fresh(), "htm": "POST", "htu": _BASE + path, "iat": int(time.time())}
        if self._token:
            claims["ath"] = base64.urlsafe_b64encode(hashlib.sha256(self._token.encode()).digest()).decode().rstrip("=")
        return jwt.encode(claims, self.key, "ES256", headers={"typ": "dpop+jwt", "jwk": self._jwk})

    def headers(self, path: str = _PATH) -> list[tuple[bytes, bytes]]:
        """Return the headers of one call over PAP."""
        return [
            (b"host", DOMAIN.encode()),
            _JSON,
            (b"authorization", f"DPoP {self._token}".encode()),
            (b"dpop", self.proof(path).encode()),
        ]


class Served(Caller):
    """The same, over HTTP to a server of its own process."""

    def __init__(self, port: int, identity: ec.EllipticCurvePrivateKey) -> None:
        super().__init__(cast("Application", None), identity)
        self._port = port

    async def send(self, path: str, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bytes:
        """POST a body and return the answer's."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        with contextlib.closing(connection):
            connection.request("POST", path, body, {name.decode(): value.decode() for name, value in headers})
            response = connection.getresponse()
            assert response.status == http.HTTPStatus.OK
            return response.read()


def _fresh() -> str:
    return secrets.token_urlsafe(16)


async def many(calls: Sequence[Callable[[], Awaitable[bytes]]], at_once: int) -> float:
    """Make the calls, so many at once, and return the CPU time of one in microseconds."""
    waiting = iter(calls)

    async def one() -> None:
        for call in waiting:
            await call()

    begun = time.process_time()
    await asyncio.gather(*(one() for _ in range(at_once)))
    return (time.process_time() - begun) / len(calls) * 1e6


def verification(key: ec.EllipticCurvePrivateKey, times: int) -> float:
    """Return the CPU time of one ES256 verification in microseconds."""
    text = b"x" * 300
    signature = jwt.get_algorithm_by_name("ES256").sign(text, key)
    public, scheme = key.public_key(), ec.ECDSA(SHA256())
    begun = time.process_time()
    for _ in range(times):
        der = encode_dss_signature(int.from_bytes(signature[:32]), int.from_bytes(signature[32:]))
        public.verify(der, text, scheme)
    return (time.process_time() - begun) / times * 1e6


async def compare(folder: str, rounds: int, calls: int, at_once: int) -> None:
    """Measure and print."""
    data = Path(folder)
    config = load(None, data=folder, pap={"enabled": True, "domain": DOMAIN, "demonstration": True})
    app = create_app(config)
    await app.deployment.open()
    caller = Caller(app, prepare(data).agent_key)
    await caller.start()
    a2a_headers = [(b"host", DOMAIN.encode()), _JSON, (b"a2a-version", b"1.0")]
    a2a_body, pap_body = envelope(SEARCH), json.dumps(SEARCH).encode()
    seen: dict[str, list[float]] = {"ES256 verification": [], "over A2A": [], "over PAP": []}
    for number in range(rounds + 1):
        over_a2a = [lambda: caller.send("/a2a", a2a_headers, a2a_body)] * calls
        proven = [caller.headers() for _ in range(calls)]
        over_pap = [lambda headers=headers: caller.send(_PATH, headers, pap_body) for headers in proven]
        measured = (verification(caller.key, calls), await many(over_a2a, at_once), await many(over_pap, at_once))
        if number:  # the first round warms up
            for name, value in zip(seen, measured, strict=True):
                seen[name].append(value)
    await app.deployment.close()
    report(f"inside, {at_once} at a time", seen)


def serve_and_compare(folder: str, rounds: int, calls: int, at_once: int) -> None:
    """Measure a server process over HTTP and print."""
    with running("forecourt", free_port(), folder, "pap") as port:
        pid = process_at(port)
        caller = Served(port, prepare(Path(folder)).agent_key)
        asyncio.run(caller.start())
        pap_body = json.dumps(SEARCH).encode()
        a2a = [http_request("/a2a", envelope(SEARCH), [("A2A-Version", "1.0")])]
        seen: dict[str, list[float]] = {"ES256 verification": [], "over A2A": [], "over PAP": []}
        for number in range(rounds + 1):
            pap = []
            for _ in range(calls):
                proven = [(name.decode(), value.decode()) for name, value in caller.headers()[2:]]
                pap.append(http_request(_PATH, pap_body, proven))
            measured = (
                verification(caller.key, calls),
                of_process(pid, port, a2a, calls, at_once),
                of_process(pid, port, pap, calls, at_once),
            )
            if number:
                for name, value in zip(seen, measured, strict=True):
                    seen[name].append(value)
    report(f"served over HTTP, {at_once} connections", seen)


def process_at(port: int) -> int:
    """Return the number of the process of ours that listens at a port."""
    sockets = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    inodes = {f"socket:[{fields[9]}]" for fields in sockets if fields[1].endswith(f":{port:04X}") and fields[3] == "0A"}
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):
            if any(os.readlink(found) in inodes for found in folder.iterdir()):
                return int(folder.parent.name)
    raise SystemExit(f"nothing listens at port {port}")


def of_process(pid: int, port: int, requests: Sequence[bytes], calls: int, at_once: int) -> float:
    """Send so many requests and return the CPU time of one in the process, in microseconds."""

    def ticks() -> int:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    begun = ticks()
    seen = measure(port, requests, connections=at_once, seconds=30, total=calls)
    assert (seen.requests, seen.failures) == (calls, 0), seen.failures
    return (ticks() - begun) / os.sysconf("SC_CLK_TCK") / calls * 1e6


def report(how: str, seen: dict[str, list[float]]) -> None:
    """Print a line each, and the ratio that is asked for."""
    print(f"inventory.search, {how}, CPU of the whole process")
    for name, values in seen.items():
        print(f"  {name:20} {statistics.median(values):7.1f} µs (rounds {min(values):.1f} to {max(values):.1f})")
    ratios = [pap / (check + a2a) for check, a2a, pap in zip(*seen.values(), strict=True)]
    ratio = statistics.median(ratios)
    verdict = "yes" if ratio <= _MOST else "NO"
    print(
        f"  PAP / (verification + A2A): {ratio:.2f} (rounds {min(ratios):.2f} to {max(ratios):.2f});"
        f" at most {_MOST}: {verdict}"
    )


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=2000, help="per round")
    parser.add_argument("--at-once", type=int, default=32)
    chosen = parser.parse_args()
    with temporary_folder() as folder:
        serve_and_compare(folder, chosen.rounds, chosen.calls, chosen.at_once)
    with temporary_folder() as folder:
        asyncio.run(compare(folder, chosen.rounds, chosen.calls, chosen.at_once))


if __name__ == "__main__":
    main()
