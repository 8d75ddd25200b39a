"""PAP: each skill is an operation of the dealer's OpenAPI document, called with a Session Token bound to a key.

Discovery, Sessions and proofs are those of the package `personal-agent-protocol` (the extra `pap`); this module finds
the operations and reads what they answer. PAP 0.2; "Errors and retries", section "Three envelopes".
"""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final
from urllib.parse import urljoin, urlsplit

from forecourt.a2a import FailureKind
from forecourt.client.address import origin
from forecourt.client.carrier.interface import Carrier, Payload, checked
from forecourt.client.dialect import Dialect
from forecourt.client.failure import Answer, DealerError, TransportError
from forecourt.client.http import Http
from forecourt.client.json_text import encode
from forecourt.client.reading import aap_error, json_body, status_failure, unreadable
from forecourt.contract import SKILLS, Skill

__all__ = ["CARRIER", "PersonalAgent"]

_TENANT: Final = "forecourt"
_HEADER_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")
_EARLY_SECONDS: Final = 30.0
_MAX_DOCUMENT: Final = 4 * 1024 * 1024
_PATHS_READ: Final = 2000


@dataclass(frozen=True)
class PersonalAgent:
    """Whose agent calls: its `client_id` (the https address of its published metadata) and the private key, EC P-256,
    whose public half that metadata has as `key_id`.

    `user_id` is the pairwise id of the shopper at this dealer, kept by you; without one a fresh one is made, which no
    two dealers can compare. `resolver` and `allow_private_networks` are the package's, for demonstrations on loopback.
    """

    client_id: str
    private_key: Any = field(repr=False)
    key_id: str | None = None
    user_id: str | None = field(default=None, repr=False)
    resolver: Callable[[str], Awaitable[list[str]]] | None = None
    allow_private_networks: bool = False


class PAPCarrier(Carrier):
    """One dealer's operations, over one signed-out Session that is renewed when it ends."""

    binding: ClassVar[str] = "pap"

    def __init__(
        self, http: Http, endpoint: str, agent: PersonalAgent, company: Any, paths: Mapping[str, str], reactor: Any
    ) -> None:
        from personal_agent_protocol import DpopHttpClient, SessionClient
        from personal_agent_protocol.sessions import generate_pairwise_user_id

        super().__init__(http, endpoint)
        self._agent = agent
        self._paths = paths
        self._metadata = company.oauth_metadata
        self._user = agent.user_id or generate_pairwise_user_id()
        self._sessions = SessionClient(reactor=reactor, http_client=http.client())
        self._proving = DpopHttpClient(reactor=reactor, http_client=http.client(), max_response_bytes=http.max_bytes)
        self._lock = asyncio.Lock()
        self._token: Any = None
        self._token_ends = 0.0

    @classmethod
    async def find(cls, http: Http, site: str, agent: PersonalAgent, seconds: float) -> "PAPCarrier":
        """Read the dealer's poppy.json and OpenAPI document. DealerError when it offers no skills over PAP."""
        try:
            from personal_agent_protocol import DiscoveryClient, openapi_url
            from personal_agent_protocol.reactor import build_pap_reactor, resolve_addresses
            from reactor import PluginManifest  # type: ignore[import-untyped]
        except ModuleNotFoundError as error:
            raise DealerError(
                "PAP needs the package personal-agent-protocol: install forecourt[pap]", FailureKind.BINDING_MISMATCH
            ) from error
        reactor, _ = build_pap_reactor(
            http_client=http.client(),
            address_resolver=agent.resolver or resolve_addresses,
            allow_private_networks=agent.allow_private_networks,
            plugins=[(PluginManifest(name="forecourt", version="1"), _Host(agent))],
        )
        try:
            async with asyncio.timeout(seconds):
                company = await DiscoveryClient(reactor=reactor).discover(urlsplit(site).netloc)
        except TimeoutError:
            raise TransportError(FailureKind.TIMEOUT, "the dealer did not answer in time", sent=False) from None
        except Exception as error:
            raise DealerError(f"the dealer cannot be used over PAP ({_code(error)})") from error
        document = openapi_url(company.document)
        if document is None or company.oauth_metadata is None:
            raise DealerError("the dealer's poppy.json lists no OpenAPI", FailureKind.BINDING_MISMATCH)
        answer = await http.get(document, {"Accept": "application/json"}, seconds, _MAX_DOCUMENT)
        if answer.status != 200:
            raise status_failure(answer)
        return cls(http, document, agent, company, operations(answer), reactor)

    async def send(
        self, skill: Skill, payload: Mapping[str, Any], dialect: Dialect, headers: Mapping[str, str], seconds: float
    ) -> tuple[Payload, Answer]:
        """Call the skill's operation with a fresh proof; an ended Session is begun anew, once."""
        del dialect, headers  # PAP is contract 3.1, and its credentials are its own.
        if skill.id not in self._paths:
            raise DealerError(f"the dealer has no operation {skill.id}", FailureKind.BINDING_MISMATCH)
        try:
            async with asyncio.timeout(seconds):
                answer = await self._call(skill, payload)
                if answer.status == 401 and answer.headers.get("www-authenticate", "").lower().startswith("dpop"):
                    # PAP's challenge comes before any skill runs. A new proof, never a new request.
                    self._token = None
                    answer = await self._call(skill, payload)
        except TimeoutError:
            raise TransportError(FailureKind.TIMEOUT, f"the dealer did not answer within {seconds:g} seconds") from None
        return read(answer, skill), answer

    async def _call(self, skill: Skill, payload: Mapping[str, Any]) -> Answer:
        from personal_agent_protocol import PersonalAgentProtocolError

        token = await self._session()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        key = payload.get("idempotency_key")
        if isinstance(key, str) and _HEADER_KEY.fullmatch(key):
            headers["Idempotency-Key"] = key
        url = self._paths[skill.id]
        try:
            response = await self._proving.request(
                "POST",
                url,
                token=token,
                tenant_id=_TENANT,
                pairwise_user_id=self._user,
                issuer=self._metadata.issuer,
                headers=headers,
                content=encode(payload),
            )
        except PersonalAgentProtocolError as error:
            raise _failure(error, sent=True) from error
        found = {name: ", ".join(response.headers.get_list(name)) for name in response.headers}
        return Answer(url, response.status_code, found, response.content)

    async def _session(self) -> Any:
        from personal_agent_protocol import PersonalAgentProtocolError

        async with self._lock:
            if self._token is None or time.monotonic() >= self._token_ends:
                try:
                    self._token = await self._sessions.start(
                        client_id=self._agent.client_id,
                        pairwise_user_id=self._user,
                        issuer=self._metadata.issuer,
                        token_endpoint=self._metadata.token_endpoint,
                        tenant_id=_TENANT,
                    )
                except PersonalAgentProtocolError as error:
                    raise _failure(error, sent=False) from error
                self._token_ends = time.monotonic() + max(1.0, self._token.expires_in - _EARLY_SECONDS)
            return self._token


