"""The ASGI application: bindings' POSTs go straight to their endpoints, everything else to the pages."""

import gc
import logging
from collections.abc import MutableMapping
from functools import lru_cache
from typing import Any, Final

from starlette.types import ASGIApp

from forecourt.agent import Caller
from forecourt.binding.a2a import A2ABinding
from forecourt.binding.mcp import MCPBinding, Toolbox
from forecourt.contract import default_version
from forecourt.errors import AAPError
from forecourt.server.config import Config, ConfigError
from forecourt.server.deployment import Deployment, every_mistake
from forecourt.server.endpoint import A2AEndpoint, Receive, Scope, Send, address_of
from forecourt.server.exchange import EXCHANGE
from forecourt.server.mcp_endpoint import MCPEndpoint, place_of
from forecourt.server.origin import Origins
from forecourt.server.pages import pages
from forecourt.server.pap import pap_site

__all__ = ["Application", "create_app"]

_DEALERS: Final = "/dealers/"
_SELLERS_AT_HAND: Final = 256
"""For how many sellers the endpoints are kept, with the lists of tools that they have written: up to 160 KiB each."""

_NOT_GIVEN: Final = {404: "not_found", 405: "wrong_method"}
_PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})

_Endpoints = dict[str, A2AEndpoint | MCPEndpoint]

_log = logging.getLogger("forecourt.server")


class Application:
    """One deployment as an ASGI application. It opens and closes the deployment with the server's lifespan."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self._pap = pap_site(deployment)
        self._pages: ASGIApp = pages(deployment)
        self._bindings = {version: A2ABinding(contract) for version, contract in deployment.contracts.items()}
        self._toolboxes = {version: Toolbox(contract) for version, contract in deployment.contracts.items()}
        self._origins = Origins(deployment.config, deployment.hosts)
        self._endpoints = self._tree(Caller())
        self._hosts = {host.encode(): dealer_id for host, dealer_id in deployment.hosts.items()}
        # A network has thousands of sellers, and a process is asked for a few of them in any minute.
        self._of_seller = lru_cache(maxsize=_SELLERS_AT_HAND)(self._seller_tree)

    def _seller_tree(self, dealer_id: str) -> "_Endpoints":
        return self._tree(Caller(dealer_id, (dealer_id,)))

    def _tree(self, caller: Caller) -> "_Endpoints":
        """Return the endpoints for the same sellers, by what follows the address of those sellers."""
        endpoints: _Endpoints = {
            f"/v{version}/a2a": A2AEndpoint(self.deployment, binding, caller)
            for version, binding in self._bindings.items()
        }
        place = place_of(self.deployment, caller)
        for version, toolbox in self._toolboxes.items():
            binding = MCPBinding(toolbox, place)
            endpoints[f"/v{version}/mcp"] = MCPEndpoint(self.deployment, binding, caller, self._origins)
        for protocol in ("a2a", "mcp"):
            endpoints[f"/{protocol}"] = endpoints[f"/v{default_version()}/{protocol}"]
        return endpoints

    def _endpoint(self, scope: Scope) -> "A2AEndpoint | MCPEndpoint | None":
        """Return the endpoint at the address that a request is for, None where there is none."""
        path: str = scope["path"]
        if self._hosts and (hosted := self._hosts.get(_host(scope))) is not None:
            # At a host name of one seller's there is that seller alone.
            return self._of_seller(hosted).get(path)
        endpoint = self._endpoints.get(path)
        if endpoint is None and path.startswith(_DEALERS):
            dealer_id, slash, rest = path[len(_DEALERS) :].partition("/")
            # Only what may be an endpoint makes a seller's: their cards and pages are asked for far more widely.
            if f"/{rest}" in self._endpoints and slash and dealer_id in self.deployment.sellers:
                return self._of_seller(dealer_id)[f"/{rest}"]
        return endpoint

    def mcp_endpoint(self, version: str) -> MCPEndpoint | None:
        """Return the MCP endpoint of the whole deployment under one contract, None when there is no such contract."""
        endpoint = self._endpoints.get(f"/v{version}/mcp")
        return endpoint if isinstance(endpoint, MCPEndpoint) else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or live through one lifespan."""
        if scope["type"] == "http":
            endpoint = self._endpoint(scope)
            if endpoint is not None and (scope["method"] == "POST" or isinstance(endpoint, MCPEndpoint)):
                await endpoint(scope, receive, send)
                return
            found = None if self._pap is None else self._pap.find(scope["path"], _host(scope))
            if found is not None and scope["method"] == "POST":
                await found(scope, receive, send)
            elif (refusal := await self._refusal(scope)) is not None:
                await _send_later(refusal, send)
            else:
                # Answers that are watched go by messages.
                scope.pop(EXCHANGE, None)
                await (found or self._pages)(scope, receive, self._watched(send))
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    def _watched(self, send: Send) -> Send:
        """Return `send`, counting the pages that are not there."""

        async def watched(message: MutableMapping[str, Any]) -> None:
            word = _NOT_GIVEN.get(message.get("status", 0))
            if word is not None:
                self.deployment.observer.metrics.refused(word)
            await send(message)

        return watched

    async def _refusal(self, scope: Scope) -> AAPError | None:
        """Return why a page is not given for now; those that tell how the process is always are."""
        if scope["path"] in _PROBES:
            return None
        refusal = self.deployment.room.refusal(scope)
        if refusal is None:
            try:
                await self.deployment.admission.count_beside(scope["headers"], address_of(scope))
            except AAPError as error:
                refusal = error
        if refusal is not None:
            self.deployment.observer.metrics.refused("pages")
        return refusal

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.deployment.open()
        except Exception as error:
            _log.error("the dealer agent cannot start: %s", error)
            await send({"type": "lifespan.startup.failed", "message": ""})
            return
        # What is here now stays: the collector need not look through it again with every generation of requests.
        gc.collect()
        gc.freeze()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if self._pap is not None:
            await self._pap.close()
        await self.deployment.close()
        await send({"type": "lifespan.shutdown.complete"})


async def _send_later(error: AAPError, send: Send) -> None:
    """Say when to come again for a page."""
    text = error.message.encode() + b"\n"
    seconds = max(1, -(-(error.retry_after_ms or 0) // 1000))
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"retry-after", b"%d" % seconds),
        (b"content-length", b"%d" % len(text)),
    ]
    await send({"type": "http.response.start", "status": 429, "headers": headers})
    await send({"type": "http.response.body", "body": text})


def _host(scope: Scope) -> bytes:
    """Return the host that was asked for, in lower case, without a port and the dot of a full name."""
    for name, value in scope["headers"]:
        if name == b"host":
            host: bytes = value.lower()
            return host if host.endswith(b"]") else host.rsplit(b":", 1)[0].rstrip(b".")
    return b""


def create_app(config: Config | None = None) -> Application:
    """Return the ASGI application of a configuration (default: the demo dealer in ./forecourt-data).

    Raises ConfigError, with every mistake that was found.
    """
    config = config or Config()
    try:
        deployment = Deployment(config)
        deployment.prepare_leads()
    except ConfigError as error:
        raise every_mistake(config, error) from error
    return Application(deployment)
