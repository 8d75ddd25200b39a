"""The inventory side of every store (docstrings of `Store`; ARCHITECTURE.md)."""

import asyncio
import json
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.store.database import Database
from tests.store.paused import import_during
from tests.store.sample import NOW, listing

from forecourt.model import VehicleReference
from forecourt.store import InventoryChange, Store, StoredListing

BOTH = [listing("1"), listing("2")]


def ids(rows: Iterable[StoredListing]) -> list[str]:
    return [row.listing_id for row in rows]


def stock(runner: asyncio.Runner, store: Store) -> list[StoredListing]:
    return runner.run(store.read_listings(list))[1]


def test_a_new_store_is_empty_and_at_its_first_generation(store: Store, runner: asyncio.Runner) -> None:
    generation = runner.run(store.inventory_generation())
    assert runner.run(store.read_listings(list)) == (generation, [])


def test_listings_come_back_in_the_order_of_their_ids_with_identifiers_as_compared(
    store: Store, runner: asyncio.Runner
) -> None:
    rows = [
        listing("b", vin=" 1hgcy2f57ra000001 "),
        listing("a", dealer_id="dealer-b", vin=None),
        replace(listing("A"), stock="  ", vehicle_id="A"),
    ]
    runner.run(store.replace_listings("dealer-a", None, [rows[0], rows[2]], NOW))
    runner.run(store.replace_listings("dealer-b", None, [rows[1]], NOW))
    found = stock(runner, store)
    assert ids(found) == ["dealer-a/A", "dealer-a/b", "dealer-b/a"]
    assert [row.body for row in found] == [rows[2].body, rows[0].body, rows[1].body]
    assert [(row.vin, row.vehicle_id, row.stock) for row in found] == [
        (None, "a", None),
        ("1hgcy2f57ra000001", "b", "sb"),
        (None, "a", "sa"),
    ]
    assert all(type(row.body) is bytes for row in found)


def test_one_sellers_listings_are_read_by_themselves(store: Store, runner: asyncio.Runner) -> None:
    runner.run(store.replace_listings("dealer-a", None, [listing("2"), listing("1")], NOW))
    runner.run(store.replace_listings("dealer-b", None, [listing("3", dealer_id="dealer-b")], NOW))
    generation, found = runner.run(store.read_listings(ids, "dealer-a"))
    assert (generation, found) == (runner.run(store.inventory_generation()), ["dealer-a/1", "dealer-a/2"])
    assert runner.run(store.read_listings(ids, "dealer-c"))[1] == []


def test_only_what_differs_is_counted_as_changed(store: Store, runner: asyncio.Runner) -> None:
    first = runner.run(store.replace_listings("dealer-a", None, [listing("1"), listing("2"), listing("3")], NOW))
    assert first == InventoryChange(imported=3, changed=0, unchanged=0, removed=0)
    rows = [listing("1"), listing("2", price=1), listing("4")]
    second = runner.run(store.replace_listings("dealer-a", None, rows, NOW))
    assert second == InventoryChange(imported=3, changed=1, unchanged=1, removed=1)
    assert [json.loads(row.body)["price"] for row in stock(runner, store)] == [20_000, 1, 20_000]


def test_the_generation_grows_with_every_change_and_only_then(store: Store, runner: asyncio.Runner) -> None:
    def import_(rows: list[StoredListing]) -> int:
        runner.run(store.replace_listings("dealer-a", None, rows, NOW))
        return runner.run(store.inventory_generation())

    seen = [runner.run(store.inventory_generation()), import_(BOTH), import_(BOTH[:1])]
    seen += [import_([listing("1", price=5)]), import_([listing("1", rooftop="South", price=5)]), import_([])]
    assert seen == sorted(set(seen)), "each change is a new, higher number"
    assert import_([]) == seen[-1]
    import_(BOTH)
    before = runner.run(store.inventory_generation())
    assert import_(list(reversed(BOTH))) == before
    assert runner.run(store.read_listings(list))[0] == before


def test_of_several_listings_with_one_id_the_last_counts(store: Store, runner: asyncio.Runner) -> None:
    rows = [listing("1", price=1), listing("2"), listing("1", price=2), listing("1", price=3)]
    change = runner.run(store.replace_listings("dealer-a", None, rows, NOW))
    assert change == InventoryChange(imported=2, changed=0, unchanged=0, removed=0)
    assert json.loads(stock(runner, store)[0].body)["price"] == 3


def test_replacing_one_sellers_stock_leaves_the_others(store: Store, runner: asyncio.Runner) -> None:
    runner.run(store.replace_listings("dealer-b", None, [listing("9", dealer_id="dealer-b")], NOW))
    runner.run(store.replace_listings("dealer-a", None, BOTH, NOW))
    change = runner.run(store.replace_listings("dealer-a", None, [], NOW))
    assert change.removed == 2
    assert ids(stock(runner, store)) == ["dealer-b/9"]


