"""What an import by hand did is kept in one row for each stock."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from forecourt.server.by_hand import by_hand_key, keep_by_hand
from forecourt.store import FeedState, open_store

NOW = datetime(2026, 5, 4, 19, 0, tzinfo=UTC)


def test_the_last_import_replaces_the_one_before_and_a_failure_keeps_its_time(tmp_path: Path) -> None:
    async def run() -> tuple[FeedState | None, FeedState | None, int]:
        store = open_store(f"sqlite:{tmp_path / 'forecourt.db'}")
        await store.open()
        for number, problem in enumerate(("", "the file cannot be opened")):
            at, report = NOW + timedelta(hours=number), {"rows": 3, "findings": ["x"]}
            await keep_by_hand(store, "a", None, "stock.csv", at, report=report, problem=problem)
        await keep_by_hand(store, "a", "North", "north.csv", NOW, report=None, problem="is gone")
        found = [await store.feed_state(by_hand_key("a", rooftop)) for rooftop in (None, "North")]
        count = len(await store.feed_states())
        await store.close()
        return found[0], found[1], count

    whole, north, count = asyncio.run(run())
    assert whole is not None
    assert north is not None
    assert count == 2
    assert (whole.checked_at, whole.imported_at, whole.outcome) == (NOW + timedelta(hours=1), NOW, "refused")
    assert json.loads(whole.report) == {
        "source": "stock.csv", "rooftop": None, "rows": 3, "problem": "the file cannot be opened",
    }  # fmt: skip
    assert (north.imported_at, north.outcome) == (None, "failed")
