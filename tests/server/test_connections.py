"""Whose connections and requests there are, and what happens where there is no room for more."""

import logging
import resource
from collections.abc import Iterable

import pytest

from forecourt.server import ConfigError
from forecourt.server.config import Limits, Server
from forecourt.server.connections import Connections, counted_as


class Opened:
    """A connection that notes its end."""

    def __init__(self) -> None:
        self.gone = False

    def give_way(self) -> None:
        """Note the end."""
        self.gone = True


def book(concurrent: int = 2, **settings: object) -> tuple[Connections, list[str]]:
    """Return a book, and the words of what it refused."""
    words: list[str] = []

    def client_of(headers: Iterable[tuple[bytes, bytes]], address: str) -> str:
        del headers
        return address

    server = Server(**settings)  # type: ignore[arg-type]
    return Connections(server, Limits(concurrent=concurrent), client_of, words.append), words


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::ffff", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::1"),
        ("", ""),
        ("unix:", "?"),
        ("junk", "?"),
        ("300.1.1.1", "?"),
    ],
)
def test_an_address_is_counted_alone_and_of_ipv6_its_network_of_64_bits(address: str, name: str) -> None:
    assert counted_as(address) == name


def test_one_address_has_its_share_of_connections_and_a_proxy_all() -> None:
    connections, _ = book(max_connections_per_client=2, trusted_proxies=("10.0.0.0/8",))
    mine = [Opened(), Opened()]
    assert [connections.enter(each, "192.0.2.1") for each in mine] == [None, None]
    assert connections.enter(Opened(), "192.0.2.1") == "connections_per_client"
    assert connections.enter(Opened(), "192.0.2.2") is None
    assert [connections.enter(Opened(), "10.1.2.3") for _ in range(5)] == [None] * 5
    connections.leave(mine[0], "192.0.2.1")
    assert connections.enter(Opened(), "192.0.2.1") is None
    assert connections.open == 8


def test_where_all_room_is_taken_the_connection_that_is_idle_longest_gives_way() -> None:
    connections, words = book(max_connections=16)
    opened = [Opened() for _ in range(16)]
    for each in opened:
        assert connections.enter(each, "192.0.2.1") is None
        connections.busy(each)
    assert connections.enter(Opened(), "192.0.2.2") == "connections"
    connections.idle(opened[7])
    connections.idle(opened[3])
    for first, found in ((7, [7]), (3, [3, 7])):
        new = Opened()
        assert connections.enter(new, "192.0.2.2") is None
        connections.busy(new)
        assert [number for number, each in enumerate(opened) if each.gone] == found
        connections.leave(opened[first], "192.0.2.1")
    assert words == ["idle", "idle"]
    assert connections.open == 16


def test_a_client_has_so_many_requests_under_way_and_others_theirs() -> None:
    connections, _ = book(concurrent=2)
    assert [connections.begin("a") for _ in range(3)] == [True, True, False]
    assert connections.begin("b")
    assert connections.under_way == 3
    connections.end("a")
    assert connections.begin("a")
    for client in ("a", "a", "b"):
        connections.end(client)
    assert connections.under_way == 0


def test_there_are_fewer_connections_than_files_may_be_open(caplog: pytest.LogCaptureFixture) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections, _ = book(max_connections=100_000)
    if soft == resource.RLIM_INFINITY or soft > 100_500:
        soft = 4096
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        with caplog.at_level(logging.WARNING):
            connections.fit()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert connections.most == soft - 128
    assert f"this process may open {soft} files" in caplog.text


def test_a_proxy_that_is_none_is_a_mistake_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match=r"^server\.trusted_proxies\[2\]: 'here' is no address or network$"):
        book(trusted_proxies=("10.0.0.0/8", "here"))
