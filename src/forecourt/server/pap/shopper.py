"""`python -m forecourt.server.pap.shopper`: the demonstration's agent shops at `forecourt serve --pap-dev`.

It does with `personal-agent-protocol`'s client side what somebody's agent does: it finds the dealer by its domain,
starts a signed-out Session, reads the description of the API, and calls it, each time with a proof of its own.
"""

import asyncio
import json
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click
import httpcore
import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from personal_agent_protocol import (
    CLOCKS,
    DPOP_PROOF_PROVIDERS,
    SIGNERS,
    ApiClient,
    DiscoveredCompany,
    DiscoveryClient,
    DpopHttpClient,
    DpopKeyMaterial,
    JoseDpopProofProvider,
    JoseSigner,
    PersonalAgentProtocolError,
    SessionClient,
    SessionToken,
    SystemClock,
    build_pap_reactor,
    generate_pairwise_user_id,
)
from reactor import PluginManifest, hookimpl  # type: ignore[import-untyped]

from forecourt.server.pap.demonstration import AGENT_ID, DOMAIN, KEY_ID, Demonstration

__all__ = ["Dial", "Shopper", "main", "this_machine", "transport_to"]

_ADDRESS: Final = "127.0.0.1"


class Dial(httpcore.AsyncNetworkBackend):
    """Connects to this machine's port whatever name is called; TLS still checks the name."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,  # noqa: ARG002 - the names of httpcore's interface
        port: int,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        return await self._inner.connect_tcp(
            _ADDRESS, self._port, timeout=timeout, local_address=local_address, socket_options=socket_options
        )

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


def transport_to(demonstration: Demonstration, port: int) -> httpx.AsyncHTTPTransport:
    """Return what reaches the demonstration at a port of this machine, and trusts its certificate alone."""
    transport = httpx.AsyncHTTPTransport(verify=ssl.create_default_context(cafile=demonstration.authority))
    transport._pool._network_backend = Dial(port)
    return transport


async def this_machine(_: str) -> list[str]:
    """Resolve every name to this machine."""
    return [_ADDRESS]


class Shopper:
    """The demonstration's agent, calling the server at a port of this machine."""

    def __init__(self, demonstration: Demonstration, port: int) -> None:
        self.http = httpx.AsyncClient(transport=transport_to(demonstration, port), trust_env=False)
        # The key that a Session is bound to is another than the agent's own.
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._signer = JoseSigner(demonstration.agent_key, key_id=KEY_ID)
        self._reactor, _ = build_pap_reactor(
            http_client=self.http,
            address_resolver=this_machine,
            allow_private_networks=True,
            plugins=[(PluginManifest(name="forecourt.shopper", version="1"), self)],
        )
        self._user = generate_pairwise_user_id()
        self._api = ApiClient(transport=DpopHttpClient(reactor=self._reactor, http_client=self.http))

    @hookimpl  # type: ignore[untyped-decorator]
    def provide_contributions(self, contributions: Any) -> None:
        """Give the package what it signs with."""
        material = DpopKeyMaterial(self._key, json.loads(ECAlgorithm.to_jwk(self._key.public_key())))

        async def key_of(_: object) -> DpopKeyMaterial:
            return material

        for point, part in (
            (CLOCKS, SystemClock()),
            (SIGNERS, self._signer),
            (DPOP_PROOF_PROVIDERS, JoseDpopProofProvider(key_of)),
        ):
            contributions.contribute(point, part, contribution_id="shopper", order=0)

    async def discover(self) -> DiscoveredCompany:
        """Find the dealer. Raises PersonalAgentProtocolError."""
        return await DiscoveryClient(reactor=self._reactor).discover(DOMAIN)

    async def start(self, company: DiscoveredCompany) -> SessionToken:
        """Start a signed-out Session. Raises PersonalAgentProtocolError."""
        assert company.oauth_metadata is not None
        return await SessionClient(reactor=self._reactor, http_client=self.http).start(
            client_id=AGENT_ID,
            pairwise_user_id=self._user,
            issuer=company.oauth_metadata.issuer,
            token_endpoint=company.oauth_metadata.token_endpoint,
            tenant_id="demonstration",
        )

    async def call(self, company: DiscoveredCompany, token: SessionToken, payload: dict[str, Any]) -> Any:
        """Run the skill that a payload's type names, and return its answer. Raises ApiError."""
        assert company.oauth_metadata is not None
        issuer = company.oauth_metadata.issuer
        answer = await self._api.call(
            "POST",
            f"{issuer}/api/{payload['type'].removesuffix('.request')}",
            token=token,
            tenant_id="demonstration",
            pairwise_user_id=self._user,
            issuer=issuer,
            body=payload,
        )
        return answer.body

    async def close(self) -> None:
        """Close its connections."""
        await self.http.aclose()


async def _shop(demonstration: Demonstration, port: int) -> None:
    shopper = Shopper(demonstration, port)
    try:
        company = await shopper.discover()
        click.echo(f"Found {company.document.organization.name} by its domain {company.document.organization.domain}")
        for api in company.document.apis:
            click.echo(f"  it offers {api.type} at {api.url}")
        token = await shopper.start(company)
        click.echo(f"Started Session {token.session_id}, signed out, its token bound to a key of the agent's")
        for payload in (
            {"type": "dealer.information.request"},
            {"type": "inventory.search.request", "filters": {"price_max": 30000}, "pagination": {"limit": 3}},
        ):
            answer = await shopper.call(company, token, payload)
            click.echo(f"{payload['type']} was answered with a {answer['type']}")
        for vehicle in answer["data"]["vehicles"]:
            click.echo(f"  {vehicle['year']} {vehicle['make']} {vehicle['model']}, ${vehicle['price']:,}")
    finally:
        await shopper.close()


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), default=8000, help="Where the server listens.")
@click.option("--data", type=click.Path(file_okay=False), default="forecourt-data", help="The server's data folder.")
def main(port: int, data: str) -> None:
    """Shop at a dealer that `forecourt serve --pap-dev` runs on this machine."""
    demonstration = Demonstration(Path(data) / "pap-dev")
    if not demonstration.authority.is_file():
        raise click.UsageError(f"{data} has no demonstration; start `forecourt serve --pap-dev` with this folder first")
    try:
        asyncio.run(_shop(demonstration, port))
    except PersonalAgentProtocolError as error:
        raise click.ClickException(f"the dealer did not serve the agent: {error.code}") from None


if __name__ == "__main__":
    main()
