"""Hosts and origins: other people's web pages stay out (MCP, Streamable HTTP, "Security warning")."""

from typing import Any

import pytest

from forecourt.server.config import PAP, Config, Mcp, Server
from forecourt.server.origin import Origins

LOOPBACK = Origins(Config(), ())
PUBLIC = Origins(
    Config(
        server=Server(host="0.0.0.0", public_url="https://dealer.example.com"),
        mcp=Mcp(allowed_origins=("https://assistant.example.com", "http://localhost:6274"), allowed_hosts=("Inner",)),
    ),
    ("north.example.com",),
)
AGENTS = Origins(Config(pap=PAP(enabled=True, domain="Dealer.example.com")), ())
OPEN = Origins(Config(server=Server(host="0.0.0.0")), ())


def test_the_domain_of_personal_agents_is_a_name_of_the_server() -> None:
    assert status(AGENTS, "dealer.example.com") is None
    assert status(AGENTS, "other.example.com") == 421


def status(origins: Origins, host: str | None, origin: str | None = None) -> int | None:
    """Return the status of a refusal, None for a request that is let in."""
    refusal = origins.refusal(host, origin)
    return None if refusal is None else refusal.status


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8000", "LOCALHOST.", "127.0.0.1:8000", "[::1]:8000", "10.0.0.7"]
)
def test_a_local_server_is_reached_by_its_own_names_and_by_figures(host: str) -> None:
    assert status(LOOPBACK, host) is None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example.com",
        "localhost.evil.example.com",
        "127.0.0.1.evil.example.com",
        "evil:8000",
        "[::1",
        ":1",
    ],
)
def test_a_local_server_is_not_reached_by_a_rebound_name(host: str | None) -> None:
    assert status(LOOPBACK, host) == 421


@pytest.mark.parametrize("host", ["dealer.example.com", "DEALER.example.com:443", "north.example.com", "inner:8000"])
def test_a_public_server_is_reached_by_its_url_its_sellers_and_what_is_allowed(host: str) -> None:
    assert status(PUBLIC, host) is None


def test_a_public_server_is_not_reached_by_another_name() -> None:
    assert status(PUBLIC, "evil.example.com") == 421


def test_a_server_whose_names_are_not_known_takes_any() -> None:
    assert status(OPEN, "whatever.example.com") is None
    assert status(OPEN, None) is None


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8000", "http://localhost:8000"),
        ("127.0.0.1:8000", "HTTP://127.0.0.1:8000"),
        ("dealer.example.com", "https://dealer.example.com"),
        ("dealer.example.com:443", "https://dealer.example.com"),
        ("dealer.example.com", "https://dealer.example.com:443"),
        ("north.example.com", "https://north.example.com"),
        ("inner", "https://dealer.example.com"),
        ("dealer.example.com", "https://assistant.example.com"),
        ("dealer.example.com", "https://ASSISTANT.example.com:443"),
        ("dealer.example.com", "http://localhost:6274"),
    ],
)
def test_pages_of_the_server_itself_and_allowed_ones_may_call(host: str, origin: str) -> None:
    origins = LOOPBACK if host.startswith(("localhost", "127")) else PUBLIC
    assert status(origins, host, origin) is None


@pytest.mark.parametrize(
    "origin",
    [
        "", "null", "https://evil.example.com", "http://assistant.example.com", "https://assistant.example.com:8443",
        "https://assistant.example.com.evil.example.com", "file:///", "ftp://dealer.example.com", "https://", "dealer",
        "https://[::1", "http://localhost:6275", "https://assistant.example.com/",
    ],
)  # fmt: skip
def test_other_pages_may_not_call(origin: str) -> None:
    assert status(PUBLIC, "dealer.example.com", origin) == 403
    assert status(OPEN, "dealer.example.com", origin) == 403


def test_a_rebound_page_is_refused_though_its_host_and_origin_agree() -> None:
    assert status(LOOPBACK, "evil.example.com:8000", "http://evil.example.com:8000") == 421


def test_what_is_remembered_is_bounded() -> None:
    origins: Any = Origins(Config(), ())
    for number in range(1000):
        assert status(origins, f"host-{number}") == 421
    assert origins._remembered.cache_info().currsize == 256
    assert status(origins, "localhost", "http://" + "x" * 60_000) == 403
    assert origins._remembered.cache_info().misses == 1000
