"""What one commit of SQLite's writer covers: work of any kind, and leads, decided in turn and written together.

Every statement of SQLite's gives the interpreter away and has to wait for it while the event loop works, so a group of
leads uses few of them: what each lead asks first is looked up for all at once, and the rows of all go into a table by
one INSERT. It is all the same as if every lead had been asked for and written by itself, in the order in which they
came: a question that an earlier lead of the group may have an answer to is asked after that lead was written, and a
lead that cannot be written leaves the others whole. Most groups are spared all that (`sqlite_intake`).
"""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Final

from forecourt.store import Foreseen, LeadTransaction, NewLead, Remembered, StoreError
from forecourt.store.comparable import time_text
from forecourt.store.sqlite_intake import Intake, lead_rows
from forecourt.store.statements import repeated

__all__ = ["Failure", "LeadWork", "Work", "commit_together", "insert_leads", "recall", "store_error"]

_ROWS: Final = 64
"""How many rows one INSERT writes at the most."""
_STATEMENTS: Final = 1024
"""How many texts of statements are remembered: of each there is one for every number of rows."""

Work = Callable[[sqlite3.Connection], Any]


@dataclass(frozen=True, slots=True)
class LeadWork:
    """The work that decides on one lead, and what it is sure to ask."""

    decide: Callable[[LeadTransaction], Any]
    foreseen: Foreseen | None = None


