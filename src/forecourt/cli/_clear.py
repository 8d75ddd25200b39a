"""Whether what agents and shoppers send would cross a network in the clear."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from forecourt.server import Config

__all__ = ["in_the_clear"]


def in_the_clear(settings: "Config", host: str | None = None) -> str | None:
    """Return a warning where the address that agents are told is not https and not this machine's own, else None.

    `host` is where the server listens, if it is not the configuration's.
    """
    server = settings.server
    if server.public_url is None:
        if _is_this_machine(host or server.host):
            return None
        return "server.public_url is not set: cards name whatever address was asked for, without https"
    parts = urlsplit(server.public_url)
    if parts.scheme == "https" or _is_this_machine(parts.hostname or ""):
        return None
    return "server.public_url is not https: leads would cross the network in the clear"


def _is_this_machine(host: str) -> bool:
    from forecourt.address import is_loopback

    return host.lower() == "localhost" or is_loopback(host.strip("[]"))
