"""How a deployment stands, over every store: right numbers by each rooftop's own day, and what needs attention."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from tests.server.redis_server import REDIS, needs_redis
from tests.store.conftest import DATABASES
from tests.store.sample import lead, listing

from forecourt.server import load
from forecourt.server.by_hand import keep_by_hand
from forecourt.server.deployment import Deployment
from forecourt.server.standing import age, standing
from forecourt.store import FeedState, LeadTransaction, NewDelivery, Outcome

NOW: Final = datetime(2026, 5, 5, 3, 30, tzinfo=UTC)
"""20:30 of 4 May in Los Angeles, 13:30 of 5 May in Tokyo."""
HOUR: Final = timedelta(hours=1)
ROOFTOPS: Final = [
    {"name": "North", "timezone": "America/Los_Angeles"},
    {"name": "East", "timezone": "Asia/Tokyo"},
    {"name": "Nowhere"},
]


@pytest.fixture(params=DATABASES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with DATABASES[request.param].fresh(tmp_path) as found:
        yield found


def deployment(folder: Path, address: str, more: str = "") -> Deployment:
    """Return two sellers, the first with three rooftops and a feed."""
    (folder / "a.json").write_text(json.dumps({"name": "A Motors", "rooftops": ROOFTOPS}))
    (folder / "b.json").write_text(json.dumps({"name": "B Motors", "rooftops": ROOFTOPS[:1]}))
    (folder / "forecourt.toml").write_text(
        f"store = {json.dumps(address)}\ndata = '.'\n"
        '[[dealers]]\nid = "dealer-a"\nprofile = "a.json"\n[[dealers]]\nid = "dealer-b"\nprofile = "b.json"\n'
        '[[feeds]]\nsource = "https://u:secret@feeds.example.com/a.csv?token=secret"\ndealer = "dealer-a"\n'
        'rooftop = "North"\nevery = 3600\n' + more
    )
    return Deployment(load(folder / "forecourt.toml"))


def look(made: Deployment, work: Any = None, **options: Any) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        await made.store.open()
        try:
            if work is not None:
                await work(made)
            return await standing(made, NOW, **options)
        finally:
            await made.store.close()
            await made.admission.close()

    return asyncio.run(run())


async def fill(made: Deployment) -> None:
    """Fill the database: stock of two days ago, leads around midnights, deliveries of every kind."""
    store = made.store
    stock = [listing("1"), listing("2", rooftop="East"), listing("3", rooftop="Closed")]
    await store.replace_listings("dealer-a", None, stock, NOW)
    await store.replace_listings("dealer-b", None, [listing("1", "dealer-b")], NOW)
    (feed,) = made.schedule.told([], NOW)
    assert feed["outcome"] == "waiting"
    key = made.schedule._feeds[0].key
    report = {"rows": 12, "imported": 11, "problem": "it is empty"}
    state = FeedState(key, NOW - HOUR, NOW - 50 * HOUR, None, None, "refused", json.dumps(report).encode())
    await store.keep_feed_state(state)
    await keep_by_hand(store, "dealer-b", None, "b.csv", NOW - 2 * HOUR, report={"rows": 1})

    def work(transaction: LeadTransaction) -> None:
        for number, (rooftop, at) in enumerate(
            [
                # Today in Los Angeles began at 07:00 UTC of 4 May, in Tokyo at 15:00 of 4 May, in UTC at midnight.
                ("North", datetime(2026, 5, 4, 6, 59, tzinfo=UTC)),
                ("North", datetime(2026, 5, 4, 7, 0, tzinfo=UTC)),
                ("North", datetime(2026, 5, 5, 3, 0, tzinfo=UTC)),
                ("East", datetime(2026, 5, 4, 14, 59, tzinfo=UTC)),
                ("East", datetime(2026, 5, 4, 15, 0, tzinfo=UTC)),
                ("Nowhere", datetime(2026, 5, 4, 23, 59, tzinfo=UTC)),
                (None, datetime(2026, 5, 4, 8, 0, tzinfo=UTC)),
            ]
        ):
            made_for = [NewDelivery(f"dlv_{number}", f"dealer-a/{'crm' if number < 2 else 'mail'}", "adf")]
            transaction.add(lead(f"lead_{number}", rooftop=rooftop, received_at=at, deliveries=made_for))

    await store.decide_lead(work)
    for each in await store.claim_deliveries("w", NOW, NOW + HOUR, 10, ["dealer-a/mail"]):
        await store.settle_delivery(each, Outcome("parked", NOW, None, "refused for good"))


def test_everything_is_counted_and_what_needs_attention_is_said(tmp_path: Path, address: str) -> None:
    found = look(deployment(tmp_path, address), fill)
    first, second = found["dealers"]
    assert [
        (each["rooftop"], each["listings"], each["leads_today"], each["today"], each["timezone"])
        for each in first["rooftops"]
    ] == [
        ("North", 1, 3, "2026-05-04", "America/Los_Angeles"),
        ("East", 1, 1, "2026-05-05", "Asia/Tokyo"),
        ("Nowhere", 0, 0, "2026-05-05", "UTC"),
    ]
    assert (found["listings"], found["leads_today"], first["elsewhere"]) == (4, 4, {"Closed": 1})
    north, east, _ = first["rooftops"]
    assert (north["age_seconds"], north["source"]) == (50 * 3600, "https://feeds.example.com/a.csv?…")
    # The feed is of the other rooftop.
    assert (east["age_seconds"], second["rooftops"][0]["age_seconds"]) == (None, 2 * 3600)
    assert [(each["source"], each["outcome"], each["rows"]) for each in first["feeds"] + second["feeds"]] == [
        ("https://feeds.example.com/a.csv?…", "refused", 12),
        ("b.csv", "imported", 1),
    ]
    assert found["deliveries"] == {"waiting": 5, "parked": 2, "oldest_waiting_seconds": int(19.5 * 3600)}
    assert found["attention"] == [
        "2 deliveries to dealer-a/crm parked, the oldest for 20 hours: refused for good",
        "deliveries to dealer-a/mail have been waiting for 19 hours",
        "dealer-a, feed https://feeds.example.com/a.csv?…: refused: it is empty",
        "dealer-a, North: the last import was 2 days ago",
        "dealer-a, Nowhere: nothing is in stock",
    ]
    assert "secret" not in json.dumps(found)
    only = look(deployment(tmp_path, address), dealer_id="dealer-b")
    assert (only["listings"], only["deliveries"]["parked"], only["attention"]) == (1, 0, [])
    assert look(deployment(tmp_path, address), stale=HOUR, dealer_id="dealer-b")["attention"] == [
        "dealer-b, North: the last import was 2 hours ago"
    ]


def test_feeds_that_nobody_looks_at_are_told(tmp_path: Path, address: str) -> None:
    made = deployment(tmp_path, address)

    async def work(made: Deployment) -> None:
        await made.store.replace_listings("dealer-a", None, [listing("1")], NOW)
        state = FeedState(made.schedule._feeds[0].key, NOW - 4 * HOUR, NOW - 4 * HOUR, None, None, "imported", b"{}")
        await made.store.keep_feed_state(state)

    assert "was never looked at; is a server running?" in look(made)["attention"][0]
    assert (
        "was looked at 4 hours ago; is a server running?" in look(deployment(tmp_path, address), work)["attention"][0]
    )


def test_a_database_of_an_older_version_needs_attention_and_is_left_so(tmp_path: Path, address: str) -> None:
    look(deployment(tmp_path, address))
    database = DATABASES[address.partition(":")[0]]
    database.execute(address, "DELETE FROM migration WHERE number >= 6")
    made = deployment(tmp_path, address)
    found = asyncio.run(standing(made, NOW))
    assert found["store"]["missing"][0] == "0006_api_keys"
    assert "dealers" not in found
    assert "of an older version" in found["attention"][0]
    assert database.execute(address, "SELECT max(number) FROM migration") == [(5,)]


@needs_redis
def test_the_shared_count_of_limits_is_asked(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'forecourt.db'}"
    found = look(deployment(tmp_path, address, f'[limits]\nrequests = 9\nstore = "{REDIS}"\n'))
    assert found["limits"] == {"shared": True, "reached": True}
    away = look(deployment(tmp_path, address, '[limits]\nrequests = 9\nstore = "redis://127.0.0.1:1/0"\n'))
    assert away["limits"] == {"shared": True, "reached": False}
    assert "the shared count cannot be reached" in away["attention"][0]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 seconds"), (1, "1 second"), (119, "119 seconds"), (120, "2 minutes"), (7199, "119 minutes"),
     (7200, "2 hours"), (172_799, "47 hours"), (172_800, "2 days")],
)  # fmt: skip
def test_an_age_is_said_in_its_largest_unit(seconds: int, words: str) -> None:
    assert age(seconds) == words
