"""From an address to a client: find the card, choose the contract and the binding, open nothing else."""

import re
import ssl
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from forecourt.a2a import FailureKind
from forecourt.client.address import endpoint_of, http_address
from forecourt.client.card import DealerCard, choose
from forecourt.client.carrier import Carrier, bindings, carrier_class
from forecourt.client.client import Client, Credentials, Settings
from forecourt.client.dialect import Dialect, dialect, versions
from forecourt.client.discovery import CARDS, CardCache, find_card
from forecourt.client.failure import DealerError
from forecourt.client.http import Http, HttpOptions
from forecourt.client.retry import RetryPolicy, Timing
from forecourt.client.trace import Hook

__all__ = ["ORDER", "Connection", "connect"]

ORDER: Final = ("a2a", "mcp", "pap")
"""The bindings in the order in which they are tried where none is asked for."""

_PAP_CONTRACT: Final = "3.1"
_IN_PATH: Final = re.compile(r"/v(\d+\.\d+)(?:/|$)")


@dataclass(frozen=True, slots=True)
class Connection:
    """What `connect` returns: await it for a client, or use it in `async with` to have the client closed as well."""

    url: str
    contract: str | None
    order: Sequence[str]
    options: HttpOptions
    settings: Settings
    cache: CardCache | None
    pap: Any = None
    _client: list[Client] = field(default_factory=list)

    def __await__(self) -> Generator[Any, None, Client]:
        """Find the dealer."""
        return self._find().__await__()

    async def __aenter__(self) -> Client:
        """Find the dealer and return the client."""
        client = await self._find()
        self._client.append(client)
        return client

    async def __aexit__(self, *_: object) -> None:
        """Close the client."""
        await self._client.pop().close()

    async def _find(self) -> Client:
        http = Http(self.options)
        try:
            return await self._choose(http)
        except BaseException:
            await http.close()
            raise

    async def _choose(self, http: Http) -> Client:
        site = http_address(self.url)
        if tuple(self.order) == ("mcp",) and urlsplit(site).path.rstrip("/").endswith("/mcp"):
            # An MCP address needs no card.
            return self._client_of(http, _mcp(http, site), self._pinned(site), site, None)
        if tuple(self.order) == ("pap",):
            return await self._pap(http, site, None)
        card = await find_card(
            http,
            site,
            contract=self.contract,
            seconds=self.settings.timeout,
            cache=self.cache,
            timing=self.settings.timing,
            credentials=await _first_headers(self.settings.credentials),
        )
        spoken = choose(card, self.contract)
        problem: DealerError | None = None
        for binding in self.order:
            try:
                if binding == "pap":
                    return await self._pap(http, site, card)
                endpoint = card.endpoint() if binding == "a2a" else mcp_endpoint(card)
                return self._client_of(http, carrier_class(binding)(http, endpoint), spoken, site, card)
            except DealerError as error:
                problem = problem or error
        assert problem is not None
        raise problem

    async def _pap(self, http: Http, site: str, card: DealerCard | None) -> Client:
        if self.pap is None:
            message = "PAP needs an identity: pass pap=PersonalAgent(...)"
            raise DealerError(message, FailureKind.BINDING_MISMATCH)
        if self.contract not in (None, _PAP_CONTRACT):
            message = f"PAP carries contract {_PAP_CONTRACT} alone, not {self.contract}"
            raise DealerError(message, FailureKind.BINDING_MISMATCH)
        from forecourt.client.carrier.pap import PAPCarrier  # its package is loaded with it

        carrier = await PAPCarrier.find(http, site, self.pap, self.settings.timeout)
        return self._client_of(http, carrier, dialect(_PAP_CONTRACT), site, card)

    def _pinned(self, site: str) -> Dialect:
        """Return the dialect of an endpoint without a card: the one asked for, or in its path, or the newest."""
        named = _IN_PATH.search(urlsplit(site).path)
        version = self.contract or (named[1] if named else versions()[0])
        try:
            return dialect(version)
        except KeyError:
            message = f"this client does not speak contract {version}; it speaks {', '.join(reversed(versions()))}"
            raise DealerError(message, FailureKind.BINDING_MISMATCH) from None

    def _client_of(self, http: Http, carrier: Carrier, spoken: Dialect, site: str, card: DealerCard | None) -> Client:
        return Client(http, carrier, spoken, site, card, self.settings)


