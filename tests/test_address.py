"""Which addresses are public: IANA's special-purpose registries, and IPv4 hidden in IPv6."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Final

import pytest

from forecourt.address import (
    MOST_ADDRESSES,
    AddressError,
    is_loopback,
    is_public,
    lookup,
    resolve,
    resolve_blocking,
)


@pytest.mark.parametrize(
    "address",
    [
        "93.184.215.14",
        "8.8.8.8",
        "2606:2800:21f:cb07:6820:80da:af6b:8b2c",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",  # NAT64 of 8.8.8.8
        "2002:808:808::1",  # 6to4 of 8.8.8.8
    ],
)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",  # shared by carriers, RFC 6598
        "127.0.0.1",
        "127.8.9.1",
        "169.254.169.254",  # the metadata service of clouds
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",  # relays of 6to4, RFC 7526
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "239.1.1.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",  # IPv4-compatible, retired
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::808:808",  # NAT64 of a local network, RFC 8215
        "100::1",
        "2001::1",  # Teredo
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:c0a8:101::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "4000::1",  # not handed out
        "",
        "localhost",
        "0x7f.1",
        "127.1",
        "2130706433",
        "127.0.0.1 ",
    ],
)
def test_any_other_address_is_not(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    ("address", "own"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("::ffff:127.0.0.1", True), ("10.0.0.1", False),
     ("::ffff:10.0.0.1", False), ("localhost", False), ("0.0.0.0", False)],
)  # fmt: skip
def test_loopback_is_this_machine(address: str, own: bool) -> None:
    assert is_loopback(address) is own


LOOKS: Final[tuple[Callable[[str], object], ...]] = (
    lambda host: asyncio.run(resolve(host, 443)),
    lambda host: resolve_blocking(host, 443),
)
"""Both ways to look a host up."""


def _found(*addresses: str) -> list[tuple[Any, ...]]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in addresses]


def test_only_the_public_addresses_of_a_name_are_left() -> None:
    assert lookup(_found("10.0.0.1", "8.8.8.8", "8.8.8.8", "1.1.1.1")) == ("8.8.8.8", "1.1.1.1")


def test_private_addresses_are_let_through_on_request() -> None:
    assert lookup(_found("10.0.0.1", "8.8.8.8"), private=True) == ("10.0.0.1", "8.8.8.8")


def test_a_name_of_many_addresses_is_cut() -> None:
    assert len(lookup(_found(*(f"8.8.8.{number}" for number in range(100))))) == MOST_ADDRESSES


def test_a_name_of_private_addresses_alone_is_refused() -> None:
    with pytest.raises(AddressError) as caught:
        lookup(_found("10.0.0.1", "127.0.0.1"))
    assert caught.value.refused


def test_a_name_without_addresses_is_not_found() -> None:
    with pytest.raises(AddressError) as caught:
        lookup([])
    assert not caught.value.refused


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "2130706433", "127.1", "0x7f000001"])
def test_this_machine_is_refused_by_whatever_name(host: str) -> None:
    """The system's resolver reads the old spellings of IPv4 as well; what counts is what it makes of them."""
    for look in LOOKS:
        with pytest.raises(AddressError):
            look(host)


def test_an_address_is_looked_up_as_itself() -> None:
    assert asyncio.run(resolve("8.8.8.8", 443)) == resolve_blocking("8.8.8.8", 443) == ("8.8.8.8",)
    assert asyncio.run(resolve("127.0.0.1", 80, private=True)) == ("127.0.0.1",)


@pytest.mark.parametrize("host", ["a" * 64 + ".example.com", "..", "nothing.invalid", "\ud800"])
def test_a_name_that_cannot_be_found_may_be_tried_again(host: str) -> None:
    for look in LOOKS:
        with pytest.raises(AddressError) as caught:
            look(host)
        assert not caught.value.refused
        assert "example" not in str(caught.value)