class Failure:
    """What a piece of work raised, kept until the group is committed."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def commit_together(
    connection: sqlite3.Connection, sql: dict[str, str], works: Sequence[Work | LeadWork], intake: Intake | None = None
) -> list[Any]:
    """Run each piece of work so that one failing leaves the others whole, and commit once.

    Return what each returned, or its `Failure`. A failure of the commit is everybody's, and raised. With an `intake`,
    leads that are new go the quick way.
    """
    if intake is not None:
        foreseen = [(work.decide, work.foreseen) for work in works if isinstance(work, LeadWork) and work.foreseen]
        outcomes = intake.take(foreseen) if len(foreseen) == len(works) else None
        if outcomes is not None:
            return outcomes
    connection.execute("BEGIN IMMEDIATE")
    try:
        group = _Group(connection, sql, len(works))
        group.look_up(works)
        for number, work in enumerate(works):
            if isinstance(work, LeadWork):
                group.decide(number, work)
            else:
                group.write()
                group.apart(number, work)
        group.write()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return group.outcomes


class _Group:
    """The state of one commit. Leads that were decided wait in `_decided` until they are written."""

    def __init__(self, connection: sqlite3.Connection, sql: dict[str, str], size: int) -> None:
        self.connection = connection
        self.sql = sql
        self.outcomes: list[Any] = [None] * size
        self.known: dict[tuple[str, str, datetime], Remembered | None] = {}
        self._decided: list[tuple[int, Sequence[NewLead]]] = []
        # What leads of this group are about, written or not: what was looked up beforehand says nothing of it.
        self.keys: set[tuple[str, str]] = set()
        self.persons: set[tuple[str, str]] = set()
        self.calendars: set[tuple[str, str | None, str]] = set()

    def look_up(self, works: Iterable[Work | LeadWork]) -> None:
        """Ask for all keys that will be asked for, at once."""
        asked = [work.foreseen for work in works if isinstance(work, LeadWork) and work.foreseen is not None]
        for some in _some(asked):
            values = [
                value
                for number, each in enumerate(some)
                for value in (number, each.scope, each.key, time_text(each.now))
            ]
            for each in some:
                self.known[each.scope, each.key, each.now] = None
            for number, *found in self.connection.execute(_repeated(self.sql["recall_each"], len(some)), values):
                each = some[number]
                self.known[each.scope, each.key, each.now] = Remembered(*found)

    def decide(self, number: int, work: LeadWork) -> None:
        """Let one lead be decided on."""
        lead = _GroupedLead(self)
        try:
            self.outcomes[number] = work.decide(lead)
        except BaseException as error:
            lead.undo()
            self.outcomes[number] = self._failure(error)
        else:
            if lead.done():
                self._decided.append((number, lead.added))

    def apart(self, number: int, work: Work) -> bool:
        """Run one piece of work in a savepoint; tell whether it succeeded. What it returns or raises is the outcome."""
        self.connection.execute("SAVEPOINT work")
        try:
            outcome = work(self.connection)
        except BaseException as error:
            outcome = self._failure(error)
            self.connection.execute("ROLLBACK TO work")
        self.connection.execute("RELEASE work")
        self.outcomes[number] = outcome
        return not isinstance(outcome, Failure)

    def write(self) -> None:
        """Write the leads that were decided, all at once; if that fails one by one, so that it is known which."""
        decided, self._decided = self._decided, []
        if not decided:
            return
        self.connection.execute("SAVEPOINT leads")
        try:
            insert_leads(self.connection, self.sql, [*chain.from_iterable(leads for _, leads in decided)])
        except BaseException as error:
            self._failure(error)
            self.connection.execute("ROLLBACK TO leads")
            for number, leads in decided:
                outcome = self.outcomes[number]
                if self.apart(number, partial(insert_leads, sql=self.sql, leads=leads)):
                    self.outcomes[number] = outcome
        self.connection.execute("RELEASE leads")

    def _failure(self, error: BaseException) -> Failure:
        """Return what failed; raise it where SQLite has given the whole transaction up (disk full, I/O error)."""
        if not isinstance(error, sqlite3.Error):
            return Failure(error)
        if not self.connection.in_transaction:
            raise error
        return Failure(store_error(error))


class _GroupedLead:
    """The questions and the answer of one lead of a group."""

    def __init__(self, group: _Group) -> None:
        self._group = group
        self.added: list[NewLead] = []
        self._is_apart = False

    def recall(self, scope: str, key: str, now: datetime) -> Remembered | None:
        group = self._group
        if (scope, key) in group.keys:
            self._write()
        elif (scope, key, now) in group.known:
            return group.known[scope, key, now]
        return recall(group.connection, group.sql, scope, key, now)

    def twin(self, dealer_id: str, person_keys: Collection[str], vehicle_key: str, since: datetime) -> bytes | None:
        group = self._group
        if not group.persons.isdisjoint((dealer_id, person_key) for person_key in person_keys):
            self._write()
        found: list[tuple[str, str, bytes]] = []
        for person_key in person_keys:
            values = (dealer_id, person_key, time_text(since), vehicle_key)
            found += group.connection.execute(group.sql["twin"], values).fetchall()
        return min(found)[2] if found else None

    def busy(self, dealer_id: str, rooftop: str, department: str, start: datetime, end: datetime) -> int:
        group = self._group
        if (dealer_id, rooftop, department) in group.calendars:
            self._write()
        values = (dealer_id, rooftop, department, int(end.timestamp()), int(start.timestamp()))
        count: int = group.connection.execute(group.sql["busy"], values).fetchone()[0]
        return count

    def add(self, lead: NewLead) -> None:
        group = self._group
        self.added.append(lead)
        if lead.scope is not None and lead.key is not None:
            group.keys.add((lead.scope, lead.key))
        group.persons.update((lead.dealer_id, person_key) for person_key in lead.person_keys)
        if lead.booking is not None:
            group.calendars.add((lead.dealer_id, lead.rooftop, lead.booking.department))

    def _write(self) -> None:
        """Write what a question may be about: the leads before this one, and what this one has added already."""
        group = self._group
        if not self._is_apart:
            group.write()
        if self.added:
            if not self._is_apart:
                group.connection.execute("SAVEPOINT lead")
                self._is_apart = True
            added, self.added = self.added, []
            insert_leads(group.connection, group.sql, added)

    def undo(self) -> None:
        """Undo what was written of this lead, unless SQLite has undone everything."""
        if self._is_apart and self._group.connection.in_transaction:
            self._group.connection.execute("ROLLBACK TO lead")
            self._group.connection.execute("RELEASE lead")

    def done(self) -> bool:
        """Finish; tell whether there is something left to write."""
        if self._is_apart:
            self._group.connection.execute("RELEASE lead")
        return bool(self.added)


def recall(
    connection: sqlite3.Connection, sql: dict[str, str], scope: str, key: str, now: datetime
) -> Remembered | None:
    """Look a key up."""
    row = connection.execute(sql["recall"], (scope, key, time_text(now))).fetchone()
    return Remembered(*row) if row else None


# Writing


def insert_leads(connection: sqlite3.Connection, sql: dict[str, str], leads: Sequence[NewLead]) -> None:
    """Write leads with all that belongs to them, one INSERT a table for up to 64 rows."""
    for name, values in lead_rows(leads).items():
        for some in _some(values):
            connection.execute(_repeated(sql[name], len(some)), [*chain.from_iterable(some)])


@lru_cache(_STATEMENTS)
def _repeated(statement: str, rows: int) -> str:
    return repeated(statement, rows)


def _some(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    if len(values) <= _ROWS:
        return [values] if values else ()
    return [values[begin : begin + _ROWS] for begin in range(0, len(values), _ROWS)]


def store_error(error: sqlite3.Error) -> StoreError:
    """Return our error for one of the driver's, which is its cause."""
    wrapped = StoreError(f"the database refused: {getattr(error, 'sqlite_errorname', type(error).__name__)}")
    wrapped.__cause__ = error
    return wrapped
