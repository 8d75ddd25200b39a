"""Scheduled feeds: the server fetches the sources of the configuration itself, one process at a time each.

What was seen last stands in the store, so that `every` counts over all processes and over restarts. Nothing that goes
wrong with a feed ends anything: it is recorded, logged and tried again.
"""

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import random
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from forecourt.feed import FeedError, Report
from forecourt.identifier import sortable_id
from forecourt.lead.seller import Seller
from forecourt.server.config import ConfigError, Feed
from forecourt.server.config_problem import ConfigProblem
from forecourt.server.fetching import FetchError, fetch, is_address, shown
from forecourt.server.importing import FeedRefusedError, feed_options, import_feed, rooftop_of
from forecourt.store import FeedState, Store, StoreError
from forecourt.vocabulary import Vocabulary

__all__ = ["FeedSchedule", "seller_of"]

_spread = random.Random()  # noqa: S311 - spreads waits and keeps no secret; not everybody's own generator

_LEASE_SECONDS: Final = 60.0
_RENEW_SECONDS: Final = 15.0
_LOOK_SECONDS: Final = 15.0
"""How long to wait at the most before the store is asked again what is due."""
_SHORTEST_WAIT: Final = 0.2
_JITTER: Final = 0.1
"""The share of a wait by which it is lengthened at random, so that processes do not ask all at once."""
_RETRY_SECONDS: Final = 60.0
"""After what may pass by itself a feed is tried again this soon, then after twice that, up to its `every`."""
_MOST_DOUBLINGS: Final = 16
_COUNTS: Final = ("rows", "imported", "added", "changed", "unchanged", "removed", "refused", "left_out", "duplicate")

_log = logging.getLogger("forecourt.feeds")


def seller_of(feed: Feed, sellers: Mapping[str, Seller]) -> Seller:
    """Return whose stock a feed is. Raises ConfigError unless that is certain."""
    if feed.dealer is None:
        if len(sellers) != 1:
            raise ConfigError("say whose stock it is; there are several sellers", "dealer")
        return next(iter(sellers.values()))
    if feed.dealer not in sellers:
        raise ConfigError(f"there is no seller {feed.dealer!r}", "dealer")
    return sellers[feed.dealer]


class _LeaseLostError(Exception):
    """Another process may have taken over; what this one does is to be undone."""


@dataclass(slots=True)
class _Scheduled:
    """One feed of the configuration, and what is known of it in this process."""

    feed: Feed
    seller: Seller
    key: str
    """What the store knows it by. It holds no secret of the address, and is another one once the settings change."""
    state: FeedState | None = None
    failures: int = 0
    leased_until: datetime | None = None
    """Until when no other process is at it, as far as this one knows."""

    def wait(self) -> float:
        """Return the seconds from one look to the next."""
        if not self.failures:
            return float(self.feed.every)
        doubled: float = _RETRY_SECONDS * 2 ** min(self.failures - 1, _MOST_DOUBLINGS)
        return min(float(self.feed.every), doubled)

    def due_in(self, now: datetime) -> float:
        """Return the seconds until the next look."""
        if self.state is None:
            return 0.0
        # A clock that was put back must not keep a feed waiting for longer than it ever waits.
        passed: float = (now - self.state.checked_at).total_seconds()
        return min(self.wait() - passed, self.wait())


@dataclass(slots=True)
class _Found:
    """What one look at a source found."""

    outcome: str
    report: Mapping[str, Any] = field(default_factory=dict)
    etag: str | None = None
    last_modified: str | None = None
    may_pass: bool = False


