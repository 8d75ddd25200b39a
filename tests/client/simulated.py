"""A clock that tests move, chance that they choose, and dealers that answer what they are told."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx

from forecourt.client import Timing

__all__ = ["CARD_URL", "SITE", "Scripted", "SimulatedTiming", "aap", "card", "json_answer", "message", "rpc_error"]

SITE: Final = "https://dealer.example.com"
CARD_URL: Final = f"{SITE}/.well-known/agent-card.json"
URIS: Final = {
    "1.0": "https://autoagentprotocol.org/extensions/a2a-automotive-retail/v1.0",
    **{version: f"https://autoagentprotocol.org/extensions/aap/v{version}" for version in ("1.1", "1.2", "1.3", "3.1")},
}


class SimulatedTiming(Timing):
    """Time that passes only in waits, which are noted in `waits`."""

    def __init__(self, chance: float = 0.0) -> None:
        self.passed = 0.0
        self.waits: list[float] = []
        self._chance = chance

    def monotonic(self) -> float:
        return self.passed

    def now(self) -> datetime:
        return datetime(2026, 11, 1, 12, tzinfo=UTC) + timedelta(seconds=self.passed)

    def chance(self) -> float:
        return self._chance

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.passed += seconds


Reply = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


class Scripted(httpx.AsyncBaseTransport):
    """A network with one dealer: GETs are answered with `pages` by address, POSTs with `replies` in turn.

    The last reply is repeated. Everything that was sent is in `requests`.
    """

    def __init__(self, *replies: Reply, pages: Mapping[str, Any] | None = None) -> None:
        self._replies = list(replies)
        self.pages: dict[str, Any] = {CARD_URL: card()} if pages is None else dict(pages)
        self.requests: list[httpx.Request] = []

    @property
    def posts(self) -> list[httpx.Request]:
        """The POSTs."""
        return [request for request in self.requests if request.method == "POST"]

    @property
    def payloads(self) -> list[Any]:
        """The AAP payloads of the A2A requests."""
        bodies = [json.loads(request.content) for request in self.posts]
        return [body["params"]["message"]["parts"][0]["data"] for body in bodies]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Note a request and answer it, or fail it."""
        found = await self._answer(request)
        # As it is on a network: not read yet, and new every time.
        return httpx.Response(found.status_code, headers=found.headers, stream=found.stream)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.requests.append(request)
        if request.method == "GET":
            page = self.pages.get(str(request.url))
            if isinstance(page, httpx.Response):
                return page
            return httpx.Response(404) if page is None else json_answer(page)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply(request) if callable(reply) else reply


def json_answer(value: Any, status: int = 200, **headers: str) -> httpx.Response:
    """Return an answer of JSON; underscores in header names are hyphens."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return httpx.Response(
        status, content=json.dumps(value).encode(), headers={"content-type": "application/json", **named}
    )


def card(*versions: str, endpoint: str = "/a2a", **more: Any) -> dict[str, Any]:
    """Return the card of a dealer that declares these contracts (3.1 if none)."""
    extensions = [{"uri": URIS[version], "required": version == "3.1"} for version in versions or ("3.1",)]
    return {
        "name": "Example Motors",
        "supportedInterfaces": [{"url": endpoint, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"extensions": extensions},
        "skills": [{"id": "inventory.search"}],
        **more,
    }


def message(data: Mapping[str, Any], kind: str = "inventory.search") -> Callable[[httpx.Request], httpx.Response]:
    """Return an A2A answer with this data, to whatever request comes."""

    def answer(request: httpx.Request) -> httpx.Response:
        parts = [{"text": "hello"}, {"data": {"type": f"{kind}.response", "data": data}}]
        result = {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": parts}}
        return json_answer({"jsonrpc": "2.0", "id": json.loads(request.content)["id"], "result": result})

    return answer


def aap(code: str, retryable: bool = False, **details: Any) -> dict[str, Any]:
    """Return an `aap.error` object."""
    return {
        "type": "aap.error",
        "error_id": "err_1",
        "code": code,
        "message": "It failed.",
        "retryable": retryable,
        **({"details": details} if details else {}),
        "created_at": "2026-11-01T12:00:00Z",
    }


def rpc_error(number: int, data: Any = None, status: int = 200, **headers: str) -> httpx.Response:
    """Return a JSON-RPC error answer."""
    error = {"code": number, "message": "It failed.", **({} if data is None else {"data": data})}
    return json_answer({"jsonrpc": "2.0", "id": 1, "error": error}, status, **headers)


def detail(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the two details of a 3.1 skill error."""
    return [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": value["code"],
            "domain": "autoagentprotocol.org",
            "metadata": {
                "code": value["code"],
                "error_id": value["error_id"],
                "retryable": str(value["retryable"]).lower(),
                "created_at": value["created_at"],
            },
        },
        {"@type": "type.googleapis.com/google.protobuf.Struct", "value": dict(value)},
    ]
