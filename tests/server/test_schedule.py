"""Scheduled feeds: one process at a time, `every` counted over all of them, failures recorded and never fatal."""

import asyncio
import io
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.server.feed_server import Answer, FeedServer, feed_server

from forecourt.lead.seller import Seller
from forecourt.server import ConfigError
from forecourt.server.config import Feed
from forecourt.server.importing import import_feed
from forecourt.server.schedule import FeedSchedule, seller_of
from forecourt.store import FeedState, Store, open_store
from forecourt.vocabulary import Vocabulary

SELLERS = {
    name: Seller.from_profile(name, {"name": name, "rooftops": [{"name": f"{name} A"}, {"name": f"{name} B"}][:count]})
    for name, count in (("small", 1), ("group", 2))
}
STOCK = b"stock,type,make,model,price\nS1,Used,Honda,Civic,9000\nS2,Used,Honda,Fit,8000\n"
S3 = b"S3,Used,Honda,CR-V,7000\n"
PATIENCE = 30


@pytest.fixture
def web() -> Iterator[FeedServer]:
    """A web server without pages."""
    with feed_server() as found:
        yield found


@pytest.fixture
def address(tmp_path: Path) -> str:
    """The address of an empty database."""
    return f"sqlite:{tmp_path / 'forecourt.db'}"


def schedule(store: Store, *feeds: Feed) -> FeedSchedule:
    """Return a schedule of these feeds."""
    return FeedSchedule(store, SELLERS, feeds, Vocabulary.packaged())


def run(address: str, work: Callable[[Store], Awaitable[None]]) -> None:
    """Do something with an open store."""

    async def main() -> None:
        store = open_store(address)
        await store.open()
        try:
            await asyncio.wait_for(work(store), PATIENCE)
        finally:
            await store.close()

    asyncio.run(main())


