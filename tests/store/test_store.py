"""Opening and closing a store, whichever it is (docstrings of `open_store` and `Store`)."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.store.conftest import DATABASES
from tests.store.database import Database
from tests.store.sample import NOW, listing, take_once

from forecourt.model import VehicleReference
from forecourt.store import (
    AccessRecord,
    AccessStore,
    APIKey,
    Delivery,
    FeedState,
    Mark,
    NewStatus,
    Outbox,
    Outcome,
    Purge,
    Secret,
    Store,
    StoreError,
    open_store,
)


@pytest.mark.parametrize(
    "address", ["", ":", "forecourt.db", "nosuch:x", "statements:x", "sql:x", "__init__:x", "../sqlite:x", "/x.db"]
)
def test_an_address_without_a_known_scheme_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="for example sqlite:"):
        open_store(address)


def test_every_kind_of_store_is_found_by_the_scheme_of_its_address() -> None:
    assert type(open_store("sqlite:forecourt.db")).__name__ == "SQLiteStore"
    assert type(open_store("SQLite+file:forecourt.db")).__name__ == "SQLiteStore"
    assert "sqlite" in DATABASES


def test_a_fresh_store_can_be_checked(store: Store, runner: asyncio.Runner) -> None:
    runner.run(store.check())


def test_opening_again_changes_nothing(store: Store, address: str, runner: asyncio.Runner) -> None:
    runner.run(store.replace_listings("dealer-a", None, [listing("1")], NOW))
    receipt = runner.run(store.decide_lead(take_once("key-1")))
    before = runner.run(store.read_listings(list))
    other = open_store(address)
    runner.run(other.open())
    assert runner.run(other.read_listings(list)) == before
    assert runner.run(other.decide_lead(take_once("key-1"))) == receipt
    runner.run(other.close())
    runner.run(store.check())


def test_closing_finishes_the_work_that_waits(
    store: Store, runner: asyncio.Runner, database: Database, address: str
) -> None:
    async def close_at_once() -> list[bytes]:
        waiting = [asyncio.create_task(store.decide_lead(take_once(f"key-{number}"))) for number in range(200)]
        reading = asyncio.create_task(store.leads(None, 1))
        await asyncio.sleep(0)
        await store.close()
        assert database.execute(address, "SELECT count(*) FROM lead")[0][0] == 200
        await reading
        return await asyncio.gather(*waiting)

    receipts = runner.run(close_at_once())
    runner.run(store.open())
    assert len(set(receipts)) == 200
    assert {row.receipt for row in runner.run(store.leads(None, 1000))} == set(receipts)


CLAIMED = Delivery("d", "lead_1", "crm", "adf", None, "waiting", 1, 0, NOW, NOW, None, None, "worker-1")
_RECORD = AccessRecord(b"{}", "v1")

OPERATIONS: dict[str, Callable[[Store], Any]] = {
    "check": lambda store: store.check(),
    "inventory_generation": lambda store: store.inventory_generation(),
    "replace_listings": lambda store: store.replace_listings("dealer-a", None, [], NOW),
    "remember_departed": lambda store: store.remember_departed("dealer-a", [VehicleReference("VIN1")], NOW),
    "read_listings": lambda store: store.read_listings(list),
    "has_departed": lambda store: store.has_departed(["dealer-a"], VehicleReference("VIN1")),
    "decide_lead": lambda store: store.decide_lead(take_once("key-1")),
    "recall": lambda store: store.recall("scope-1", "key-1", NOW),
    "recall_among": lambda store: store.recall_among(["scope-1"], "key-1", NOW),
    "leads": lambda store: store.leads(None, 1),
    "lead": lambda store: store.lead("lead_1"),
    "secrets": lambda store: store.secrets("cursor", lambda: Secret("k", b"v"), NOW),
    "changed_listings": lambda store: store.changed_listings(0, list),
    "past_listings": lambda store: store.past_listings(0, 1, 10, list),
    "stock": lambda store: store.stock(None, 1),
    "lease": lambda store: store.lease("feed", "worker-1", 60, NOW),
    "release": lambda store: store.release("feed", "worker-1"),
    "feed_state": lambda store: store.feed_state("feed"),
    "feed_states": lambda store: store.feed_states(),
    "api_keys": lambda store: store.api_keys(),
    "add_api_key": lambda store: store.add_api_key(APIKey("key-1", b"d", "n", None, None, None, NOW)),
    "revoke_api_key": lambda store: store.revoke_api_key("key-1", NOW),
    "claim_deliveries": lambda store: store.claim_deliveries("worker-1", NOW, NOW, 1),
    "hold_delivery": lambda store: store.hold_delivery(CLAIMED, NOW),
    "settle_delivery": lambda store: store.settle_delivery(CLAIMED, Outcome("delivered", NOW)),
    "next_delivery_at": lambda store: store.next_delivery_at(),
    "deliveries": lambda store: store.deliveries(["lead_1"]),
    "resend_deliveries": lambda store: store.resend_deliveries("lead_1", NOW),
    "delivery_counts": lambda store: store.delivery_counts(),
    "change_status": lambda store: store.change_status("lead_1", NewStatus("working"), NOW, lambda _: []),
    "status_changes": lambda store: store.status_changes("lead_1"),
    "purge_leads": lambda store: store.purge_leads(Purge(NOW, NOW, NOW)),
    "count_purge": lambda store: store.count_purge(Purge(NOW, NOW, NOW)),
    "lead_fields": lambda store: store.lead_fields("", 10),
    "count_lead_fields": lambda store: store.count_lead_fields(b""),
    "exchange_lead_fields": lambda store: store.exchange_lead_fields([]),
    "sweep": lambda store: store.sweep(NOW, NOW, 10),
    "keep_feed_state": lambda store: store.keep_feed_state(FeedState("feed", NOW, None, None, None, "ok", b"{}")),
    "access.get": lambda store: store.access.get("session", "s1", NOW),
    "access.put": lambda store: store.access.put("session", "s1", _RECORD),
    "access.create": lambda store: store.access.create("session", "s1", _RECORD, NOW),
    "access.replace": lambda store: store.access.replace("session", "s1", "v0", _RECORD, NOW),
    "access.take": lambda store: store.access.take("session", "s1", NOW),
    "access.delete": lambda store: store.access.delete("session", "s1"),
    "access.records": lambda store: store.access.records("session", NOW, 10),
    "access.admit": lambda store: store.access.admit([Mark(b"1" * 32, 0)], NOW),
    "access.forget_expired": lambda store: store.access.forget_expired(NOW, 10),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_store_that_is_not_open_answers_with_a_store_error(
    address: str, runner: asyncio.Runner, operation: str
) -> None:
    store = open_store(address)
    with pytest.raises(StoreError):
        runner.run(OPERATIONS[operation](store))
    runner.run(store.open())
    runner.run(OPERATIONS[operation](store))
    runner.run(store.close())
    runner.run(store.close())
    with pytest.raises(StoreError):
        runner.run(OPERATIONS[operation](store))


def test_every_operation_of_a_store_is_among_those_tried() -> None:
    methods = {name for name in [*vars(Store), *vars(Outbox)] if not name.startswith("_")}
    # What works on a database that nobody has open is in test_survey.py and test_backup.py.
    methods -= {"survey", "back_up", "restore"}
    methods |= {f"access.{name}" for name in vars(AccessStore) if not name.startswith("_")}
    assert methods - {"open", "close", "access"} == set(OPERATIONS)
