"""PAP: a company in this process, whose proofs the package verifies, around the real agent."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from personal_agent_protocol import verify_dpop_proof
from pydantic import SecretStr
from tests.client.simulated import SimulatedTiming, aap

from forecourt.a2a import FailureKind
from forecourt.agent import Caller
from forecourt.client import Client, ConsentGrant, DealerError, TransportError, connect
from forecourt.client.carrier.pap import PersonalAgent, operations, read
from forecourt.client.failure import Answer
from forecourt.contract import SKILLS
from forecourt.errors import AAPError
from forecourt.server import create_app, load

T = TypeVar("T")

DOMAIN = "dealer.example.com"
SITE = f"https://{DOMAIN}"
STATUS = {"SCHEMA_VALIDATION_FAILED": 422, "VEHICLE_UNAVAILABLE": 409, "CONTACT_CONSENT_REQUIRED": 403}


async def public(host: str) -> list[str]:
    """Resolve every name to a public address; nothing is dialled."""
    del host
    return ["93.184.216.34"]


AGENT = PersonalAgent(
    "https://agent.example.com/agent.json", ec.generate_private_key(ec.SECP256R1()), "key-1", resolver=public
)


class Marks:
    """Proofs are taken once."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    async def mark_once(self, key: str, *, expires_at: datetime) -> bool:
        """Tell whether this key is new."""
        del expires_at
        new = key not in self.seen
        self.seen.add(key)
        return new


class Company(httpx.AsyncBaseTransport):
    """The network with one company on it. `acts` are played by its operations before good service."""

    def __init__(self, folder: Path) -> None:
        self.app = create_app(load(None, data=str(folder)))
        self.contract = self.app.deployment.contracts["3.1"]
        self.tokens: list[str] = []
        self.marks = Marks()
        self.acts: list[Any] = []
        self.calls: list[httpx.Request] = []
        self.serve_document = True

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        content = await request.aread()
        found = await self._answer(request, content)
        return httpx.Response(found.status_code, headers=found.headers, stream=found.stream)

    async def _answer(self, request: httpx.Request, content: bytes) -> httpx.Response:
        path = request.url.path
        if path == "/.well-known/poppy.json" and self.serve_document:
            apis = [{"type": "openapi", "url": f"{SITE}/api/openapi.json", "description": "AAP"}]
            organization = {"name": "Demo Auto Group", "domain": DOMAIN}
            document = {"protocol_version": "0.2", "organization": organization, "auth": {"issuer": SITE}, "apis": apis}
            return httpx.Response(200, json=document)
        if path == "/.well-known/oauth-authorization-server":
            metadata = {"issuer": SITE, "token_endpoint": f"{SITE}/oauth/token", "poppy_domains": [DOMAIN],
                        "revocation_endpoint": f"{SITE}/oauth/revoke"}  # fmt: skip
            return httpx.Response(200, json=metadata)
        if path == "/api/openapi.json":
            paths = {f"/api/{skill}": {"post": {"operationId": skill}} for skill in SKILLS}
            return httpx.Response(200, json={"openapi": "3.1.0", "servers": [{"url": SITE}], "paths": paths})
        if path == "/oauth/token":
            return self._token(content)
        if path.startswith("/api/"):
            return await self._operate(request, content)
        return httpx.Response(404)

    def _token(self, content: bytes) -> httpx.Response:
        form = parse_qs(content.decode())
        assert form["client_id"] == [AGENT.client_id]
        self.tokens.append(f"token-{len(self.tokens)}")
        granted = {"access_token": self.tokens[-1], "token_type": "DPoP", "expires_in": 600, "scope": "",
                   "session_id": "s-1", "signed_in": False}  # fmt: skip
        return httpx.Response(200, json=granted, headers={"cache-control": "no-store"})

    async def _operate(self, request: httpx.Request, content: bytes) -> httpx.Response:
        self.calls.append(request)
        token = request.headers["authorization"].removeprefix("DPoP ")
        await verify_dpop_proof(
            request.headers["dpop"],
            method="POST",
            url=str(request.url),
            replay_cache=self.marks,
            access_token=SecretStr(token),
        )
        if token != self.tokens[-1]:
            return httpx.Response(401, headers={"www-authenticate": 'DPoP error="invalid_token"'})
        act = self.acts.pop(0) if self.acts else None
        if isinstance(act, httpx.Response):
            return act
        try:
            reply = await self.app.deployment.agent.run(self.contract.read(json.loads(content)), Caller())
        except AAPError as error:
            return httpx.Response(STATUS.get(error.code, 500), json=self.contract.write_error(error))
        if isinstance(act, Exception):
            raise act
        return httpx.Response(200, content=self.contract.write(reply), headers={"content-type": "application/json"})


def run(company: Company, work: Callable[[Client], Awaitable[T]], **options: Any) -> T:
    async def whole() -> T:
        await company.app.deployment.open()
        try:
            chosen = {"binding": "pap", "pap": AGENT, "timing": SimulatedTiming(), "transport": company, **options}
            async with connect(SITE, **chosen) as client:
                return await work(client)
        finally:
            await company.app.deployment.close()

    return asyncio.run(whole())


