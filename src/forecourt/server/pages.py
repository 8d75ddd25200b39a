"""Everything that is read with GET: cards, schemas, health, and the page for people."""

import asyncio
import hashlib
import html
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from forecourt.contract import Contract, default_version
from forecourt.server.admission import RESOURCE_METADATA
from forecourt.server.cards import card
from forecourt.server.deployment import Deployment
from forecourt.server.metrics import CONTENT_TYPE
from forecourt.server.networks import Networks
from forecourt.server.standing import LIMITS_OUTAGE
from forecourt.store import StoreError

__all__ = ["pages"]

_CARD_PATH: Final = "/.well-known/agent-card.json"
_CARD_SECONDS: Final = 300
_SCHEMA_SECONDS: Final = 86_400
_CHECK_SECONDS: Final = 2.0
"""How long /readyz waits for the database: one that is gone without a word must not keep a balancer waiting."""
_FEEDS_SHOWN: Final = 50
"""How many feeds `/readyz` tells of one by one: it is asked for every few seconds, and a network has thousands."""
_GOOD: Final = frozenset({"imported", "unchanged", "waiting"})


def pages(deployment: Deployment) -> Starlette:
    """Return the application that answers everything but the POSTs of bindings."""
    site = _Site(deployment)
    routes = [
        Route("/healthz", site.healthz),
        Route("/readyz", site.readyz),
        Route("/metrics", site.metrics),
        Route("/schemas/{version}/{file:path}", site.schema),
        Route(RESOURCE_METADATA + "/{resource:path}", site.resource_metadata),
    ]
    for prefix in ("", "/dealers/{dealer_id}"):
        routes.append(Route(prefix or "/", site.person))
        routes.append(Route(f"{prefix}/.well-known/agent.json", site.retired_card))
        for version in (None, *deployment.contracts):
            place = prefix if version is None else f"{prefix}/v{version}"
            routes.append(Route(f"{place}{_CARD_PATH}", site.card))
            # The POSTs of endpoints never get here; one to a seller that is not served is not found.
            routes.append(Route(f"{place}/a2a", site.person, methods=["GET", "POST"]))
    site_app = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _wrong_method})
    # A redirect to the path without its slash would name whatever host the request did, and lose https behind a proxy.
    site_app.router.redirect_slashes = False
    return site_app