def test_replacing_one_rooftop_leaves_the_other(store: Store, runner: asyncio.Runner) -> None:
    north, south = [listing("1"), listing("2")], [listing("3", rooftop="South")]
    runner.run(store.replace_listings("dealer-a", None, north + south, NOW))
    change = runner.run(store.replace_listings("dealer-a", "North", [listing("2"), listing("4")], NOW))
    assert change == InventoryChange(imported=2, changed=0, unchanged=1, removed=1)
    assert ids(stock(runner, store)) == ["dealer-a/2", "dealer-a/3", "dealer-a/4"]
    assert not runner.run(store.has_departed(["dealer-a"], VehicleReference(vehicle_id="3")))


def test_a_listing_that_moves_to_the_replaced_rooftop_is_changed_and_not_doubled(
    store: Store, runner: asyncio.Runner
) -> None:
    runner.run(store.replace_listings("dealer-a", None, [listing("1", rooftop="South")], NOW))
    change = runner.run(store.replace_listings("dealer-a", "North", [listing("1", rooftop="North")], NOW))
    assert change == InventoryChange(imported=1, changed=1, unchanged=0, removed=0)
    assert [row.rooftop for row in stock(runner, store)] == ["North"]


@pytest.mark.requirement("ERR-VEHICLE-FORMERLY-KNOWN")
def test_vanished_listings_are_remembered_by_each_identifier_and_by_their_seller(
    store: Store, runner: asyncio.Runner
) -> None:
    def departed(reference: VehicleReference, *dealers: str) -> bool:
        return runner.run(store.has_departed(dealers or ("dealer-a",), reference))

    runner.run(store.replace_listings("dealer-a", None, [listing("1", vin="VIN1"), listing("2", vin="VIN2")], NOW))
    assert not departed(VehicleReference(vin="VIN1"))
    runner.run(store.replace_listings("dealer-a", None, [listing("2", vin="VIN2")], NOW))
    assert departed(VehicleReference(vin=" vin1 "))
    assert departed(VehicleReference(vehicle_id="1"))
    assert departed(VehicleReference(stock="s1"))
    assert departed(VehicleReference(vin="never", stock="S1"))
    assert departed(VehicleReference(vin="VIN1"), "dealer-b", "dealer-a")
    assert not departed(VehicleReference(vin="VIN1"), "dealer-b")
    assert not departed(VehicleReference(vin="VIN2"))
    assert not departed(VehicleReference(vehicle_id="VIN1"))
    assert not runner.run(store.has_departed((), VehicleReference(vin="VIN1")))


def test_listings_can_be_remembered_that_were_never_held(store: Store, runner: asyncio.Runner) -> None:
    references = [VehicleReference("VIN7", "7", None), VehicleReference(stock="S8"), VehicleReference(stock=" ")]
    for _ in range(2):
        runner.run(store.remember_departed("dealer-a", references, NOW))
    for reference in (VehicleReference("vin7"), VehicleReference(vehicle_id="7"), VehicleReference(stock="s8")):
        assert runner.run(store.has_departed(["dealer-a"], reference))
    assert not runner.run(store.has_departed(["dealer-a"], VehicleReference(stock=" ")))
    assert stock(runner, store) == []


def test_a_check_is_told_the_change_and_can_refuse_it(store: Store, runner: asyncio.Runner) -> None:
    runner.run(store.replace_listings("dealer-a", None, BOTH, NOW))
    before = runner.run(store.read_listings(list))
    told: list[InventoryChange] = []

    class TooFewError(Exception):
        pass

    def check(change: InventoryChange) -> None:
        told.append(change)
        raise TooFewError

    with pytest.raises(TooFewError):
        runner.run(store.replace_listings("dealer-a", None, [listing("3")], NOW, check))
    assert told == [InventoryChange(imported=1, changed=0, unchanged=0, removed=2)]
    assert runner.run(store.read_listings(list)) == before
    assert not runner.run(store.has_departed(["dealer-a"], VehicleReference(vehicle_id="1")))


@pytest.mark.parametrize("failure", [ValueError("row 3"), OSError("the feed went away")])
def test_a_feed_that_breaks_half_way_leaves_the_old_stock(
    store: Store, runner: asyncio.Runner, failure: Exception
) -> None:
    runner.run(store.replace_listings("dealer-a", None, BOTH, NOW))
    before = runner.run(store.read_listings(list))

    def broken() -> Iterator[StoredListing]:
        yield from (listing(str(number)) for number in range(3000))
        raise failure

    with pytest.raises(type(failure)) as raised:
        runner.run(store.replace_listings("dealer-a", None, broken(), NOW))
    assert raised.value is failure
    assert runner.run(store.read_listings(list)) == before
    assert runner.run(store.replace_listings("dealer-a", None, BOTH, NOW)).unchanged == 2


