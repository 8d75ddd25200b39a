"""MCP over streamable HTTP: revision 2026-07-28, where a call is one POST, and the older ones with their handshake.

A tool result with `isError` is a failure whatever the HTTP status says. Which revision a server speaks is found out by
listing its tools, so that a lead is never what a server is tried with.
"""

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from forecourt import __version__
from forecourt.a2a import A2AError, FailureKind
from forecourt.client.carrier.interface import Carrier, Payload, checked
from forecourt.client.dialect import Dialect
from forecourt.client.failure import Answer, DealerError, TransportError
from forecourt.client.http import Http
from forecourt.client.json_text import decode, encode
from forecourt.client.reading import from_json_rpc, from_tool_result, json_body, status_failure, unreadable
from forecourt.contract import SKILLS, Skill
from forecourt.errors import AAPError

__all__ = ["CARRIER", "tool_name"]

_MODERN: Final = "2026-07-28"
_HANDSHAKE: Final = "2025-11-25"
_OLDER: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
_META: Final = "io.modelcontextprotocol/"
_CLIENT: Final = {"name": "forecourt", "version": __version__}
_TOOL_PAGES: Final = 20
_EVENTS_READ: Final = 10_000
_SESSION: Final = "mcp-session-id"


def tool_name(skill: Skill) -> str:
    """Return the MCP tool of a skill, for example aap_inventory_search (official 1.1 MCP manifest)."""
    return f"aap_{skill.id.replace('.', '_')}"


