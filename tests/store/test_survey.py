"""A look at a database, on every store: what it holds, and that nothing of it is changed by that."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from tests.store.database import Database
from tests.store.sample import NOW, lead, listing

from forecourt.store import (
    PARKED,
    WAITING,
    APIKey,
    Backlog,
    FeedState,
    LeadCount,
    LeadTransaction,
    NewDelivery,
    NoDatabaseError,
    Outcome,
    Purge,
    RooftopStock,
    Store,
    Survey,
    open_store,
)
from forecourt.store.statements import migrations

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def look(store: Store, runner: asyncio.Runner) -> Survey:
    return runner.run(store.survey([NOW - HOUR, NOW - DAY]))


def test_an_empty_database_has_its_migrations_and_nothing_else(store: Store, runner: asyncio.Runner) -> None:
    found = look(store, runner)
    assert found.applied[0] == "0001_inventory_and_leads"
    assert (found.missing, found.unknown, found.stock, found.leads, found.backlogs) == ((), 0, [], [], [])
    assert (found.feeds, found.keys, found.keys_revoked) == ([], 0, 0)


def test_listings_are_counted_by_rooftop(store: Store, runner: asyncio.Runner) -> None:
    stock = [listing("1"), listing("2"), listing("3", rooftop="South")]
    runner.run(store.replace_listings("dealer-a", None, stock, NOW))
    runner.run(store.replace_listings("dealer-b", None, [listing("1", "dealer-b")], NOW))
    assert look(store, runner).stock == [
        RooftopStock("dealer-a", "North", 2),
        RooftopStock("dealer-a", "South", 1),
        RooftopStock("dealer-b", "North", 1),
    ]


def test_leads_are_counted_from_each_beginning(store: Store, runner: asyncio.Runner) -> None:
    def work(transaction: LeadTransaction) -> None:
        transaction.add(lead("lead_1", received_at=NOW))
        transaction.add(lead("lead_2", received_at=NOW - HOUR, rooftop=None))
        transaction.add(lead("lead_3", received_at=NOW - 2 * HOUR))
        transaction.add(lead("lead_4", received_at=NOW - 2 * DAY))

    runner.run(store.decide_lead(work))
    assert sorted(look(store, runner).leads, key=lambda each: (each.since, each.rooftop or "")) == [
        LeadCount(NOW - DAY, "dealer-a", None, 1),
        LeadCount(NOW - DAY, "dealer-a", "North", 2),
        LeadCount(NOW - HOUR, "dealer-a", None, 1),
        LeadCount(NOW - HOUR, "dealer-a", "North", 1),
    ]


def test_deliveries_are_counted_by_target_with_the_oldest_one_and_its_reason(
    store: Store, runner: asyncio.Runner
) -> None:
    def work(transaction: LeadTransaction) -> None:
        for number in range(3):
            made = [NewDelivery(f"dlv_{number}", "a/crm", "adf"), NewDelivery(f"dlv_{number}_n", "a/mail", "notice")]
            transaction.add(lead(f"lead_{number}", received_at=NOW + number * HOUR, deliveries=made))

    runner.run(store.decide_lead(work))
    held = runner.run(store.claim_deliveries("w", NOW + DAY, NOW + 2 * DAY, 10, ["a/mail"]))
    for each, reason in zip(held, ("first", "second", None), strict=True):
        status = "parked" if reason else "delivered"
        runner.run(store.settle_delivery(each, Outcome(status, NOW + DAY, None, reason)))  # type: ignore[arg-type]
    assert look(store, runner).backlogs == [
        Backlog("a/crm", PARKED, 2, NOW, "first"),
        Backlog("a/mail", WAITING, 3, NOW, None),
    ]
    # What can never be sent again needs nobody's attention.
    runner.run(store.purge_leads(Purge(NOW, NOW, NOW, lead_id="lead_0")))
    assert look(store, runner).backlogs == [
        Backlog("a/crm", PARKED, 1, NOW + HOUR, "second"),
        Backlog("a/mail", WAITING, 2, NOW + HOUR, None),
    ]


def test_feeds_and_keys_are_told(store: Store, runner: asyncio.Runner) -> None:
    state = FeedState("a feed.csv 1", NOW, None, None, None, "failed", b"{}")
    runner.run(store.keep_feed_state(state))
    for number in range(3):
        runner.run(store.add_api_key(APIKey(f"k{number}", b"d", "x", None, None, None, NOW)))
    runner.run(store.revoke_api_key("k1", NOW))
    found = look(store, runner)
    assert (found.feeds, found.keys, found.keys_revoked) == ([state], 2, 1)


def test_where_no_database_is_none_is_made(address: str, runner: asyncio.Runner, tmp_path: Path) -> None:
    before = list(tmp_path.iterdir())
    with pytest.raises(NoDatabaseError, match="there is no database yet"):
        runner.run(open_store(address).survey([NOW]))
    assert list(tmp_path.iterdir()) == before


def test_a_database_of_an_older_version_is_told_and_left_so(
    address: str, database: Database, store: Store, runner: asyncio.Runner
) -> None:
    newest = migrations(address.partition(":")[0])[-1]
    database.execute(address, f"DELETE FROM migration WHERE number = {newest[0]}")
    found = look(store, runner)
    assert found.missing == [f"{newest[0]:04}_{newest[1]}"]
    assert len(found.applied) == newest[0] - 1
    assert database.execute(address, "SELECT max(number) FROM migration") == [(newest[0] - 1,)]


def test_a_database_of_a_newer_version_is_looked_at_all_the_same(
    address: str, database: Database, store: Store, runner: asyncio.Runner
) -> None:
    database.execute(address, "INSERT INTO migration VALUES (9000, 'of_tomorrow', '2030-01-01T00:00:00Z')")
    runner.run(store.replace_listings("dealer-a", None, [listing("1")], NOW))
    found = look(store, runner)
    assert (found.unknown, len(found.stock)) == (1, 1)
