"""The ASGI application: bindings' POSTs go straight to their endpoints, everything else to the pages."""

import gc
import logging
from collections.abc import Mapping
from typing import Final

from starlette.types import ASGIApp

from forecourt.agent import Caller
from forecourt.contract import Contract, default_version
from forecourt.server.config import Config
from forecourt.server.deployment import Deployment
from forecourt.server.endpoint import A2AEndpoint, Receive, Scope, Send
from forecourt.server.pages import pages

__all__ = ["Application", "create_app"]

_DEALERS: Final = "/dealers/"

_log = logging.getLogger("forecourt.server")


class Application:
    """One deployment as an ASGI application. It opens and closes the deployment with the server's lifespan."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self._pages: ASGIApp = pages(deployment)
        self._endpoints: Mapping[str, A2AEndpoint] = self._tree("", Caller())
        for dealer_id in deployment.sellers:
            caller = Caller(dealer_id, (dealer_id,))
            self._endpoints = {**self._endpoints, **self._tree(f"{_DEALERS}{dealer_id}", caller)}

    def _tree(self, prefix: str, caller: Caller) -> dict[str, A2AEndpoint]:
        contracts: Mapping[str, Contract] = self.deployment.contracts
        endpoints = {
            f"{prefix}/v{version}/a2a": A2AEndpoint(self.deployment, contract, caller)
            for version, contract in contracts.items()
        }
        endpoints[f"{prefix}/a2a"] = endpoints[f"{prefix}/v{default_version()}/a2a"]
        return endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or live through one lifespan."""
        if scope["type"] == "http":
            endpoint = self._endpoints.get(scope["path"]) if scope["method"] == "POST" else None
            if endpoint is not None:
                await endpoint(scope, receive, send)
            else:
                await self._pages(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

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
        await self.deployment.close()
        await send({"type": "lifespan.shutdown.complete"})


def create_app(config: Config | None = None) -> Application:
    """Return the ASGI application of a configuration (default: the demo dealer in ./forecourt-data).

    Raises ConfigError.
    """
    return Application(Deployment(config or Config()))
