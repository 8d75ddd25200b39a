"""The courier: works the outbox in every server process, beside the requests and never in their way.

Processes share the work through the store: what one has claimed, no other gets while its lease is renewed. A process
that dies is succeeded when its leases have run out.
"""

import asyncio
import contextlib
import logging
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from forecourt.identifier import sortable_id
from forecourt.lead.delivery import DeliveryError, Parcel, Target
from forecourt.lead.outbox import Dispatch, Retry, parcel
from forecourt.lead.seller import Seller
from forecourt.lead.submit import TWIN_WINDOW
from forecourt.store import PARKED, WAITING, Delivery, Outcome, Store, StoreError

__all__ = ["Courier", "Pace"]

_spread = random.Random()  # noqa: S311 - spreads waits and keeps no secret; not everybody's own generator

_log = logging.getLogger("forecourt.leads")

_SETTLE_PAUSES: Final = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between the tries to record what came of an attempt, while the store does not answer."""
_SWEEP_SECONDS: Final = 3600.0
_SWEEP_ROWS: Final = 500
_SWEEP_ROUNDS: Final = 100


@dataclass(frozen=True, slots=True)
class Pace:
    """How the courier works; times in seconds.

    `parallel` deliveries at a time, half of them to one target at the most, so that a slow target does not hold the
    others up. `look` is how often the store is asked for what other processes have put there. A lease lasts `lease`
    and is renewed every third of that while a delivery is under way; `longest` ends one that no target has ended.
    `stop` is how long deliveries that are under way may take when the process stops.
    """

    parallel: int = 8
    look: float = 5.0
    lease: float = 45.0
    longest: float = 330.0
    stop: float = 10.0


@dataclass(slots=True)
class _UnderWay:
    """Deliveries of this process that are being sent."""

    tasks: dict[asyncio.Task[None], Delivery] = field(default_factory=dict)

    def full(self, most: int) -> Collection[str]:
        """Return the targets that have as many deliveries as they may."""
        counts = Counter(delivery.target for delivery in self.tasks.values())
        return [target for target, count in counts.items() if count >= most]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Courier:
    """Sends what is due for as long as it runs."""

    def __init__(
        self,
        store: Store,
        dispatch: Dispatch,
        sellers: Mapping[str, Seller],
        targets: Mapping[str, Target],
        retry: Retry | None = None,
        pace: Pace | None = None,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        """Take everything that is needed; nothing begins before `start`."""
        self._store = store
        self.dispatch = dispatch
        self._sellers = sellers
        self._targets = targets
        self._retry = retry or Retry()
        self._pace = pace or Pace()
        self._now = now
        self._holder = f"{sortable_id()}-{os.getpid()}"
        self._under_way = _UnderWay()
        self._news = asyncio.Event()
        self._counts: Mapping[str, int] = {WAITING: 0, PARKED: 0}
        self._running: asyncio.Task[None] | None = None
        self._next_sweep = 0.0
        self._next_count = 0.0
        self._failures = 0

    def start(self) -> None:
        """Begin, in the running event loop."""
        if self._running is None:
            self._running = asyncio.create_task(self._run(), name="forecourt-courier")

    def wake(self) -> None:
        """Look at the outbox at once. For callers in the event loop; never waits."""
        self._news.set()

    def details(self) -> dict[str, int]:
        """Return how many deliveries wait and are parked, as of the last look."""
        return dict(self._counts)

    async def stop(self) -> None:
        """Take nothing more, let what is under way end or give it back, and close the targets."""
        if self._running is None:
            return
        running, self._running = self._running, None
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        left = dict(self._under_way.tasks)
        if left:
            _, late = await asyncio.wait(left, timeout=self._pace.stop)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
            for task in late:
                now = self._now()
                with contextlib.suppress(StoreError):
                    await self._store.settle_delivery(left[task], Outcome("waiting", now, now, "the server stopped"))
        for target in self._targets.values():
            await target.close()

    # The rounds

    async def _run(self) -> None:
        while True:
            self._news.clear()
            try:
                wait = await self._round()
                self._failures = 0
            except StoreError:
                self._failures += 1
                if self._failures == 1:
                    _log.warning("the store does not answer; deliveries wait")
                wait = self._pace.look
            except Exception as error:
                # Whatever it is, deliveries go on. Its words may hold something of a lead; its kind does not.
                _log.error("the outbox could not be looked at: %s", type(error).__name__)
                wait = self._pace.look
            if wait > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._news.wait()

    async def _round(self) -> float:
        """Begin what is due and there is room for; return the seconds until there may be more."""
        await self._sweep()
        free = self._pace.parallel - len(self._under_way.tasks)
        if free <= 0:
            # Every delivery that ends calls for the next round.
            return self._pace.look
        due = await self._store.next_delivery_at()
        now = self._now()
        if due is not None and due <= now:
            each = max(1, self._pace.parallel // 2)
            until = now + timedelta(seconds=self._pace.lease)
            claimed = await self._store.claim_deliveries(
                self._holder, now, until, min(free, each), self._under_way.full(each)
            )
            for delivery in claimed:
                self._begin(delivery)
            if claimed:
                return 0.0
        await self._count()
        look = self._pace.look * _spread.uniform(0.8, 1.0)
        if due is None or due <= now:
            return look
        return min(look, max((due - now).total_seconds(), 0.01))

    async def _count(self) -> None:
        """Count what waits and what is parked, not with every round: a round follows every lead."""
        if time.monotonic() >= self._next_count:
            self._counts = await self._store.delivery_counts()
            self._next_count = time.monotonic() + self._pace.look / 5

    def _begin(self, delivery: Delivery) -> None:
        task = asyncio.create_task(self._deliver(delivery), name=f"forecourt-{delivery.delivery_id}")
        self._under_way.tasks[task] = delivery
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        delivery = self._under_way.tasks.pop(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("delivery %s could not be worked on: %s", delivery.delivery_id, type(error).__name__)
        self._news.set()

    async def _sweep(self) -> None:
        """Now and then delete keys that have expired, and what recognises a person, when nobody asks for it more."""
        if time.monotonic() < self._next_sweep:
            return
        self._next_sweep = time.monotonic() + _SWEEP_SECONDS
        if not await self._store.lease("sweep-leads", self._holder, _SWEEP_SECONDS / 2, self._now()):
            return
        for _ in range(_SWEEP_ROUNDS):
            now = self._now()
            if not await self._store.sweep(now, now - TWIN_WINDOW, _SWEEP_ROWS):
                return

    # One delivery

    async def _deliver(self, delivery: Delivery) -> None:
        outcome = await self._attempt(delivery)
        if outcome is None:
            return
        level = logging.WARNING if outcome.status == PARKED else logging.INFO
        _log.log(
            level,
            "delivery %s of %s to %s: %s%s",
            delivery.delivery_id,
            delivery.lead_id,
            delivery.target,
            outcome.status,
            f" ({outcome.reason})" if outcome.reason else "",
        )
        for pause in (*_SETTLE_PAUSES, 0.0):
            try:
                await self._store.settle_delivery(delivery, outcome)
            except StoreError:
                await asyncio.sleep(pause)
            else:
                return
        # Then the lease runs out, and the delivery is made once more under the same id.
        _log.warning("what came of delivery %s could not be recorded", delivery.delivery_id)

    async def _attempt(self, delivery: Delivery) -> Outcome | None:
        """Send one delivery; None when it is not this process's any more, or its lead cannot be read."""
        try:
            made = await self._made(delivery)
            sent = await self._send(delivery, made)
        except DeliveryError as error:
            return self._retry.after(delivery, error, self._now())
        except StoreError:
            return None
        except Exception as error:
            _log.error("delivery %s failed unexpectedly: %s", delivery.delivery_id, type(error).__name__)
            unexpected = DeliveryError(f"it failed unexpectedly: {type(error).__name__}")
            return self._retry.after(delivery, unexpected, self._now())
        return Outcome("delivered", self._now()) if sent else None

    async def _made(self, delivery: Delivery) -> Parcel:
        destination = self.dispatch.destination(delivery.target)
        if destination is None or delivery.target not in self._targets:
            # Perhaps the configuration of this process is older than that of the one which took the lead.
            raise DeliveryError("no target of this name is configured")
        record = await self._store.lead(delivery.lead_id)
        seller = None if record is None else self._sellers.get(record.dealer_id)
        return parcel(record, delivery, seller, destination, self.dispatch.sealer)

    async def _send(self, delivery: Delivery, made: Parcel) -> bool:
        """Send while the lease is held; False when it was lost. Raises DeliveryError."""
        sending = asyncio.create_task(self._targets[delivery.target].send(made))
        until = time.monotonic() + self._pace.longest
        ends = time.monotonic() + self._pace.lease
        try:
            while True:
                done, _ = await asyncio.wait({sending}, timeout=self._pace.lease / 3)
                if done:
                    sending.result()
                    return True
                if time.monotonic() > until:
                    raise DeliveryError("it took too long")
                asked = time.monotonic()
                held = await self._held(delivery)
                if held:
                    ends = asked + self._pace.lease
                elif held is False or time.monotonic() + self._pace.lease / 3 >= ends:
                    return False
        finally:
            if not sending.done():
                sending.cancel()
                await asyncio.wait({sending})

    async def _held(self, delivery: Delivery) -> bool | None:
        """Renew the lease; None when the store does not say: then nothing is sent beyond the lease's end.

        The store may be away for this machine alone, and another one about to take the delivery over.
        """
        until = self._now() + timedelta(seconds=self._pace.lease)
        try:
            async with asyncio.timeout(self._pace.lease / 3):
                return await self._store.hold_delivery(delivery, until)
        except (StoreError, TimeoutError):
            return None
