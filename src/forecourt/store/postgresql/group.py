"""Leads that come together are taken in one transaction: looked up by one statement, decided in turn, written by one.

Most have new keys, and are taken as such first (`postgresql.intake`): decided without a look, locked and written by one
statement that is the whole transaction. It fails where a key is known, and only then they go through the one above.

This is for leads that ask for their key and for nothing else (`Foreseen`); all others have a transaction each
(`postgresql.lead`). Groups keep to the four levels of locks written down there, and take those of a level in the order
of their numbers: all keys, then the sellers (shared), then all persons. No calendar is asked for. So a group is, to
every other transaction, one lead that has many keys.

A group is never of two leads with one key: the second one waits for the next group, and finds the first one there.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, Final, Protocol

from forecourt.store import Foreseen, LeadTransaction, NewLead, Remembered, StoreError
from forecourt.store.postgresql.intake import Intake
from forecourt.store.postgresql.session import Connection, asked, lock_id, together

__all__ = ["LeadGroups", "insert_leads"]

_GROUP: Final = 64
"""How many leads one transaction takes at the most."""
_AT_A_TIME: Final = 2
"""How many groups are under way: one may be decided on while the server has the other."""
_QUEUE: Final = 4096
"""How many leads may wait; more are refused, so that memory stays bounded."""
_PATIENCE: Final = 10.0
"""How long a lead may wait for a group, in seconds."""


@dataclass(slots=True)
class _Waiting:
    """A lead that waits for its group; `future` gets what `work` returns."""

    work: Callable[[LeadTransaction], Any]
    foreseen: Foreseen
    future: "asyncio.Future[Any]"
    until: float


@dataclass(slots=True)
class _Group:
    """The leads of one transaction. `begun` is set before the first of them is decided on."""

    members: Sequence[_Waiting]
    begun: bool = False
    outcomes: list[Any] = field(default_factory=list)


class _Failure:
    """What became of a lead that failed while others were kept."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Transact(Protocol):
    """Runs work in a transaction, committed when this returns."""

    def __call__(self, work: Callable[[Connection], Any], /) -> Awaitable[Any]: ...


class LeadGroups:
    """Forms groups of the leads that wait, in the event loop, and gives each its outcome after the commit."""

    def __init__(
        self, intake: Intake, transact: _Transact, alone: Callable[[Any, Connection], Any], sql: dict[str, str]
    ) -> None:
        """Take the quick way, what runs a transaction, and what takes one lead in it as if there were no groups."""
        self._intake = intake
        self._transact = transact
        self._alone = alone
        self._sql = sql
        self._waiting: deque[_Waiting] = deque()
        self._under_way = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def decide(self, work: Callable[[LeadTransaction], Any], foreseen: Foreseen) -> Any:
        """Have `work` done in a group, and return what it returned once that is committed."""
        if len(self._waiting) >= _QUEUE:
            raise StoreError("too much work is waiting for the database")
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(work, foreseen, future, time.monotonic() + _PATIENCE))
        if self._under_way < _AT_A_TIME:
            self._under_way += 1
            task = asyncio.create_task(self._run(), name="forecourt-leads")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        # Once it waits, it is done whether or not the caller is still there: it cannot be half cancelled.
        return await future

    async def close(self) -> None:
        """Finish the leads that wait."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._intake.close()

    async def _run(self) -> None:
        try:
            await self._take_all()
        finally:
            # In the same step as the last look at what waits: a lead that comes after it is not left to this task.
            self._under_way -= 1

    async def _take_all(self) -> None:
        while self._waiting:
            group = _Group(self._next())
            try:
                if not await self._take_new(group):
                    await self._transact(partial(self._take, group))
            except StoreError as error:
                if group.begun or len(group.members) == 1:
                    group.outcomes = [_Failure(error) for _ in group.members]
                else:
                    # Nothing was decided yet, so each may be tried by itself: one of them waits for another process.
                    await asyncio.gather(*map(self._one, group.members))
                    continue
            except Exception as error:
                group.outcomes = [_Failure(error) for _ in group.members]
            except BaseException:
                for each in group.members:
                    each.future.cancel()
                raise
            for each, outcome in zip(group.members, group.outcomes, strict=True):
                _settle(each.future, outcome)

    async def _take_new(self, group: _Group) -> bool:
        """Take a group's leads as new ones; tell whether that is done."""
        now = time.monotonic()
        if any(now > each.until for each in group.members):
            return False
        outcomes = await self._intake.take([(each.work, each.foreseen) for each in group.members])
        group.outcomes = outcomes or []
        return outcomes is not None

    def _next(self) -> Sequence[_Waiting]:
        """Take the leads that have waited longest, none with the key of another."""
        found: dict[tuple[str, str], _Waiting] = {}
        again: list[_Waiting] = []
        while self._waiting and len(found) < _GROUP:
            each = self._waiting.popleft()
            if found.setdefault((each.foreseen.scope, each.foreseen.key), each) is not each:
                again.append(each)
        self._waiting.extendleft(reversed(again))
        return list(found.values())

    async def _one(self, each: _Waiting) -> None:
        try:
            outcome = await self._transact(partial(self._alone, each.work))
        except BaseException as error:
            outcome = _Failure(error)
        _settle(each.future, outcome)

    def _take(self, group: _Group, connection: Connection) -> None:
        """Take a group's leads. Runs in a thread, in a transaction."""
        known = self._look_up(connection, [each.foreseen for each in group.members])
        group.begun = True
        decided: list[tuple[int, Sequence[NewLead]]] = []
        now = time.monotonic()
        for number, each in enumerate(group.members):
            lead = _GroupedLead(each.foreseen, known.get(number))
            try:
                if now > each.until:
                    raise StoreError("the database is too busy")
                group.outcomes.append(each.work(lead))
            except BaseException as error:
                group.outcomes.append(_Failure(error))
            else:
                if lead.added:
                    decided.append((number, lead.added))
        if decided:
            self._write(connection, group, decided)

    def _look_up(self, connection: Connection, asked_for: Sequence[Foreseen]) -> dict[int, Remembered]:
        """Lock all keys, then ask for them."""
        values = (
            [*range(len(asked_for))],
            [each.scope for each in asked_for],
            [each.key.encode() for each in asked_for],
            [each.now for each in asked_for],
        )
        with together(connection):
            self._lock(connection, (lock_id("key", each.scope, each.key) for each in asked_for))
            rows = connection.execute(self._sql["recall_each"], values)
        return {number: Remembered(*found) for number, *found in rows.fetchall()}

    def _write(self, connection: Connection, group: _Group, decided: Sequence[tuple[int, Sequence[NewLead]]]) -> None:
        """Write the leads that were decided, all at once; if that fails one by one, so that it is known which."""
        leads = [*chain.from_iterable(leads for _, leads in decided)]
        with together(connection):
            for seller in sorted({lock_id("seller", lead.dealer_id) for lead in leads}):
                connection.execute(self._sql["lock_shared"], (seller,))
            self._lock(
                connection, (lock_id("person", lead.dealer_id, key) for lead in leads for key in lead.person_keys)
            )
        try:
            self._insert(connection, leads)
        except Exception:
            for number, some in decided:
                try:
                    self._insert(connection, some)
                except Exception as error:
                    group.outcomes[number] = _Failure(error)

    def _insert(self, connection: Connection, leads: Sequence[NewLead]) -> None:
        """Write leads in a savepoint: all of them, or none and an error."""

        def work() -> None:
            with connection.transaction():
                insert_leads(connection, self._sql, leads)

        asked(work)

    def _lock(self, connection: Connection, numbers: Iterable[int]) -> None:
        wanted = sorted(set(numbers))
        if wanted:
            connection.execute(self._sql["lock_each"], (wanted,))


