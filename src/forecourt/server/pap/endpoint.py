"""The skills as PAP operations, as plain ASGI: credentials first, then the request, then the skill."""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, Final
from urllib.parse import parse_qsl

from msgspec import structs
from personal_agent_protocol.company.store import IssuedSession

from forecourt.agent import Caller
from forecourt.binding import Answer
from forecourt.binding.pap import IDEMPOTENCY_KEY, PAPBinding, refuse
from forecourt.contract import Skill
from forecourt.errors import AAPError
from forecourt.server.deployment import Deployment
from forecourt.server.endpoint import (
    CLOSE,
    BodyRefusedError,
    ClientGoneError,
    Receive,
    Scope,
    Send,
    body_of,
    internal_error,
)
from forecourt.server.exchange import give
from forecourt.server.pap.credential import Credentials
from forecourt.server.pap.retry import RetryKeys

__all__ = ["OperationEndpoint", "joined"]

_HEADERS: Final = (b"authorization", b"dpop", b"content-type", b"idempotency-key")

_log = logging.getLogger("forecourt.server")


class OperationEndpoint:
    """One operation for the sellers of one tenant; `skill` is None for a path that names no skill."""

    def __init__(
        self,
        deployment: Deployment,
        binding: PAPBinding,
        credentials: Credentials,
        retries: RetryKeys,
        skill: Skill | None,
        caller: Caller,
        url: str,
    ) -> None:
        self._deployment = deployment
        self._binding = binding
        self._contract = binding.contract
        self._credentials = credentials
        self._retries = retries
        self._skill = skill
        self._caller = caller
        self._url = url
        self._max_body = deployment.config.server.max_body_bytes
        self._body_seconds = deployment.config.server.body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        refusal = self._deployment.refusal(scope, known_only=True)
        if refusal is not None:
            # Before the body is read, the credential looked at and its mark made.
            answered = self._binding.fail(refusal)
            answered = structs.replace(answered, headers=(*answered.headers, CLOSE))
            await give(answered, scope, send)
            self._observe(scope, answered, 0.0)
            return
        try:
            body = await body_of(scope, receive, self._max_body, self._body_seconds)
        except ClientGoneError:
            return
        except BodyRefusedError as refused:
            began = perf_counter()
            answered = refuse(413, "request_too_large", refused.reason)
        else:
            began = perf_counter()
            answered = await self._answer(scope, body)
        await give(answered, scope, send)
        self._observe(scope, answered, perf_counter() - began)

    def _observe(self, scope: Scope, answered: Answer, seconds: float) -> None:
        skill = None if self._skill is None else self._skill.id
        self._deployment.observer.answered(scope, "pap", self._contract.version, skill, answered, seconds)

    async def _answer(self, scope: Scope, body: bytes) -> Answer:
        if scope["query_string"] and _names_token(scope["query_string"]):
            # A token in an address is logged, cached and handed on: never accepted (RFC 6750 section 2.3).
            return refuse(400, "invalid_request", "A token belongs in the Authorization header.")
        headers = joined(scope["headers"], _HEADERS)
        if headers is None:
            return refuse(400, "invalid_request", "Send one Authorization header.")
        try:
            session = await self._credentials.check(
                scope["method"], self._url, headers.get(b"authorization", ""), headers.get(b"dpop", "")
            )
        except Exception as error:
            return self._binding.fail(internal_error(error))
        if isinstance(session, Answer):
            return session
        if scope["method"] != "POST":
            return refuse(405, "method_not_allowed", "Every operation is a POST.", allow="POST")
        try:
            skill = None if self._skill is None else self._skill.id
            client = f"agent:{session.client_id}"
            self._deployment.admission.remember(headers[b"authorization"].encode("latin-1"), client)
            await self._deployment.admission.limit.check(client, skill)
            return await self._run(session, headers, body)
        except AAPError as error:
            return self._binding.fail(error)
        except Exception as error:
            return self._binding.fail(internal_error(error))

    async def _run(self, session: IssuedSession, headers: Mapping[bytes, str], body: bytes) -> Answer:
        skill = self._skill
        if skill is None:
            # The path names the skill, so the contract is asked as if the payload did.
            self._contract.read({"type": "none.request"})
            raise AAPError("UNSUPPORTED_SKILL")
        payload = self._binding.read(skill, body, headers.get(b"content-type"))
        if isinstance(payload, Answer):
            return payload
        key = headers.get(b"idempotency-key") if skill.writes else None
        if key is None:
            return await self._perform(payload)
        if not IDEMPOTENCY_KEY.fullmatch(key):
            return refuse(400, "invalid_request", "An Idempotency-Key is 1 to 255 visible ASCII characters.")
        return await self._retries.once(
            session, key, hashlib.sha256(self._url.encode() + b"\n" + body).hexdigest(), lambda: self._perform(payload)
        )

    async def _perform(self, payload: Any) -> Answer:
        contract = self._contract
        reply = await self._deployment.run(contract.read(payload), self._caller)
        return self._binding.write(*contract.pieces(reply))


def joined(headers: Sequence[tuple[bytes, bytes]], names: Sequence[bytes]) -> dict[bytes, str] | None:
    """Return the headers of these names, several of one joined by ", "; None when there are two credentials.

    Two `DPoP` headers joined are no proof, and so refused as one (RFC 9449 section 4.3, check 1).
    """
    found: dict[bytes, str] = {}
    for name, value in headers:
        if name in names:
            text = value.decode("latin-1")
            if name not in found:
                found[name] = text
            elif name == b"authorization":
                return None
            else:
                found[name] = f"{found[name]}, {text}"
    return found


def _names_token(query: bytes) -> bool:
    try:
        return any(name == "access_token" for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    except ValueError:
        return True
