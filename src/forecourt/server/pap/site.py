"""Everything that PAP adds to a deployment's addresses: discovery, tokens, the operations and their description."""

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any, Final
from urllib.parse import parse_qsl

import httpx
import msgspec
from personal_agent_protocol.company import CompanyRequest

from forecourt.agent import Caller
from forecourt.binding import Answer
from forecourt.binding.pap import PAPBinding, refuse
from forecourt.contract import default_version
from forecourt.errors import AAPError
from forecourt.server.config import Config, ConfigError
from forecourt.server.connections import counted_as
from forecourt.server.deployment import Deployment
from forecourt.server.endpoint import BodyRefusedError, ClientGoneError, Receive, Scope, Send, address_of, body_of
from forecourt.server.exchange import give
from forecourt.server.pap.company import DealerCompany
from forecourt.server.pap.credential import Credentials
from forecourt.server.pap.demonstration import prepare
from forecourt.server.pap.endpoint import OperationEndpoint, joined
from forecourt.server.pap.identity import AgentPolicy, SystemResolver
from forecourt.server.pap.openapi import description
from forecourt.server.pap.retry import RetryKeys
from forecourt.server.pap.settings import public_url

__all__ = ["PAPSite"]

Handler = Callable[[Scope, Receive, Send], Awaitable[None]]

_DISCOVERY: Final = "/.well-known/poppy.json"
_OAUTH: Final = "/.well-known/oauth-authorization-server"
_DOCUMENT_SECONDS: Final = 300
_LONGEST_FORM: Final = 64 * 1024
_FIELDS: Final = 32
_FORM: Final = "application/x-www-form-urlencoded"
_API: Final = "/api/"
_DEALERS: Final = "/dealers/"
_SELLERS_AT_HAND: Final = 64
"""For how many sellers the operations and their description are kept."""
_DESCRIPTION: Final = "/api/openapi.json"


