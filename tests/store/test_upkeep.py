"""Leases, feeds, keys and the list of the stock, on every store (docstrings of `Store`)."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from tests.store.sample import NOW, listing

from forecourt.store import RETIRED_KEPT, FeedState, Secret, Store, open_store

DAY = timedelta(hours=24)


def test_a_lease_is_one_holders_until_it_runs_out(store: Store, runner: asyncio.Runner) -> None:
    def asked(holder: str, after: float, name: str = "feed") -> bool:
        return runner.run(store.lease(name, holder, 60, NOW + timedelta(seconds=after)))

    assert asked("worker-1", 0)
    assert not asked("worker-2", 59.9)
    assert asked("worker-2", 59.9, "another feed")
    assert asked("worker-1", 30), "its holder may renew it"
    assert not asked("worker-2", 89.9)
    assert asked("worker-2", 90)
    assert not asked("worker-1", 91)


def test_a_lease_is_given_up_by_its_holder_alone(store: Store, runner: asyncio.Runner) -> None:
    assert runner.run(store.lease("feed", "worker-1", 60, NOW))
    runner.run(store.release("feed", "worker-2"))
    assert not runner.run(store.lease("feed", "worker-2", 60, NOW))
    runner.run(store.release("feed", "worker-1"))
    runner.run(store.release("feed", "worker-1"))
    assert runner.run(store.lease("feed", "worker-2", 60, NOW))


def test_of_many_that_ask_at_once_one_gets_the_lease(address: str, store: Store, runner: asyncio.Runner) -> None:
    async def race() -> int:
        others = [open_store(address) for _ in range(3)]
        for other in others:
            await other.open()
        asked = [each.lease("feed", f"{n}-{m}", 60, NOW) for n, each in enumerate([store, *others]) for m in range(5)]
        taken = sum(await asyncio.gather(*asked))
        for other in others:
            await other.close()
        return taken

    assert runner.run(race()) == 1


def test_the_last_look_at_each_feed_is_kept(store: Store, runner: asyncio.Runner) -> None:
    assert runner.run(store.feed_state("b.csv")) is None
    assert runner.run(store.feed_states()) == []
    never = FeedState("b.csv", NOW, None, None, None, "failed", b"{}")
    other = FeedState("a.csv", NOW, NOW - DAY, '"v1"', "Mon, 04 May 2026 19:00:00 GMT", "imported", b'{"rows":3}')
    for state in (never, other):
        runner.run(store.keep_feed_state(state))
    assert runner.run(store.feed_states()) == [other, never]
    later = replace(never, checked_at=NOW + DAY, imported_at=NOW + DAY, etag='"v2"', outcome="imported", report=b"[]")
    runner.run(store.keep_feed_state(later))
    assert runner.run(store.feed_state("b.csv")) == later
    assert runner.run(store.feed_states()) == [other, later]


def test_the_stock_is_listed_by_id_up_to_a_limit_for_all_or_for_one(store: Store, runner: asyncio.Runner) -> None:
    for dealer_id in ("dealer-b", "dealer-a"):
        rows = [listing(number, dealer_id) for number in ("2", "1", "3")]
        runner.run(store.replace_listings(dealer_id, None, rows, NOW))

    def listed(dealer_id: str | None, limit: int) -> list[str]:
        return [row.listing_id for row in runner.run(store.stock(dealer_id, limit))]

    assert listed(None, 4) == ["dealer-a/1", "dealer-a/2", "dealer-a/3", "dealer-b/1"]
    assert listed("dealer-b", 2) == ["dealer-b/1", "dealer-b/2"]
    assert listed("dealer-c", 9) == []
    assert [*runner.run(store.stock(None, 9))] == runner.run(store.read_listings(list))[1]


def keys_at(store: Store, runner: asyncio.Runner) -> Callable[..., list[str]]:
    """Return what asks for the keys some time after NOW; the one made then is called by that time in hours."""

    def asked(after: timedelta, rotate_after: timedelta | None = DAY) -> list[str]:
        name = f"h{after / timedelta(hours=1):g}"
        keys = runner.run(store.secrets("cursor", lambda: Secret(name, name.encode()), NOW + after, rotate_after))
        assert all(key.value == key.key_id.encode() for key in keys)
        return [key.key_id for key in keys]

    return asked


def test_a_key_is_followed_by_a_new_one_when_it_is_old_enough(store: Store, runner: asyncio.Runner) -> None:
    keys = keys_at(store, runner)
    assert keys(timedelta()) == ["h0"]
    assert keys(DAY - timedelta(seconds=1)) == ["h0"]
    assert keys(DAY * 9, None) == ["h0"], "who does not ask for it gets no new one"
    assert keys(DAY) == ["h24", "h0"]
    assert keys(DAY) == ["h24", "h0"]


def test_an_older_key_is_kept_until_nothing_that_it_signed_can_live(store: Store, runner: asyncio.Runner) -> None:
    assert timedelta(minutes=31) < RETIRED_KEPT
    keys = keys_at(store, runner)
    assert keys(timedelta()) == ["h0"]
    assert keys(DAY) == ["h24", "h0"]
    assert keys(DAY + RETIRED_KEPT) == ["h24", "h0"]
    assert keys(DAY + RETIRED_KEPT + timedelta(seconds=1)) == ["h24"]
    assert keys(DAY * 10) == ["h240", "h24"], "however long nobody asked, what was signed last is read"


def test_of_many_that_ask_when_a_key_is_old_one_makes_the_next(store: Store, runner: asyncio.Runner) -> None:
    made: list[str] = []

    def make() -> Secret:
        made.append(f"k{len(made)}")
        return Secret(made[-1], b"v")

    async def together(after: timedelta) -> set[tuple[str, ...]]:
        asked = [store.secrets("cursor", make, NOW + after, DAY) for _ in range(10)]
        return {tuple(key.key_id for key in keys) for keys in await asyncio.gather(*asked)}

    assert runner.run(together(timedelta())) == {("k0",)}
    assert runner.run(together(DAY)) == {("k1", "k0")}
    assert made == ["k0", "k1"]
