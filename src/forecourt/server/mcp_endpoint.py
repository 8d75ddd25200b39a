"""MCP over HTTP: one POST, one JSON answer, nothing remembered in between; as plain ASGI."""

import re
from collections.abc import Iterable
from functools import lru_cache
from time import perf_counter
from typing import Final

from msgspec import structs

from forecourt import __version__
from forecourt.a2a import A2AError
from forecourt.agent import Caller
from forecourt.binding import Answer
from forecourt.binding.mcp import HEADERS, MCPBinding, Place
from forecourt.errors import AAPError
from forecourt.server.admission import RESOURCE_METADATA, InsufficientScopeError, InvalidTokenError
from forecourt.server.deployment import Deployment
from forecourt.server.endpoint import (
    CLOSE,
    BodyRefusedError,
    ClientGoneError,
    Receive,
    Scope,
    Send,
    address_of,
    begin,
    body_of,
    internal_error,
    pick,
)
from forecourt.server.exchange import give
from forecourt.server.origin import Origins

__all__ = ["MCPEndpoint", "place_of"]

_HOST: Final = re.compile(r"[A-Za-z0-9._\-\[\]:]+")
_REMEMBERED: Final = 64
"""For how many different sets of sellers of a credential's an endpoint is kept at hand."""
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
            b" mcp-session-id, x-api-key",
        ),
        (b"access-control-max-age", b"86400"),
    ),
    b"",
)


