"""Who calls: which agents are let in, and how their published metadata and keys are fetched.

An agent names an address of its own choosing (`client_id`) and this server fetches it, so every fetch is bounded in
number, time and size, goes by https to public addresses alone, and connects to the very addresses that were checked.
"""

import asyncio
import socket
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
from personal_agent_protocol import ClientMetadata, JsonWebKeySet
from personal_agent_protocol.company import ClientResolver
from personal_agent_protocol.errors import DiscoveryError, IdentityError
from personal_agent_protocol.reactor import (
    AddressResolver,
    ApprovedUrl,
    DiscoveryResponse,
    DiscoveryTransport,
    MetadataFetch,
    PublicUrlSafetyPolicy,
)

from forecourt.address import is_public

__all__ = ["AgentPolicy", "BoundedTransport", "BusyError", "KnownAgents", "PublicAddresses", "SystemResolver"]

_FETCHES: Final = 32
"""How many fetches may be under way at once."""
_LOOKUPS: Final = 8
_LOOKUP_SECONDS: Final = 5.0
_LONGEST_URL: Final = 2048


class BusyError(Exception):
    """So many agents' metadata are being fetched that no further one is begun."""


class AgentPolicy:
    """The contribution `pap.company.clientPolicy`: the operator's lists of agents, by `client_id`."""

    def __init__(self, allow: Collection[str], deny: Collection[str]) -> None:
        self._allow = frozenset(allow)
        self._deny = frozenset(deny)

    def admits(self, client_id: str) -> bool:
        """Tell whether an agent is let in: not denied, and allowed where only some are."""
        return client_id not in self._deny and (not self._allow or client_id in self._allow)

    async def allows(self, client_id: str) -> bool:
        """Tell the same to the package, which asks before it fetches anything of the agent's."""
        return len(client_id) <= _LONGEST_URL and self.admits(client_id)


class SystemResolver:
    """Looks names up on few threads of its own, so that slow name servers hold nothing else up."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="forecourt-lookup")

    async def __call__(self, host: str) -> list[str]:
        """Return the addresses of a host. Raises DiscoveryError."""

        def look_up() -> list[str]:
            return sorted({str(found[4][0]) for found in socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)})

        try:
            async with asyncio.timeout(_LOOKUP_SECONDS):
                return await asyncio.get_running_loop().run_in_executor(self._threads, look_up)
        except (OSError, UnicodeError, TimeoutError):
            raise DiscoveryError("dns_failed", "The host cannot be found") from None

    def close(self) -> None:
        """Let the threads go."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class PublicAddresses:
    """The contribution `pap.urlSafetyPolicy`: the package's check, and ours of every address that it let through."""

    def __init__(self, resolver: AddressResolver, *, private: bool = False) -> None:
        self._policy = PublicUrlSafetyPolicy(resolver, allow_private_networks=private)
        self._private = private

    async def assert_safe(self, url: str) -> ApprovedUrl:
        """Return the addresses to connect to. Raises DiscoveryError."""
        if not self._private and urlsplit(url).port not in (None, 443):
            raise DiscoveryError("unsafe_url", "Metadata is fetched from the port of https alone")
        approved = await self._policy.assert_safe(url)
        if not self._private and not all(map(is_public, approved.addresses)):
            raise DiscoveryError("unsafe_address", "The host resolves to a non-public address")
        return approved


class BoundedTransport:
    """The contribution `pap.discoveryTransport`: the package's, with a bound on how many fetches are under way."""

    def __init__(self, inner: DiscoveryTransport) -> None:
        self._inner = inner
        self._under_way = 0

    async def get(self, url: str, *, fetch: MetadataFetch) -> DiscoveryResponse:
        """Fetch a document. Raises BusyError, and what the package raises."""
        if self._under_way >= _FETCHES:
            raise BusyError
        self._under_way += 1
        try:
            return await self._inner.get(url, fetch=fetch)
        finally:
            self._under_way -= 1


@dataclass(frozen=True)
class KnownAgents:
    """The contribution `pap.company.clientResolver`: agents that need no fetch, and the package's fetches for others.

    Only the demonstration knows an agent beforehand: its own.
    """

    inner: ClientResolver
    known: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]
    """Metadata and keys by `client_id`."""

    async def resolve(self, client_id: str, *, kid: str | None = None) -> tuple[ClientMetadata, JsonWebKeySet]:
        """Return an agent's metadata and keys. Raises IdentityError and DiscoveryError."""
        if client_id in self.known:
            metadata, keys = self.known[client_id]
            return ClientMetadata.model_validate(metadata), JsonWebKeySet.model_validate(keys)
        try:
            return await self.inner.resolve(client_id, kid=kid)
        except (ValueError, httpx.InvalidURL):
            # A port that is no number, a host that no encoding has.
            raise IdentityError("invalid_client_id", "client_id cannot be fetched") from None
