"""A dealer over MCP: the official SDK's server around the real agent, on a socket, with our A2A beside it."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from starlette.types import ASGIApp, Receive, Scope, Send

from forecourt.agent import Caller
from forecourt.contract import SKILLS
from forecourt.errors import AAPError
from forecourt.server import Application

__all__ = ["MCPDealer", "mcp_dealer"]

_SECONDS: Final = 15


class MCPDealer:
    """The server and what it met: `calls` are the arguments of tool calls, `sessions` how many were begun."""

    def __init__(self, app: Application, *, older: bool) -> None:
        self.app = app
        self.calls: list[dict[str, Any]] = []
        self.methods: list[str] = []
        self.sessions_end = False
        self.port = 0
        self._older = older
        self._contract = app.deployment.contracts["3.1"]
        server: Server[Any] = Server("dealer", on_list_tools=self._list, on_call_tool=self._call)
        self._mcp: ASGIApp = server.streamable_http_app()

    @property
    def url(self) -> str:
        """The address of the MCP endpoint."""
        return f"http://127.0.0.1:{self.port}/mcp"

    async def _list(self, context: Any, params: Any) -> types.ListToolsResult:
        del context, params
        tools = [
            types.Tool(name=f"aap_{skill.id.replace('.', '_')}", input_schema={"type": "object"})
            for skill in SKILLS.values()
        ]
        return types.ListToolsResult(tools=tools)

    async def _call(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        del context
        arguments = dict(params.arguments or {})
        self.calls.append(arguments)
        try:
            reply = await self.app.deployment.agent.run(self._contract.read(arguments), Caller())
            payload, failed = json.loads(self._contract.write(reply)), False
        except AAPError as error:
            payload, failed = self._contract.write_error(error), True
        text = types.TextContent(type="text", text=json.dumps(payload))
        return types.CallToolResult(content=[text], structured_content=payload, is_error=failed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve MCP; as a server from before 2026-07-28 where that was asked for."""
        if scope["type"] == "http" and scope["path"] != "/mcp":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._mcp(scope, receive, send)
            return
        headers = dict(scope["headers"])
        self.methods.append(headers.get(b"mcp-method", b"").decode() or scope["method"])
        if self._older and headers.get(b"mcp-protocol-version") == b"2026-07-28":
            await self._refuse(send, 400, "Bad Request: Unsupported protocol version")
        elif self.sessions_end and b"mcp-session-id" in headers:
            self.sessions_end = False
            await self._refuse(send, 404, "Session not found")
        else:
            await self._mcp(scope, receive, send)

    async def _refuse(self, send: Send, status: int, message: str) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": message}})
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body.encode()})


@contextlib.contextmanager
def mcp_dealer(folder: Path, *, older: bool = False) -> Iterator[MCPDealer]:
    """Run the server in a thread of its own, over the demo dealer with its database in `folder`."""
    from forecourt.server import create_app, load

    dealer = MCPDealer(create_app(load(None, data=str(folder))), older=older)

    class Whole:
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "lifespan":
                await dealer.app.deployment.open()
                try:
                    await dealer(scope, receive, send)
                finally:
                    await dealer.app.deployment.close()
            else:
                await dealer(scope, receive, send)

    server = uvicorn.Server(
        uvicorn.Config(Whole(), host="127.0.0.1", port=0, log_level="error", ws="none", lifespan="on")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + _SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > end:
            raise RuntimeError("the MCP server did not start")
        time.sleep(0.01)
    dealer.port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield dealer
    finally:
        server.should_exit = True
        thread.join(_SECONDS)
