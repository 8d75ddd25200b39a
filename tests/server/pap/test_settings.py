"""What PAP asks of a configuration, told in one line before anything starts."""

import pytest

from forecourt.server import ConfigError, load
from forecourt.server.pap.settings import check, public_url


def test_without_a_public_address_it_is_the_domains_own() -> None:
    config = load(None, pap={"enabled": True, "domain": "Dealer.Example.com"})
    check(config)
    assert public_url(config) == "https://dealer.example.com"


@pytest.mark.parametrize(
    "url", ["https://dealer.example.com", "https://agent.dealer.example.com", "https://dealer.example.com:8443"]
)
def test_the_public_address_may_lie_at_or_below_the_domain(url: str) -> None:
    config = load(None, server={"public_url": url}, pap={"enabled": True, "domain": "dealer.example.com"})
    check(config)
    assert public_url(config) == url


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://dealer.example.com", "server.public_url"),
        ("https://dealer.example.com/forecourt", "server.public_url"),
        ("https://example.com", "server.public_url"),
        ("https://otherdealer.example.com", "server.public_url"),
        ("https://notdealer.example.com.evil.example.org", "server.public_url"),
    ],
)
def test_another_public_address_is_a_mistake(url: str, key: str) -> None:
    config = load(None, server={"public_url": url}, pap={"enabled": True, "domain": "dealer.example.com"})
    with pytest.raises(ConfigError, match=f"^{key}: "):
        check(config)


def test_a_domain_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"^pap.domain: "):
        check(load(None, pap={"enabled": True}))


@pytest.mark.parametrize(
    "domain", ["https://dealer.example.com", "dealer.example.com:8443", "dealer", "a..b", "-a.b", ""]
)
def test_what_is_no_domain_is_a_mistake(domain: str) -> None:
    with pytest.raises(ConfigError, match=r"pap"):
        load(None, pap={"enabled": True, "domain": domain})
