"""What every store remembers of listings that were changed or removed (docstrings of `Store`; CONTRACTS.md section 5,
"Continuation")."""

import asyncio
import random
from datetime import timedelta

import pytest
from tests.store.sample import NOW, listing

from forecourt.store import PAST_KEPT, PastListing, Store, StoredListing


def imported(runner: asyncio.Runner, store: Store, rows: list[StoredListing], minutes: float = 0) -> int:
    """Make `rows` the stock of their seller; return the generation after it."""
    runner.run(store.replace_listings("dealer-a", None, rows, NOW + timedelta(minutes=minutes)))
    return runner.run(store.inventory_generation())


def past(runner: asyncio.Runner, store: Store, generation: int, until: int) -> tuple[dict[str, bytes], set[str]] | None:
    """Return what had a body then, by id, and all the ids."""

    found: list[PastListing] | None = runner.run(store.past_listings(generation, until, 1000, list))
    if found is None:
        return None
    bodies = [(row.listing_id, row.body) for row in found if row.body is not None]
    assert len(dict(bodies)) == len(bodies), "each has one body"
    return dict(bodies), {row.listing_id for row in found}


def test_a_listing_carries_the_generation_at_which_it_was_last_written(store: Store, runner: asyncio.Runner) -> None:
    first = imported(runner, store, [listing("1"), listing("2"), listing("3")])
    second = imported(runner, store, [listing("1"), listing("2", price=1), listing("4")])
    assert second > first
    rows = runner.run(store.read_listings(list))[1]
    assert [(row.vehicle_id, row.generation) for row in rows] == [("1", first), ("2", second), ("4", second)]


def test_what_has_changed_is_given_as_it_was_and_what_is_new_by_its_id(store: Store, runner: asyncio.Runner) -> None:
    rows = [listing("1"), listing("2"), listing("3")]
    first = imported(runner, store, rows)
    second = imported(runner, store, [listing("1"), listing("2", price=1), listing("4")])
    assert past(runner, store, first, second) == (
        {"dealer-a/2": rows[1].body, "dealer-a/3": rows[2].body},
        {"dealer-a/2", "dealer-a/3", "dealer-a/4"},
    )
    assert past(runner, store, second, second) == ({}, set())


def test_what_changed_after_the_generation_asked_for_has_not_changed_yet(store: Store, runner: asyncio.Runner) -> None:
    first = imported(runner, store, [listing("1"), listing("2")])
    second = imported(runner, store, [listing("1", price=1), listing("2")])
    imported(runner, store, [listing("1", price=2), listing("2", price=2), listing("3")])
    assert past(runner, store, first, second) == ({"dealer-a/1": listing("1").body}, {"dealer-a/1"})


def test_a_change_of_rooftop_alone_is_a_change(store: Store, runner: asyncio.Runner) -> None:
    first = imported(runner, store, [listing("1")])
    moved = StoredListing("dealer-a/1", "dealer-a", "South", None, "1", "S1", listing("1").body)
    second = imported(runner, store, [moved])
    assert past(runner, store, first, second) == ({"dealer-a/1": listing("1").body}, {"dealer-a/1"})


def test_every_earlier_stock_can_be_told_from_any_later_one(store: Store, runner: asyncio.Runner) -> None:
    chance = random.Random(7)
    stocks: dict[int, dict[str, bytes]] = {runner.run(store.inventory_generation()): {}}
    for _ in range(12):
        rows = [listing(str(number), price=chance.randrange(3)) for number in range(9) if chance.random() < 0.6]
        stocks[imported(runner, store, rows)] = {row.listing_id: row.body for row in rows}
    for then, before in stocks.items():
        for until, after in stocks.items():
            if then <= until:
                found = past(runner, store, then, until)
                assert found is not None
                bodies, written = found
                assert {**{each: body for each, body in after.items() if each not in written}, **bodies} == before


def test_the_past_is_kept_for_longer_than_a_cursor_lives_and_then_forgotten(
    store: Store, runner: asyncio.Runner
) -> None:
    assert timedelta(minutes=30) < PAST_KEPT
    first = imported(runner, store, [listing("1"), listing("2")])
    second = imported(runner, store, [listing("1")], minutes=1)
    third = imported(runner, store, [listing("1", price=1)], minutes=2)
    kept = PAST_KEPT.total_seconds() / 60
    fourth = imported(runner, store, [listing("1", price=2)], minutes=1 + kept)
    assert past(runner, store, first, fourth) is not None
    fifth = imported(runner, store, [listing("1", price=3)], minutes=1.5 + kept)
    assert past(runner, store, first, fifth) is None
    assert past(runner, store, second, fifth) == ({"dealer-a/1": listing("1").body}, {"dealer-a/1"})
    assert past(runner, store, third, fifth) is not None


