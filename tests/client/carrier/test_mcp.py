"""MCP: every revision, every shape of answer, and failures that hide in HTTP 200."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from tests.client.mcp_dealer import MCPDealer, mcp_dealer
from tests.client.simulated import Scripted, SimulatedTiming, aap, json_answer

from forecourt.a2a import A2AError, FailureKind
from forecourt.client import (
    Client,
    ConsentGrant,
    DealerError,
    RetryPolicy,
    TransportError,
    connect,
    submission_of,
)
from forecourt.client.carrier.mcp import tool_name
from forecourt.contract import SKILLS
from forecourt.errors import AAPError

T = TypeVar("T")

URL = "https://dealer.example.com/mcp"
TOOLS = [{"name": tool_name(skill), "inputSchema": {}} for skill in SKILLS.values()]
STREAM = {"content-type": "text/event-stream"}
PAGE = {"type": "inventory.search.response", "data": {"total": 0, "vehicles": []}}


@pytest.fixture(scope="module", params=[False, True], ids=["2026-07-28", "2025-11-25"])
def dealer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MCPDealer]:
    with mcp_dealer(tmp_path_factory.mktemp("mcp"), older=request.param) as found:
        yield found


def run(url: str, work: Callable[[Client], Awaitable[T]], **options: Any) -> T:
    async def whole() -> T:
        async with connect(url, binding="mcp", **options) as client:
            return await work(client)

    return asyncio.run(whole())


def test_all_five_skills_answer_over_the_sdks_server(dealer: MCPDealer) -> None:
    async def work(client: Client) -> None:
        assert (await client.information()).name == "Demo Auto Group"
        assert (await client.facets(fuel="bev")).makes[0].value == "Tesla"
        page = await client.search(make="Honda", sort="price", limit=2)
        assert [type(car.price) for car in page] == [int, int]
        assert (await client.vehicle(page.vehicles[0].vin)).raw == page.vehicles[0].raw
        grant = ConsentGrant("Yes.", ("email",), datetime.now(UTC))
        customer = {"first_name": "Over", "last_name": "Mcp", "email": "over@example.com"}
        receipt = await client.submit_lead(customer, grant)
        assert receipt.status == "received"
        assert len({car.vehicle_id async for car in client.search_all(make="Tesla", limit=7)}) > 7

    run(dealer.url, work)


@pytest.mark.requirement("ERR-RETRY-200-NO-SUCCESS", "ERR-SDK-MCP-STRUCTURED", "ERR-SDK-VERIFY-CLIENT")
@pytest.mark.parametrize(
    ("skill", "payload", "code"),
    [
        ("inventory.search", {"filters": {"mkae": ["Honda"], "year_min": "x"}}, "SCHEMA_VALIDATION_FAILED"),
        ("inventory.vehicle", {"vin": "5YFB4MBE3RM000012"}, "VEHICLE_UNAVAILABLE"),
        ("lead.submit", {"customer": {"first_name": "A", "last_name": "B", "email": "a@example.com"},
                         "source_agent": {"name": "x"}}, "CONTACT_CONSENT_REQUIRED"),
    ],
)  # fmt: skip
def test_a_failed_tool_is_the_typed_error_though_http_says_200(
    dealer: MCPDealer, skill: str, payload: dict[str, Any], code: str
) -> None:
    with pytest.raises(AAPError) as caught:
        run(dealer.url, lambda client: client.call(skill, payload))
    assert caught.value.code == code
    assert caught.value.raw.status == 200
    assert b'"isError":true' in caught.value.raw.body.replace(b" ", b"")
    assert len(caught.value.problems) == (2 if code == "SCHEMA_VALIDATION_FAILED" else len(caught.value.problems))


@pytest.mark.requirement("ERR-RETRY-LEAD-SESSION")
def test_a_lead_in_a_session_that_has_ended_goes_into_a_new_one_unchanged(tmp_path: Path) -> None:
    with mcp_dealer(tmp_path, older=True) as dealer:

        async def work(client: Client) -> Any:
            await client.information()
            dealer.calls.clear()
            dealer.sessions_end = True
            grant = ConsentGrant("Yes.", ("email",), datetime.now(UTC))
            customer = {"first_name": "New", "last_name": "Session", "email": "new@example.com"}
            submission = client.prepare_lead(customer, grant)
            first = await client.reconcile(submission)
            dealer.sessions_end = True
            return first, await client.reconcile(submission), submission

        first, second, submission = run(dealer.url, work)
    assert dealer.calls == [submission.payload] * 2
    assert first == second


@pytest.mark.requirement("ERR-RETRY-LEAD-BINDING", "ERR-RETRY-LEAD-SESSION")
def test_a_lead_that_moves_to_another_binding_keeps_payload_and_key_and_stays_one(tmp_path: Path) -> None:
    with mcp_dealer(tmp_path / "data") as dealer:
        site = dealer.url.removesuffix("/mcp")
        place = tmp_path / "lead.json"

        async def work() -> tuple[Any, Any, str]:
            # Over A2A the dealer does its work, and its answer is lost.
            network = LosingAnswers()
            async with connect(site, transport=network, retry=RetryPolicy(tries=1)) as client:
                grant = ConsentGrant("Yes.", ("email",), datetime.now(UTC))
                customer = {"first_name": "Other", "last_name": "Binding", "email": "ob@example.com"}
                with pytest.raises(TransportError) as caught:
                    await client.submit_lead(customer, grant, pending=place)
                submission = submission_of(caught.value)
            assert submission is not None
            async with connect(site, binding="mcp") as client:
                assert client.binding == "mcp"
                over_mcp = await client.resume_lead(place)
            async with connect(site) as client:
                return over_mcp, await client.reconcile(submission), json.dumps(submission.payload)

        over_mcp, over_a2a, payload = asyncio.run(work())
    assert [json.dumps(call) for call in dealer.calls] == [payload]
    # Both are the first answer of one lead: a second one would have another id.
    assert over_mcp == over_a2a
    assert over_mcp.status == "received"


class LosingAnswers(httpx.AsyncHTTPTransport):
    """The network as it is, but that the answers to POSTs are lost."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await super().handle_async_request(request)
        if request.method == "POST":
            await answer.aread()
            raise httpx.ReadError("lost")
        return answer


