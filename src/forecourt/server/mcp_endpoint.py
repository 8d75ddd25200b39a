"""MCP over HTTP: one POST, one JSON answer, nothing remembered in between; as plain ASGI."""

from typing import Final

from forecourt import __version__
from forecourt.agent import Caller
from forecourt.binding import Answer
from forecourt.binding.mcp import HEADERS, MCPBinding, Place
from forecourt.errors import AAPError
from forecourt.server.deployment import Deployment
from forecourt.server.endpoint import (
    BodyRefusedError,
    ClientGoneError,
    Receive,
    Scope,
    Send,
    internal_error,
    pick,
    read_rest,
    too_long,
)
from forecourt.server.origin import Origins

__all__ = ["MCPEndpoint", "place_of"]

_READ: Final = frozenset(HEADERS)
_METHODS: Final = b"POST, OPTIONS"
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
_NOT_HERE: Final = Answer(
    405,
    ((b"allow", _METHODS), _TEXT),
    b"This is an MCP endpoint (Model Context Protocol, Streamable HTTP): add its address to an AI assistant.\n"
    b"It takes POST and answers with JSON; it opens no stream and keeps no session.\n",
)
_PREFLIGHT: Final = Answer(
    204,
    (
        (b"access-control-allow-methods", _METHODS),
        (
            b"access-control-allow-headers",
            b"accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version,"
            b" mcp-session-id",
        ),
        (b"access-control-max-age", b"86400"),
    ),
    b"",
)


def place_of(deployment: Deployment, caller: Caller) -> Place:
    """Return what an endpoint for these sellers says of itself."""
    sellers = {
        dealer_id: str(seller.profile["name"])
        for dealer_id, seller in deployment.sellers.items()
        if caller.sellers is None or dealer_id in caller.sellers
    }
    whole = caller.sellers is None
    name = deployment.name if whole else ", ".join(sellers.values())
    return Place(name, sellers, deployment.vocabulary.label, __version__)


class MCPEndpoint:
    """One contract, for the sellers of one tenant, over MCP."""

    def __init__(self, deployment: Deployment, binding: MCPBinding, caller: Caller, origins: Origins) -> None:
        self._deployment = deployment
        self._binding = binding
        self._caller = caller
        self._refusal = origins.refusal
        self._max_body = deployment.config.server.max_body_bytes
        self._body_seconds = deployment.config.server.body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of any method."""
        headers = pick(scope["headers"], _READ)
        origin = headers.get(b"origin")
        answer = self._turned_away(headers)
        if answer is None:
            if scope["method"] != "POST":
                answer = _PREFLIGHT if scope["method"] == "OPTIONS" else _NOT_HERE
            else:
                try:
                    body = await self._body(receive)
                except ClientGoneError:
                    return
                except BodyRefusedError as refusal:
                    answer = self._binding.refuse(refusal.status, refusal.reason)
                else:
                    client = scope.get("client")
                    answer = await self.answer(body, headers, client[0] if client else "")
            if origin is not None:
                # Let in by `Origins`: its pages may read the answer.
                answer = _readable_by(answer, origin)
        sent = answer.headers
        if answer.status != 204:
            sent = (*sent, (b"content-length", b"%d" % len(answer.body)))
        await send({"type": "http.response.start", "status": answer.status, "headers": sent})
        await send({"type": "http.response.body", "body": answer.body})

    async def _body(self, receive: Receive) -> bytes:
        """Return the body, which is there in one piece nearly always."""
        message = await receive()
        if message["type"] != "http.request" or message.get("more_body", False):
            return await read_rest(message, receive, self._max_body, self._body_seconds)
        body: bytes = message["body"]
        if len(body) > self._max_body:
            raise BodyRefusedError(too_long(self._max_body))
        return body

    def _turned_away(self, headers: dict[bytes, str]) -> Answer | None:
        """Return the refusal of a request that is not looked at, None when it may come in.

        The place for refused credentials, too: 401 with `WWW-Authenticate` naming the protected resource's metadata
        (RFC 9728), over the body that `MCPBinding.refuse` writes.
        """
        refusal = self._refusal(headers.get(b"host"), headers.get(b"origin"))
        return None if refusal is None else self._binding.refuse(refusal.status, refusal.message)

    async def answer(self, body: bytes, headers: dict[bytes, str] | None, client: str) -> Answer:
        """Answer one message; `headers` is None where it came without any. Status 202 stands for nothing to say."""
        binding = self._binding
        try:
            call = binding.read(body, headers)
        except Exception as error:
            return binding.broken(internal_error(error))
        if isinstance(call, Answer):
            return call
        try:
            if self._deployment.limit is not None:
                await self._deployment.limit.check(client)
            contract = binding.contract
            reply = await self._deployment.agent.run(contract.read(call.payload), self._caller)
            return binding.write(call, *contract.pieces(reply))
        except AAPError as error:
            return binding.fail(call, error)
        except Exception as error:
            return binding.fail(call, internal_error(error))


def _readable_by(answer: Answer, origin: str) -> Answer:
    allowed = (b"access-control-allow-origin", origin.encode("latin-1"))
    return Answer(answer.status, (*answer.headers, allowed, (b"vary", b"Origin")), answer.body)
