"""The servers that are compared, each started as a process of its own: `python -m benchmarks.servers NAME PORT`."""

import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

__all__ = ["SEARCH", "envelope", "running"]

SEARCH: Final[dict[str, Any]] = {
    "type": "inventory.search.request",
    "filters": {"condition": ["used", "cpo"], "year_min": 2018, "price_max": 60000},
    "sort": {"field": "price", "order": "asc"},
    "pagination": {"limit": 20},
}
"""The search that is measured: three filters, sorted by price, a page of twenty."""

_START_SECONDS: Final = 30


def envelope(payload: dict[str, Any]) -> bytes:
    """Return the `SendMessage` request of a payload."""
    message = {"messageId": "benchmark", "role": "ROLE_USER", "parts": [{"data": payload}]}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}).encode()


@contextmanager
def running(name: str, port: int, *arguments: str) -> Iterator[int]:
    """Run a server until the block ends, and give its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.servers", name, str(port), *arguments], stdout=subprocess.DEVNULL
    )
    try:
        _await(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(_START_SECONDS)


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + _START_SECONDS
    while time.monotonic() < ends:
        if process.poll() is not None:
            raise SystemExit(f"the server on port {port} ended with status {process.returncode}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"the server on port {port} did not start")


def _serve(app: Any, port: int) -> None:
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False, loop="uvloop", http="httptools")


def bare(port: int, answer_file: str) -> None:
    """Serve the least that an ASGI application can do: parse the request, send the bytes of a file."""
    import msgspec

    body = Path(answer_file).read_bytes()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    decode = msgspec.json.Decoder().decode

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        if scope["method"] == "POST":
            decode((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    _serve(app, port)


def forecourt(port: int, folder: str, pap: str = "") -> None:
    """Serve the demo dealer, as `forecourt serve` does; with `pap` also over PAP, as behind a proxy that speaks TLS."""
    import uvicorn

    from forecourt.server import create_app, load
    from forecourt.server.serving import uvicorn_config

    on = {"enabled": True, "domain": "dealer.localhost", "demonstration": True} if pap else {}
    config = load(None, data=folder, server={"port": port}, pap=on)
    uvicorn.Server(uvicorn_config(create_app(config), port=port)).run()


def forecourt_limited(port: int, folder: str, by: str) -> None:
    """Serve the demo dealer with a limit of 600 requests a minute for each client, told apart `by` address or key."""
    import uvicorn

    from forecourt.server import create_app, load
    from forecourt.server.serving import uvicorn_config

    config = load(None, data=folder, server={"port": port}, limits={"requests": 600}, access={"keys": by == "key"})
    uvicorn.Server(uvicorn_config(create_app(config), port=port)).run()


def a2a_sdk(port: int) -> None:
    """Serve the same search over the same listings with the official SDK's server, as its guide shows."""
    import datetime

    import msgspec
    from a2a.helpers.proto_helpers import new_data_message
    from a2a.server.agent_execution import AgentExecutor, RequestContext
    from a2a.server.request_handlers import DefaultRequestHandlerV2
    from a2a.server.routes import create_jsonrpc_routes
    from a2a.server.tasks import InMemoryTaskStore
    from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface
    from google.protobuf.json_format import MessageToDict
    from starlette.applications import Starlette

    from forecourt.catalog import Catalog, Listing
    from forecourt.contract.v1_1 import read_filters, read_sort
    from forecourt.demo import stock
    from forecourt.server.deployment import stored
    from forecourt.vocabulary import Vocabulary

    today = datetime.datetime.now(datetime.UTC).date()
    rows = stored(stock.listings(today), Vocabulary.packaged())
    catalog = Catalog.build(Listing(row.listing_id, row.dealer_id, row.body) for row in rows)

    class Search(AgentExecutor):
        async def execute(self, context: RequestContext, event_queue: Any) -> None:
            assert context.message is not None
            payload = MessageToDict(context.message.parts[0].data)
            page = catalog.search(read_filters(payload.get("filters")), read_sort(payload.get("sort")), limit=20)
            vehicles = [msgspec.json.decode(body) for body in page.listings]
            data = {"total": page.total, "limit": 20, "vehicles": vehicles}
            await event_queue.enqueue_event(
                new_data_message({"type": "inventory.search.response", "data": data}, context_id=context.context_id)
            )

        async def cancel(self, context: RequestContext, event_queue: Any) -> None:
            """Do nothing: no search is ever under way that could be cancelled."""

    card = AgentCard(
        name="benchmark",
        description="benchmark",
        version="1",
        supported_interfaces=[
            AgentInterface(url=f"http://127.0.0.1:{port}/a2a", protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(),
        default_input_modes=["application/json"],
        default_output_modes=["application/json"],
    )
    handler = DefaultRequestHandlerV2(agent_executor=Search(), task_store=InMemoryTaskStore(), agent_card=card)
    _serve(Starlette(routes=create_jsonrpc_routes(handler, "/a2a")), port)


def mcp_sdk(port: int) -> None:
    """Serve the same search as a tool of the official MCP SDK's low-level server: stateless, JSON answers."""
    import contextlib
    import datetime
    from collections.abc import AsyncIterator

    import mcp_types as types
    import msgspec
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.routing import Mount

    from forecourt.catalog import Catalog, Listing
    from forecourt.contract.v1_1 import read_filters, read_sort
    from forecourt.demo import stock
    from forecourt.server.deployment import stored
    from forecourt.vocabulary import Vocabulary

    today = datetime.datetime.now(datetime.UTC).date()
    rows = stored(stock.listings(today), Vocabulary.packaged())
    catalog = Catalog.build(Listing(row.listing_id, row.dealer_id, row.body) for row in rows)
    tool = types.Tool(name="aap_inventory_search", input_schema={"type": "object"})

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool])

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        asked = params.arguments or {}
        page = catalog.search(read_filters(asked.get("filters")), read_sort(asked.get("sort")), limit=20)
        vehicles = [msgspec.json.decode(body) for body in page.listings]
        data = {"total": page.total, "limit": 20, "vehicles": vehicles}
        found = {"type": "inventory.search.response", "data": data}
        text = types.TextContent(type="text", text=msgspec.json.encode(found).decode())
        return types.CallToolResult(content=[text], structured_content=found)

    server: Server[Any] = Server(
        "benchmark",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        # Without it every call lists the tools once more, to look for headers in their schemas.
        get_tool_input_schema=lambda _: tool.input_schema,
    )
    sessions = StreamableHTTPSessionManager(server, json_response=True, stateless=True)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with sessions.run():
            yield

    _serve(Starlette(routes=[Mount("/", app=sessions.handle_request)], lifespan=lifespan), port)


def answer_of(port: int, path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """Return what a server answers to one request."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", body, {"content-type": "application/json", **headers}
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        found: bytes = response.read()
        return found


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for a server's database, gone when its block ends."""
    return tempfile.TemporaryDirectory(prefix="forecourt-benchmark-")


if __name__ == "__main__":
    servers: dict[str, Callable[..., None]] = {
        "bare": bare,
        "forecourt": forecourt,
        "forecourt_limited": forecourt_limited,
        "a2a_sdk": a2a_sdk,
        "mcp_sdk": mcp_sdk,
    }
    servers[sys.argv[1]](int(sys.argv[2]), *sys.argv[3:])