class MCPCarrier(Carrier):
    """One MCP endpoint. A session of the older revisions that has ended is begun anew, once a call."""

    binding: ClassVar[str] = "mcp"

    def __init__(self, http: Http, endpoint: str) -> None:
        super().__init__(http, endpoint)
        self._lock = asyncio.Lock()
        self._tools: frozenset[str] | None = None
        self._modern = True
        self._revision = _MODERN
        self._session: str | None = None

    async def send(
        self, skill: Skill, payload: Mapping[str, Any], dialect: Dialect, headers: Mapping[str, str], seconds: float
    ) -> tuple[Payload, Answer]:
        """Call the skill's tool."""
        del dialect  # The endpoint is pinned to its contract; MCP has no place to name it.
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        await self._begin(headers, end)
        name = tool_name(skill)
        if name not in (self._tools or ()):
            raise DealerError(f"this MCP server has no tool {name}", FailureKind.BINDING_MISMATCH)
        params = {"name": name, "arguments": dict(payload)}
        session = self._session
        try:
            result, answer = await self._request("tools/call", params, headers, end)
        except TransportError as error:
            if error.status != 404 or session is None:
                raise
            # The session is over, so nothing was run: the same call goes into a new one, which another call of this
            # client may have begun by now.
            if self._session == session:
                self._tools = self._session = None
            await self._begin(headers, end)
            result, answer = await self._request("tools/call", params, headers, end)
        if result.get("isError") is True:
            raise from_tool_result(result, answer)
        return checked(_structured(result, answer), skill, answer), answer

    async def _begin(self, headers: Mapping[str, str], end: float) -> None:
        """Find out which revision is spoken here and which tools there are."""
        async with self._lock:
            if self._tools is not None:
                return
            self._modern, self._revision, self._session = True, _MODERN, None
            try:
                self._tools = await self._list(headers, end)
            except (A2AError, TransportError) as error:
                if not _is_older(error):
                    raise
                await self._shake_hands(headers, end)
                self._tools = await self._list(headers, end)
            if not self._tools & {tool_name(skill) for skill in SKILLS.values()}:
                self._tools = None
                raise DealerError("this MCP server has none of the tools of a dealer", FailureKind.BINDING_MISMATCH)

    async def _list(self, headers: Mapping[str, str], end: float) -> frozenset[str]:
        names: set[str] = set()
        cursor = None
        for _ in range(_TOOL_PAGES):
            result, answer = await self._request("tools/list", {"cursor": cursor} if cursor else {}, headers, end)
            tools = result.get("tools")
            if not isinstance(tools, list):
                raise unreadable(answer, "the list of tools cannot be read")
            names |= {tool["name"] for tool in tools if isinstance(tool, dict) and isinstance(tool.get("name"), str)}
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                break
        return frozenset(names)

    async def _shake_hands(self, headers: Mapping[str, str], end: float) -> None:
        self._modern, self._revision = False, _HANDSHAKE
        params = {"protocolVersion": _HANDSHAKE, "capabilities": {}, "clientInfo": _CLIENT}
        result, answer = await self._request("initialize", params, headers, end)
        revision = result.get("protocolVersion")
        if revision not in _OLDER:
            message = "the MCP server speaks no revision that this client does"
            raise TransportError(FailureKind.BINDING_MISMATCH, message, raw=answer)
        self._revision, self._session = revision, answer.headers.get(_SESSION)
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        accepted = await self._post(note, "notifications/initialized", None, headers, end)
        if accepted.status >= 300:
            raise status_failure(accepted)

    async def _request(
        self, method: str, params: dict[str, Any], headers: Mapping[str, str], end: float
    ) -> tuple[dict[str, Any], Answer]:
        """Send one request and return its result; A2AError for an error of the protocol (JSON-RPC is shared)."""
        request_id = uuid.uuid4().hex
        if self._modern:
            params = {
                **params,
                "_meta": {
                    f"{_META}protocolVersion": self._revision,
                    f"{_META}clientInfo": _CLIENT,
                    f"{_META}clientCapabilities": {},
                },
            }
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        answer = await self._post(body, method, params.get("name"), headers, end)
        return _result(answer, request_id), answer

    async def _post(
        self, body: dict[str, Any], method: str, name: str | None, headers: Mapping[str, str], end: float
    ) -> Answer:
        sent = {
            **headers,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if method != "initialize":
            sent["MCP-Protocol-Version"] = self._revision
        if self._modern:
            sent["Mcp-Method"] = method
            if name is not None:
                sent["Mcp-Name"] = name
        elif self._session is not None:
            sent["Mcp-Session-Id"] = self._session
        seconds = max(0.001, end - asyncio.get_running_loop().time())
        return await self._http.post(self.endpoint, sent, encode(body), seconds)

    async def close(self) -> None:
        """End the session of an older revision; the server may not care."""
        session, self._session = self._session, None
        if session is not None:
            headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": self._revision}
            try:
                await self._http.send("DELETE", self.endpoint, headers, None, 2.0)
            except TransportError:
                return


def _is_older(error: A2AError | TransportError) -> bool:
    """Tell whether a failure to list tools may only mean that the server wants its handshake first.

    Anything that may pass, or that is about credentials, says nothing about the revision.
    """
    if isinstance(error, A2AError):
        return True
    return error.kind is FailureKind.UNREADABLE or error.status in (400, 404, 405, 406, 415, 422)


def _result(answer: Answer, request_id: str) -> dict[str, Any]:
    try:
        body = _event(answer, request_id) if answer.media_type == "text/event-stream" else json_body(answer)
    except TransportError:
        if answer.status >= 300:
            raise status_failure(answer) from None
        raise
    if isinstance(body, dict) and body.get("error") is not None:
        failure = from_json_rpc(body["error"], answer)
        if isinstance(failure, AAPError) or answer.status in (200, 400, 404, 422, 500):
            # A session that is over may be told by JSON-RPC as well; the status is what counts then.
            if answer.status == 404 and isinstance(failure, A2AError) and failure.code != -32601:
                raise status_failure(answer) from failure
            raise failure
        raise status_failure(answer) from failure
    if answer.status >= 300:
        raise status_failure(answer)
    result = body.get("result") if isinstance(body, dict) and body.get("id") == request_id else None
    if not isinstance(result, dict):
        raise unreadable(answer, "the answer is no result of this request")
    return result


def _event(answer: Answer, request_id: str) -> Any:
    """Return the response among the events of a stream (HTML, section "Server-sent events"); others are passed over."""
    data: list[str] = []
    lines = answer.body.decode("utf-8", "replace").splitlines()[:_EVENTS_READ]
    for line in [*lines, ""]:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            try:
                message = decode("\n".join(data))
            except ValueError as error:
                raise unreadable(answer, "an event of the answer is no JSON") from error
            data = []
            if isinstance(message, dict) and message.get("id") == request_id and "method" not in message:
                return message
    raise unreadable(answer, "the answer's events hold no response")


def _structured(result: Mapping[str, Any], answer: Answer) -> Any:
    """Return the structured content, or the same from the text of servers that leave it out."""
    if "structuredContent" in result:
        return result["structuredContent"]
    content = result.get("content")
    for entry in content if isinstance(content, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("text"), str):
            try:
                return decode(entry["text"])
            except ValueError:
                continue
    raise unreadable(answer, "the tool's result holds no structured content")


CARRIER: Final = MCPCarrier
