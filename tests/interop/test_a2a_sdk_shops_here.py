"""The official Python `a2a-sdk` client, over real HTTP: card, activation, five skills, three failures.

Once with the SDK's own transport, to know what a plain client of the SDK keeps, and once with ours in its place.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import Client, ClientCallContext
from a2a.client.errors import A2AClientError
from a2a.types import AgentCard, Message, Part, Role, SendMessageRequest
from a2a.utils.errors import ExtensionSupportRequiredError, InvalidParamsError
from google.protobuf import json_format, struct_pb2
from tests.server_process import ServerFarm

from forecourt.a2a import ErrorCode
from forecourt.client.a2a_sdk import activation, error_of, forecourt_transport, payload_of, protocol_error
from forecourt.errors import AAPError

T = TypeVar("T")

SEARCH = {
    "type": "inventory.search.request",
    "filters": {"make": ["Honda"], "year_min": 2020},
    "pagination": {"limit": 2},
}
MISTAKE = {"type": "inventory.search.request", "filters": {"mkae": ["Honda"], "year_min": "2022"}}
UNCONSENTED = {
    "type": "lead.submit.request",
    "customer": {"first_name": "Jordan", "last_name": "Lee", "email": "jordan@example.com"},
    "source_agent": {"name": "a2a-sdk"},
}


def shop(url: str, ours: bool, work: Callable[[Client, AgentCard], Awaitable[T]]) -> T:
    """Fetch the card with the SDK, make its client, do the work."""

    async def whole() -> T:
        async with httpx.AsyncClient(timeout=20) as http:
            card = await A2ACardResolver(http, url).get_agent_card()
            config = ClientConfig(streaming=False, httpx_client=http)
            factory = ClientFactory(config)
            if ours:
                factory.register("JSONRPC", forecourt_transport(config))
            return await work(factory.create(card), card)

    return asyncio.run(whole())


async def send(client: Client, payload: dict[str, Any], parameters: dict[str, str] | None) -> Any:
    """Send one payload and return the answer's data."""
    part = Part(data=json_format.ParseDict(payload, struct_pb2.Value()))
    request = SendMessageRequest(message=Message(message_id=uuid.uuid4().hex, role=Role.ROLE_USER, parts=[part]))
    answers = client.send_message(request, context=ClientCallContext(service_parameters=parameters))
    found = [payload_of(answer) async for answer in answers]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("ours", [False, True], ids=["the SDK's transport", "ours"])
def test_all_five_skills_answer_and_whole_numbers_are_integers(servers: ServerFarm, ours: bool) -> None:
    async def work(client: Client, card: AgentCard) -> None:
        parameters = activation(card)
        assert parameters == {"A2A-Extensions": "https://autoagentprotocol.org/extensions/aap/v3.1"}
        information = await send(client, {"type": "dealer.information.request"}, parameters)
        assert information["data"]["name"] == "Demo Auto Group"
        facets = await send(client, {"type": "inventory.facets.request"}, parameters)
        assert type(facets["data"]["makes"][0]["count"]) is int
        page = await send(client, SEARCH, parameters)
        car = page["data"]["vehicles"][0]
        assert {type(car[name]) for name in ("price", "year", "mileage")} == {int}
        found = await send(client, {"type": "inventory.vehicle.request", "vin": car["vin"]}, parameters)
        assert found["data"] == car
        consent = {"granted_at": datetime.now(UTC).isoformat(), "allowed_channels": ["email"],
                   "consent_text": "Yes.", "scope": ["lead_submission"]}  # fmt: skip
        key = str(uuid.uuid4())
        lead = {**UNCONSENTED, "consent": consent, "idempotency_key": key, "vehicle_of_interest": {"vin": car["vin"]}}
        receipt = await send(client, lead, parameters)
        assert receipt["data"]["status"] == "received" if ours else "data" in receipt
        assert await send(client, lead, parameters) == receipt

    shop(servers.get("demo").base_url, ours, work)


def failure(url: str, ours: bool, payload: dict[str, Any], parameters: dict[str, str] | None = None) -> Exception:
    """Return what a client of the SDK raises."""

    async def work(client: Client, card: AgentCard) -> Exception:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - which one it is, is what the tests are about
            await send(client, payload, activation(card) if parameters is None else parameters)
        return caught.value

    return shop(url, ours, work)


@pytest.mark.requirement("ERR-SDK-VERIFY-CLIENT", "ERR-SDK-RAW-KEPT", "ERR-SDK-EXTRACT")
def test_with_our_transport_the_whole_typed_error_is_there(servers: ServerFarm) -> None:
    url = servers.get("demo").base_url
    validation = failure(url, True, MISTAKE)
    assert isinstance(validation, AAPError)
    assert validation.code == "SCHEMA_VALIDATION_FAILED"
    assert [(each.location, each.keyword) for each in validation.problems] == [
        ("/filters/mkae", "additionalProperties"), ("/filters/year_min", "type")
    ]  # fmt: skip
    assert "did you mean" in (validation.hint or "")
    assert validation.received is not None
    assert b"aap.error" in validation.raw.body
    consent = failure(url, True, UNCONSENTED)
    assert isinstance(consent, AAPError)
    assert (consent.code, consent.retryable) == ("CONTACT_CONSENT_REQUIRED", False)


@pytest.mark.requirement("ERR-SDK-VERIFY-CLIENT")
def test_with_our_transport_a_throttling_says_how_long_to_wait(servers: ServerFarm) -> None:
    url = servers.get("rate-limited").base_url
    found = [failure(url, True, MISTAKE) for _ in range(2)][1]
    assert isinstance(found, AAPError)
    assert (found.code, found.retryable) == ("RATE_LIMITED", True)
    assert type(found.retry_after_ms) is int
    assert found.retry_after_ms > 0


@pytest.mark.requirement("ERR-SDK-OLDER-ADAPTERS", "ERR-SDK-VERIFY-CLIENT")
def test_what_the_sdks_own_transport_keeps_is_read_as_well_as_it_can_be(servers: ServerFarm) -> None:
    url = servers.get("demo").base_url
    validation = failure(url, False, MISTAKE)
    assert isinstance(validation, InvalidParamsError)
    rest = error_of(validation)
    assert rest is not None
    assert (rest.code, rest.retryable, rest.problems) == ("SCHEMA_VALIDATION_FAILED", False, ())
    consent = failure(url, False, UNCONSENTED)
    # Of -32000 the SDK keeps a sentence: this is why the transport is there.
    assert isinstance(consent, A2AClientError)
    assert error_of(consent) is None


@pytest.mark.parametrize("ours", [False, True], ids=["the SDK's transport", "ours"])
def test_an_error_of_the_protocol_stays_the_sdks_and_ours_keeps_it_whole(servers: ServerFarm, ours: bool) -> None:
    wrong = {"A2A-Extensions": "https://example.com/extensions/other"}
    error = failure(servers.get("demo").base_url, ours, SEARCH, wrong)
    assert isinstance(error, ExtensionSupportRequiredError)
    received = protocol_error(error)
    assert (received is not None) is ours
    if received is not None:
        assert received.code is ErrorCode.EXTENSION_SUPPORT_REQUIRED
        assert received.data[0]["metadata"]["requiredHeader"] == "A2A-Extensions"
        assert received.raw is not None
