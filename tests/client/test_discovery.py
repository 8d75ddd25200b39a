"""Finding a card: where it is looked for, how long it is kept, and what is said where there is none."""

import asyncio
from typing import Any

import httpx
import pytest
from tests.client.simulated import CARD_URL, SITE, Scripted, SimulatedTiming, card, json_answer

from forecourt.a2a import FailureKind
from forecourt.client import CardCache, DealerError, RetryPolicy, TransportError, connect
from forecourt.client.discovery import candidates

WELL = "/.well-known/agent-card.json"


def find(network: Scripted, url: str = SITE, **options: Any) -> tuple[str, str]:
    """Return the contract and the endpoint that are found at `url`."""

    async def whole() -> tuple[str, str]:
        async with connect(url, transport=network, **{"timing": SimulatedTiming(), **options}) as dealer:
            return dealer.contract, dealer.endpoint

    return asyncio.run(whole())


@pytest.mark.parametrize(
    ("url", "contract", "places"),
    [
        (f"{SITE}/cards/mine.json", None, ["/cards/mine.json"]),
        (SITE, None, [WELL]),
        (f"{SITE}/", None, [WELL]),
        (f"{SITE}/dealers/north/", None, [f"/dealers/north{WELL}", WELL]),
        (f"{SITE}/v1.1/a2a", None, [f"/v1.1{WELL}", f"/v1.1/a2a{WELL}", WELL]),
        (SITE, "1.1", [WELL, f"/v1.1{WELL}"]),
    ],
)
def test_the_card_is_looked_for_at_the_path_and_then_at_the_origin(
    url: str, contract: str | None, places: list[str]
) -> None:
    assert list(candidates(url, contract)) == [SITE + place for place in places]


def test_a_full_card_address_is_taken_as_it_is() -> None:
    network = Scripted(pages={f"{SITE}/x/card.json": card("1.1", endpoint="a2a")})
    assert find(network, f"{SITE}/x/card.json") == ("1.1", f"{SITE}/x/a2a")
    assert len(network.requests) == 1


def test_a_site_below_a_path_is_found_at_its_origin() -> None:
    network = Scripted()
    assert find(network, f"{SITE}/inventory/used") == ("3.1", f"{SITE}/a2a")
    assert [request.url.path for request in network.requests] == [f"/inventory/used{WELL}", WELL]


def test_a_contract_that_the_first_card_lacks_is_looked_for_beside_it() -> None:
    network = Scripted(pages={CARD_URL: card("3.1"), f"{SITE}/v1.1{WELL}": card("1.1", endpoint="/v1.1/a2a")})
    assert find(network, contract="1.1") == ("1.1", f"{SITE}/v1.1/a2a")
    with pytest.raises(DealerError, match=r"contract 1\.2 is not offered"):
        find(network, contract="1.2")


def test_an_agent_that_is_no_dealer_is_told_by_its_name() -> None:
    with pytest.raises(DealerError, match="Weather Bot is no AAP dealer"):
        find(Scripted(pages={CARD_URL: {"name": "Weather Bot", "skills": [{"id": "weather"}]}}))


def test_a_page_that_is_no_card_and_one_that_is_missing_are_told_apart() -> None:
    html = httpx.Response(200, content=b"<html>", headers={"content-type": "text/html"})
    with pytest.raises(DealerError, match="is no agent card") as caught:
        find(Scripted(pages={CARD_URL: html}))
    assert caught.value.kind is FailureKind.UNREADABLE
    with pytest.raises(DealerError, match=f"no agent card at {CARD_URL}"):
        find(Scripted(pages={}))


def test_a_site_in_trouble_is_no_missing_dealer() -> None:
    with pytest.raises(TransportError) as caught:
        find(Scripted(pages={CARD_URL: httpx.Response(503)}))
    assert (caught.value.kind, caught.value.status) == (FailureKind.STATUS, 503)


def test_a_redirect_of_a_card_is_followed_at_home_and_nowhere_else() -> None:
    home = httpx.Response(302, headers={"location": "/card.json"})
    network = Scripted(pages={CARD_URL: home, f"{SITE}/card.json": card()})
    assert find(network)[0] == "3.1"
    for target in ("https://evil.example.com/card.json", "http://dealer.example.com/card.json", "//evil.example.com/"):
        away = Scripted(pages={CARD_URL: httpx.Response(302, headers={"location": target})})
        with pytest.raises(TransportError) as caught:
            find(away, credentials={"Authorization": "secret"})
        assert caught.value.kind is FailureKind.BAD_ENDPOINT
        assert [str(request.url) for request in away.requests] == [CARD_URL]
    circle = Scripted(pages={CARD_URL: httpx.Response(302, headers={"location": CARD_URL})})
    with pytest.raises(TransportError, match="do not end"):
        find(circle)
    assert len(circle.requests) == 4


def test_a_card_is_kept_as_long_as_its_headers_allow() -> None:
    timing, cache = SimulatedTiming(), CardCache()
    network = Scripted(pages={CARD_URL: json_answer(card(), cache_control="public, max-age=300", age="60")})
    for passed, requests in ((0, 1), (100, 1), (239, 1), (241, 2)):
        timing.passed = passed
        find(network, cache=cache, timing=timing)
        assert len(network.requests) == requests, passed


def test_a_card_that_has_not_changed_is_confirmed_by_its_etag() -> None:
    cache = CardCache()
    network = Scripted(pages={CARD_URL: json_answer(card(), etag='"v1"', cache_control="no-cache")})
    find(network, cache=cache)
    network.pages[CARD_URL] = httpx.Response(304)
    assert find(network, cache=cache)[0] == "3.1"
    assert network.requests[1].headers["if-none-match"] == '"v1"'


@pytest.mark.parametrize("headers", [{}, {"cache_control": "no-store, max-age=300"}, {"cache_control": "max-age=x"}])
def test_a_card_that_may_not_be_kept_is_not(headers: dict[str, str]) -> None:
    cache = CardCache()
    network = Scripted(pages={CARD_URL: json_answer(card(), 200, **headers)})
    find(network, cache=cache)
    find(network, cache=cache)
    assert len(network.requests) == 2
    assert len(cache) == 0


def test_a_card_that_credentials_opened_is_kept_for_nobody() -> None:
    cache = CardCache()
    network = Scripted(pages={CARD_URL: json_answer(card(), cache_control="max-age=300")})
    find(network, cache=cache, credentials={"Authorization": "mine"})
    assert len(cache) == 0


def test_the_cache_is_bounded_in_size_and_in_time() -> None:
    cache, timing = CardCache(size=3, longest=10), SimulatedTiming()
    for number in range(5):
        site = f"https://d{number}.example.com"
        network = Scripted(pages={site + WELL: json_answer(card(), cache_control="max-age=999999999")})
        find(network, site, cache=cache, timing=timing)
    assert len(cache) == 3
    assert cache.fresh(f"https://d4.example.com{WELL}", 9.0)
    assert cache.fresh(f"https://d4.example.com{WELL}", 10.0) is None
    assert cache.fresh(f"https://d0.example.com{WELL}", 0.0) is None
    cache.forget(f"https://d4.example.com{WELL}")
    assert len(cache) == 2


def test_a_card_that_is_too_long_is_not_read() -> None:
    network = Scripted(pages={CARD_URL: card(filler="x" * (1 << 20))})
    with pytest.raises(TransportError) as caught:
        find(network, retry=RetryPolicy(tries=1))
    assert caught.value.kind is FailureKind.UNREADABLE
