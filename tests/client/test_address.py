"""Addresses: one origin, and where a card may send a buyer."""

import pytest

from forecourt.client.address import endpoint_of, http_address, is_private, origin, shown
from forecourt.client.failure import DealerError


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("dealer.example.com", "https://dealer.example.com"),
        (" https://dealer.example.com/a#b ", "https://dealer.example.com/a"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
    ],
)
def test_an_address_is_absolute(url: str, address: str) -> None:
    assert http_address(url) == address


@pytest.mark.parametrize(
    "url",
    ["", "ftp://x", "https://", "http:///a", "https://x:0", "https://x:99999", "https://[::1", "https://u:p@x",
     "https://u@x", "javascript:alert(1)", "https://a b", "https://a\n.example.com", "file:///etc/passwd"],
)  # fmt: skip
def test_what_is_no_address_of_a_dealer_is_refused(url: str) -> None:
    with pytest.raises(DealerError):
        http_address(url)


def test_an_origin_is_scheme_host_and_port() -> None:
    assert origin("https://X.example.com/a") == origin("https://x.example.com:443/b?c")
    assert origin("https://x.example.com") != origin("http://x.example.com")
    assert origin("https://x.example.com") != origin("https://x.example.com:8443")


def test_what_is_logged_of_an_address_has_no_query_and_no_user() -> None:
    assert shown("https://u:p@x.example.com/a?token=1#f") == "https://x.example.com/a"


@pytest.mark.parametrize(
    "url",
    ["http://localhost", "http://a.localhost", "http://127.0.0.1", "http://10.1.2.3", "http://192.168.0.1",
     "http://169.254.169.254/latest", "http://[::1]", "http://[fe80::1]", "http://0.0.0.0", "http://2130706433",
     "http://0x7f000001", "http://127.1", "http://metadata.google.internal", "http://printer.local", "http://100.64.0.1",
     "http://localhost."],
)  # fmt: skip
def test_private_addresses_are_known(url: str) -> None:
    assert is_private(url)
    with pytest.raises(DealerError, match="private network"):
        endpoint_of("http://dealer.example.com/.well-known/agent-card.json", url)


@pytest.mark.parametrize("url", ["https://dealer.example.com", "https://8.8.8.8", "https://[2606:4700::1111]"])
def test_public_addresses_are_public(url: str) -> None:
    assert not is_private(url)


def test_an_endpoint_may_be_relative_and_elsewhere_but_never_weaker() -> None:
    card = "https://dealer.example.com/.well-known/agent-card.json"
    assert endpoint_of(card, "/a2a") == "https://dealer.example.com/a2a"
    assert endpoint_of(card, "https://api.example.com/a2a") == "https://api.example.com/a2a"
    with pytest.raises(DealerError, match="plain http"):
        endpoint_of(card, "http://dealer.example.com/a2a")
    with pytest.raises(DealerError):
        endpoint_of(card, "ftp://dealer.example.com/a2a")


def test_a_dealer_on_this_machine_may_stay_here() -> None:
    assert endpoint_of("http://127.0.0.1:8000/x", "http://127.0.0.1:8000/a2a") == "http://127.0.0.1:8000/a2a"
