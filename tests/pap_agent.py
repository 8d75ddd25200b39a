"""A personal agent for tests: it starts Sessions at `forecourt serve --pap-dev` and signs proofs, right ones and wrong.

Made from RFC 9449 and PAP's sections 4.1 to 4.3 with PyJWT alone, apart from the package that the server uses.
"""

import base64
import contextlib
import hashlib
import http.client
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final
from urllib.parse import urlencode

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from jwt.algorithms import ECAlgorithm
from tests.server_process import ServerProcess

__all__ = ["AGENT_ID", "BASE", "PAPAgent", "Response", "agent_of", "b64"]

AGENT_ID: Final = "https://agent.localhost/agent.json"
BASE: Final = "https://dealer.localhost"
_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def error(self) -> str | None:
        """PAP's word for what was wrong."""
        found: str | None = self.json.get("error")
        return found


@dataclass
class PAPAgent:
    """One agent with one key for proofs, at one server."""

    server: ServerProcess
    user: str = field(default_factory=lambda: "usr_" + secrets.token_urlsafe(16))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    token: str = ""
    session_id: str = ""
    agent_id: str = AGENT_ID
    own_key: ec.EllipticCurvePrivateKey | None = None
    """The agent's own key, where it is not the demonstration's."""

    @property
    def public_jwk(self) -> dict[str, Any]:
        """The public part of the key for proofs."""
        found: dict[str, Any] = json.loads(ECAlgorithm.to_jwk(self.key.public_key()))
        return found

    def identity(self) -> ec.EllipticCurvePrivateKey:
        """Return the key that assertions are signed with."""
        if self.own_key is not None:
            return self.own_key
        text = (self.server.folder / "data" / "pap-dev" / "agent-key.pem").read_bytes()
        key = load_pem_private_key(text, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return key

    def assertion(self, subject: str, **changes: Any) -> str:
        """Return an assertion of the agent's about itself or its user."""
        now = int(time.time())
        claims = {"iss": self.agent_id, "sub": subject, "aud": BASE, "iat": now, "exp": now + 60, "jti": fresh()}
        claims |= changes
        return jwt.encode(claims, self.identity(), "ES256", headers={"kid": "demonstration"})

    def form(self, **changes: str) -> dict[str, str]:
        """Return the fields of a request for a Session Token."""
        return {
            "grant_type": _GRANT,
            "assertion": self.assertion(self.user),
            "client_id": self.agent_id,
            "client_assertion_type": _ASSERTION,
            "client_assertion": self.assertion(self.agent_id),
            **changes,
        }

    def ask(self, form: Mapping[str, str], proof: str | None = None) -> Response:
        """Send a token request."""
        headers = [("Content-Type", "application/x-www-form-urlencoded")]
        headers.append(("DPoP", self.proof("POST", f"{BASE}/oauth/token", token=None) if proof is None else proof))
        return self.send("POST", "/oauth/token", headers, urlencode(form).encode())

    def start(self) -> "PAPAgent":
        """Start a Session, or renew the one that there is."""
        more = {"session_id": self.session_id} if self.session_id else {}
        answer = self.ask(self.form(**more))
        assert answer.status == 200, answer
        self.token, self.session_id = answer.json["access_token"], answer.json["session_id"]
        return self

    def proof(
        self,
        method: str,
        url: str,
        *,
        token: str | None = "",
        key: ec.EllipticCurvePrivateKey | None = None,
        headers: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> str:
        """Return a proof; `changes` are claims of it, None leaves one out, `token=None` leaves `ath` out."""
        claims: dict[str, Any] = {"jti": fresh(), "htm": method, "htu": url, "iat": int(time.time())}
        if token is not None:
            claims["ath"] = b64(hashlib.sha256((token or self.token).encode()).digest())
        claims = {name: value for name, value in {**claims, **changes}.items() if value is not None}
        header = {"typ": "dpop+jwt", "jwk": self.public_jwk, **(headers or {})}
        return jwt.encode(claims, key or self.key, "ES256", headers=header)

    def call(
        self,
        payload: Any,
        path: str = "/api/inventory.search",
        *,
        proof: str | Sequence[str] | None = None,
        headers: Sequence[tuple[str, str]] = (),
        method: str = "POST",
        scheme: str = "DPoP",
    ) -> Response:
        """Call an operation with the token and a proof, or several, or none ("")."""
        if not self.token:
            self.start()
        if proof is None:
            proof = self.proof(method, BASE + path.partition("?")[0])
        proofs = [proof] if isinstance(proof, str) else proof
        body = payload if isinstance(payload, bytes) else json.dumps(payload, ensure_ascii=False).encode()
        given = [("Authorization", f"{scheme} {self.token}"), *(("DPoP", each) for each in proofs if each)]
        if not any(name.lower() == "content-type" for name, _ in headers):
            given.append(("Content-Type", "application/json"))
        return self.send(method, path, [*given, *headers], body)

    def send(self, method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes = b"") -> Response:
        """Send one request as it is given, on a connection of its own."""
        with contextlib.closing(self.server.connect(_SECONDS)) as connection:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            if not any(name == "Host" for name, _ in headers):
                connection.putheader("Host", "dealer.localhost")
            for name, value in headers:
                connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            return _read(connection.getresponse())


def _read(response: http.client.HTTPResponse) -> Response:
    found: dict[str, str] = {}
    for name, value in response.getheaders():
        key = name.lower()
        found[key] = f"{found[key]}, {value}" if key in found else value
    return Response(response.status, found, response.read())


def fresh() -> str:
    """Return an identifier that was never used."""
    return secrets.token_urlsafe(16)


def b64(data: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@cache
def _agent(folder: str, port: int) -> list[PAPAgent]:
    return []


def agent_of(server: ServerProcess) -> PAPAgent:
    """Return an agent with a Session at a server, the same one for every test that asks."""
    known = _agent(str(server.folder), server.port)
    if not known:
        known.append(PAPAgent(server).start())
    return known[0]
