"""Our client at a dealer that is built on the official `a2a-sdk` server, over real HTTP."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from a2a.helpers.proto_helpers import new_data_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentExtension, AgentInterface
from a2a.utils.errors import InternalError, InvalidParamsError
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette

from forecourt.agent import Caller
from forecourt.client import Client, ConsentGrant, RetryPolicy, connect
from forecourt.errors import AAPError
from forecourt.server import Application, create_app, load

URI = "https://autoagentprotocol.org/extensions/aap/v1.1"


class Dealer(AgentExecutor):
    """An AAP dealer as a user of the SDK would write it; the cars and leads are those of our agent."""

    def __init__(self, app: Application) -> None:
        self._agent = app.deployment.agent
        self._contract = app.deployment.contracts["1.1"]

    async def execute(self, context: RequestContext, event_queue: Any) -> None:
        """Answer one message."""
        assert context.message is not None
        payload = MessageToDict(context.message.parts[0].data)
        try:
            reply = await self._agent.run(self._contract.read(payload), Caller())
        except AAPError as error:
            # All that the SDK lets a server say: a code of its own, and metadata of strings.
            metadata = {"code": error.code, "error_id": error.error_id, "created_at": error.created_at,
                        "retryable": str(error.retryable).lower()}  # fmt: skip
            raise InvalidParamsError(error.message, data=metadata) from None
        except KeyError:
            raise InternalError("unforeseen") from None
        answer = json.loads(self._contract.write(reply))
        await event_queue.enqueue_event(new_data_message(answer, context_id=context.context_id))

    async def cancel(self, context: RequestContext, event_queue: Any) -> None:
        """Do nothing: there is nothing to cancel."""


@pytest.fixture(scope="module")
def dealer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the running dealer."""
    folder: Path = tmp_path_factory.mktemp("sdk-dealer")
    ours = create_app(load(None, data=str(folder)))
    card = AgentCard(
        name="SDK Motors",
        description="A dealer.",
        version="1",
        supported_interfaces=[AgentInterface(url="/rpc", protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(extensions=[AgentExtension(uri=URI)]),
        default_input_modes=["application/json"],
        default_output_modes=["application/json"],
    )
    box: list[Starlette] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await ours.deployment.open()
            executor = Dealer(ours)
            handler = DefaultRequestHandlerV2(agent_executor=executor, task_store=InMemoryTaskStore(), agent_card=card)
            box.append(Starlette(routes=[*create_jsonrpc_routes(handler, "/rpc"), *create_agent_card_routes(card)]))
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await ours.deployment.close()
            await send({"type": "lifespan.shutdown.complete"})
        else:
            await box[0](scope, receive, send)

    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", ws="none"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 15
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < end
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(15)


def run(url: str, work: Any) -> Any:
    """Connect and do the work."""

    async def whole() -> Any:
        async with connect(url, retry=RetryPolicy(tries=1)) as client:
            return await work(client)

    return asyncio.run(whole())


def test_all_five_skills_answer_with_whole_numbers(dealer: str) -> None:
    async def work(client: Client) -> None:
        assert (client.name, client.contract) == ("SDK Motors", "1.1")
        assert (await client.information()).name == "Demo Auto Group"
        assert (await client.facets(fuel="bev")).makes[0].count == 20
        page = await client.search(make="Honda", sort="price", limit=2)
        assert [type(car.price) for car in page] == [int, int]
        assert len({car.vehicle_id async for car in client.search_all(make="Tesla", limit=7)}) > 7
        assert (await client.vehicle(page.vehicles[0].vin)).vin == page.vehicles[0].vin
        grant = ConsentGrant("Yes.", ("email",), datetime.now(UTC))
        customer = {"first_name": "Jordan", "last_name": "Lee", "email": "jordan@example.com"}
        submission = client.prepare_lead(customer, grant)
        receipt = await client.reconcile(submission)
        assert receipt.status == "received"
        assert await client.reconcile(submission) == receipt

    run(dealer, work)


@pytest.mark.requirement("ERR-SDK-OLDER-ADAPTERS")
def test_a_skill_failure_is_read_from_what_the_sdk_lets_a_server_say(dealer: str) -> None:
    with pytest.raises(AAPError) as caught:
        run(dealer, lambda client: client.search(mkae="Honda"))
    assert (caught.value.code, caught.value.retryable) == ("SCHEMA_VALIDATION_FAILED", False)
    with pytest.raises(AAPError) as consent:
        run(dealer, lambda client: client.call("lead.submit", {"customer": {"first_name": "A", "last_name": "B",
            "email": "a@example.com"}, "source_agent": {"name": "x"}}))  # fmt: skip
    assert consent.value.code == "CONTACT_CONSENT_REQUIRED"
