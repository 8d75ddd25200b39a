"""Several vehicles and several dealers at once."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from tests.client import hostile as acts
from tests.client.hostile import hostile
from tests.client.simulated import SITE, Scripted, aap, detail, message, rpc_error

from forecourt.a2a import FailureKind
from forecourt.client import (
    NO_RETRY,
    CardCache,
    Comparison,
    TransportError,
    availability,
    compare,
    connect,
    search_dealers,
)
from forecourt.errors import AAPError

CARS = {
    "A": {"vin": "A", "price": 100, "make": "Honda", "status": "available"},
    "B": {"vin": "B", "price": 200, "make": "Honda", "status": "pending"},
}


class Counting(Scripted):
    """A dealer of two cars, that notes how many requests are under way at once."""

    under_way = most = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        try:
            return await super().handle_async_request(request)
        finally:
            self.under_way -= 1


def dealer() -> Counting:
    def answer(request: httpx.Request) -> httpx.Response:
        vin = json.loads(request.content)["params"]["message"]["parts"][0]["data"]["vin"]
        if vin in CARS:
            return message(CARS[vin], "inventory.vehicle")(request)
        if vin == "LOST":
            raise httpx.ReadError("lost")
        codes = {"GONE": "VEHICLE_UNAVAILABLE", "ODD": "SCHEMA_VALIDATION_FAILED"}
        return rpc_error(-32000, detail(aap(codes.get(vin, "VEHICLE_NOT_FOUND"))))

    return Counting(answer)


@pytest.mark.requirement("ERR-VEHICLE-REFRESH")
def test_many_vins_are_asked_about_and_each_failure_is_its_own() -> None:
    network = dealer()

    async def work() -> list[Any]:
        async with connect(SITE, transport=network, retry=NO_RETRY) as client:
            return await availability(client, ["A", "GONE", "B", "X", "ODD", "LOST", "A"], at_once=2)

    found = asyncio.run(work())
    assert [(each.vin, each.status) for each in found] == [
        ("A", "available"), ("GONE", "gone"), ("B", "pending"), ("X", "unknown"), ("ODD", "failed"), ("LOST", "failed"),
    ]  # fmt: skip
    assert found[0].vehicle.price == 100
    assert isinstance(found[1].error, AAPError)
    assert isinstance(found[5].error, TransportError)
    assert network.most == 2


def test_a_comparison_shows_what_differs_and_what_is_missing() -> None:
    async def work() -> Comparison:
        async with connect(SITE, transport=dealer()) as client:
            return await compare(client, ["A", "B", "GONE"])

    found = asyncio.run(work())
    assert found.rows == {"price": (100, 200), "status": ("available", "pending")}
    assert [each.vin for each in found.missing] == ["GONE"]


def test_bounds_are_kept_by_the_caller_too() -> None:
    async def work(**options: Any) -> None:
        async with connect(SITE, transport=dealer()) as client:
            await availability(client, map(str, range(options.pop("count", 1))), **options)

    with pytest.raises(ValueError, match="at most 1000"):
        asyncio.run(work(count=1001))
    with pytest.raises(ValueError, match="at least 1"):
        asyncio.run(work(at_once=0))


def test_several_dealers_answer_each_for_itself(demo: str) -> None:
    silent = [acts.silence] * 9
    with hostile(demo, *silent) as slow, hostile(demo, acts.say(b"nonsense")) as mad:
        urls = [demo, slow.url, "http://127.0.0.1:9", mad.url, "not an address", f"{demo}/v1.1", demo]
        options = {"retry": NO_RETRY, "cache": CardCache()}
        found = asyncio.run(
            search_dealers(urls, make="Honda", sort="price", limit=2, seconds=3, at_once=3, options=options)
        )
    assert [each.url for each in found] == urls[:-1]
    assert [each.page is not None for each in found] == [True, False, False, False, False, True]
    first, last = found[0].page, found[5].page
    assert first is not None
    assert last is not None
    assert [car.vin for car in first] == [car.vin for car in last]
    kinds = [each.error.kind for each in found if isinstance(each.error, TransportError)]
    assert kinds == [
        FailureKind.TIMEOUT, FailureKind.CONNECTION, FailureKind.UNREADABLE, FailureKind.BAD_ENDPOINT
    ]  # fmt: skip
    assert found[0].name == "Demo Auto Group"
