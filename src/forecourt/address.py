"""Which network addresses may be called on somebody's word: public ones, looked up once and connected to as checked.

A name that is looked up, checked, and looked up again by whoever connects can change in between (DNS rebinding):
connect to what `resolve` returned, with the name in the Host header and in TLS. Nothing here logs or repeats a name.
"""

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final

__all__ = ["MOST_ADDRESSES", "AddressError", "is_loopback", "is_public", "lookup", "resolve", "resolve_blocking"]

MOST_ADDRESSES: Final = 4
"""How many addresses of one name are returned at most."""

_NAT64: Final = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")
_TEREDO: Final = IPv6Network("2001::/32")
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_SIX_TO_FOUR_RELAYS: Final = IPv4Network("192.88.99.0/24")


class AddressError(Exception):
    """A name leads to no address that may be called.

    `refused` tells that it leads somewhere, only not where calls may go; otherwise it was not found, which may pass.
    """

    def __init__(self, message: str, *, refused: bool) -> None:
        """Keep which of the two it is."""
        super().__init__(message)
        self.refused = refused


def is_public(address: str) -> bool:
    """Tell whether an IP address is one of the public internet, wherever it may be hidden.

    Not public: private, loopback, link-local, shared, multicast, reserved and documentation ranges (IANA's
    special-purpose registries, RFC 6890), text that is no address, and every IPv6 address that carries an IPv4 address
    which is not public: mapped (RFC 4291 section 2.5.5.2), NAT64 (RFC 6052), 6to4 (RFC 3056). Teredo (RFC 4380) is
    refused altogether.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return _v4_is_public(parsed) if isinstance(parsed, IPv4Address) else _v6_is_public(parsed)


def is_loopback(address: str) -> bool:
    """Tell whether an IP address is this machine's own; False for text that is no address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped.is_loopback
    return parsed.is_loopback


def _v4_is_public(address: IPv4Address) -> bool:
    return address.is_global and not address.is_multicast and address not in _SIX_TO_FOUR_RELAYS


def _v6_is_public(address: IPv6Address) -> bool:
    if address.ipv4_mapped is not None:
        return _v4_is_public(address.ipv4_mapped)
    if address in _NAT64:
        return _v4_is_public(IPv4Address(int(address) & 0xFFFFFFFF))
    if address in _SIX_TO_FOUR:
        return _v4_is_public(IPv4Address(int(address) >> 80 & 0xFFFFFFFF))
    return address in _GLOBAL_UNICAST and address.is_global and address not in _TEREDO


def lookup(found: Iterable[tuple[Any, ...]], *, private: bool = False) -> tuple[str, ...]:
    """Return the addresses of a `getaddrinfo` answer that may be called, in its order, each once.

    `private` lets every address through. Raises AddressError when none is left.
    """
    answers = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    allowed = [address for address in answers if private or is_public(address)]
    if not allowed:
        raise AddressError("leads to no public address" if answers else "has no address", refused=bool(answers))
    return tuple(allowed[:MOST_ADDRESSES])


async def resolve(host: str, port: int, *, private: bool = False) -> tuple[str, ...]:
    """Return the addresses of a host (a name, or an address itself) that may be called, at most `MOST_ADDRESSES`.

    Bound it with a timeout: the system's resolver has its own patience. Raises AddressError.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise AddressError("cannot be found", refused=False) from error
    return lookup(found, private=private)


def resolve_blocking(host: str, port: int, *, private: bool = False) -> tuple[str, ...]:
    """Return what `resolve` does, for threads. Raises AddressError."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise AddressError("cannot be found", refused=False) from error
    return lookup(found, private=private)
