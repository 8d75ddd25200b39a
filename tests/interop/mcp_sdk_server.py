"""The official MCP SDK's low-level server with our tools, resources and prompt, answering from the same deployment.

What the protocol makes of a request is the SDK's; what the tools say is ours. So the two servers can be asked the same.
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from forecourt.agent import Caller
from forecourt.binding.mcp import Place, Toolbox
from forecourt.binding.mcp.guide import PROMPTS, instructions, prompt
from forecourt.binding.mcp.place import Resources
from forecourt.errors import AAPError
from forecourt.server import Application
from forecourt.server.mcp_endpoint import place_of

__all__ = ["ask", "sdk_server"]

_NOT_FOUND = -32002
_INVALID = -32602
_LISTS = CacheHint(ttl_ms=300_000, scope="public")


def sdk_server(app: Application, version: str) -> "Server[Any]":
    """Return the SDK's server over the deployment of `app` and one of its contracts."""
    deployment = app.deployment
    contract = deployment.contracts[version]
    toolbox, place = Toolbox(contract), place_of(deployment, Caller())
    resources = Resources(contract, place)

    async def run(payload: dict[str, Any]) -> tuple[Any, bool]:
        try:
            reply = await deployment.agent.run(contract.read(payload), Caller())
        except AAPError as error:
            return contract.write_error(error), True
        return json.loads(contract.write(reply)), False

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate(json.loads(toolbox.listed))

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = toolbox.get(params.name)
        if tool is None:
            raise MCPError(code=_INVALID, message="Unknown tool")
        data, failed = await run({"type": tool.skill.request_type, **(params.arguments or {})})
        content = [types.TextContent(type="text", text=json.dumps(data, separators=(",", ":"), ensure_ascii=False))]
        return types.CallToolResult(content=list(content), structured_content=data, is_error=failed)

    async def list_resources(_: Any, __: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult.model_validate({"resources": resources.listed()})

    async def list_templates(_: Any, __: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": resources.templates()})

    async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        content, request = resources.content(params.uri), resources.request(params.uri)
        ttl_ms = 300_000
        if content is None:
            if request is None:
                raise MCPError(code=_INVALID if ctx.protocol_version == "2026-07-28" else _NOT_FOUND, message="")
            content, ttl_ms = (await run(request))[0], 60_000
        text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
        contents = [types.TextResourceContents(uri=params.uri, mime_type="application/json", text=text)]
        return types.ReadResourceResult(contents=list(contents), ttl_ms=ttl_ms, cache_scope="public")

    async def list_prompts(_: Any, __: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult.model_validate({"prompts": PROMPTS})

    async def get_prompt(_: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        filled = prompt(params.name, params.arguments or {})
        if filled is None:
            raise MCPError(code=_INVALID, message="Unknown prompt")
        return types.GetPromptResult.model_validate(filled)

    return Server(
        **_identity(place),
        instructions=instructions(place.name),
        cache_hints={
            "tools/list": _LISTS,
            "resources/list": _LISTS,
            "resources/templates/list": _LISTS,
            "prompts/list": _LISTS,
            "server/discover": _LISTS,
        },
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _identity(place: Place) -> dict[str, Any]:
    told = place.implementation()
    icons = [types.Icon.model_validate(icon) for icon in told["icons"]]
    return {
        "name": told["name"],
        "title": told["title"],
        "version": told["version"],
        "description": told["description"],
        "website_url": told["websiteUrl"],
        "icons": icons,
    }


@asynccontextmanager
async def asgi(server: "Server[Any]") -> AsyncIterator[Any]:
    """Run the SDK's HTTP handling as we run ours: stateless, JSON answers."""
    sessions = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    async with sessions.run():
        yield sessions.handle_request


async def ask(
    app: Any, method: str, path: str, headers: Mapping[str, str], body: bytes
) -> tuple[int, Mapping[str, str], bytes]:
    """Put one HTTP request to an ASGI application; give back the status, the headers and the body."""
    received: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return received.pop() if received else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    await app(scope, receive, send)
    heads = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], heads, b"".join(message.get("body", b"") for message in sent[1:])
