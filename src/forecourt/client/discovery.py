"""Finding a dealer's agent card, and keeping it as long as its HTTP headers allow."""

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from forecourt.a2a import FailureKind
from forecourt.client.address import http_address, shown
from forecourt.client.card import DealerCard, read_card
from forecourt.client.failure import Answer, DealerError, TransportError
from forecourt.client.http import Http
from forecourt.client.reading import json_body, status_failure
from forecourt.client.retry import Timing

__all__ = ["CARDS", "CardCache", "candidates", "find_card"]

_CARD: Final = "/.well-known/agent-card.json"
_MAX_BYTES: Final = 1024 * 1024
_ABSENT: Final = (400, 404, 405, 406, 410)
_MAX_AGE: Final = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?(\d{1,9})")


@dataclass(frozen=True, slots=True)
class _Kept:
    card: DealerCard
    until: float
    validators: Mapping[str, str]


class CardCache:
    """Agent cards by address (RFC 9111: `Cache-Control`, `ETag`, `Last-Modified`, `Age`).

    At most `size` cards, the longest unused leaves first; none is fresh for longer than `longest` seconds, whatever its
    headers say. A card fetched with credentials is never kept.
    """

    def __init__(self, size: int = 256, longest: float = 3600.0) -> None:
        self._size = size
        self._longest = longest
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def fresh(self, url: str, now: float) -> DealerCard | None:
        """Return a card that may be used without asking."""
        kept = self._kept.get(url)
        if kept is None or now >= kept.until:
            return None
        self._kept.move_to_end(url)
        return kept.card

    def conditions(self, url: str) -> Mapping[str, str]:
        """Return the headers that ask only for what has changed."""
        kept = self._kept.get(url)
        return kept.validators if kept else {}

    def renew(self, url: str, answer: Answer, now: float) -> DealerCard | None:
        """Return the card that a 304 confirms, and keep it on."""
        kept = self._kept.get(url)
        if kept is None:
            return None
        self._kept[url] = _Kept(kept.card, now + self._seconds(answer), kept.validators)
        return kept.card

    def keep(self, url: str, card: DealerCard, answer: Answer, now: float) -> None:
        """Keep a card as its answer allows."""
        validators = {}
        if "etag" in answer.headers:
            validators["If-None-Match"] = answer.headers["etag"]
        if "last-modified" in answer.headers:
            validators["If-Modified-Since"] = answer.headers["last-modified"]
        seconds = self._seconds(answer)
        if "no-store" in _directives(answer) or not (seconds or validators):
            self._kept.pop(url, None)
            return
        self._kept[url] = _Kept(card, now + seconds, validators)
        self._kept.move_to_end(url)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)

    def forget(self, url: str) -> None:
        """Ask anew next time."""
        self._kept.pop(url, None)

    def clear(self) -> None:
        """Forget every card."""
        self._kept.clear()

    def __len__(self) -> int:
        """Count the cards."""
        return len(self._kept)

    def _seconds(self, answer: Answer) -> float:
        directives = _directives(answer)
        found = _MAX_AGE.search(directives)
        if not found or "no-cache" in directives or "no-store" in directives:
            return 0.0
        age = answer.headers.get("age", "")
        spent = int(age[:9]) if age.isascii() and age.isdigit() else 0
        return float(min(self._longest, max(0, int(found[1]) - spent)))


CARDS: Final = CardCache()
"""The cards that every client of this process shares unless it is given its own."""


def _directives(answer: Answer) -> str:
    return answer.headers.get("cache-control", "").lower()


def candidates(url: str, contract: str | None = None) -> Iterator[str]:
    """Yield where the card of a dealer may be: the address itself if it is that of a card, else below the path that was
    given, then at the origin; for a contract that is wanted, also where Forecourt has the card of that contract.

    Raises DealerError for what is no address.
    """
    address = http_address(url)
    parts = urlsplit(address)
    if parts.path.endswith(".json"):
        yield address
        return
    root = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
    path = parts.path.rstrip("/")
    # An A2A endpoint was given instead of the site.
    paths = dict.fromkeys([path.removesuffix("/a2a"), path, ""])
    for base in paths:
        yield f"{root}{base}{_CARD}"
        if contract is not None:
            yield f"{root}{base}/v{contract}{_CARD}"


async def find_card(
    http: Http,
    url: str,
    *,
    contract: str | None,
    seconds: float,
    cache: CardCache | None,
    timing: Timing,
    credentials: Mapping[str, str],
) -> DealerCard:
    """Return the first card of an AAP dealer at the candidates of `url`; one that offers `contract` if that is given.

    Raises DealerError when there is none, with what was found instead; TransportError when the site cannot be asked.
    """
    found: DealerCard | None = None
    other: DealerError | None = None
    asked: list[str] = []
    end = timing.monotonic() + seconds
    for place in candidates(url, contract):
        asked.append(shown(place))
        left = end - timing.monotonic()
        if left <= 0:
            raise TransportError(FailureKind.TIMEOUT, f"no agent card was found within {seconds:g} seconds")
        try:
            card = await _fetch(http, place, left, cache if not credentials else None, timing, credentials)
        except DealerError as error:
            other = other or error
            continue
        if card is not None:
            if contract is None or contract in card.contracts:
                return card
            found = found or card
    if found is not None:
        return found
    if other is not None:
        raise other
    raise DealerError(f"no agent card at {', '.join(asked)}")


async def _fetch(
    http: Http,
    place: str,
    seconds: float,
    cache: CardCache | None,
    timing: Timing,
    credentials: Mapping[str, str],
) -> DealerCard | None:
    """Return the card at an address, None where nothing is."""
    fresh = cache.fresh(place, timing.monotonic()) if cache is not None else None
    if fresh is not None:
        return fresh
    conditions = cache.conditions(place) if cache is not None else {}
    headers = {"Accept": "application/json", **credentials, **conditions}
    answer = await http.get(place, headers, seconds, _MAX_BYTES)
    if answer.status == 304 and cache is not None and (confirmed := cache.renew(place, answer, timing.monotonic())):
        return confirmed
    if answer.status in _ABSENT:
        return None
    if answer.status != 200:
        raise status_failure(answer)
    try:
        body: Any = json_body(answer)
    except TransportError as error:
        message = f"what is at {shown(place)} is no agent card"
        raise DealerError(message, FailureKind.UNREADABLE, raw=answer) from error
    card = read_card(answer.url, body)
    if cache is not None:
        cache.keep(place, card, answer, timing.monotonic())
    return card
