"""Addresses: what counts as one origin, and which addresses a card may send a buyer to."""

import ipaddress
from urllib.parse import urljoin, urlsplit, urlunsplit

from forecourt.client.failure import DealerError

__all__ = ["endpoint_of", "http_address", "is_private", "origin", "shown"]

_PORTS = {"http": 80, "https": 443}


def http_address(url: str) -> str:
    """Return `url` as an absolute http or https address without a fragment; a bare host gets https.

    Raises DealerError for anything else, and for user names in addresses: credentials have a place of their own.
    """
    text = url.strip()
    if "://" not in text:
        text = f"https://{text}"
    try:
        parts = urlsplit(text)
        usable = parts.scheme in _PORTS and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = None
    if not usable or not text.isprintable() or " " in text:
        raise DealerError("the address of a dealer is http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise DealerError("an address with a user name or password in it is not used; pass credentials= instead")
    return urlunsplit((parts.scheme, parts.netloc, parts.path, parts.query, ""))


def origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port: what credentials are bound to (RFC 6454)."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 0)


def shown(url: str) -> str:
    """Return an address as it may be logged: without query, which may carry what is private."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def is_private(url: str) -> bool:
    """Tell whether an address names this machine or a network that is not the public one.

    It looks at the text alone: a public name may still lead to a private address, which is the resolver's matter.
    """
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        # What resolvers read as an address although it does not look like one: 2130706433, 0x7f.1.
        last = host.rpartition(".")[2]
        return last.isdigit() or last.startswith("0x")


def endpoint_of(card_url: str, found: str) -> str:
    """Return the address that a card names, made absolute.

    Raises DealerError where a card that came over https, or from the public network, sends the buyer to plain http or
    into a private network: no dealer needs that, and a shopper's data would go there.
    """
    endpoint = http_address(urljoin(card_url, found))
    if card_url.startswith("https:") and not endpoint.startswith("https:"):
        raise DealerError("the agent card came over https, but its endpoint is plain http; it is not used")
    if is_private(endpoint) and not is_private(card_url):
        raise DealerError("the agent card names an endpoint in a private network; it is not used")
    return endpoint
