"""A `DealerCompany` in this process, on a database of its own, with agents that live on a network of the test's."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from personal_agent_protocol.company import CompanyRequest
from tests.pap_agent import BASE, PAPAgent

from forecourt.binding import Answer
from forecourt.server.pap.company import DealerCompany, SystemClock
from forecourt.server.pap.identity import AgentPolicy
from forecourt.store import Store, open_store

PUBLIC = "93.184.216.34"
NOWHERE: Any = None
"""In the place of a server, for agents whose requests do not travel."""


class MovableClock(SystemClock):
    """The time, and how far a test has moved it."""

    ahead = timedelta()

    def now(self) -> datetime:
        """Return it."""
        return super().now() + self.ahead


@dataclass
class Network:
    """Documents by address, and what was asked for."""

    documents: dict[str, httpx.Response] = field(default_factory=dict)
    addresses: dict[str, list[str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def resolve(self, host: str) -> list[str]:
        """Answer a look-up."""
        return self.addresses.get(host, [PUBLIC])

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        self.asked.append(str(request.url))
        found = self.documents.get(str(request.url))
        return httpx.Response(404) if found is None else found

    def publish(self, agent: PAPAgent, **changes: Any) -> None:
        """Put an agent's metadata and keys where it says they are."""
        jwks = agent.agent_id.rpartition("/")[0] + "/jwks.json"
        metadata = {"client_id": agent.agent_id, "client_name": "Example", "jwks_uri": jwks, **changes}
        public = json.loads(ECAlgorithm.to_jwk(agent.identity().public_key()))
        self.documents[agent.agent_id] = httpx.Response(200, json=metadata)
        self.documents[jwks] = httpx.Response(
            200, json={"keys": [{**public, "kid": "demonstration", "use": "sig", "alg": "ES256"}]}
        )


@dataclass
class Dealer:
    """The company, its store and the loop they belong to."""

    company: DealerCompany
    store: Store
    network: Network
    clock: MovableClock
    runner: asyncio.Runner

    def ask(self, agent: PAPAgent, form: Mapping[str, str] | None = None, path: str = "/oauth/token") -> Answer:
        """Send a token request."""
        proof = agent.proof("POST", BASE + path, token=None, iat=int(self.clock.now().timestamp()))
        headers = {"content-type": "application/x-www-form-urlencoded", "dpop": proof}
        body = urlencode(form if form is not None else agent.form()).encode()
        return self.runner.run(self.company.respond(CompanyRequest("POST", BASE + path, headers, body)))

    def start(self, agent: PAPAgent) -> None:
        """Start a Session, or renew the one that there is."""
        more = {"session_id": agent.session_id} if agent.session_id else {}
        answer = self.ask(agent, agent.form(**more))
        assert answer.status == 200, answer
        body = json.loads(answer.body)
        agent.token, agent.session_id = body["access_token"], body["session_id"]

    def close(self) -> None:
        """Finish."""
        self.runner.run(self.company.marks.close())
        self.runner.run(self.store.close())


def open_dealer(
    folder: Path,
    runner: asyncio.Runner,
    *,
    policy: AgentPolicy | None = None,
    private: bool = False,
    http: httpx.AsyncClient | None = None,
) -> Dealer:
    """Return a dealer that is ready; with its database in `folder`."""
    store = open_store(f"sqlite:{folder / 'forecourt.db'}")
    runner.run(store.open())
    network, clock = Network(), MovableClock()
    company = DealerCompany.build(
        name="Example Motors",
        domain="dealer.localhost",
        public_url=BASE,
        store=store.access,
        policy=policy or AgentPolicy((), ()),
        http=http or httpx.AsyncClient(transport=httpx.MockTransport(network.answer)),
        resolver=network.resolve,
        private_networks=private,
        clock=clock,
    )
    return Dealer(company, store, network, clock, runner)


def agent(agent_id: str = "https://agent.example.com/agent.json") -> PAPAgent:
    """Return an agent with a key of its own, at no server."""
    return PAPAgent(NOWHERE, agent_id=agent_id, own_key=ec.generate_private_key(ec.SECP256R1()))


__all__ = ["NOWHERE", "PUBLIC", "Dealer", "MovableClock", "Network", "agent", "open_dealer"]
