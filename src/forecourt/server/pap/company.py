"""The company of `personal-agent-protocol`, as a dealer needs it: signed-out Sessions and nothing else.

The package verifies assertions and proofs, issues tokens and writes challenges. What is set here is where it keeps
things (`records`), whom it lets in (`identity`), and that its documents claim only what is offered: no sign-in, no
conversations, no operations, no web pages and no feedback.
"""

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx
import msgspec
from personal_agent_protocol.company import (
    CLIENT_POLICIES,
    CLIENT_RESOLVERS,
    COMPANY_STORES,
    REPLAY_CACHES,
    CompanyConfig,
    CompanyRequest,
    CompanyResponse,
    CompanyService,
    IdentityClientResolver,
    build_company,
)
from personal_agent_protocol.company.service import _RefusedError
from personal_agent_protocol.company.store import SESSION, IssuedSession, StoredSession
from personal_agent_protocol.errors import PersonalAgentProtocolError
from personal_agent_protocol.identity import AgentIdentityClient
from personal_agent_protocol.reactor import (
    CLOCKS,
    DISCOVERY_TRANSPORTS,
    URL_SAFETY_POLICIES,
    AddressResolver,
    Clock,
    HttpxDiscoveryTransport,
)
from reactor import PluginManifest, hookimpl  # type: ignore[import-untyped]

from forecourt.binding import Answer
from forecourt.binding.pap import answer, refuse
from forecourt.server.endpoint import internal_error
from forecourt.server.pap.identity import AgentPolicy, BoundedTransport, BusyError, KnownAgents, PublicAddresses
from forecourt.server.pap.marks import MarkQueue
from forecourt.server.pap.records import AgentRecords, ReplayMarks
from forecourt.store import AccessStore

__all__ = ["DealerCompany", "SystemClock"]

SESSION_LIFETIME: Final = timedelta(hours=1)
_RENEWABLE: Final = timedelta(days=1)
"""How long after its last token a Session can be renewed."""
_CAPABILITY: Final = "Shop this dealership's stock and submit leads with the shopper's consent (Auto Agent Protocol)."
_BUSY_SECONDS: Final = "5"

_log = logging.getLogger("forecourt.server")


class SystemClock:
    """The time."""

    def now(self) -> datetime:
        """Return it, in UTC."""
        return datetime.now(UTC)


@dataclass(frozen=True)
class _Config(CompanyConfig):
    """What the company publishes; its endpoints are at the deployment's public address."""

    public_url: str = ""

    @property
    def base(self) -> str:
        return self.public_url


