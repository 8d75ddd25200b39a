"""Who may call from a browser: the checks of Host and Origin that keep other people's web pages out.

A page on any site can make its own name point at this server (DNS rebinding) and then call it from where its visitor
is. Its requests still carry the page's name in Host and Origin. Source: MCP 2025-11-25 and 2026-07-28, Streamable HTTP,
"Security warning".
"""

import ipaddress
from collections.abc import Collection
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from forecourt.server.config import Config

__all__ = ["Origins", "Refusal"]

_REMEMBERED: Final = 256
_LONGEST: Final = 300
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


class Refusal(NamedTuple):
    """Why a request is turned away: an HTTP status and what to do about it."""

    status: int
    message: str


class Origins:
    """The hosts and origins of one deployment.

    The Host is checked where its right names are known: when the server listens on the loopback only, or has a public
    URL. Addresses in figures are always right, since no name was looked up for them.
    """

    def __init__(self, config: Config, sellers: Collection[str]) -> None:
        public = urlsplit(config.server.public_url or "")
        self._hosts = {"localhost", *sellers, *(host.lower() for host in config.mcp.allowed_hosts)}
        if public.hostname:
            self._hosts.add(public.hostname)
        if config.pap.enabled and config.pap.domain:
            # Without a public URL the domain is the public address.
            self._hosts.add(config.pap.domain.lower())
        self._origins = {_origin(allowed) for allowed in config.mcp.allowed_origins}
        if public.netloc:
            self._origins.add(_origin(f"{public.scheme}://{public.netloc}"))
        self._guards_host = bool(public.netloc) or _is_loopback(config.server.host)
        self._remembered = lru_cache(maxsize=_REMEMBERED)(self._refusal)

    def refusal(self, host: str | None, origin: str | None) -> Refusal | None:
        """Return why a request with these headers is turned away, None when it is let in.

        Remembered, since clients come with few different names; long ones are not, so that nobody fills the memory.
        """
        short = len(host or "") + len(origin or "") <= _LONGEST
        return self._remembered(host, origin) if short else self._refusal(host, origin)

    def _refusal(self, host: str | None, origin: str | None) -> Refusal | None:
        if self._guards_host and not self._is_ours(host):
            return Refusal(421, "This server is not reached by that Host; set server.public_url or mcp.allowed_hosts")
        if origin is None or self._may_call(origin, host):
            return None
        return Refusal(403, "Pages of that Origin may not call this server; see mcp.allowed_origins")

    def _is_ours(self, host: str | None) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname if host else None
        except ValueError:
            return False
        return name is not None and (name.rstrip(".") in self._hosts or _is_address(name))

    def _may_call(self, origin: str, host: str | None) -> bool:
        try:
            parts = urlsplit(origin.lower())
        except ValueError:
            return False
        if parts.scheme not in _DEFAULT_PORTS or not parts.netloc:
            return False
        port = _DEFAULT_PORTS[parts.scheme]
        own = (host or "").lower().removesuffix(port)
        return _origin(origin) in self._origins or parts.netloc.removesuffix(port) == own


def _origin(text: str) -> str:
    scheme, _, rest = text.lower().partition("://")
    return f"{scheme}://{rest.removesuffix(_DEFAULT_PORTS.get(scheme, ''))}"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