@pytest.fixture
def company(tmp_path: Path) -> Company:
    return Company(tmp_path)


def lead(client: Client) -> Awaitable[Any]:
    grant = ConsentGrant("Yes.", ("email",), datetime.now(UTC))
    return client.submit_lead({"first_name": "Over", "last_name": "Pap", "email": "over@example.com"}, grant)


def test_all_five_skills_answer_in_one_session_with_a_proof_each(company: Company) -> None:
    async def work(client: Client) -> None:
        assert (client.binding, client.contract) == ("pap", "3.1")
        assert (await client.information()).name == "Demo Auto Group"
        assert (await client.facets(fuel="bev")).makes
        page = await client.search(make="Honda", limit=2)
        assert (await client.vehicle(page.vehicles[0].vin)).raw == page.vehicles[0].raw
        assert (await lead(client)).status == "received"

    run(company, work)
    assert len(company.tokens) == 1
    assert len({call.headers["dpop"] for call in company.calls}) == 5
    assert company.calls[-1].headers["idempotency-key"] == json.loads(company.calls[-1].content)["idempotency_key"]


def test_another_contract_than_its_own_is_refused(company: Company) -> None:
    with pytest.raises(DealerError, match=r"PAP carries contract 3\.1 alone, not 1\.1"):
        run(company, lambda client: client.search(), contract="1.1")
    assert company.calls == []


@pytest.mark.requirement("ERR-SDK-VERIFY-CLIENT")
@pytest.mark.parametrize(
    ("skill", "payload", "code"),
    [
        ("inventory.search", {"filters": {"mkae": ["Honda"]}}, "SCHEMA_VALIDATION_FAILED"),
        ("inventory.vehicle", {"vin": "5YFB4MBE3RM000012"}, "VEHICLE_UNAVAILABLE"),
        ("lead.submit", {"customer": {"first_name": "A", "last_name": "B", "email": "a@example.com"},
                         "source_agent": {"name": "x"}}, "CONTACT_CONSENT_REQUIRED"),
    ],
)  # fmt: skip
def test_a_body_that_is_an_aap_error_is_that_error(
    company: Company, skill: str, payload: dict[str, Any], code: str
) -> None:
    with pytest.raises(AAPError) as caught:
        run(company, lambda client: client.call(skill, payload))
    assert caught.value.code == code
    assert caught.value.raw.status == STATUS[code]


@pytest.mark.requirement("ERR-RETRY-NEW-PROOFS", "ERR-RETRY-LEAD-SESSION")
def test_a_session_that_ended_is_begun_anew_for_the_same_request(company: Company) -> None:
    async def work(client: Client) -> None:
        await client.information()
        company.tokens.append("another")
        await lead(client)

    run(company, work)
    refused, accepted = company.calls[-2:]
    assert refused.content == accepted.content
    assert refused.headers["dpop"] != accepted.headers["dpop"]
    assert refused.headers["authorization"] != accepted.headers["authorization"]


@pytest.mark.requirement("ERR-RETRY-LEAD-RETRY", "ERR-RETRY-WAIT-MINIMUM")
def test_a_lead_is_the_same_over_every_try_and_waits_as_told(company: Company) -> None:
    busy = httpx.Response(429, json=aap("RATE_LIMITED", True, retry_after_ms=1000), headers={"retry-after": "3"})
    company.acts = [busy, httpx.ReadError("lost"), httpx.Response(503)]
    timing = SimulatedTiming()
    receipt = run(company, lead, timing=timing)
    assert receipt.status == "received"
    assert len({call.content for call in company.calls}) == 1
    assert len(company.calls) == 4
    assert timing.waits[0] == 3.0


def test_a_company_without_pap_is_no_dealer_over_pap(company: Company) -> None:
    company.serve_document = False
    with pytest.raises(DealerError, match="cannot be used over PAP"):
        run(company, lambda client: client.search())


def test_operations_are_taken_from_the_documents_own_origin_and_https() -> None:
    def found(server: str, **paths: Any) -> dict[str, str]:
        document = {"servers": [{"url": server}], "paths": {f"/{name}": value for name, value in paths.items()}}
        return operations(Answer(f"{SITE}/api/openapi.json", 200, {}, json.dumps(document).encode()))

    search = {"post": {"operationId": "inventory.search"}}
    assert found("/v3", a=search, b={"get": {}}, c=5) == {"inventory.search": f"{SITE}/v3/a"}
    for server in ("https://evil.example.com", f"http://{DOMAIN}"):
        with pytest.raises(DealerError, match="no skill of AAP"):
            found(server, a=search)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [(200, b"{", FailureKind.UNREADABLE), (200, b"{}", FailureKind.UNREADABLE), (502, b"<html>", FailureKind.STATUS),
     (403, b'{"error": "insufficient_scope"}', FailureKind.AUTH_REQUIRED), (202, b"{}", FailureKind.UNREADABLE)],
)  # fmt: skip
def test_an_answer_that_is_none_is_told_as_what_it_is(status: int, body: bytes, kind: FailureKind) -> None:
    with pytest.raises(TransportError) as caught:
        read(Answer(f"{SITE}/api/x", status, {}, body), SKILLS["inventory.search"])
    assert caught.value.kind is kind
