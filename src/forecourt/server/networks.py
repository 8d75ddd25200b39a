"""Addresses and networks, as configurations list them."""

import ipaddress
from collections.abc import Iterable

from forecourt.server.config import ConfigError

__all__ = ["Networks"]


class Networks:
    """A list of addresses and networks that an address can be looked up in."""

    def __init__(self, listed: Iterable[str], *key: str) -> None:
        """Raises ConfigError about `key` for what is neither an address nor a network."""
        self._networks = []
        for number, text in enumerate(listed):
            try:
                self._networks.append(ipaddress.ip_network(text))
            except ValueError as error:
                raise ConfigError(f"{text!r} is no address or network", *key, number) from error

    def include(self, address: str) -> bool:
        """Tell whether an address is in the list; what is none is not."""
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        return any(found in network for network in self._networks)