class FeedSchedule:
    """Fetches and imports the configured feeds for as long as it runs."""

    def __init__(
        self, store: Store, sellers: Mapping[str, Seller], feeds: Sequence[Feed], vocabulary: Vocabulary
    ) -> None:
        """Check every feed against its seller. Raises ConfigError, which names the feed by its number."""
        self._store = store
        self._vocabulary = vocabulary
        self._holder = f"{sortable_id()}-{os.getpid()}"
        self._feeds = _scheduled(sellers, feeds, vocabulary)
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the running event loop. Without feeds there is nothing to do."""
        if self._feeds and self._running is None:
            self._running = asyncio.create_task(self._run(), name="forecourt-feeds")

    async def stop(self) -> None:
        """Stop; an import under way is undone first."""
        if self._running is not None:
            running, self._running = self._running, None
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

    def details(self) -> list[dict[str, Any]]:
        """Return what is known of each feed: never its credentials, its query or its folder.

        It is at most some seconds old and costs nothing: `outcome` is `imported`, `unchanged`, `refused`, `failed`,
        `unreachable`, or `waiting` before the first look.
        """
        now = datetime.now(UTC)
        return [_detail(scheduled, now) for scheduled in self._feeds]

    def told(self, states: Iterable[FeedState], now: datetime) -> list[dict[str, Any]]:
        """Return what `details` does, and the counts of the last report, of states that were read from a store."""
        known = {state.source: state for state in states}
        return [_detail(replace(each, state=known.get(each.key)), now, _COUNTS) for each in self._feeds]

    async def _run(self) -> None:
        while True:
            wait = _LOOK_SECONDS
            for scheduled in self._feeds:
                try:
                    wait = min(wait, await self._look(scheduled))
                except StoreError:
                    _log.warning("the store does not answer; the feed %s waits", shown(scheduled.feed.source))
                except Exception:
                    # Nothing about one feed may keep the others from being looked at.
                    _log.exception("the feed %s could not be looked at", shown(scheduled.feed.source))
            wait = max(wait, _SHORTEST_WAIT)
            await asyncio.sleep(wait + _spread.uniform(0, wait * _JITTER))

    async def _look(self, scheduled: _Scheduled) -> float:
        """Import a feed if it is due and no other process is at it; return the seconds until the next look."""
        scheduled.state = await self._store.feed_state(scheduled.key)
        due_in = scheduled.due_in(datetime.now(UTC))
        if due_in > 0:
            return due_in
        if not await self._lease(scheduled):
            return _LOOK_SECONDS
        try:
            # Another process may have been at it until a moment ago.
            scheduled.state = await self._store.feed_state(scheduled.key)
            due_in = scheduled.due_in(datetime.now(UTC))
            if due_in <= 0:
                await self._visit(scheduled)
                due_in = scheduled.due_in(datetime.now(UTC))
        finally:
            await self._store.release(scheduled.key, self._holder)
        return due_in

    async def _lease(self, scheduled: _Scheduled) -> bool:
        now = datetime.now(UTC)
        if not await self._store.lease(scheduled.key, self._holder, _LEASE_SECONDS, now):
            return False
        scheduled.leased_until = now + timedelta(seconds=_LEASE_SECONDS)
        return True

    async def _visit(self, scheduled: _Scheduled) -> None:
        try:
            found = await self._while_leased(scheduled)
        except _LeaseLostError:
            _log.warning("the feed %s took too long to renew its lease", shown(scheduled.feed.source))
            return
        now, before = datetime.now(UTC), scheduled.state
        scheduled.failures = scheduled.failures + 1 if found.may_pass else 0
        is_new = found.outcome == "imported"
        scheduled.state = FeedState(
            source=scheduled.key,
            checked_at=now,
            imported_at=now if is_new else before.imported_at if before else None,
            etag=found.etag if is_new else before.etag if before else None,
            last_modified=found.last_modified if is_new else before.last_modified if before else None,
            outcome=found.outcome,
            report=json.dumps(found.report).encode(),
        )
        level = logging.INFO if found.outcome in ("imported", "unchanged") else logging.WARNING
        problem = found.report.get("problem", "")
        _log.log(level, "feed %s: %s %s", shown(scheduled.feed.source), found.outcome, problem)
        await self._store.keep_feed_state(scheduled.state)

    async def _while_leased(self, scheduled: _Scheduled) -> _Found:
        """Do the work, renewing the lease meanwhile; undo it if the lease is lost."""
        work = asyncio.create_task(self._found(scheduled))
        try:
            while True:
                done, _ = await asyncio.wait({work}, timeout=_RENEW_SECONDS)
                if done:
                    return work.result()
                if not await self._lease(scheduled):
                    raise _LeaseLostError
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait({work})

    async def _found(self, scheduled: _Scheduled) -> _Found:
        try:
            if is_address(scheduled.feed.source):
                return await self._from_address(scheduled)
            return await self._from_file(scheduled)
        except FetchError as error:
            return _Found("unreachable", {"problem": str(error)}, may_pass=True)
        except FeedRefusedError as error:
            return _Found("refused", {"problem": str(error), **error.report.to_payload()})
        except FeedError as error:
            return _Found("failed", {"problem": str(error)})
        except (StoreError, OSError):
            return _Found("failed", {"problem": "the database or the disk did not do its part"}, may_pass=True)

    async def _from_address(self, scheduled: _Scheduled) -> _Found:
        state = scheduled.state
        given_up = threading.Event()

        def tell(_taken: int) -> None:
            if given_up.is_set():
                raise FetchError("given up")

        with tempfile.TemporaryDirectory(prefix="forecourt-feed-") as folder:
            path = Path(folder) / "feed"
            with path.open("wb") as file:
                fetching = asyncio.ensure_future(
                    asyncio.to_thread(
                        fetch,
                        scheduled.feed.source,
                        file,
                        etag=state.etag if state else None,
                        last_modified=state.last_modified if state else None,
                        tell=tell,
                    )
                )
                try:
                    fetched = await asyncio.shield(fetching)
                except asyncio.CancelledError:
                    given_up.set()
                    with contextlib.suppress(FetchError, OSError):
                        await fetching
                    raise
            if not fetched.modified:
                return _Found("unchanged")
            report = await self._import(scheduled, path)
        return _Found("imported", report.to_payload(), fetched.etag, fetched.last_modified)

    async def _from_file(self, scheduled: _Scheduled) -> _Found:
        path = Path(scheduled.feed.source)
        try:
            status = await asyncio.to_thread(path.stat)
        except OSError:
            return _Found("unreachable", {"problem": "the file is not there"}, may_pass=True)
        mark = f"{status.st_mtime_ns}-{status.st_size}"
        if scheduled.state and scheduled.state.etag == mark:
            return _Found("unchanged")
        report = await self._import(scheduled, path)
        return _Found("imported", report.to_payload(), mark)

    async def _import(self, scheduled: _Scheduled, path: Path) -> Report:
        def check_lease() -> None:
            # A process that stood still (a paused container, a laptop that slept) may find that another one took over
            # and stored a newer file. Whoever comes later waits for this transaction and stores after it.
            if scheduled.leased_until is None or datetime.now(UTC) >= scheduled.leased_until:
                raise _LeaseLostError

        return await import_feed(
            self._store, scheduled.seller, path, scheduled.feed, self._vocabulary, before_storing=check_lease
        )


def _scheduled(sellers: Mapping[str, Seller], feeds: Sequence[Feed], vocabulary: Vocabulary) -> list[_Scheduled]:
    rooftops: dict[str, set[str | None]] = {}
    found: list[_Scheduled] = []
    wrong: list[ConfigProblem] = []
    for number, feed in enumerate(feeds):
        try:
            seller = seller_of(feed, sellers)
            feed_options(seller, feed, vocabulary)
            scope = (seller.dealer_id, rooftop_of(seller, feed))
            others = rooftops.setdefault(seller.dealer_id, set())
            if others and (scope[1] is None or not others.isdisjoint((scope[1], None))):
                raise ConfigError("another feed is of the same stock, and each would drop the other's", "rooftop")
        except ConfigError as error:
            wrong += error.inside("feeds", number).problems
            continue
        others.add(scope[1])
        mark = hashlib.sha256(msgspec.json.encode((feed, scope))).hexdigest()[:16]
        found.append(_Scheduled(feed, seller, f"{seller.dealer_id} {shown(feed.source)} {mark}"))
    if wrong:
        raise ConfigError(wrong)
    return found


def _detail(scheduled: _Scheduled, now: datetime, counts: Sequence[str] = ()) -> dict[str, Any]:
    state = scheduled.state
    detail: dict[str, Any] = {
        "source": shown(scheduled.feed.source),
        "dealer_id": scheduled.seller.dealer_id,
        "every_seconds": scheduled.feed.every,
        "outcome": state.outcome if state else "waiting",
    }
    if rooftop := rooftop_of(scheduled.seller, scheduled.feed):
        detail["rooftop"] = rooftop
    if state is None:
        return detail
    detail["checked_at"] = _time(state.checked_at)
    if state.imported_at is not None:
        detail["imported_at"] = _time(state.imported_at)
        detail["age_seconds"] = max(0, int((now - state.imported_at).total_seconds()))
    report = json.loads(state.report or b"{}")
    return detail | {name: report[name] for name in (*counts, "problem") if name in report}


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