class _Site:
    """The pages of one deployment."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        versions = "|".join(re.escape(version) for version in deployment.contracts)
        self._mcp_place = re.compile(rf"(?:/dealers/(?P<dealer_id>[^/]+))?(?:/v(?:{versions}))?/mcp")
        self._looking: asyncio.Task[bool] | None = None
        self._shown_to = Networks(deployment.config.metrics.networks, "metrics", "networks")

    async def healthz(self, request: Request) -> Response:
        """Say that the process answers."""
        return JSONResponse({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """Say whether requests can be served, and what is in the way."""
        if self._deployment.is_stopping:
            return JSONResponse({"status": "unavailable", "reasons": ["the server is stopping"]}, 503)
        if not await self._store_answers():
            return JSONResponse({"status": "unavailable", "reasons": ["the database does not answer"]}, 503)
        ready: dict[str, object] = {"status": "ok", "listings": len(self._deployment.inventory.catalog())}
        feeds = self._deployment.schedule.details()
        if feeds:
            # A feed that fails is shown and never fatal: the last good inventory goes on serving.
            ready["feeds"] = feeds if len(feeds) <= _FEEDS_SHOWN else _worst(feeds)
            if len(feeds) > _FEEDS_SHOWN:
                ready["feeds_by_outcome"] = Counter(str(feed["outcome"]) for feed in feeds)
        if self._deployment.courier is not None:
            ready["deliveries"] = self._deployment.courier.details()
        if self._deployment.admission.limit.outage:
            ready["limits"] = LIMITS_OUTAGE
        return JSONResponse(ready)

    async def _store_answers(self) -> bool:
        """Tell whether the database answers in time: one look at it, however many ask."""
        looking = self._looking
        if looking is None or looking.done():
            looking = self._looking = asyncio.create_task(self._look(), name="forecourt-readyz")
        done, _ = await asyncio.wait({looking}, timeout=_CHECK_SECONDS)
        return bool(done) and looking.result()

    async def _look(self) -> bool:
        try:
            await self._deployment.store.check()
        except StoreError:
            return False
        return True

    async def metrics(self, request: Request) -> Response:
        """Give the counts, to those networks alone that may see them: they tell how business goes."""
        client = request.client.host if request.client else ""
        forwarded = any(name in request.headers for name in ("x-forwarded-for", "forwarded"))
        if (forwarded and not self._deployment.config.server.trusted_proxies) or not self._shown_to.include(client):
            return _not_found(request)
        return Response(self._deployment.observer.metrics.text(), media_type=CONTENT_TYPE)

    async def card(self, request: Request) -> Response:
        """Give the agent card of the contract that the path names."""
        seller = self._seller(request, request.path_params.get("dealer_id"))
        if seller is None:
            return _not_found(request)
        endpoint = self._base(request) + request.url.path.removesuffix(_CARD_PATH) + "/a2a"
        return _cached(
            request,
            card(self._contract(request), seller, endpoint, self._deployment.admission),
            "application/json",
            _CARD_SECONDS,
        )

    async def resource_metadata(self, request: Request) -> Response:
        """Say which authorization server gives tokens for the MCP endpoint that the path ends with."""
        base = self._base(request)
        # The path of the public address comes first; a proxy may have taken it off.
        prefix = base.partition("://")[2].partition("/")[2]
        place = "/" + request.path_params["resource"].removeprefix(f"{prefix}/" if prefix else "")
        found = self._mcp_place.fullmatch(place)
        seller = self._seller(request, found["dealer_id"]) if found else None
        metadata = None
        if seller is not None:
            metadata = self._deployment.admission.resource_metadata(base + place, seller)
        if metadata is None:
            return _not_found(request)
        answer = _cached(request, metadata, "application/json", _CARD_SECONDS)
        # Assistants that run in a browser read it, from wherever their pages come.
        answer.headers["access-control-allow-origin"] = "*"
        return answer

    async def retired_card(self, request: Request) -> Response:
        """Name the path that agents of A2A 1.0 are found at."""
        return PlainTextResponse(f"The agent card is at {_CARD_PATH}\n", 404)

    async def schema(self, request: Request) -> Response:
        """Give a contract's schema as it is."""
        contract = self._deployment.contracts.get(request.path_params["version"])
        file = request.path_params["file"]
        if contract is None or file not in contract.schemas.files():
            return _not_found(request)
        return _cached(request, contract.schemas.text(file), "application/schema+json", _SCHEMA_SECONDS)

    async def person(self, request: Request) -> Response:
        """Tell somebody with a browser what this is and how to call it."""
        seller = self._seller(request, request.path_params.get("dealer_id"))
        if seller is None:
            return _not_found(request)
        contract = self._contract(request)
        text = _for_people(seller, contract, self._base(request), request.url.path)
        if "text/html" in request.headers.get("accept", ""):
            page = f"<!doctype html><meta charset=utf-8><title>{html.escape(seller)}</title>"
            style = "<style>pre{font:15px/1.5 ui-monospace,monospace;max-width:60em;margin:3em auto}</style>"
            return Response(f"{page}{style}<pre>{html.escape(text)}</pre>", media_type="text/html")
        return PlainTextResponse(text)

    def _contract(self, request: Request) -> Contract:
        parts = request.url.path.split("/")
        named = [part[1:] for part in parts if part[:1] == "v" and part[1:] in self._deployment.contracts]
        return self._deployment.contracts[named[0] if named else default_version()]

    def _seller(self, request: Request, dealer_id: str | None) -> str | None:
        """Return the name of whose tree a path is in, None when there is no such seller here.

        At a host name of one seller's there is only that seller: the others are not to be found there.
        """
        sellers = self._deployment.sellers
        hosted = self._deployment.hosts.get(_host(request))
        if hosted is not None:
            return None if dealer_id is not None else str(sellers[hosted].profile["name"])
        if dealer_id is None:
            return self._deployment.name
        seller = sellers.get(dealer_id)
        return None if seller is None else str(seller.profile["name"])

    def _base(self, request: Request) -> str:
        """Return the address that callers know this place by, without a trailing slash."""
        public_url = self._deployment.config.server.public_url
        if public_url is None or _host(request) in self._deployment.hosts:
            # A seller's own host name is its public address; whether it is https only the public URL can tell.
            scheme = request.url.scheme if public_url is None else public_url.partition(":")[0]
            return f"{scheme}://{request.url.netloc}"
        return public_url


def _worst(feeds: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the feeds that somebody should look at, the one longest without an import first, and no more than fit."""
    bad = [feed for feed in feeds if feed["outcome"] not in _GOOD]
    return sorted(bad, key=lambda feed: -feed.get("age_seconds", math.inf))[:_FEEDS_SHOWN]


def _host(request: Request) -> str:
    return (request.url.hostname or "").rstrip(".")


def _cached(request: Request, content: bytes | Mapping[str, object], media_type: str, seconds: int) -> Response:
    """Return the content with what a cache needs, or 304 when the caller has it."""
    body = content if isinstance(content, bytes) else json.dumps(content, ensure_ascii=False, indent=2).encode()
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"etag": tag, "cache-control": f"public, max-age={seconds}"}
    known = request.headers.get("if-none-match", "")
    if known.strip() == "*" or tag in known:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media_type, headers=headers)


def _not_found(request: Request, error: Exception | None = None) -> Response:
    return PlainTextResponse(f"Nothing is here. The agent card is at {_CARD_PATH}\n", 404)


def _wrong_method(request: Request, error: Exception) -> Response:
    allowed = getattr(error, "headers", None) or {}
    return PlainTextResponse("This address takes other methods.\n", 405, headers=allowed)


def _for_people(seller: str, contract: Contract, base: str, path: str) -> str:
    endpoint = base + (path if path.endswith("/a2a") else "/a2a")
    request = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendMessage",
            "params": {
                "message": {
                    "messageId": "m-1",
                    "role": "ROLE_USER",
                    "parts": [{"data": {"type": "inventory.search.request", "filters": {"price_max": 30000}}}],
                }
            },
        }
    )
    return f"""{seller}: a dealer agent

AI assistants search this dealership's stock and hand in leads here, by the
Auto Agent Protocol {contract.version} over A2A (JSON-RPC 2.0, method SendMessage).

Agent card   {endpoint.removesuffix("/a2a")}{_CARD_PATH}
Endpoint     {endpoint}
For MCP      {endpoint.removesuffix("/a2a")}/mcp
Schemas      {base}/schemas/{contract.version}/inventory-search-request.schema.json

Try it:

curl {endpoint} -H 'Content-Type: application/json' -d '{request}'
"""