def _mcp(http: Http, endpoint: str) -> Carrier:
    return carrier_class("mcp")(http, endpoint)


def mcp_endpoint(card: DealerCard) -> str:
    """Return the MCP endpoint of a dealer with a card: an interface that the card declares, else the neighbour of its
    A2A endpoint (ours: `/v3.1/a2a` has `/v3.1/mcp` beside it). Raises DealerError where neither can be had.
    """
    for interface in card.card.interfaces:
        if interface.protocol_binding.upper() == "MCP":
            return endpoint_of(card.url, interface.url)
    parts = urlsplit(card.endpoint())
    head, slash, last = parts.path.rpartition("/")
    if not slash or last != "a2a":
        message = "the dealer's card names no MCP endpoint; give its address itself"
        raise DealerError(message, FailureKind.BINDING_MISMATCH)
    return urlunsplit((parts.scheme, parts.netloc, f"{head}/mcp", "", ""))


async def _first_headers(credentials: Credentials | None) -> Mapping[str, str]:
    """Return fixed credentials, which a card may need too; what makes them is asked only by the endpoint."""
    return credentials if isinstance(credentials, Mapping) else {}


def connect(
    url: str,
    *,
    contract: str | None = None,
    binding: str | Sequence[str] | None = None,
    credentials: Credentials | None = None,
    trust: Sequence[str] = (),
    retry: RetryPolicy | None = None,
    timeout: float = 30.0,
    agent: str | Mapping[str, Any] = "forecourt",
    pap: Any = None,
    max_connections: int = 10,
    max_bytes: int = 16 * 1024 * 1024,
    proxy: str | None = None,
    verify: bool | ssl.SSLContext = True,
    cache: CardCache | None = CARDS,
    hook: Hook | None = None,
    hook_sees_bodies: bool = False,
    transport: Any = None,
    timing: Timing | None = None,
) -> Connection:
    """Find the dealer agent at `url` and return a client for it: `async with connect(url) as dealer`, or `await`.

    `url` is the address of an agent card, of a site (the card is looked for below the path given, then at its origin),
    or of an MCP endpoint.

    - `contract` ("1.1") insists on an AAP version; otherwise it is the newest that both sides have. `binding` insists
      on "a2a", "mcp" or "pap", or gives an order; otherwise `ORDER` holds.
    - `credentials` are headers, or a function that makes them from the dealer's challenge. They go to the origin of
      `url` and to those in `trust`, wherever a card or a redirect may point.
    - `retry` bounds trying again, `timeout` one try, in seconds. `max_connections`, `max_bytes`, `proxy`, `verify` and
      `transport` are those of `HttpOptions`.
    - `agent` is the name of the buyer's agent in leads, or the whole `source_agent`. `pap` is the `PersonalAgent` that
      PAP needs.
    - `cache` keeps cards (None keeps none). `hook` is called after every try with a `Try`, which holds nothing of the
      shopper unless `hook_sees_bodies`.

    Awaiting raises DealerError when there is no dealer here that this client can talk to, TransportError when the site
    cannot be asked. ValueError is raised at once for a binding or a contract that nobody knows.
    """
    order = ORDER if binding is None else (binding,) if isinstance(binding, str) else tuple(binding)
    unknown = [each for each in order if each not in bindings()]
    if unknown or not order:
        raise ValueError(f"bindings are {', '.join(bindings())}")
    if contract is not None and contract not in versions():
        raise ValueError(f"contracts are {', '.join(reversed(versions()))}")
    if pap is None and binding is None:
        order = tuple(each for each in order if each != "pap")
    settings = Settings(
        retry=retry or RetryPolicy(),
        timeout=timeout,
        credentials=credentials,
        trust=tuple(map(http_address, trust)),
        agent=agent,
        hook=hook,
        hook_sees_bodies=hook_sees_bodies,
        contract_is_pinned=contract is not None,
        timing=timing or Timing(),
        on_stale_card=cache.clear if cache is not None else None,
    )
    options = HttpOptions(max_connections, max_bytes, proxy, verify, transport)
    return Connection(url, contract, order, options, settings, cache, pap)
