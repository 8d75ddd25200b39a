"""What the last import by hand (`forecourt import`) did, kept in the store beside what scheduled feeds did."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from forecourt.store import FeedState, Store

__all__ = ["by_hand_key", "keep_by_hand"]

_KEPT: Final = ("rows", "imported", "added", "changed", "unchanged", "removed", "refused", "left_out", "duplicate")


def by_hand_key(dealer_id: str, rooftop: str | None) -> str:
    """Return what the store knows imports by hand by: one row for the whole stock of a seller or of a rooftop."""
    mark = hashlib.sha256(json.dumps([dealer_id, rooftop]).encode()).hexdigest()[:16]
    return f"{dealer_id} by hand {mark}"


async def keep_by_hand(
    store: Store,
    dealer_id: str,
    rooftop: str | None,
    source: str,
    now: datetime,
    *,
    report: Mapping[str, Any] | None,
    problem: str = "",
) -> None:
    """Keep how an import ended; `source` is the feed as others may read it. Raises StoreError."""
    key = by_hand_key(dealer_id, rooftop)
    before = await store.feed_state(key)
    told: dict[str, Any] = {"source": source, "rooftop": rooftop}
    told |= {name: report[name] for name in _KEPT if name in report} if report is not None else {}
    if problem:
        told["problem"] = problem
        imported_at = before.imported_at if before else None
    else:
        imported_at = now
    outcome = "imported" if not problem else "refused" if report is not None else "failed"
    await store.keep_feed_state(
        FeedState(key, now, imported_at, None, None, outcome, json.dumps(told, ensure_ascii=False).encode())
    )
