"""Who holds connections and has requests under way, so that nobody takes the room of the others.

One book a process. A connection belongs to the address that it comes from, a request to its client: its credential
where that is known, else its address, for IPv6 its network of 64 bits, which one customer has as a whole.
"""

import logging
from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Final, Protocol

from forecourt.server.config import Limits, Server
from forecourt.server.departures import Departures
from forecourt.server.networks import Networks

try:
    import resource
except ImportError:  # pragma: no cover - Windows has no such limits
    resource = None  # type: ignore[assignment]

__all__ = ["Connections", "counted_as", "raise_file_limit"]

_OTHER_FILES: Final = 128
"""How many files a process needs beside its clients' connections: the database, deliveries, feeds, logs."""
_LEAST: Final = 16

_log = logging.getLogger("forecourt.server")


class Closable(Protocol):
    """A connection that is closed when its room is needed."""

    def give_way(self) -> None:
        """Close; nothing is under way."""


class Connections:
    """The connections and the requests of one process, counted by whose they are."""

    def __init__(
        self,
        server: Server,
        limits: Limits,
        client_of: Callable[[Iterable[tuple[bytes, bytes]], str], str],
        refused: Callable[[str], None],
    ) -> None:
        """`client_of` tells whose a request is, by its headers and its address; `refused` counts a word.

        Raises ConfigError for proxies that are none.
        """
        self._proxies = Networks(server.trusted_proxies, "server", "trusted_proxies")
        self._wanted = server.max_connections
        self._most = server.max_connections
        self._most_of_one = server.max_connections_per_client
        self._concurrent = limits.concurrent
        self.client_of = client_of
        self.refused = refused
        self._open: dict[str, int] = {}
        self._total = 0
        # In the order in which they became idle, so that whoever has waited longest stands in front.
        self._idle: dict[Closable, None] = {}
        self._under_way: dict[str, int] = {}
        self._requests = 0
        self.departures = Departures()
        self.lingering: set[Closable] = set()
        """Connections that were refused and wait for their clients to hear it."""
        self._told = False

    @property
    def open(self) -> int:
        """How many connections there are."""
        return self._total

    @property
    def under_way(self) -> int:
        """How many requests have come and are not answered yet."""
        return self._requests

    @property
    def most(self) -> int:
        """How many connections there may be."""
        return self._most

    def fit(self) -> None:
        """Stay below what files the process may open, and say so where that is less than was asked for."""
        if resource is None:  # pragma: no cover - Windows
            return
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY:
            return
        self._most = min(self._wanted, max(_LEAST, soft - _OTHER_FILES))
        if self._most < self._wanted:
            _log.warning(
                "server.max_connections is %d, but this process may open %d files: it takes %d connections;"
                " raise the limit (ulimit -n, LimitNOFILE=)",
                self._wanted,
                soft,
                self._most,
            )

    # Connections

    def enter(self, connection: Closable, address: str) -> str | None:
        """Take in a connection, or return the word for why not. Where all room is taken, an idle one gives way."""
        name = counted_as(address)
        mine = self._open.get(name, 0)
        if mine >= self._most_of_one and not self._proxies.include(address):
            if not self._told:
                self._told = True
                _log.warning(
                    "an address has %d connections and gets no more; if it is a proxy's, name it in"
                    " server.trusted_proxies (said once)",
                    mine,
                )
            return "connections_per_client"
        if self._total >= self._most:
            oldest = next(iter(self._idle), None)
            if oldest is None:
                return "connections"
            del self._idle[oldest]
            self.refused("idle")
            oldest.give_way()
        self._open[name] = mine + 1
        self._total += 1
        self._idle[connection] = None
        return None

    def leave(self, connection: Closable, address: str) -> None:
        """Forget a connection that was taken in."""
        name = counted_as(address)
        self._idle.pop(connection, None)
        self._total -= 1
        left = self._open[name] - 1
        if left:
            self._open[name] = left
        else:
            del self._open[name]

    def busy(self, connection: Closable) -> None:
        """Know that a request is under way on a connection."""
        self._idle.pop(connection, None)

    def idle(self, connection: Closable) -> None:
        """Know that nothing is."""
        self._idle[connection] = None

    # Requests

    def begin(self, client: str) -> bool:
        """Count a request as under way; False where its client has as many as one may have."""
        mine = self._under_way.get(client, 0)
        if mine >= self._concurrent:
            return False
        self._under_way[client] = mine + 1
        self._requests += 1
        return True

    def end(self, client: str) -> None:
        """Count a request as answered, or given up."""
        self._requests -= 1
        left = self._under_way[client] - 1
        if left:
            self._under_way[client] = left
        else:
            del self._under_way[client]


@lru_cache(maxsize=4096)
def counted_as(address: str) -> str:
    """Return the name under which an address is counted: IPv6 by its first 64 bits, IPv4 as it is.

    What is no address, because a proxy passes on what clients claim, has one name together.
    """
    if ":" not in address:
        return address if not address or _is_address(address) else "?"
    try:
        found = IPv6Address(address.partition("%")[0])
    except ValueError:
        return "?"
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return address if found.is_loopback else str(IPv6Network((int(found) >> 64 << 64, 64)))


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True


def raise_file_limit(connections: int) -> None:
    """Let this process open as many files as so many connections need, as far as the system allows."""
    if resource is None:  # pragma: no cover - Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
        )
    except (OSError, ValueError):  # pragma: no cover - a system with another limit above; `fit` says what is left
        return