def test_calls_at_once_survive_the_end_of_their_session(tmp_path: Path) -> None:
    with mcp_dealer(tmp_path, older=True) as dealer:

        async def work(client: Client) -> list[Any]:
            await client.information()
            dealer.sessions_end = True
            return await asyncio.gather(*(client.search(limit=1) for _ in range(8)))

        pages = run(dealer.url, work)
    assert len({page.vehicles[0].vin for page in pages}) == 1


def test_the_newest_revision_is_one_post_a_call(tmp_path: Path) -> None:
    with mcp_dealer(tmp_path) as dealer:
        run(dealer.url, lambda client: client.search(limit=1))
    assert dealer.methods == ["tools/list", "tools/call"]


# Over a network that answers what it is told


def rpc(result: Any = None, error: Any = None, status: int = 200, **headers: str) -> Callable[..., httpx.Response]:
    """Return a JSON-RPC answer to whatever request comes."""

    def answer(request: httpx.Request) -> httpx.Response:
        body = {"jsonrpc": "2.0", "id": json.loads(request.content).get("id")}
        body |= {"error": error} if error is not None else {"result": result}
        return json_answer(body, status, **headers)

    return answer


def events(*messages: Any) -> Callable[..., httpx.Response]:
    """Return an answer as a stream of events, the last of which is the result."""

    def answer(request: httpx.Request) -> httpx.Response:
        last = {"jsonrpc": "2.0", "id": json.loads(request.content)["id"], "result": messages[-1]}
        sent = [*messages[:-1], last]
        frames = [f"event: message\r\nid: 1\r\ndata: {json.dumps(each)}\r\n\r\n" for each in sent]
        text = ": hello\r\n\r\n" + "".join(frames)
        return httpx.Response(200, content=text.encode(), headers={"content-type": "text/event-stream"})

    return answer


LISTED = rpc({"tools": TOOLS})


def ask(*replies: Any, **options: Any) -> tuple[Any, Scripted]:
    """Search over a network of these replies; what is raised is returned."""
    network = Scripted(*replies)
    chosen = {"retry": RetryPolicy(tries=1), "timing": SimulatedTiming(), "transport": network, **options}
    try:
        return run(URL, lambda client: client.search(), **chosen), network
    except (AAPError, A2AError, TransportError) as error:
        return error, network


