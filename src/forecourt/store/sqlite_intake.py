"""The quick way for leads with new keys: a group of them is decided, and written by one statement that is its commit.

Every statement of SQLite's gives the interpreter away and has to wait for it while the event loop works; a group that
is looked up, written table by table and committed has a dozen of them, and the two threads spend their time handing
over. So leads are decided as if their keys were new, and their rows go into a view whose triggers put each into its
table. Where a key is known after all, the statement fails as a whole, and the group is taken the long way
(`sqlite_group`), as if nothing had happened.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from forecourt.store import Foreseen, LeadTransaction, NewLead
from forecourt.store.comparable import time_text
from forecourt.store.new_lead import decide_new
from forecourt.store.statements import repeated

__all__ = ["Intake", "lead_rows", "new_delivery"]

_MOST_ROWS: Final = 1024
"""How many rows one statement writes at the most, where SQLite takes so many values."""

_TABLES: Final = ("add_lead", "add_grant", "add_person", "remember_key", "add_delivery")
"""The statements that write what belongs to a lead without an appointment."""


class Intake:
    """The quick way of one connection: the view is its own, and gone with it."""

    def __init__(self, connection: sqlite3.Connection, sql: dict[str, str]) -> None:
        self._connection = connection
        self._statements: dict[int, str] = {}
        width = max(sql[name].count("?") for name in _TABLES)
        # OR ABORT goes for the triggers' statements too: where the long way would replace a key, this way is none.
        self._insert = f"INSERT OR ABORT INTO intake VALUES ({', '.join('?' * (width + 1))})"  # noqa: S608 - no text
        self._nothing = (None,) * (width + 1)
        values = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
        self._most_rows = min(_MOST_ROWS, 1 << (values // (width + 1)).bit_length() - 1)
        columns = ", ".join(f"NULL AS v{number}" for number in range(width))
        connection.execute(f"CREATE TEMP VIEW intake AS SELECT NULL AS what, {columns}")
        for name in _TABLES:
            # The statement of the long way, each value being what stands at its number in the view.
            first, *others = sql[name].split("?")
            body = first + "".join(f"new.v{number}{text}" for number, text in enumerate(others))
            connection.execute(
                f"CREATE TEMP TRIGGER intake_{name} INSTEAD OF INSERT ON intake WHEN new.what = '{name}'"
                f" BEGIN {body}; END"
            )

    def take(self, works: Iterable[tuple[Callable[[LeadTransaction], Any], Foreseen]]) -> list[Any] | None:
        """Decide on leads and commit them; return what each returned, or None where nothing was done.

        None means that this way is none for them: one asks for more than its key, one fails, a key is known, or they
        are too many. Raises sqlite3.OperationalError where the database is at fault: locked, full, gone or read-only.
        """
        try:
            outcomes, added = decide_new(works)
            self._write(lead_rows(added))
        except sqlite3.OperationalError:
            raise
        except Exception:
            # The long way meets it again and tells whose it is. A statement that fails is undone as a whole.
            return None
        return outcomes

    def _write(self, rows: dict[str, list[Sequence[Any]]]) -> None:
        """Write rows by one statement, which commits them. Raises ValueError for too many."""
        count = sum(map(len, rows.values()))
        if count == 0:
            return
        if count > self._most_rows:
            raise ValueError("too many rows for one statement")
        values: list[Any] = []
        for name, some in rows.items():
            for row in some:
                values += (name, *row, *self._nothing[len(row) + 1 :])
        # Filled up to a power of two with rows for no table: so there are few statements to keep prepared.
        size = 1 << (count - 1).bit_length()
        values += self._nothing * (size - count)
        self._connection.execute(self._statement(size), values)

    def _statement(self, size: int) -> str:
        found = self._statements.get(size)
        if found is None:
            found = repeated(self._insert, size)
            self._statements[size] = found
        return found


def lead_rows(leads: Iterable[NewLead]) -> dict[str, list[Sequence[Any]]]:
    """Return the rows of leads and of all that belongs to them, by the statements that write them, in their order."""
    rows: list[Sequence[Any]] = []
    grants: list[Sequence[Any]] = []
    persons: list[Sequence[Any]] = []
    keys: list[Sequence[Any]] = []
    appointments: list[Sequence[Any]] = []
    deliveries: list[Sequence[Any]] = []
    for lead in leads:
        lead_id, dealer_id, received_at = lead.lead_id, lead.dealer_id, time_text(lead.received_at)
        rows.append(
            (
                lead_id, dealer_id, lead.rooftop, lead.listing_id, received_at, lead.caller, lead.vehicle_key,
                lead.business, lead.receipt, lead.snapshot,
            )
        )  # fmt: skip
        grants.append((lead_id, lead.grant))
        persons += [(dealer_id, person_key, received_at, lead_id) for person_key in lead.person_keys]
        if lead.scope is not None and lead.expires_at is not None:
            expires_at = time_text(lead.expires_at)
            keys.append((lead.scope, lead.key, lead.fingerprint, lead_id, lead.receipt, expires_at))
        if lead.booking is not None:
            booking = lead.booking
            appointments.append(
                (
                    booking.appointment_id, lead_id, dealer_id, lead.rooftop, booking.department,
                    booking.kind, booking.status, _seconds(booking.start), _seconds(booking.end),
                )
            )  # fmt: skip
        deliveries += [new_delivery(delivery, lead_id, lead.received_at) for delivery in lead.deliveries]
    return {
        "add_lead": rows,
        "add_grant": grants,
        "add_person": persons,
        "remember_key": keys,
        "add_appointment": appointments,
        "add_delivery": deliveries,
    }


def new_delivery(delivery: Any, lead_id: str, now: datetime) -> Sequence[Any]:
    """Return the values of a new delivery's row."""
    since = time_text(now)
    return delivery.delivery_id, lead_id, delivery.target, delivery.kind, delivery.content, since, since


def _seconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp())