async def until(schedule: FeedSchedule, holds: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """Return the details once they are as wanted."""
    while not holds(found := schedule.details()):  # noqa: ASYNC110 - it has nothing to wait for but its answers
        await asyncio.sleep(0.01)
    return found


def looked_at(details: list[dict[str, Any]]) -> bool:
    """Tell whether every feed has been looked at."""
    return all(each["outcome"] != "waiting" for each in details)


def ended_in(outcome: str) -> Callable[[list[dict[str, Any]]], bool]:
    """Return what tells whether the first feed's last look ended so."""
    return lambda details: details[0]["outcome"] == outcome


async def age(store: Store, seconds: float) -> None:
    """Make every last look older than it is."""
    for state in await store.feed_states():
        await store.keep_feed_state(
            FeedState(
                state.source,
                state.checked_at - timedelta(seconds=seconds),
                state.imported_at,
                state.etag,
                state.last_modified,
                state.outcome,
                state.report,
            )
        )


def test_an_address_is_imported_and_asked_again_only_whether_it_changed(web: FeedServer, address: str) -> None:
    web.answers["/stock.csv"] = Answer(STOCK, headers={"ETag": '"1"'})
    feed = Feed(source=web.address("/stock.csv?token=abc", "sam:secret@"), dealer="small", every=10)

    async def work(store: Store) -> None:
        for outcome in ("imported", "unchanged"):
            feeds = schedule(store, feed)
            assert feeds.details()[0]["outcome"] == "waiting"
            feeds.start()
            (detail,) = await until(feeds, ended_in(outcome))
            await feeds.stop()
            assert detail["source"] == f"http://127.0.0.1:{web.port}/stock.csv?…"
            assert detail["dealer_id"] == "small"
            assert detail["age_seconds"] <= PATIENCE
            assert [row.vehicle_id for row in await store.stock("small", 10)] == ["s1", "s2"]
            await age(store, 11)
        (state,) = await store.feed_states()
        assert "secret" not in state.source
        assert "abc" not in state.source
        assert state.etag == '"1"'

    run(address, work)
    assert [headers.get("if-none-match") for _, headers in web.requests] == [None, '"1"']


def test_what_another_process_looked_at_a_moment_ago_is_not_due(web: FeedServer, address: str) -> None:
    web.answers["/stock.csv"] = Answer(STOCK)
    feed = Feed(source=web.address("/stock.csv"), dealer="small", every=3600)

    async def work(store: Store) -> None:
        for _ in range(2):
            feeds = schedule(store, feed)
            feeds.start()
            await until(feeds, looked_at)
            await feeds.stop()

    run(address, work)
    assert len(web.requests) == 1


def test_two_at_once_import_a_feed_once(web: FeedServer, address: str) -> None:
    web.answers["/stock.csv"] = Answer(STOCK)
    feed = Feed(source=web.address("/stock.csv"), dealer="small", every=3600)

    async def work(store: Store) -> None:
        other = open_store(address)
        await other.open()
        both = [schedule(each, feed) for each in (store, other)]
        for feeds in both:
            feeds.start()
        await until(both[0], lambda _: any(looked_at(feeds.details()) for feeds in both))
        await asyncio.sleep(0.3)
        for feeds in both:
            await feeds.stop()
        await other.close()

    run(address, work)
    assert len(web.requests) == 1


def test_a_feed_that_another_process_holds_is_left_alone(tmp_path: Path, address: str) -> None:
    path = tmp_path / "stock.csv"
    path.write_bytes(STOCK)
    feed = Feed(source=str(path), dealer="small", every=10)

    async def work(store: Store) -> None:
        feeds = schedule(store, feed)
        (key,) = [scheduled.key for scheduled in feeds._feeds]
        assert await store.lease(key, "another", 60, datetime.now(UTC))
        feeds.start()
        await asyncio.sleep(0.3)
        assert feeds.details()[0]["outcome"] == "waiting"
        await feeds.stop()
        await store.release(key, "another")
        feeds.start()
        await until(feeds, looked_at)
        await feeds.stop()

    run(address, work)


@pytest.mark.parametrize("notices", [True, False])
def test_an_import_whose_lease_another_process_took_is_undone(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, notices: bool
) -> None:
    """Whether it asks in time or stood still until the end, the other's stock, lease and record stay."""
    monkeypatch.setattr("forecourt.server.schedule._RENEW_SECONDS", 0.02 if notices else 600)
    monkeypatch.setattr("forecourt.server.schedule._LEASE_SECONDS", 60.0 if notices else 0.05)
    path = tmp_path / "stock.csv"
    os.mkfifo(path)
    feed = Feed(source=str(path), dealer="small", every=10)
    newer = Feed(source="newer.csv", dealer="small")

    async def work(store: Store) -> None:
        feeds = schedule(store, feed)
        (scheduled,) = feeds._feeds
        refused, lease = asyncio.Event(), store.lease

        async def watched(name: str, holder: str, seconds: float, now: datetime) -> bool:
            is_held = await lease(name, holder, seconds, now)
            if not is_held:
                refused.set()
            return is_held

        monkeypatch.setattr(store, "lease", watched)
        looking = asyncio.create_task(feeds._look(scheduled))
        # Opening the pipe waits for the import to open it, which is under way then.
        with await asyncio.to_thread(path.open, "wb", 0) as pipe:
            pipe.write(STOCK)
            if not notices:
                await asyncio.sleep(0.1)
            later = datetime.now(UTC) + timedelta(seconds=61)
            assert await store.lease(scheduled.key, "another", 60, later)
            await import_feed(store, SELLERS["small"], io.BytesIO(STOCK + S3), newer, Vocabulary.packaged())
            if notices:
                await refused.wait()
                # The loop takes some turns to carry that to the import, which waits for the rest of its file.
                for _ in range(20):
                    await asyncio.sleep(0)
            pipe.write(b"S4,Used,Honda,Pilot,6000\n")
        await looking
        assert [row.vehicle_id for row in await store.stock("small", 10)] == ["s1", "s2", "s3"]
        assert await store.feed_states() == []
        assert not await store.lease(scheduled.key, "a third", 60, later)

    run(address, work)


def test_failures_are_recorded_and_keep_no_feed_from_its_turn(web: FeedServer, tmp_path: Path, address: str) -> None:
    good, broken = tmp_path / "good.csv", tmp_path / "broken.csv"
    good.write_bytes(STOCK)
    broken.write_bytes(b"%PDF-1.7")
    feeds = (
        Feed(source=web.address("/gone.csv"), dealer="group", rooftop="group A"),
        Feed(source=str(broken), dealer="group", rooftop="group B"),
        Feed(source=str(good), dealer="small"),
    )

    async def work(store: Store) -> None:
        running = schedule(store, *feeds)
        running.start()
        details = await until(running, looked_at)
        assert [each["outcome"] for each in details] == ["unreachable", "failed", "imported"]
        assert [each.get("rooftop") for each in details] == ["group A", "group B", None]
        assert details[0]["problem"] == "127.0.0.1 answered with status 404"
        assert "PDF" in details[1]["problem"]
        assert details[1]["source"] == "broken.csv"
        assert "imported_at" not in details[0]
        await running.stop()

    run(address, work)


def test_a_refused_feed_leaves_the_stock_and_says_why(tmp_path: Path, address: str) -> None:
    path = tmp_path / "stock.csv"
    path.write_bytes(STOCK)
    feed = Feed(source=str(path), dealer="small", every=10, most_removed=0.2)

    async def work(store: Store) -> None:
        for content, outcome in ((STOCK, "imported"), (STOCK.rsplit(b"S2")[0], "refused"), (STOCK + b"\n", "imported")):
            path.write_bytes(content)
            await age(store, 11)
            feeds = schedule(store, feed)
            before = await store.feed_states()
            feeds.start()
            while await store.feed_states() == before:  # noqa: ASYNC110 - the store tells nobody
                await asyncio.sleep(0.01)
            (detail,) = await until(feeds, ended_in(outcome))
            await feeds.stop()
            assert len(await store.stock("small", 10)) == 2
            (state,) = await store.feed_states()
            report = json.loads(state.report)
            if outcome == "refused":
                assert detail["problem"].startswith("the feed drops 1 of 2 vehicles")
                assert (report["rows"], report["removed"]) == (1, 1)
                assert "imported_at" in detail
            else:
                assert "problem" not in detail

    run(address, work)


def test_what_may_pass_by_itself_is_tried_again_soon_and_ever_later(address: str, tmp_path: Path) -> None:
    async def work(store: Store) -> None:
        (feed,) = schedule(store, Feed(source=str(tmp_path / "x"), dealer="small", every=3600))._feeds
        waits = []
        for feed.failures in (0, 1, 2, 3, 7, 1000):
            waits.append(feed.wait())
        assert waits == [3600, 60, 120, 240, 3600, 3600]

    run(address, work)


def test_a_schedule_without_feeds_does_nothing(address: str) -> None:
    async def work(store: Store) -> None:
        feeds = schedule(store)
        feeds.start()
        assert feeds.details() == []
        await feeds.stop()

    run(address, work)


@pytest.mark.parametrize(
    ("feeds", "problem"),
    [
        ([Feed(source="x")], r"feeds\[1\]\.dealer: say whose"),
        ([Feed(source="x", dealer="other")], r"feeds\[1\]\.dealer: there is no seller 'other'"),
        ([Feed(source="x", dealer="small"), Feed(source="y", dealer="small")], r"feeds\[2\]\.rooftop: another feed"),
        (
            [Feed(source="x", dealer="group", rooftop="group A"), Feed(source="y", dealer="group")],
            r"feeds\[2\]\.rooftop: another feed",
        ),
        ([Feed(source="x", dealer="group", rooftop="C")], r"feeds\[1\]\.rooftop: the seller has no 'C'"),
    ],
)
def test_feeds_that_do_not_fit_are_mistakes_of_the_configuration(address: str, feeds: list[Feed], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        schedule(open_store(address), *feeds)


def test_a_feed_without_a_dealer_is_the_only_sellers() -> None:
    assert seller_of(Feed(source="x"), {"small": SELLERS["small"]}).dealer_id == "small"
