"""The official MCP client lists and calls every tool, over HTTP and over standard input, and believes our schemas."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import pytest
from tests.server.running import lead
from tests.server_process import DEMO, ServerFarm

if os.environ.get("CI") != "true":
    # Where every dependency should be there, a skip would hide that this was never tried.
    pytest.importorskip("mcp", reason="mcp is not installed (it comes with the extra 'dev')")

import jsonschema  # type: ignore[import-untyped]
import mcp_types as types
from mcp.client import session as sdk_session
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

COMMAND: Final = "from forecourt.cli import main; main()"
TOOLS: Final[dict[str, dict[str, Any]]] = {
    "aap_dealer_information": {},
    "aap_inventory_facets": {"filters": {"make": ["Toyota"]}},
    "aap_inventory_search": {"filters": {"price_max": 30000}, "sort": {"field": "price", "order": "asc"}},
    "aap_inventory_vehicle": {"stock": "T12345"},
    "aap_lead_submit": {},
}
REVISIONS: Final = ("2026-07-28", "2025-11-25", "2025-06-18")
WAYS: Final = ("http", "stdio", "relay")

Work = Callable[[Client], Coroutine[Any, Any, None]]


@pytest.fixture
def connect(
    servers: ServerFarm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str, Work, str], None]:
    """Return a function that runs work with a client: in a revision, by a way, under a contract."""

    def run(revision: str, way: str, work: Work, contract: str = "3.1") -> None:
        mode = revision if revision == "2026-07-28" else "legacy"
        if mode == "legacy":
            # The client offers the newest handshake that it knows; an older client offers an older one.
            monkeypatch.setattr(sdk_session, "LATEST_HANDSHAKE_VERSION", revision)
        url = f"{servers.get(DEMO).base_url}/v{contract}/mcp"
        own = ["--data", str(tmp_path), "--contract", contract]
        server: Any = {
            "http": url,
            "stdio": _program("mcp", *own),
            "relay": _program("mcp", url),
        }[way]

        async def session() -> None:
            async with Client(server, mode=mode, read_timeout_seconds=20) as client:
                assert client.session.protocol_version == revision
                await work(client)

        asyncio.run(session())

    return run


def _program(*arguments: str) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-c", COMMAND, *arguments], env=dict(os.environ))


def _arguments(tool: str) -> dict[str, Any]:
    if tool != "aap_lead_submit":
        return TOOLS[tool]
    made = lead()
    del made["type"]
    return made


def _checked(tool: types.Tool, result: types.CallToolResult) -> dict[str, Any]:
    """Return the structured content, which must be what the text says and what the output schema allows."""
    assert tool.output_schema is not None
    jsonschema.Draft202012Validator(tool.output_schema).validate(result.structured_content)
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    assert json.loads(content.text) == result.structured_content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


@pytest.mark.requirement("ERR-ENVELOPE-MCP")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("revision", REVISIONS)
def test_the_client_calls_every_tool_and_sees_typed_errors(
    revision: str, way: str, connect: Callable[..., None]
) -> None:
    async def work(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == TOOLS.keys()
        for name, tool in tools.items():
            result = await client.call_tool(name, _arguments(name))
            assert result.is_error is False, result
            skill = name.removeprefix("aap_").replace("_", ".")
            assert _checked(tool, result)["type"] == f"{skill}.response"
            refused = await client.call_tool(name, {"nonsense": 1})
            assert refused.is_error is True
            error = _checked(tool, refused)
            assert (error["type"], error["code"]) == ("aap.error", "SCHEMA_VALIDATION_FAILED")
            assert "/nonsense" in [problem["instanceLocation"] for problem in error["details"]["errors"]]

    connect(revision, way, work)


@pytest.mark.parametrize("contract", ["1.1", "3.1"])
@pytest.mark.parametrize("revision", REVISIONS)
def test_the_client_reads_every_resource_and_the_prompt(
    revision: str, contract: str, connect: Callable[..., None]
) -> None:
    async def work(client: Client) -> None:
        listed = (await client.list_resources()).resources
        uris = {"aap://search/capabilities", "aap://dealer/profile"}
        assert {resource.uri for resource in listed} == uris | (
            {"aap://features/vocabulary"} if contract == "3.1" else set()
        )
        for resource in listed:
            (content,) = (await client.read_resource(resource.uri)).contents
            assert isinstance(content, types.TextResourceContents)
            assert json.loads(content.text)
        (shown,) = (await client.list_prompts()).prompts
        filled = await client.get_prompt(shown.name, {"wish": "a small wagon"})
        assert isinstance(filled.messages[0].content, types.TextContent)
        assert "a small wagon" in filled.messages[0].content.text
        if revision != "2026-07-28":
            # A client that is told its revision does not ask for more.
            assert "dealer" in (client.session.instructions or "")

    connect(revision, "http", work, contract)


@pytest.mark.requirement("ERR-PROTOCOL-UNKNOWN-TOOL")
@pytest.mark.parametrize("revision", REVISIONS)
def test_an_unknown_tool_is_a_failure_of_the_protocol(revision: str, connect: Callable[..., None]) -> None:
    async def work(client: Client) -> None:
        with pytest.raises(Exception, match="Unknown tool") as raised:
            await client.call_tool("aap_vehicle_reserve", {})
        assert raised.value.error.code == types.INVALID_PARAMS  # type: ignore[attr-defined]

    connect(revision, "http", work)


def test_a_client_that_probes_finds_the_newest_revision(servers: ServerFarm) -> None:
    async def session() -> str | None:
        async with Client(f"{servers.get(DEMO).base_url}/mcp") as client:
            return client.session.protocol_version

    assert asyncio.run(session()) == "2026-07-28"
