"""The MCP binding: one message in, an answer or a call to be run out; a reply in, an answer out. No I/O.

It answers all that a dealer has: `initialize` and `ping` of the revisions with a handshake, `server/discover` of the
one without, tools, resources and prompts of each. The same reading serves HTTP and, without headers, standard input.
Nothing is remembered between messages. Source: MCP 2026-07-28, 2025-11-25 and 2025-06-18; "Errors and retries", section
"Three envelopes"; CONTRACTS.md section 4.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Final

import msgspec

from forecourt.binding import REFUSED, Answer
from forecourt.binding.json_text import MalformedJSONError, decode, encode
from forecourt.binding.mcp import request as rpc
from forecourt.binding.mcp.guide import PROMPTS, instructions, prompt
from forecourt.binding.mcp.header import is_json, takes_json
from forecourt.binding.mcp.place import Place, Resources
from forecourt.binding.mcp.request import ProtocolError, Request, RequestId
from forecourt.binding.mcp.tool import Tool, Toolbox
from forecourt.errors import AAPError

__all__ = ["Call", "MCPBinding"]

_HEADERS: Final = ((b"content-type", b"application/json"),)
_ACCEPTED: Final = Answer(202, (), b"")

_STATUSES: Final[Mapping[int, int]] = {
    rpc.PARSE_ERROR: 400,
    rpc.INVALID_REQUEST: 400,
    rpc.INVALID_PARAMS: 400,
    rpc.HEADER_MISMATCH: 400,
    rpc.UNSUPPORTED_VERSION: 400,
    rpc.METHOD_NOT_FOUND: 404,
}
"""HTTP statuses of errors to requests that stand alone; those of the older revisions are 200."""

_TTL_MS: Final = 300_000
"""How long lists and fixed resources may be kept: they change only when the server is started anew."""
_PROFILE_TTL_MS: Final = 60_000

_Method = Callable[["MCPBinding", Request], "Call | Answer"]


class Call(msgspec.Struct, frozen=True):
    """A request that got through the protocol: the AAP payload to run, not yet looked at, and what to answer with.

    `uri` is set where the payload comes from reading a resource, not from calling a tool.
    """

    id: RequestId
    payload: Any
    single: bool
    uri: str | None = None


class MCPBinding:
    """One contract over MCP at one place. Bytes and headers in, `Answer` out; it neither waits nor runs a skill."""

    def __init__(self, toolbox: Toolbox, place: Place) -> None:
        self.contract = toolbox.contract
        self._tools = toolbox
        self._place = place
        self._lists: dict[str, bytes] = {}

    def at(self, place: Place) -> "MCPBinding":
        """Return the same binding for another place."""
        return MCPBinding(self._tools, place)

    @cached_property
    def _single_tail(self) -> bytes:
        """What ends the results of requests that stand alone."""
        meta = encode({"io.modelcontextprotocol/serverInfo": self._place.implementation()})
        return b',"resultType":"complete","_meta":' + meta + b"}}"

    # Reading

    def read(self, body: bytes, headers: Mapping[bytes, str] | None) -> Call | Answer:
        """Read a message; an `Answer` is what to say at once (202: nothing), a `Call` is to be run.

        `headers` holds those of `HEADERS` that came, in lower case; several of one name are joined by commas, which
        fits no method, name or revision. None says that the message came without any, on standard input.
        """
        version = None
        single = False
        request: Request | None = None
        try:
            if headers is not None:
                if not is_json(headers.get(b"content-type")):
                    return self.refuse(415, "Send the message as Content-Type: application/json in UTF-8")
                if not takes_json(headers.get(b"accept")):
                    return self.refuse(406, "Answers are application/json: the Accept header must take it")
                version = headers.get(b"mcp-protocol-version")
                single = version is not None and version not in rpc.HANDSHAKE_REVISIONS
            message = decode(body)
            single = rpc.is_single(message, version)
            request = rpc.read_request(message, single=single)
            if request is None:
                if single and version is not None:
                    rpc.check_version(version)
                return _ACCEPTED
            if single:
                rpc.check_single(request, headers)
            return self._dispatch(request)
        except MalformedJSONError as error:
            # These messages are ours, word for word: they hold nothing of the body.
            return self._error(None, ProtocolError(rpc.PARSE_ERROR, f"Parse error: {error}"), single=True)
        except ProtocolError as error:
            if request is None:
                return self._error(None, error, single=True)
            return self._error(request.id, error, single=single)

    def _dispatch(self, request: Request) -> Call | Answer:
        if request.method == "tools/call":
            return self._call(request)
        handler = (self._SINGLE if request.single else self._HANDSHAKE).get(request.method)
        if handler is None:
            raise ProtocolError(rpc.METHOD_NOT_FOUND, f"Method not found. The methods here are {self._known(request)}")
        return handler(self, request)

    def _call(self, request: Request) -> Call | Answer:
        tool = self._tool(request.params.get("name"))
        arguments = request.params.get("arguments")
        if arguments is None:
            arguments = {}
        arguments = tool.read_arguments(arguments)
        if not isinstance(arguments, dict):
            raise ProtocolError(rpc.INVALID_PARAMS, "params.arguments must be an object")
        if "type" not in arguments:
            arguments = {"type": tool.skill.request_type, **arguments}
        call = Call(request.id, arguments, request.single)
        meant = self.contract.skill_of(arguments)
        if meant is not None and meant is not tool.skill:
            # One tool never does what another is for, whatever a host has allowed it; a type of no skill is told by
            # the contract.
            problems = self.contract.schemas.problems(tool.skill.request_schema, arguments)
            return self.fail(call, AAPError("SCHEMA_VALIDATION_FAILED", problems=problems))
        return call

    def _tool(self, name: Any) -> Tool:
        if not isinstance(name, str):
            raise ProtocolError(rpc.INVALID_PARAMS, "params.name must be the name of a tool")
        tool = self._tools.get(name)
        if tool is None:
            raise ProtocolError(rpc.INVALID_PARAMS, f"Unknown tool. The tools here are {', '.join(self._tools.names)}")
        return tool

    # Answering at once

    def _initialize(self, request: Request) -> Answer:
        asked = request.params.get("protocolVersion")
        if not (
            isinstance(asked, str)
            and isinstance(request.params.get("capabilities"), dict)
            and rpc.is_implementation(request.params.get("clientInfo"))
        ):
            raise ProtocolError(
                rpc.INVALID_PARAMS,
                "initialize needs protocolVersion, capabilities and clientInfo with name and version",
            )
        agreed = asked if asked in rpc.HANDSHAKE_REVISIONS else rpc.HANDSHAKE_REVISIONS[0]
        return self._result(
            request,
            {
                "protocolVersion": agreed,
                "capabilities": _capabilities(),
                "serverInfo": self._place.implementation(),
                "instructions": instructions(self._place.name),
            },
        )

    def _ping(self, request: Request) -> Answer:
        return self._result(request, {})

    def _list(self, request: Request) -> Answer:
        if request.params.get("cursor") is not None:
            raise ProtocolError(rpc.INVALID_PARAMS, "The list is one page: there is no cursor to go on from")
        members = self._lists.get(request.method)
        if members is None:
            members = self._lists[request.method] = self._LISTS[request.method](self)[1:-1]
        return self._write(request.id, request.single, (members,), ttl_ms=_TTL_MS)

    def _read_resource(self, request: Request) -> Call | Answer:
        uri = request.params.get("uri")
        if not isinstance(uri, str):
            raise ProtocolError(rpc.INVALID_PARAMS, "params.uri must be the URI of a resource")
        content = self._resources.content(uri)
        if content is not None:
            return self._contents(request.id, request.single, uri, encode(content), _TTL_MS)
        payload = self._resources.request(uri)
        if payload is None:
            code = rpc.INVALID_PARAMS if request.single else rpc.RESOURCE_NOT_FOUND
            raise ProtocolError(code, "Resource not found. See resources/list and resources/templates/list")
        return Call(request.id, payload, request.single, uri)

    def _get_prompt(self, request: Request) -> Answer:
        name, arguments = request.params.get("name"), request.params.get("arguments")
        if not isinstance(name, str):
            raise ProtocolError(rpc.INVALID_PARAMS, "params.name must be the name of a prompt")
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict) or not all(isinstance(value, str) for value in arguments.values()):
            raise ProtocolError(rpc.INVALID_PARAMS, "params.arguments must be an object of strings")
        filled = prompt(name, arguments)
        if filled is None:
            raise ProtocolError(rpc.INVALID_PARAMS, f"Unknown prompt. The prompts here are {PROMPTS[0]['name']}")
        return self._result(request, filled)

    @cached_property
    def _resources(self) -> Resources:
        return Resources(self.contract, self._place)

    def _known(self, request: Request) -> str:
        methods = self._SINGLE if request.single else self._HANDSHAKE
        return ", ".join(sorted((*methods, "tools/call")))

    def _discovered(self) -> bytes:
        return encode(
            {
                "supportedVersions": list(rpc.SINGLE_REVISIONS),
                "capabilities": _capabilities(),
                "instructions": instructions(self._place.name),
            }
        )

    _LISTS: ClassVar[Mapping[str, Callable[["MCPBinding"], bytes]]] = {
        "prompts/list": lambda _: encode({"prompts": PROMPTS}),
        "resources/list": lambda self: encode({"resources": self._resources.listed()}),
        "resources/templates/list": lambda self: encode({"resourceTemplates": self._resources.templates()}),
        "server/discover": _discovered,
        "tools/list": lambda self: self._tools.listed,
    }
    """What is the same for every caller until the server is started anew."""

    _SHARED: ClassVar[Mapping[str, _Method]] = {
        "prompts/get": _get_prompt,
        "prompts/list": _list,
        "resources/list": _list,
        "resources/read": _read_resource,
        "resources/templates/list": _list,
        "tools/list": _list,
    }
    """What answers a method in every revision; `tools/call` has its own short way."""
    _HANDSHAKE: ClassVar[Mapping[str, _Method]] = {**_SHARED, "initialize": _initialize, "ping": _ping}
    _SINGLE: ClassVar[Mapping[str, _Method]] = {**_SHARED, "server/discover": _list}

    # Writing

    def write(self, call: Call, *payload: bytes) -> Answer:
        """Return the answer that carries a skill's response payload: JSON bytes, whole or in pieces.

        A tool's result has the payload twice: as structured content, and as text for hosts that show only that.
        """
        whole = b"".join(payload)
        if call.uri is not None:
            return self._contents(call.id, call.single, call.uri, whole, _PROFILE_TTL_MS)
        return self._tool_result(call, whole, b',"isError":false')

    def fail(self, call: Call, error: AAPError) -> Answer:
        """Return the answer that carries a skill's failure: a tool's result like any other, marked as an error."""
        payload = self.contract.write_error(error)
        if call.uri is not None:
            # A resource has no result that could be marked so.
            failure = ProtocolError(rpc.INTERNAL_ERROR, payload["message"], payload)
            return self._error(call.id, failure, single=call.single)
        answer = self._tool_result(call, encode(payload), b',"isError":true')
        return msgspec.structs.replace(answer, outcome=payload["code"], error_id=payload["error_id"])

    def refuse(self, status: int, message: str) -> Answer:
        """Return the answer to what is not even looked at: an HTTP status over a JSON-RPC error without id."""
        error = {"code": rpc.INVALID_REQUEST, "message": message}
        return Answer(status, _HEADERS, encode({"jsonrpc": "2.0", "id": None, "error": error}), REFUSED)

    def broken(self, error: AAPError) -> Answer:
        """Return the answer to a message on which the reading itself broke: a fault of ours, known by its error id."""
        failure = ProtocolError(rpc.INTERNAL_ERROR, error.message, {"error_id": error.error_id})
        return self._error(None, failure, single=False)

    def _tool_result(self, call: Call, payload: bytes, mark: bytes) -> Answer:
        text = encode(payload.decode())
        members = (b'"content":[{"type":"text","text":', text, b'}],"structuredContent":', payload, mark)
        return self._write(call.id, call.single, members)

    def _contents(self, id: RequestId, single: bool, uri: str, content: bytes, ttl_ms: int) -> Answer:  # noqa: A002
        head = b'"contents":[{"uri":' + encode(uri) + b',"mimeType":"application/json","text":'
        return self._write(id, single, (head, encode(content.decode()), b"}]"), ttl_ms=ttl_ms)

    def _result(self, request: Request, result: dict[str, Any]) -> Answer:
        return self._write(request.id, request.single, (encode(result)[1:-1],))

    def _write(self, id: RequestId, single: bool, members: tuple[bytes, ...], ttl_ms: int | None = None) -> Answer:  # noqa: A002
        head = (b'{"jsonrpc":"2.0","id":', encode(id), b',"result":{')
        if not single:
            tail = b"}}"
        elif ttl_ms is None:
            tail = self._single_tail
        else:
            tail = b',"ttlMs":%d,"cacheScope":"public"' % ttl_ms + self._single_tail
        return Answer(200, _HEADERS, b"".join((*head, *members, tail)))

    def _error(self, id: RequestId, error: ProtocolError, *, single: bool) -> Answer:  # noqa: A002
        told: dict[str, Any] = {"code": error.code, "message": error.message}
        if error.data is not None:
            told["data"] = error.data
        status = _STATUSES.get(error.code, 200) if single else 200
        return Answer(status, _HEADERS, encode({"jsonrpc": "2.0", "id": id, "error": told}), REFUSED)


def _capabilities() -> dict[str, Any]:
    """Return what the server can do: everything is fixed while it runs, so nothing is ever said to have changed."""
    return {
        "tools": {"listChanged": False},
        "resources": {"subscribe": False, "listChanged": False},
        "prompts": {"listChanged": False},
    }