def test_no_more_of_the_past_is_read_than_asked_for(store: Store, runner: asyncio.Runner) -> None:
    first = imported(runner, store, [listing(str(number)) for number in range(9)])
    second = imported(runner, store, [])
    assert runner.run(store.past_listings(first, second, 4, lambda rows: len(list(rows)))) == 4


def test_a_refused_import_leaves_no_past(store: Store, runner: asyncio.Runner) -> None:
    first = imported(runner, store, [listing("1")])

    def refuse(change: object) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        runner.run(store.replace_listings("dealer-a", None, [], NOW, refuse))
    second = imported(runner, store, [listing("1", price=1)])
    assert second == first + 1
    assert past(runner, store, first, second) == ({"dealer-a/1": listing("1").body}, {"dealer-a/1"})


Changed = tuple[int, list[StoredListing], list[str]]


def changed(runner: asyncio.Runner, store: Store, since: int) -> Changed | None:
    """Return the generation, what was written since, and the ids of what was removed."""
    found = runner.run(store.changed_listings(since, list))
    if found is None:
        return None
    generation, written, removed = found
    assert [row.listing_id for row in written] == sorted(row.listing_id for row in written)
    return generation, written, list(removed)


def test_what_was_written_or_removed_since_a_generation_is_given_as_it_is_now(
    store: Store, runner: asyncio.Runner
) -> None:
    empty = runner.run(store.inventory_generation())
    first = imported(runner, store, [listing("3"), listing("1"), listing("2")])
    assert changed(runner, store, empty) == (first, runner.run(store.read_listings(list))[1], [])
    second = imported(runner, store, [listing("1"), listing("2", price=1), listing("4")])
    found = changed(runner, store, first)
    assert found is not None
    assert [(row.listing_id, row.body, row.generation) for row in found[1]] == [
        ("dealer-a/2", listing("2", price=1).body, second),
        ("dealer-a/4", listing("4").body, second),
    ]
    assert [row.stock for row in found[1]] == ["s2", "s4"], "identifiers are as they are compared"
    assert (found[0], found[2]) == (second, ["dealer-a/3"])
    assert changed(runner, store, second) == (second, [], [])


def test_what_came_and_went_again_since_is_not_named_and_what_returned_is_not_removed(
    store: Store, runner: asyncio.Runner
) -> None:
    first = imported(runner, store, [listing("1"), listing("2")])
    imported(runner, store, [listing("1", price=1), listing("3")])
    last = imported(runner, store, [listing("2")])
    found = changed(runner, store, first)
    assert found is not None
    assert [row.listing_id for row in found[1]] == ["dealer-a/2"], "it left and returned"
    assert (found[0], found[2]) == (last, ["dealer-a/1"]), "changed, then removed; the third was unknown at the first"


def test_changes_of_all_sellers_are_given(store: Store, runner: asyncio.Runner) -> None:
    first = imported(runner, store, [listing("1"), listing("2")])
    runner.run(store.replace_listings("dealer-b", None, [listing("9", dealer_id="dealer-b")], NOW))
    last = imported(runner, store, [listing("1")])
    found = changed(runner, store, first)
    assert found is not None
    assert ([row.listing_id for row in found[1]], found[2]) == (["dealer-b/9"], ["dealer-a/2"])
    assert found[0] == last


def test_every_later_stock_can_be_made_from_any_earlier_one_and_the_changes(
    store: Store, runner: asyncio.Runner
) -> None:
    chance = random.Random(11)
    stocks: dict[int, dict[str, StoredListing]] = {runner.run(store.inventory_generation()): {}}
    for _ in range(12):
        rows = [
            listing(str(number), price=chance.randrange(3), rooftop=chance.choice(["North", "South"]))
            for number in range(9)
            if chance.random() < 0.6
        ]
        generation = imported(runner, store, rows)
        now = {row.listing_id: row for row in runner.run(store.read_listings(list))[1]}
        stocks[generation] = now
        for since, before in stocks.items():
            found = changed(runner, store, since)
            assert found is not None
            assert found[0] == generation
            assert set(found[2]) <= before.keys()
            after = {each: row for each, row in before.items() if each not in found[2]}
            assert after | {row.listing_id: row for row in found[1]} == now


def test_changes_since_a_forgotten_generation_or_one_that_never_was_are_unknown(
    store: Store, runner: asyncio.Runner
) -> None:
    first = imported(runner, store, [listing("1"), listing("2")])
    second = imported(runner, store, [listing("1")], minutes=1)
    third = imported(runner, store, [listing("1", price=1)], minutes=2 + PAST_KEPT.total_seconds() / 60)
    assert changed(runner, store, first) is None
    found = changed(runner, store, second)
    assert found is not None
    assert [row.listing_id for row in found[1]] == ["dealer-a/1"]
    assert changed(runner, store, third + 1) is None, "a database of which a backup was restored"