def place_of(deployment: Deployment, caller: Caller) -> Place:
    """Return what an endpoint for these sellers says of itself."""
    served: Iterable[str] = deployment.sellers
    if caller.sellers is not None:
        asked = frozenset(caller.sellers)
        # In the configuration's order; of one there is no order, and no need to look through thousands.
        served = (each for each in (served if len(asked) > 1 else asked) if each in asked)
    sellers = {each: str(deployment.sellers[each].profile["name"]) for each in served if each in deployment.sellers}
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
        self._admission = deployment.admission
        self._max_body = deployment.config.server.max_body_bytes
        self._narrowed = lru_cache(maxsize=_REMEMBERED)(self._narrow)
        self._body_seconds = deployment.config.server.body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of any method."""
        headers = pick(scope["headers"], _READ)
        origin = headers.get(b"origin")
        answer = self._turned_away(headers)
        if answer is not None:
            # By a host or an origin: nothing of the request was looked at.
            self._deployment.observer.answered(scope, "mcp", self._binding.contract.version, None, answer, 0.0)
        let_in = answer is None
        refusal = self._deployment.refusal(scope) if let_in and scope["method"] == "POST" else None
        if refusal is not None:
            try:
                answer = await self._unserved(refusal, scope, receive, headers)
            except ClientGoneError:
                return
        if answer is None and self._admission.is_closed and scope["method"] == "POST":
            began = perf_counter()
            known = await self._identified(scope)
            if isinstance(known, Answer):
                answer = known
                version = self._binding.contract.version
                self._deployment.observer.answered(scope, "mcp", version, None, answer, perf_counter() - began)
        if answer is None:
            if scope["method"] != "POST":
                answer = _PREFLIGHT if scope["method"] == "OPTIONS" else _NOT_HERE
            else:
                try:
                    body = await body_of(scope, receive, self._max_body, self._body_seconds)
                except ClientGoneError:
                    return
                except BodyRefusedError as too_much:
                    answer = self._binding.refuse(too_much.status, too_much.reason)
                    try:
                        await self._admission.count(scope["headers"], address_of(scope))
                    except AAPError as error:
                        answer = self._later(error)
                    version = self._binding.contract.version
                    self._deployment.observer.answered(scope, "mcp", version, None, answer, 0.0)
                else:
                    answer = await self.answer(body, headers, scope)
        if let_in and origin is not None:
            # Its pages may read the answer, a refusal of credentials too: the challenge in it says where to go.
            answer = _readable_by(answer, origin)
        await give(answer, scope, send)

    def _narrow(self, sellers: tuple[str, ...] | None) -> MCPBinding:
        """Return the binding as it is for a credential that reaches these sellers alone."""
        return self._binding.at(place_of(self._deployment, Caller(sellers=sellers)))

    def _turned_away(self, headers: dict[bytes, str]) -> Answer | None:
        """Return the refusal of a request that is not looked at, None when it may come in."""
        refusal = self._refusal(headers.get(b"host"), headers.get(b"origin"))
        return None if refusal is None else self._binding.refuse(refusal.status, refusal.message)

    async def _identified(self, scope: Scope) -> Caller | Answer:
        """Return who asks, or the refusal of a credential that is not good, or of none where nothing is public.

        Where nothing is, it comes before any message is read, so that a host which connects learns at once to
        authorize (MCP, "Authorization"); the call itself is looked at again for what its credential opens.
        """
        try:
            return await self._admission.identify(scope["headers"], address_of(scope), self._caller)
        except A2AError as error:
            return self._refused(error, scope, None)
        except AAPError as error:
            if error.code != "RATE_LIMITED":
                return self._binding.broken(error)
            return self._later(error)

    def _later(self, error: AAPError) -> Answer:
        """Return the refusal of what is no call for now, in HTTP's own form."""
        answer = self._binding.refuse(429, error.message)
        seconds = max(1, -(-(error.retry_after_ms or 0) // 1000))
        return structs.replace(answer, headers=(*answer.headers, (b"retry-after", b"%d" % seconds)), outcome=error.code)

    async def _unserved(self, error: AAPError, scope: Scope, receive: Receive, headers: dict[bytes, str]) -> Answer:
        """Refuse a call for now as a failed one; a long body is not waited for, and other messages are no calls."""
        began = perf_counter()
        try:
            message = await begin(receive, self._body_seconds)
        except BodyRefusedError:
            message = {"type": "http.request", "more_body": True}
        if message["type"] != "http.request":
            raise ClientGoneError
        if message.get("more_body", False):
            answer = self._later(error)
            answer = structs.replace(answer, headers=(*answer.headers, CLOSE))
        elif len(message["body"]) > self._max_body:
            answer = self._later(error)
        else:
            call = self._binding.read(message["body"], headers)
            if not isinstance(call, Answer):
                answer = self._binding.fail(call, error)
            elif self._deployment.room.refusal(scope) is None:
                return await self.answer(message["body"], headers, scope)
            else:
                answer = self._later(error)
        version = self._binding.contract.version
        self._deployment.observer.answered(scope, "mcp", version, None, answer, perf_counter() - began)
        return answer

    def _refused(self, error: A2AError, scope: Scope, skill: str | None) -> Answer:
        """Return a refusal of credentials: 401 with a challenge that leads to RFC 9728 metadata, or 403.

        The challenge names the scope that the skill asks for, so that a host can ask its user for just that.
        """
        rejection = error.auth_rejection
        status = 403 if rejection is None else rejection.http_status
        answer = self._binding.refuse(status, error.message)
        lacking = isinstance(error, InsufficientScopeError)
        word = "insufficient_scope" if lacking else "invalid_token" if isinstance(error, InvalidTokenError) else None
        if status != 401 and not lacking:
            return structs.replace(answer, outcome=error.metric_label)
        text = self._admission.challenge(self._metadata_url(scope), self._admission.scope(skill), word)
        challenge = text.encode("ascii")
        return structs.replace(
            answer, headers=(*answer.headers, (b"www-authenticate", challenge)), outcome=error.metric_label
        )

    def _metadata_url(self, scope: Scope) -> str | None:
        if not self._admission.has_issuer:
            return None
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        named = hosts[0].lower() if hosts and _HOST.fullmatch(hosts[0]) else ""
        public = self._deployment.config.server.public_url
        name = (named.rpartition(":")[0] or named).rstrip(".")
        if public is None or name in self._deployment.hosts:
            if not named:
                return None
            scheme = scope.get("scheme", "http") if public is None else public.partition(":")[0]
            public = f"{scheme}://{named}"
        scheme, _, rest = public.partition("://")
        host, slash, path = rest.partition("/")
        # RFC 9728 section 3.1: the well-known part stands between the host and the resource's own path.
        return f"{scheme}://{host}{RESOURCE_METADATA}{slash}{path}{scope['path']}"

    async def answer(self, body: bytes, headers: dict[bytes, str] | None, scope: Scope | None = None) -> Answer:
        """Answer one message; `headers` and `scope` are None where it came without any, which asks for no credential.

        Status 202 stands for nothing to say.
        """
        began = perf_counter()
        answer, skill = await self._answered(body, headers, scope)
        seen: Scope = {"headers": ()} if scope is None else scope
        version = self._binding.contract.version
        self._deployment.observer.answered(seen, "mcp", version, skill, answer, perf_counter() - began)
        return answer

    async def _answered(
        self, body: bytes, headers: dict[bytes, str] | None, scope: Scope | None
    ) -> tuple[Answer, str | None]:
        """Return the answer, and the skill that it is of."""
        binding = self._binding
        try:
            call = binding.read(body, headers)
        except Exception as error:
            return binding.broken(internal_error(error)), None
        if isinstance(call, Answer) and scope is not None and self._admission.is_needed:
            # A call is looked at below. What is none needs no credential where any skill is public; but one that is
            # shown must be good, and shows its own sellers alone.
            known = await self._identified(scope)
            if isinstance(known, Answer):
                return known, None
            try:
                await self._admission.count_beside(scope["headers"], address_of(scope))
            except AAPError as error:
                return self._later(error), None
            if known.sellers != self._caller.sellers:
                binding = self._narrowed(known.sellers)
                call = binding.read(body, headers)
        if isinstance(call, Answer):
            return call, None
        called = binding.contract.skill_of(call.payload)
        skill = called.id if called else None
        try:
            caller = self._caller
            if scope is not None and self._admission.is_needed:
                caller = await self._admission.admit(scope["headers"], address_of(scope), caller, skill)
            contract = binding.contract
            reply = await self._deployment.run(contract.read(call.payload), caller)
            return binding.write(call, *contract.pieces(reply)), skill
        except A2AError as error:
            assert scope is not None
            return self._refused(error, scope, skill), skill
        except AAPError as error:
            return binding.fail(call, error), skill
        except Exception as error:
            return binding.fail(call, internal_error(error)), skill


def _readable_by(answer: Answer, origin: str) -> Answer:
    allowed = (b"access-control-allow-origin", origin.encode("latin-1"))
    exposed = (b"access-control-expose-headers", b"www-authenticate")
    return structs.replace(answer, headers=(*answer.headers, allowed, exposed, (b"vary", b"Origin")))
