"""The client without await, against the real dealer."""

import asyncio
import inspect
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.client.simulated import SITE, Scripted, message

import forecourt
from forecourt.client import Client, ConsentGrant, SyncClient, connect_sync


def test_every_skill_answers_without_await(demo: str, tmp_path: Path) -> None:
    with connect_sync(demo) as dealer:
        assert (dealer.contract, dealer.binding, dealer.endpoint) == ("3.1", "a2a", f"{demo}/a2a")
        assert dealer.name == dealer.information().name == "Demo Auto Group"
        assert dealer.card is not None
        assert dealer.facets(fuel="bev").makes[0].value == "Tesla"
        page = dealer.search(make="Tesla", limit=3)
        assert dealer.refresh(page) == page
        every = list(dealer.search_all(make="Tesla", limit=7))
        assert len(every) == len({car.vehicle_id for car in every}) == page.total
        assert dealer.vehicle(page.vehicles[0].vin) == page.vehicles[0]
        assert dealer.call("inventory.search", {"pagination": {"limit": 1}})["data"]["limit"] == 1
        grant = ConsentGrant("Yes.", ("email",), datetime.now(UTC))
        customer = {"first_name": "Without", "last_name": "Await", "email": "w@example.com"}
        receipt = dealer.submit_lead(customer, grant, pending=tmp_path / "lead.json")
        assert receipt.status == "received"
        with pytest.raises(FileNotFoundError):
            dealer.resume_lead(tmp_path / "lead.json")


def test_it_works_inside_a_running_loop(demo: str) -> None:
    async def inside() -> str:
        with connect_sync(demo) as dealer:
            return dealer.name

    assert asyncio.run(inside()) == "Demo Auto Group"


def test_it_ends_its_thread_and_is_closed_once() -> None:
    before = threading.active_count()
    dealer = connect_sync(SITE, transport=Scripted(message({"total": 0, "vehicles": []})))
    assert dealer.search().total == 0
    dealer.close()
    dealer.close()
    assert threading.active_count() == before
    with pytest.raises(RuntimeError, match="this client is closed"):
        dealer.search()


def test_a_dealer_that_is_not_found_leaves_no_thread() -> None:
    before = threading.active_count()
    with pytest.raises(forecourt.TransportError):
        connect_sync(SITE, transport=Scripted(pages={}))
    assert threading.active_count() == before


def test_both_faces_have_the_same_methods_with_the_same_arguments() -> None:
    skills = ("information", "facets", "search", "refresh", "search_all", "vehicle", "submit_lead", "resume_lead",
              "reconcile", "call")  # fmt: skip
    for name in skills:
        ours, theirs = (inspect.signature(getattr(each, name)).parameters for each in (SyncClient, Client))
        assert list(ours) == list(theirs), name
        assert [each.kind for each in ours.values()] == [each.kind for each in theirs.values()], name
        assert [each.default for each in ours.values()] == [each.default for each in theirs.values()], name