class DealerCompany(CompanyService):
    """One dealer, or network of dealers, as PAP sees it."""

    marks: MarkQueue
    policy: AgentPolicy

    @classmethod
    def build(
        cls,
        *,
        name: str,
        domain: str,
        public_url: str,
        store: AccessStore,
        policy: AgentPolicy,
        http: httpx.AsyncClient,
        resolver: AddressResolver,
        private_networks: bool = False,
        known_agents: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] | None = None,
        clock: Clock | None = None,
    ) -> "DealerCompany":
        """Return the company. `http` follows no redirects and has no proxy; `clock` is for tests."""
        clock = clock or SystemClock()
        config = _Config(
            name=name,
            domain=domain,
            public_url=public_url,
            scopes=(),
            device=False,
            direct=False,
            operations=False,
            feedback=False,
            session_lifetime=SESSION_LIFETIME,
            account_token_lifetime=_RENEWABLE,
        )
        reactor = build_company(config, http_client=http, address_resolver=resolver).reactor
        company = cls(config=config, reactor=reactor)
        company.marks = MarkQueue(store, clock.now)
        company.policy = policy
        fetched = IdentityClientResolver(AgentIdentityClient(reactor=reactor))
        parts = (
            (CLOCKS, clock),
            (COMPANY_STORES, AgentRecords(store, clock.now)),
            (REPLAY_CACHES, ReplayMarks(company.marks)),
            (CLIENT_POLICIES, policy),
            (CLIENT_RESOLVERS, KnownAgents(fetched, known_agents or {})),
            (URL_SAFETY_POLICIES, PublicAddresses(resolver, private=private_networks)),
            (DISCOVERY_TRANSPORTS, BoundedTransport(HttpxDiscoveryTransport(http))),
        )
        reactor.register_plugin(PluginManifest(name="forecourt.dealer", version="1"), _Parts(parts))
        return company

    def discovery_document(self, domain: str | None = None) -> dict[str, Any]:
        """Return poppy.json: the issuer and the API, and no interface that is not served."""
        document = super().discovery_document(domain)
        del document["agent"]
        api = {"type": "openapi", "url": self.config.api_description, "description": _CAPABILITY}
        return {**document, "apis": [api]}

    def now(self) -> datetime:
        """Return the time by the company's clock."""
        return self._now()

    async def respond(self, request: CompanyRequest) -> Answer:
        """Answer a request to one of the package's own endpoints; whatever goes wrong keeps PAP's form."""
        try:
            return written(await self.handle(request))
        except BusyError:
            return refuse(503, "temporarily_unavailable", retry_after=_BUSY_SECONDS)
        except Exception as error:
            # A client may try again; the log has what it was, and the caller learns nothing of it.
            internal_error(error)
            return refuse(500, "server_error")

    async def caller(self, request: CompanyRequest) -> IssuedSession | Answer:
        """Return the Session whose token and proof a request carries; an `Answer` is the package's challenge."""
        try:
            _, session = await self._caller(request)
        except _RefusedError as refused:
            return written(self._refusal(refused))
        except PersonalAgentProtocolError:
            return self.challenge("invalid_dpop_proof")
        return session

    async def _dpop(self, request: CompanyRequest, access_token: str | None = None) -> str:
        try:
            return await super()._dpop(request, access_token)
        except (ArithmeticError, OSError, TypeError, ValueError):
            # The package lets through what is raised for an `iat` that no calendar has and an `ath` that is not ASCII.
            status = 400 if access_token is None else 401
            raise _RefusedError(status, "invalid_dpop_proof") from None

    def challenge(self, error: str) -> Answer:
        """Return the package's challenge for a token or proof that is refused."""
        return written(self._refusal(_RefusedError(401, error)))

    @staticmethod
    def _refusal(refused: _RefusedError) -> CompanyResponse:
        from personal_agent_protocol.company.service import _json_error

        return _json_error(refused.status, refused.error, refused.headers, **refused.extra)

    async def standing(self, token: str, session_id: str) -> tuple[IssuedSession, str] | None:
        """Return what a token stands for at this moment with the version of its Session's record, None if nothing.

        This is the first half of the package's own check of a caller, read from the one record that decides it.
        """
        found = await self.store.get(SESSION, session_id)
        if found is None:
            return None
        session = StoredSession.from_json(found.value).tokens.get(hashlib.sha256(token.encode()).hexdigest())
        if session is None or session.token_type != "DPoP" or session.resource is not None:  # noqa: S105
            return None
        if session.account_id is not None or session.scopes or self.now() >= session.expires_at:
            return None
        return (session, found.version) if self.policy.admits(session.client_id) else None


class _Parts:
    """A plugin of parts that win over the package's defaults."""

    def __init__(self, parts: tuple[tuple[Any, Any], ...]) -> None:
        self._parts = parts

    @hookimpl  # type: ignore[untyped-decorator]
    def provide_contributions(self, contributions: Any) -> None:
        for point, part in self._parts:
            contributions.contribute(point, part, contribution_id="forecourt", order=0)


def written(response: CompanyResponse) -> Answer:
    """Return a response of the package as it travels."""
    return answer(response.status, msgspec.json.encode(response.body), list(response.headers.items()))
