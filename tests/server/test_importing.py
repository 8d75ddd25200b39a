"""A feed becomes the stock as a whole or not at all (FEEDS.md, points 9 and 11)."""

import asyncio
import io
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from forecourt.feed import FeedError
from forecourt.lead.seller import Seller
from forecourt.server import ConfigError
from forecourt.server.config import Feed
from forecourt.server.importing import FeedRefusedError, feed_options, import_feed, rooftop_of
from forecourt.store import Store, open_store
from forecourt.vocabulary import Vocabulary

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
NORTH = {"name": "Example North", "fees": [{"name": "Documents", "amount": 85}]}
SOUTH = {"name": "Example South"}


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """One event loop."""
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def store(tmp_path: Path, runner: asyncio.Runner) -> Iterator[Store]:
    """An empty store, open."""
    found = open_store(f"sqlite:{tmp_path / 'forecourt.db'}")
    runner.run(found.open())
    yield found
    runner.run(found.close())


def seller(*rooftops: dict[str, Any], dealer_id: str = "example") -> Seller:
    """Return a seller with these rooftops."""
    return Seller.from_profile(dealer_id, {"name": "Example", "rooftops": list(rooftops or (NORTH,))})


def sheet(numbers: Sequence[int], price: int = 20_000, more: Callable[[int], str] = lambda _: "x") -> bytes:
    """Return a feed with these vehicles; `more` is the dealer that each is of."""
    rows = [f"S{number},Used,2024,Honda,Civic,{price},{more(number)}" for number in numbers]
    return "\n".join(["stock,type,year,make,model,price,dealer name", *rows, ""]).encode()


def bring(runner: asyncio.Runner, store: Store, data: bytes | Path, whose: Seller | None = None, **more: Any) -> Any:
    """Import a feed and return the report."""
    feed = more.pop("feed", Feed(source="feed.csv"))
    source = data if isinstance(data, Path) else io.BytesIO(data)
    more.setdefault("now", NOW)
    return runner.run(import_feed(store, whose or seller(), source, feed, Vocabulary.packaged(), **more))


def stock(runner: asyncio.Runner, store: Store) -> dict[str, dict[str, Any]]:
    """Return what is in stock by listing id."""
    _, found = runner.run(store.read_listings(lambda rows: {row.listing_id: json.loads(row.body) for row in rows}))
    return found


def counts(report: Any) -> tuple[int | None, int | None, int | None, int | None]:
    """Return what an import added, changed, left as it was and removed."""
    return report.added, report.changed, report.unchanged, report.removed


def test_a_feed_becomes_the_stock_and_the_report_counts_what_that_did(runner: asyncio.Runner, store: Store) -> None:
    assert counts(bring(runner, store, sheet(range(4)))) == (4, 0, 0, 0)
    assert list(stock(runner, store)) == [f"example/S{number}" for number in range(4)]
    assert counts(bring(runner, store, sheet([1, 2, 3, 4, 5]))) == (2, 0, 3, 1)
    assert counts(bring(runner, store, sheet([1, 2, 3, 4, 5], price=21_000))) == (0, 5, 0, 0)


def test_importing_a_file_again_changes_nothing_and_keeps_when_it_changed(runner: asyncio.Runner, store: Store) -> None:
    bring(runner, store, sheet(range(3)))
    generation = runner.run(store.inventory_generation())
    assert counts(bring(runner, store, sheet(range(3)), now=NOW + timedelta(hours=1))) == (0, 0, 3, 0)
    assert runner.run(store.inventory_generation()) == generation
    later = sheet([0, 1]) + sheet([2], price=19_000).split(b"\n", 1)[1]
    assert counts(bring(runner, store, later, now=NOW + timedelta(hours=2))) == (0, 1, 2, 0)
    assert [each["updated_at"] for each in stock(runner, store).values()] == [
        "2026-05-04T12:00:00Z",
        "2026-05-04T12:00:00Z",
        "2026-05-04T14:00:00Z",
    ]