def test_listings_are_used_up_outside_of_the_event_loop(store: Store, runner: asyncio.Runner) -> None:
    threads: list[int] = []

    def rows() -> Iterator[StoredListing]:
        threads.append(threading.get_ident())
        yield listing("1")

    def take(found: Iterable[StoredListing]) -> int:
        threads.append(threading.get_ident())
        return len(list(found))

    runner.run(store.replace_listings("dealer-a", None, rows(), NOW))
    assert runner.run(store.read_listings(take))[1] == 1
    assert len(threads) == 2
    assert threading.get_ident() not in threads


def test_a_reader_sees_one_generation_though_the_stock_is_replaced_meanwhile(
    store: Store, runner: asyncio.Runner
) -> None:
    runner.run(store.replace_listings("dealer-a", None, [listing(f"{n:03}", price=1) for n in range(500)], NOW))
    reading, replaced = threading.Event(), threading.Event()

    def take(rows: Iterable[StoredListing]) -> set[int]:
        prices = set()
        for row in rows:
            reading.set()
            assert replaced.wait(30)
            prices.add(json.loads(row.body)["price"])
        return prices

    async def both() -> tuple[tuple[int, set[int]], int]:
        task = asyncio.create_task(store.read_listings(take))
        await asyncio.to_thread(reading.wait, 30)
        await store.replace_listings("dealer-a", None, [listing(f"{n:03}", price=2) for n in range(500)], NOW)
        generation = await store.inventory_generation()
        replaced.set()
        return await task, generation

    (seen, prices), newest = runner.run(both())
    assert prices == {1}
    assert seen < newest


def test_what_a_reader_raises_comes_out_and_the_store_goes_on(store: Store, runner: asyncio.Runner) -> None:
    runner.run(store.replace_listings("dealer-a", None, BOTH, NOW))

    def take(rows: Iterable[StoredListing]) -> None:
        next(iter(rows))
        raise LookupError("stop")

    for _ in range(10):
        with pytest.raises(LookupError):
            runner.run(store.read_listings(take))
    assert len(stock(runner, store)) == 2


def test_two_imports_at_once_leave_one_of_the_two_stocks(store: Store, runner: asyncio.Runner) -> None:
    stocks = [[listing(f"{n:03}", price=price) for n in range(200)] for price in (1, 2, 3)]

    async def all_at_once() -> None:
        await asyncio.gather(*(store.replace_listings("dealer-a", None, rows, NOW) for rows in stocks))

    runner.run(all_at_once())
    assert len({json.loads(row.body)["price"] for row in stock(runner, store)}) == 1


def test_a_departed_listing_can_return_and_depart_again(
    store: Store, runner: asyncio.Runner, database: Database, address: str
) -> None:
    for day, rows in enumerate([BOTH, [], BOTH, []]):
        runner.run(store.replace_listings("dealer-a", None, rows, NOW + timedelta(days=day)))
    assert runner.run(store.has_departed(["dealer-a"], VehicleReference(vehicle_id="1")))
    statement = "SELECT count(*) FROM departed WHERE kind = 'vehicle_id' AND value = '1'"
    assert database.execute(address, statement)[0][0] == 1


def test_a_listing_found_unchanged_that_others_change_or_remove_meanwhile_is_restored(
    store: Store, runner: asyncio.Runner
) -> None:
    rows = [listing(f"{number:05}", vin=f"VIN{number}") for number in range(2500)]
    runner.run(store.replace_listings("dealer-a", None, rows, NOW))
    before = runner.run(store.read_listings(list))
    cheaper = [replace(row, body=row.body.replace(b"20000", b"10000")) for row in rows[:1500]]
    cheapest = [replace(row, body=row.body.replace(b"20000", b"5000")) for row in rows[:1000]]
    change = runner.run(import_during(store, rows, [(cheaper, timedelta(0)), (cheapest, timedelta(minutes=1))]))
    assert change == InventoryChange(imported=2500, changed=1000, unchanged=0, removed=0)
    generation, found = runner.run(store.read_listings(list))
    assert generation == before[0] + 3
    assert found == [replace(row, generation=generation) for row in before[1]]
    past = runner.run(store.past_listings(before[0], generation, 10_000, list))
    assert past is not None
    assert {row.listing_id: row.body for row in past if row.body is not None} == {
        row.listing_id: row.body for row in rows
    }