class _GroupedLead:
    """The one question and the answer of a lead of a group."""

    def __init__(self, foreseen: Foreseen, known: Remembered | None) -> None:
        self._foreseen = foreseen
        self._known = known
        self.added: list[NewLead] = []

    def recall(self, scope: str, key: str, now: datetime) -> Remembered | None:
        if (scope, key, now) != (self._foreseen.scope, self._foreseen.key, self._foreseen.now) or self.added:
            raise _unforeseen()
        return self._known

    def twin(self, *_: Any) -> bytes | None:
        raise _unforeseen()

    def busy(self, *_: Any) -> int:
        raise _unforeseen()

    def add(self, lead: NewLead) -> None:
        known = (lead.scope, lead.key) in ((None, None), (self._foreseen.scope, self._foreseen.key))
        if not known or lead.booking is not None:
            raise _unforeseen()
        self.added.append(lead)


def _unforeseen() -> StoreError:
    return StoreError("a lead did what was not foreseen of it")


def _settle(future: "asyncio.Future[Any]", outcome: Any) -> None:
    if future.done():
        return  # its caller has gone; the work is done all the same
    if isinstance(outcome, _Failure):
        future.set_exception(outcome.error)
    else:
        future.set_result(outcome)


def insert_leads(connection: Connection, sql: dict[str, str], leads: Sequence[NewLead]) -> None:
    """Write leads with all that belongs to them by one statement. They have no appointments."""
    keyed = [lead for lead in leads if lead.scope is not None and lead.key is not None and lead.expires_at is not None]
    persons = [(lead, person_key) for lead in leads for person_key in lead.person_keys]
    sent = [(lead, delivery) for lead in leads for delivery in lead.deliveries]
    connection.execute(
        sql["add_each"],
        {
            "lead_ids": [lead.lead_id for lead in leads],
            "dealer_ids": [lead.dealer_id for lead in leads],
            "rooftops": [lead.rooftop for lead in leads],
            "listing_ids": [lead.listing_id for lead in leads],
            "received_at": [lead.received_at for lead in leads],
            "callers": [lead.caller for lead in leads],
            "vehicle_keys": [lead.vehicle_key for lead in leads],
            "businesses": [lead.business for lead in leads],
            "receipts": [lead.receipt for lead in leads],
            "snapshots": [lead.snapshot for lead in leads],
            "grants": [lead.grant for lead in leads],
            "persons_of": [lead.lead_id for lead, _ in persons],
            "person_keys": [person_key for _, person_key in persons],
            "keys_of": [lead.lead_id for lead in keyed],
            "scopes": [lead.scope for lead in keyed],
            "keys": [str(lead.key).encode() for lead in keyed],
            "fingerprints": [lead.fingerprint for lead in keyed],
            "expire_at": [lead.expires_at for lead in keyed],
            "deliveries_of": [lead.lead_id for lead, _ in sent],
            "delivery_ids": [delivery.delivery_id for _, delivery in sent],
            "targets": [delivery.target for _, delivery in sent],
            "kinds": [delivery.kind for _, delivery in sent],
            "contents": [delivery.content for _, delivery in sent],
        },
    )