def test_a_large_file_is_read_in_a_process_of_its_own_with_the_same_result(
    runner: asyncio.Runner, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "feed.csv"
    path.write_bytes(sheet(range(700)) + b"too,short\n")
    told: list[int] = []
    report = bring(runner, store, path, progress=told.append)
    here, findings = stock(runner, store), report.findings
    monkeypatch.setattr("forecourt.server.importing._LARGE", 1)
    report = bring(runner, store, path, now=NOW + timedelta(hours=1), progress=told.append)
    assert counts(report) == (0, 0, 700, 0)
    assert (report.rows, report.findings, report.refused) == (701, findings, 1)
    assert stock(runner, store) == here
    assert told[-1] == path.stat().st_size


@pytest.mark.parametrize("left", [(), (0, 1, 2, 3)])
def test_a_feed_that_drops_more_than_half_of_the_stock_is_refused(
    runner: asyncio.Runner, store: Store, left: tuple[int, ...]
) -> None:
    bring(runner, store, sheet(range(10)))
    before = stock(runner, store)
    # Rows without a make are refused, so that the file is not empty and yet leaves nothing.
    data = sheet(left) + b"S99,Used,2024,,,1,x\n"
    with pytest.raises(FeedRefusedError) as caught:
        bring(runner, store, data)
    assert stock(runner, store) == before
    assert caught.value.report.refused == 1
    assert caught.value.report.removed == 10 - len(left)
    if left:
        assert str(caught.value) == "the feed drops 6 of 10 vehicles, more than the 50% that may vanish at once"
    report = bring(runner, store, data, allow_shrink=True)
    assert report.removed == 10 - len(left)
    assert len(stock(runner, store)) == len(left)


def test_a_feed_that_drops_just_the_share_that_may_vanish_is_imported(runner: asyncio.Runner, store: Store) -> None:
    bring(runner, store, sheet(range(10)))
    assert counts(bring(runner, store, sheet(range(5)))) == (0, 0, 5, 5)
    with pytest.raises(FeedRefusedError):
        bring(runner, store, sheet(range(4)), feed=Feed(source="feed.csv", most_removed=0.1))


@pytest.mark.parametrize("data", [b"", b"\n\n", b"stock,make,model\n", b"\x00\x01\x02\x03" * 50])
def test_a_file_that_is_no_feed_leaves_the_stock(runner: asyncio.Runner, store: Store, data: bytes) -> None:
    bring(runner, store, sheet(range(3)))
    with pytest.raises(FeedError):
        bring(runner, store, data, allow_shrink=True)
    assert len(stock(runner, store)) == 3


def test_a_file_that_is_not_there_leaves_the_stock(runner: asyncio.Runner, store: Store, tmp_path: Path) -> None:
    bring(runner, store, sheet(range(3)))
    with pytest.raises(FeedError, match="the file cannot be opened"):
        bring(runner, store, tmp_path / "missing.csv")
    assert len(stock(runner, store)) == 3


def test_a_dry_run_counts_and_writes_nothing(runner: asyncio.Runner, store: Store) -> None:
    bring(runner, store, sheet(range(3)))
    before = stock(runner, store)
    assert counts(bring(runner, store, sheet([2, 3, 4]), dry_run=True, allow_shrink=True)) == (2, 0, 1, 2)
    assert stock(runner, store) == before
    with pytest.raises(FeedRefusedError):
        bring(runner, store, sheet([9]), dry_run=True)


def test_everything_of_a_seller_with_one_rooftop_stands_there_with_its_fees(
    runner: asyncio.Runner, store: Store
) -> None:
    bring(runner, store, sheet([1]))
    (vehicle,) = stock(runner, store).values()
    assert vehicle["rooftop"] == "Example North"
    assert (vehicle["list_price"], vehicle["price"], vehicle["fees"]) == (20_000, 20_085, NORTH["fees"])


def test_rows_of_several_rooftops_name_one_of_the_profile_or_are_refused(runner: asyncio.Runner, store: Store) -> None:
    whose = seller(NORTH, SOUTH)
    names = ["example  NORTH", "Example South", "Example West", "22"]
    report = bring(runner, store, sheet(range(3), more=lambda number: names[number]), whose)
    assert [each["rooftop"] for each in stock(runner, store).values()] == ["Example North", "Example South"]
    assert [(finding.kind, finding.line, finding.field) for finding in report.findings] == [("refused", 4, "rooftop")]
    codes = Feed(source="feed.csv", rooftop={"22": "Example South"})
    report = bring(runner, store, sheet(range(4), more=lambda number: names[number]), whose, feed=codes)
    assert (report.imported, report.refused) == (3, 1)


def test_a_feed_of_one_rooftop_leaves_the_others_alone(runner: asyncio.Runner, store: Store) -> None:
    whose = seller(NORTH, SOUTH)
    north, south = (Feed(source="feed.csv", rooftop=name) for name in ("Example North", "Example South"))
    bring(runner, store, sheet(range(3)), whose, feed=north)
    assert counts(bring(runner, store, sheet(range(2), price=9_000), whose, feed=south)) == (2, 0, 0, 0)
    assert list(stock(runner, store)) == [
        "example/example-north:S0",
        "example/example-north:S1",
        "example/example-north:S2",
        "example/example-south:S0",
        "example/example-south:S1",
    ]
    assert [rooftop_of(whose, north), rooftop_of(whose, Feed(source="x"))] == ["Example North", None]
    assert rooftop_of(seller(NORTH), north) is None


def test_sellers_are_apart(runner: asyncio.Runner, store: Store) -> None:
    bring(runner, store, sheet(range(3)))
    bring(runner, store, sheet(range(3)), seller(SOUTH, dealer_id="other"))
    assert counts(bring(runner, store, sheet(range(3)), now=NOW + timedelta(days=1))) == (0, 0, 3, 0)
    assert len(stock(runner, store)) == 6


@pytest.mark.parametrize(
    ("feed", "named"),
    [
        (Feed(source="x", rooftop="Example West"), "'Example West'"),
        (Feed(source="x", rooftop={"1": "Example West"}), "'Example West'"),
        (Feed(source="x", timezone="Mars/Olympus"), "'Mars/Olympus'"),
        (Feed(source="x", timezone="../etc"), "timezone"),
    ],
)
def test_a_feed_that_does_not_fit_its_seller_is_a_mistake_of_the_configuration(feed: Feed, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        feed_options(seller(NORTH, SOUTH), feed, Vocabulary.packaged())


def test_an_import_that_is_cancelled_is_undone_first(runner: asyncio.Runner, store: Store) -> None:
    bring(runner, store, sheet(range(3)))
    before = stock(runner, store)

    async def cancelled() -> None:
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        def tell(_taken: int) -> None:
            loop.call_soon_threadsafe(begun.set)

        source = io.BufferedReader(io.BytesIO(sheet(range(50_000))), 1024)
        feed = Feed(source="feed.csv")
        work = asyncio.create_task(
            import_feed(
                store,
                seller(),
                source,
                feed,
                Vocabulary.packaged(),
                progress=tell,
            )
        )
        await begun.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    runner.run(cancelled())
    assert stock(runner, store) == before