class PAPSite:
    """The PAP side of one deployment. It asks `find` for what answers a request."""

    def __init__(self, deployment: Deployment) -> None:
        config = deployment.config
        assert config.pap.domain is not None
        self._deployment = deployment
        self.base = public_url(config)
        self._host = self.base.removeprefix("https://").partition(":")[0].encode()
        self._resolver = SystemResolver()
        self._http = httpx.AsyncClient(follow_redirects=False, trust_env=False, timeout=5.0)
        self.company = DealerCompany.build(
            name=deployment.name,
            domain=config.pap.domain.lower(),
            public_url=self.base,
            store=deployment.store.access,
            policy=AgentPolicy(config.pap.allow_agents, config.pap.deny_agents),
            http=self._http,
            resolver=self._resolver,
            private_networks=config.pap.private_networks,
            known_agents=_known_agents(config),
        )
        self._binding = PAPBinding(deployment.contracts[default_version()])
        self._credentials = Credentials(self.company)
        self._retries = RetryKeys(self.company)
        hosted = deployment.hosts.get(self._host.decode())
        caller = Caller() if hosted is None else Caller(hosted, (hosted,))
        self._handlers: dict[str, Handler] = {
            _DISCOVERY: self._document(lambda: self.company.discovery_document()),
            _OAUTH: self._document(lambda: self.company.oauth_metadata()),
            "/oauth/token": self._oauth("/oauth/token"),
            "/oauth/revoke": self._oauth("/oauth/revoke"),
            **self._tree("", caller),
        }
        self._serves_all = hosted is None
        self._of_seller = lru_cache(maxsize=_SELLERS_AT_HAND)(self._seller_tree)
        self._root_caller = caller

    def _seller_tree(self, dealer_id: str) -> dict[str, Handler]:
        return self._tree(f"{_DEALERS}{dealer_id}", Caller(dealer_id, (dealer_id,)))

    def _tree(self, prefix: str, caller: Caller) -> dict[str, Handler]:
        handlers: dict[str, Handler] = {
            f"{prefix}{_API}{skill.id}": self._operation(f"{prefix}{_API}{skill.id}", skill.id, caller)
            for skill in self._binding.contract.skills.values()
        }
        handlers[prefix + _DESCRIPTION] = self._document(
            lambda: description(self._binding.contract, self._deployment.name, self.base + prefix)
        )
        return handlers

    def _operation(self, path: str, skill_id: str, caller: Caller) -> OperationEndpoint:
        return OperationEndpoint(
            self._deployment,
            self._binding,
            self._credentials,
            self._retries,
            self._binding.contract.skills.get(skill_id),
            caller,
            self.base + path,
        )

    def find(self, path: str, host: bytes) -> Handler | None:
        """Return what answers a path of PAP's, None for a path of somebody else's.

        `host` is the host that was asked for. At the host name of one seller there is only what that seller offers,
        which is nothing of PAP's unless it is PAP's own host.
        """
        if self._deployment.hosts and host != self._host and host.decode("latin-1") in self._deployment.hosts:
            return None
        handler = self._handlers.get(path)
        if handler is not None:
            return handler
        if self._serves_all and path.startswith(_DEALERS):
            dealer_id, _, rest = path[len(_DEALERS) :].partition("/")
            if f"/{rest}".startswith(_API) and dealer_id in self._deployment.sellers:
                return self._of_seller(dealer_id).get(path)
        if path.startswith(_API):
            # A skill that is not implemented; whoever asks must show who they are all the same.
            return self._operation(path, "", self._root_caller)
        return None

    async def close(self) -> None:
        """Finish what waits and let connections go."""
        await self.company.marks.close()
        await self._http.aclose()
        self._resolver.close()

    def _document(self, make: Callable[[], Mapping[str, Any]]) -> Handler:
        """Return what serves a public document, made when it is first asked for."""
        made: list[bytes] = []

        async def handle(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001 - as ASGI calls it
            if scope["method"] not in ("GET", "HEAD"):
                await give(refuse(405, "method_not_allowed", allow="GET, HEAD"), scope, send)
                return
            if not made:
                made.append(msgspec.json.encode(make()))
            headers = (
                (b"content-type", b"application/json"),
                (b"cache-control", b"public, max-age=%d" % _DOCUMENT_SECONDS),
            )
            await give(Answer(200, headers, made[0]), scope, send)

        return handle

    def _oauth(self, path: str) -> Handler:
        """Return what hands a form to the package."""

        async def handle(scope: Scope, receive: Receive, send: Send) -> None:
            began = perf_counter()
            try:
                body = await body_of(scope, receive, _LONGEST_FORM, self._deployment.config.server.body_seconds)
            except ClientGoneError:
                return
            except BodyRefusedError as refusal:
                answered = refuse(413, "request_too_large", refusal.reason)
            else:
                answered = await self._answer_form(path, scope, body)
            await give(answered, scope, send)
            version = self._binding.contract.version
            self._deployment.observer.answered(scope, "pap", version, None, answered, perf_counter() - began)

        return handle

    async def _answer_form(self, path: str, scope: Scope, body: bytes) -> Answer:
        if scope["method"] != "POST":
            return refuse(405, "method_not_allowed", allow="POST")
        headers = joined(scope["headers"], (b"authorization", b"dpop", b"content-type"))
        essence = (headers or {}).get(b"content-type", "").partition(";")[0].strip().lower()
        if headers is None or essence != _FORM or not _is_form(body):
            return refuse(400, "invalid_request", f"Send one form ({_FORM}, UTF-8) with each field once.")
        try:
            await self._deployment.admission.limit.check(counted_as(address_of(scope)))
        except AAPError as error:
            told = self._binding.fail(error)
            wait = dict(told.headers)[b"retry-after"].decode()
            return refuse(429, "rate_limited", retry_after=wait)
        named = {name.decode(): value for name, value in headers.items()}
        return await self.company.respond(CompanyRequest("POST", self.base + path, named, body))


def _known_agents(config: Config) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    if not config.pap.demonstration:
        return {}
    try:
        return prepare(Path(config.data)).known_agents
    except OSError as error:
        raise ConfigError(f"its folder cannot be used ({error.strerror})", "pap", "demonstration") from error


def _is_form(body: bytes) -> bool:
    """Tell whether a body is a form in which no field comes twice (RFC 6749 section 3.2)."""
    try:
        fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_FIELDS)
    except ValueError:
        return False
    return len({name for name, _ in fields}) == len(fields)