def test_a_call_says_its_revision_its_method_and_its_tool() -> None:
    _, network = ask(LISTED, rpc({"structuredContent": PAGE}))
    request = network.posts[1]
    assert request.headers["mcp-protocol-version"] == "2026-07-28"
    assert (request.headers["mcp-method"], request.headers["mcp-name"]) == ("tools/call", "aap_inventory_search")
    params = json.loads(request.content)["params"]
    assert params["arguments"] == {"type": "inventory.search.request"}
    assert params["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"


@pytest.mark.parametrize(
    "reply",
    [
        rpc({"structuredContent": PAGE}),
        rpc({"content": [{"type": "image"}, {"type": "text", "text": json.dumps(PAGE)}]}),
        events({"jsonrpc": "2.0", "method": "notifications/message"}, {"structuredContent": PAGE}),
    ],
    ids=["structured", "text", "events"],
)
def test_every_shape_of_a_result_is_read(reply: Any) -> None:
    page, _ = ask(LISTED, reply)
    assert page.total == 0


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (rpc({"content": [{"type": "text", "text": "no JSON"}]}), FailureKind.UNREADABLE),
        (rpc({"structuredContent": {"type": "inventory.vehicle.response", "data": {}}}), FailureKind.UNREADABLE),
        (rpc({"isError": True, "content": []}), FailureKind.UNREADABLE),
        (rpc([]), FailureKind.UNREADABLE),
        (httpx.Response(200, content=b"data: {\r\n\r\n", headers=STREAM), FailureKind.UNREADABLE),
        (httpx.Response(200, content=b": quiet\n\n", headers=STREAM), FailureKind.UNREADABLE),
        (httpx.Response(401), FailureKind.AUTH_REQUIRED),
        (httpx.Response(503), FailureKind.STATUS),
        (httpx.ReadError("lost"), FailureKind.CONNECTION),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told_as_that(reply: Any, kind: FailureKind) -> None:
    error, _ = ask(LISTED, reply)
    assert isinstance(error, TransportError)
    assert error.kind is kind


def test_an_error_of_the_protocol_stays_one() -> None:
    told = {"code": -32602, "message": "Unknown tool", "data": {"a": 1}}
    error, _ = ask(LISTED, rpc(error=told))
    assert isinstance(error, A2AError)
    assert error.to_payload() == told


def test_a_throttled_tool_is_tried_again_when_it_may_be() -> None:
    timing = SimulatedTiming()
    limited = rpc({"isError": True, "structuredContent": aap("RATE_LIMITED", True, retry_after_ms=4000)})
    page, network = ask(LISTED, limited, rpc({"structuredContent": PAGE}), retry=RetryPolicy(tries=2), timing=timing)
    assert page.total == 0
    assert timing.waits == [4.0]
    assert len(network.posts) == 3


@pytest.mark.parametrize(
    "tools", [{"tools": [{"name": "wash_car"}]}, {"tools": []}, {"tools": "x"}, {"tools": TOOLS[:1]}]
)
def test_a_server_without_the_tool_is_no_dealer_for_this(tools: Any) -> None:
    error, network = ask(rpc(tools))
    assert isinstance(error, TransportError)
    assert isinstance(error, DealerError) or tools["tools"] == "x"
    assert all(json.loads(request.content)["method"] != "tools/call" for request in network.posts)


def test_a_list_of_tools_in_pages_is_read_and_one_without_end_is_bounded() -> None:
    page, _ = ask(rpc({"tools": TOOLS[:2], "nextCursor": "2"}), LISTED, rpc({"structuredContent": PAGE}))
    assert page.total == 0
    error, network = ask(rpc({"tools": [{"name": "other"}], "nextCursor": "2"}))
    assert isinstance(error, DealerError)
    assert len(network.posts) == 20


def test_a_lead_is_never_what_a_revision_is_tried_with() -> None:
    network = Scripted(rpc(error={"code": -32600, "message": "no"}, status=400))
    grant = ConsentGrant("Yes.", ("email",), datetime.now(UTC))
    with pytest.raises(A2AError):
        run(URL, lambda client: client.submit_lead({"first_name": "A"}, grant), transport=network)
    methods = {json.loads(request.content)["method"] for request in network.posts}
    assert methods == {"tools/list", "initialize"}


def test_a_handshake_into_an_unknown_revision_is_refused() -> None:
    old = rpc({"protocolVersion": "1999-01-01", "capabilities": {}})
    error, _ = ask(rpc(error={"code": -32600, "message": "no"}, status=400), old)
    assert isinstance(error, TransportError)
    assert error.kind is FailureKind.BINDING_MISMATCH
