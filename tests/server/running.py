"""Dealer agents that run in a thread of the test process, spoken to over real sockets."""

import asyncio
import contextlib
import copy
import http.client
import json
import socket
import threading
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import uvicorn

from forecourt.server import Application, create_app, load
from forecourt.server.serving import uvicorn_config

__all__ = ["JSON", "LEAD", "Reply", "RunningAgent", "aap_error", "envelope", "lead", "running", "search"]

JSON: Final = {"Content-Type": "application/json"}
_SECONDS: Final = 20
"""How long a test waits for anything before it fails."""

LEAD: Final[dict[str, Any]] = {
    "type": "lead.submit.request",
    "customer": {"first_name": "Zephyrine", "last_name": "Quartermain", "email": "zephyrine@example.com"},
    "consent": {
        "granted_at": "2026-04-30T10:16:00Z",
        "allowed_channels": ["email"],
        "consent_text": "I agree to be contacted.",
        "scope": ["lead_submission"],
    },
    "message": "Please write to me about a roadster.",
    "source_agent": {"name": "shopping-assistant"},
}


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)

    @classmethod
    def read(cls, connection: socket.socket) -> "Reply":
        """Read one answer from a socket."""
        response = http.client.HTTPResponse(connection)
        try:
            response.begin()
            return cls.of(response)
        finally:
            response.close()

    @classmethod
    def of(cls, response: http.client.HTTPResponse) -> "Reply":
        """Read the rest of an answer."""
        body = response.read()
        return cls(response.status, {name.lower(): value for name, value in response.getheaders()}, body)


@dataclass(slots=True)
class RunningAgent:
    """One agent at a port of 127.0.0.1."""

    app: Application
    port: int
    folder: Path
    loop: asyncio.AbstractEventLoop = field(repr=False)

    @property
    def base_url(self) -> str:
        """The agent's address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> Path:
        """The file of its store."""
        return self.folder / "forecourt.db"

    def request(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
        """Send one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_SECONDS)
        with contextlib.closing(connection):
            connection.request(method, path, body, dict(headers or {}))
            return Reply.of(connection.getresponse())

    def get(self, path: str, **headers: str) -> Reply:
        """GET a path; underscores in header names stand for hyphens."""
        return self.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def post(self, body: bytes, path: str = "/v3.1/a2a", headers: Mapping[str, str] | None = None) -> Reply:
        """POST bytes to an A2A endpoint."""
        return self.request("POST", path, body, JSON if headers is None else headers)

    def call(self, payload: Any, path: str = "/v3.1/a2a") -> dict[str, Any]:
        """Send an AAP request and return the JSON-RPC answer."""
        reply = self.post(json.dumps(envelope(payload)).encode(), path)
        assert reply.status == 200
        answer: dict[str, Any] = reply.json()
        return answer

    def serves(self) -> bool:
        """Tell whether a plain search is answered."""
        return "result" in self.call(search())

    @contextlib.contextmanager
    def connection(self) -> Iterator[socket.socket]:
        """A socket to write raw HTTP to."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=_SECONDS) as opened:
            yield opened

    def exchange(self, sent: bytes) -> Reply:
        """Send raw bytes and read one answer."""
        with self.connection() as connection:
            connection.sendall(sent)
            return Reply.read(connection)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the agent's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(_SECONDS)


class _Server(uvicorn.Server):
    """Tells its event loop once it has started, or that it could not start."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = threading.Event()
        self.loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.loop = asyncio.get_running_loop()
        self.settled.set()


@contextlib.contextmanager
def running(folder: Path, config: Path | None = None, **sections: Any) -> Iterator[RunningAgent]:
    """Run an agent over a configuration, with its data in `folder`, until the block ends."""
    app = create_app(load(config, data=str(folder), **sections))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = _Server(uvicorn_config(app, log_config=None, timeout_graceful_shutdown=_SECONDS))
        thread = threading.Thread(target=server.run, args=([listener],), name="agent")
        thread.start()
        try:
            assert server.settled.wait(_SECONDS)
            assert server.loop is not None
            yield RunningAgent(app, listener.getsockname()[1], folder, server.loop)
        finally:
            server.should_exit = True
            thread.join(_SECONDS)
            assert not thread.is_alive()


def envelope(payload: Any, request_id: Any = 1) -> dict[str, Any]:
    """Return a SendMessage request around an AAP payload."""
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": payload}]}
    return {"jsonrpc": "2.0", "id": request_id, "method": "SendMessage", "params": {"message": message}}


def search(**members: Any) -> dict[str, Any]:
    """Return a search for one vehicle, with further members."""
    return {"type": "inventory.search.request", "pagination": {"limit": 1}, **members}


def lead(**changes: Any) -> dict[str, Any]:
    """Return a lead whose grant is a minute old."""
    made = copy.deepcopy({**LEAD, **changes})
    made["consent"]["granted_at"] = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    return made


def aap_error(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the aap.error object of an answer, in whichever envelope."""
    data = answer["error"]["data"]
    found: dict[str, Any] = data[1]["value"] if isinstance(data, list) else data
    assert found["type"] == "aap.error"
    return found