class _Host:
    """What this agent brings to the package: its signer, and one proof key a user and company."""

    def __init__(self, agent: PersonalAgent) -> None:
        self._agent = agent
        self._keys: dict[tuple[str, str, str], Any] = {}

    def provide_contributions(self, contributions: Any) -> None:
        from personal_agent_protocol.crypto import JoseDpopProofProvider, JoseSigner
        from personal_agent_protocol.reactor import DPOP_PROOF_PROVIDERS, SIGNERS

        signer = JoseSigner(self._agent.private_key, key_id=self._agent.key_id)
        contributions.contribute(SIGNERS, signer, contribution_id="agent-key")
        contributions.contribute(DPOP_PROOF_PROVIDERS, JoseDpopProofProvider(self._key), contribution_id="proof-keys")

    async def _key(self, request: Any) -> Any:
        import jwt
        from cryptography.hazmat.primitives.asymmetric import ec
        from personal_agent_protocol.crypto import DpopKeyMaterial

        owner = (request.tenant_id, request.subject, request.issuer)
        if owner not in self._keys:
            private = ec.generate_private_key(ec.SECP256R1())
            public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(private.public_key()))
            self._keys[owner] = DpopKeyMaterial(private_key=private, public_jwk=public)
        return self._keys[owner]


def operations(answer: Answer) -> dict[str, str]:
    """Return the address of each skill's operation in an OpenAPI document; only https, and only of its own origin."""
    document = json_body(answer)
    servers = document.get("servers") if isinstance(document, dict) else None
    first = servers[0].get("url") if isinstance(servers, list) and servers and isinstance(servers[0], dict) else None
    base = urljoin(answer.url, first if isinstance(first, str) else "/")
    paths = document.get("paths") if isinstance(document, dict) else None
    found: dict[str, str] = {}
    for path, item in list(paths.items())[:_PATHS_READ] if isinstance(paths, dict) else ():
        operation = item.get("post") if isinstance(item, dict) else None
        skill_id = operation.get("operationId") if isinstance(operation, dict) else None
        url = f"{base.rstrip('/')}/{path.lstrip('/')}"
        if (
            isinstance(skill_id, str)
            and skill_id in SKILLS
            and url.startswith("https://")
            and origin(url) == origin(answer.url)
        ):
            found.setdefault(skill_id, url)
    if not found:
        raise DealerError("the dealer's OpenAPI document has no skill of AAP", FailureKind.BINDING_MISMATCH)
    return found


def read(answer: Answer, skill: Skill) -> Payload:
    """Return the response payload of an operation's answer; the bare `aap.error` body wins over the status."""
    try:
        body = json_body(answer)
    except TransportError:
        if answer.status >= 300:
            raise status_failure(answer) from None
        raise
    failure = aap_error(body, answer)
    if failure is not None:
        raise failure
    if answer.status >= 300:
        raise status_failure(answer)
    if answer.status != 200:
        raise unreadable(answer, f"the dealer answered HTTP {answer.status} instead of the skill's result")
    return checked(body, skill, answer)


def _code(error: Exception) -> str:
    code = getattr(error, "code", None)
    return code if isinstance(code, str) else type(error).__name__


def _failure(error: Any, *, sent: bool) -> TransportError:
    """Return what a failure of the package means to the client: the network, or the dealer's refusal of the agent."""
    cause: BaseException | None = error.__cause__
    while cause is not None and not type(cause).__module__.startswith(("httpx", "httpcore")):
        cause = cause.__cause__
    if cause is not None:
        kind = FailureKind.TIMEOUT if "Timeout" in type(cause).__name__ else FailureKind.CONNECTION
        never = type(cause).__name__ in ("ConnectError", "ConnectTimeout", "PoolTimeout")
        return TransportError(kind, "the connection to the dealer failed", sent=sent and not never)
    if error.status_code in (429, 502, 503, 504):
        return TransportError(FailureKind.STATUS, "the dealer is busy", status=error.status_code, sent=sent)
    if error.status_code is not None or not sent:
        message = f"the dealer refuses this agent ({_code(error)})"
        return TransportError(FailureKind.AUTH_REQUIRED, message, status=error.status_code, sent=sent)
    return TransportError(FailureKind.UNREADABLE, f"the dealer's answer cannot be used ({_code(error)})", sent=sent)


CARRIER: Final = PAPCarrier
