"""The hot path: a POST to an A2A endpoint, as plain ASGI."""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from time import perf_counter
from typing import Any, Final

from msgspec import structs

from forecourt.a2a import A2AError
from forecourt.agent import Caller
from forecourt.binding import Answer
from forecourt.binding.a2a import HEADERS, A2ABinding
from forecourt.errors import AAPError
from forecourt.server.deployment import Deployment
from forecourt.server.exchange import body_here, give, waits_with
from forecourt.store import StoreError

__all__ = ["A2AEndpoint"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_DRAIN_FACTOR: Final = 32
"""How much of a body that is too long is read and thrown away, in limits, so that its sender hears the answer."""

_LOOKED_AT: Final = 64 * 1024
"""In how long a body of a refused request its id is looked for, in bytes."""
CLOSE: Final = (b"connection", b"close")
"""What a refusal says whose request is not read to its end."""

_log = logging.getLogger("forecourt.server")


class BodyRefusedError(Exception):
    """The body was too long or too slow; `reason` says which, for the caller, and `status` how HTTP calls it."""

    def __init__(self, reason: str, status: int = 413) -> None:
        self.reason = reason
        self.status = status
        super().__init__(reason)


class ClientGoneError(Exception):
    """The caller hung up before the body was there."""


class A2AEndpoint:
    """One contract, for the sellers of one tenant."""

    def __init__(self, deployment: Deployment, binding: A2ABinding, caller: Caller) -> None:
        self._deployment = deployment
        self._contract = binding.contract
        self._caller = caller
        self._admission = deployment.admission
        self._observer = deployment.observer
        self._binding = binding
        self._max_body = deployment.config.server.max_body_bytes
        self._body_seconds = deployment.config.server.body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one POST. Written in one piece, since every call costs and this is the path of every request."""
        binding = self._binding
        skill = None
        refusal = self._deployment.refusal(scope)
        if refusal is not None:
            await self._turn_away(refusal, scope, receive, send)
            return
        try:
            body = await body_of(scope, receive, self._max_body, self._body_seconds)
        except ClientGoneError:
            return
        except BodyRefusedError as refused:
            began = perf_counter()
            answer = binding.fail(None, A2AError.invalid_request(refused.reason))
            answer = await self._counted(scope, answer)
        else:
            began = perf_counter()
            call = binding.read(body, pick(scope["headers"]))
            if isinstance(call, Answer):
                answer = await self._counted(scope, call) if self._admission.is_needed else call
            else:
                skill = call.skill.id if call.skill else None
                try:
                    caller = self._caller
                    if self._admission.is_needed:
                        caller = await self._admission.admit(scope["headers"], address_of(scope), caller, skill)
                    contract = self._contract
                    reply = await self._deployment.run(contract.read(call.payload), caller)
                    answer = binding.write(call, *contract.pieces(reply))
                except (AAPError, A2AError) as error:
                    answer = binding.fail(call.id, error)
                except Exception as error:
                    answer = binding.fail(call.id, internal_error(error))
        await give(answer, scope, send)
        # Last: whoever asked has the answer by now.
        self._observer.answered(scope, "a2a", self._contract.version, skill, answer, perf_counter() - began)

    async def _counted(self, scope: Scope, answer: Answer) -> Answer:
        """Count what is no call, as calls are; beyond the limit there is a refusal in place of the answer."""
        try:
            await self._admission.count(scope["headers"], address_of(scope))
        except AAPError as error:
            return answer if answer.status == 204 else self._binding.fail(None, error)
        return answer

    async def _turn_away(self, error: AAPError, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request without reading more of it than the id that the answer needs; a long body not at all."""
        began = perf_counter()
        try:
            message = await begin(receive, self._body_seconds)
        except BodyRefusedError:
            message = {"type": "http.request", "more_body": True}
        whole = message["type"] == "http.request" and not message.get("more_body", False)
        if whole and len(message["body"]) <= _LOOKED_AT:
            answer = self._binding.turn_away(message["body"], error)
        else:
            answer = self._binding.fail(None, error)
        if not whole:
            answer = structs.replace(answer, headers=(*answer.headers, CLOSE))
        await give(answer, scope, send)
        self._observer.answered(scope, "a2a", self._contract.version, None, answer, perf_counter() - began)


def address_of(scope: Scope) -> str:
    """Return the address that a request comes from."""
    client = scope.get("client")
    return client[0] if client else ""


def internal_error(error: Exception) -> AAPError:
    """Return the INTERNAL_ERROR that a caller sees for something unforeseen, and log what it was.

    The log has the kind of exception and the places it went through. Never its text: exceptions quote what they choked
    on, and that may be a shopper's; only the store's own errors are worded by us and hold nothing of a lead.
    """
    told = AAPError("INTERNAL_ERROR")
    reason = f" ({error})" if isinstance(error, StoreError) else ""
    kinds = "; ".join(_kinds(error))
    _log.error("%s%s: %s", told.error_id, reason, kinds, extra={"error_id": told.error_id})
    return told


def _kinds(error: BaseException | None) -> Iterable[str]:
    for _ in range(5):
        if error is None:
            return
        frames = traceback.extract_tb(error.__traceback__)[-8:]
        places = " > ".join(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in frames)
        yield f"{type(error).__name__} at {places or 'no frame'}"
        error = error.__cause__


def pick(headers: Iterable[tuple[bytes, bytes]], names: Collection[bytes] = HEADERS) -> dict[bytes, str]:
    """Return the headers that the binding reads; several of one name are one list (RFC 9110 section 5.2).

    Spaces and tabs around a value are no part of it (section 5.5); not every HTTP parser has taken them off.
    """
    found: dict[bytes, str] = {}
    for name, value in headers:
        if name in names:
            text = value.strip(b" \t").decode("latin-1")
            found[name] = f"{found[name]},{text}" if name in found else text
    return found


async def body_of(scope: Scope, receive: Receive, limit: int, seconds: float) -> bytes:
    """Return a request's body, which is here as a whole nearly always. Raises BodyRefusedError and ClientGoneError."""
    body = body_here(scope)
    if body is None:
        if (waits_with(scope) or 0) > limit:
            raise BodyRefusedError(too_long(limit))
        message = await begin(receive, seconds)
        return await read_rest(message, receive, limit, seconds)
    if len(body) > limit:
        raise BodyRefusedError(too_long(limit))
    return body


async def begin(receive: Receive, seconds: float) -> MutableMapping[str, Any]:
    """Return the first piece of a body. Raises BodyRefusedError when not even that comes within `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return await receive()
    except TimeoutError:
        raise BodyRefusedError(_too_slow(seconds), 408) from None


async def read_rest(message: MutableMapping[str, Any], receive: Receive, limit: int, seconds: float) -> bytes:
    """Return the whole body of which `message` is the beginning.

    Raises BodyRefusedError when it is longer than `limit` or slower than `seconds`, ClientGoneError when the caller
    hangs up. What is too long is thrown away as it comes, up to a bound, before it is refused: a caller that is still
    sending does not listen yet.
    """
    if message["type"] == "http.disconnect":
        raise ClientGoneError
    body: bytes = message.get("body", b"")
    chunks, length = [body], len(body)
    try:
        async with asyncio.timeout(seconds):
            while message.get("more_body"):
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                chunk = message.get("body", b"")
                length += len(chunk)
                if length <= limit:
                    chunks.append(chunk)
                elif length > limit * _DRAIN_FACTOR:
                    break
    except TimeoutError:
        raise BodyRefusedError(_too_slow(seconds), 408) from None
    if length > limit:
        raise BodyRefusedError(too_long(limit))
    return b"".join(chunks)


def _too_slow(seconds: float) -> str:
    return f"The request's body must arrive within {seconds:g} seconds"


def too_long(limit: int) -> str:
    """Return the reason for refusing a body that is too long."""
    return f"The request's body must not be longer than {limit} bytes"
