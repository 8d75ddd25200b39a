"""What is asked and done while a lead is decided, and the locks that keep the answers true on every process.

The locks are PostgreSQL's advisory locks of the transaction: the server gives them up at the commit or when it loses
the process, and rows that do not exist yet can be locked by them. SERIALIZABLE would need no locks, but it fails
transactions that met; one lock for a whole seller would be enough too, but it would let only one lead at a time through
the wait for the disk.

There are four levels, taken from the top down:

1. the key in its scope (`recall`, `add`);
2. the seller: shared by leads that lock persons, exclusive for one that is asked about a calendar before any person;
3. the persons, in the order of their numbers (`twin`, `add`); an exclusive seller includes them all;
4. the calendar of one department of one rooftop (`busy`, `add`); an exclusive seller includes that too.

The exclusive seller is there because of leads with a key: who they are from is only known at `add`, after the
calendar, while leads without a key lock the person first. So no two that follow the order can wait for each other,
as long as each is about one key and one calendar, and its persons are known when it first asks for any. For others
the server finds the deadlock and fails one of them, which is a StoreError and keeps nothing.

A lock and the question that it is for are two statements: a question sees what was committed before it began, and
must begin after the lock is there. Both go out together, so a lock costs no round trip of its own.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final

from psycopg import Cursor
from psycopg.rows import TupleRow

from forecourt.store import NewLead, Remembered
from forecourt.store.postgresql.session import Connection, lock_id, together

__all__ = ["PostgreSQLLeadTransaction", "recall"]

_CONFIRMED: Final = "confirmed"


def recall(connection: Connection, sql: dict[str, str], scope: str, key: str, now: datetime) -> Remembered | None:
    """Look a key up."""
    return _remembered(_asked_of(connection, sql, scope, key, now))


def _asked_of(connection: Connection, sql: dict[str, str], scope: str, key: str, now: datetime) -> Cursor[TupleRow]:
    return connection.execute(sql["recall"], (scope, key.encode(), now))


def _remembered(found: Cursor[TupleRow]) -> Remembered | None:
    row = found.fetchone()
    return Remembered(*row) if row else None


class PostgreSQLLeadTransaction:
    """The questions and the answer of one lead, on a connection with a transaction begun."""

    def __init__(self, connection: Connection, sql: dict[str, str]) -> None:
        self._connection = connection
        self._run = connection.execute
        self._sql = sql
        self._held: set[int] = set()
        self._shared: set[int] = set()

    def recall(self, scope: str, key: str, now: datetime) -> Remembered | None:
        with together(self._connection):
            self._lock_key(scope, key)
            found = _asked_of(self._connection, self._sql, scope, key, now)
        return _remembered(found)

    def twin(self, dealer_id: str, person_keys: Collection[str], vehicle_key: str, since: datetime) -> bytes | None:
        with together(self._connection):
            self._lock_persons(dealer_id, person_keys)
            found = self._run(self._sql["twin"], (dealer_id, list(person_keys), since, vehicle_key))
        row = found.fetchone()
        return row[0] if row else None

    def busy(self, dealer_id: str, rooftop: str, department: str, start: datetime, end: datetime) -> int:
        with together(self._connection):
            self.lock_calendar(dealer_id, rooftop, department)
            found = self._run(self._sql["busy"], (dealer_id, rooftop, department, end, start))
        row = found.fetchone()
        assert row is not None
        count: int = row[0]
        return count

    def add(self, lead: NewLead) -> None:
        with together(self._connection):
            if lead.scope is not None and lead.key is not None:
                self._lock_key(lead.scope, lead.key)
            self._lock_persons(lead.dealer_id, lead.person_keys)
            if lead.booking is not None and lead.booking.status == _CONFIRMED and lead.rooftop is not None:
                self.lock_calendar(lead.dealer_id, lead.rooftop, lead.booking.department)
            self._insert(lead)

    def _insert(self, lead: NewLead) -> None:
        keyed = lead.scope is not None and lead.key is not None and lead.expires_at is not None
        booking = lead.booking
        self._run(
            self._sql["add"],
            {
                "lead_id": lead.lead_id,
                "dealer_id": lead.dealer_id,
                "rooftop": lead.rooftop,
                "listing_id": lead.listing_id,
                "received_at": lead.received_at,
                "caller": lead.caller,
                "vehicle_key": lead.vehicle_key,
                "business": lead.business,
                "receipt": lead.receipt,
                "grant": lead.grant,
                "person_keys": list(lead.person_keys),
                "scope": lead.scope if keyed else None,
                "key": lead.key.encode() if lead.key is not None else None,
                "fingerprint": lead.fingerprint,
                "expires_at": lead.expires_at,
                "appointment_id": booking.appointment_id if booking else None,
                "department": booking.department if booking else None,
                "kind": booking.kind if booking else None,
                "status": booking.status if booking else None,
                "start": booking.start if booking else None,
                "end": booking.end if booking else None,
                "snapshot": lead.snapshot,
                "delivery_ids": [delivery.delivery_id for delivery in lead.deliveries],
                "targets": [delivery.target for delivery in lead.deliveries],
                "kinds": [delivery.kind for delivery in lead.deliveries],
                "contents": [delivery.content for delivery in lead.deliveries],
            },
        )

    # The four levels of locks

    def _lock_key(self, scope: str, key: str) -> None:
        self._lock([lock_id("key", scope, key)])

    def _lock_persons(self, dealer_id: str, person_keys: Iterable[str]) -> None:
        seller = lock_id("seller", dealer_id)
        if seller in self._held:
            return
        if seller not in self._shared:
            self._run(self._sql["lock_shared"], (seller,))
            self._shared.add(seller)
        self._lock(lock_id("person", dealer_id, person_key) for person_key in person_keys)

    def lock_calendar(self, dealer_id: str, rooftop: str, department: str) -> None:
        """Keep the appointments of a department as they are until the transaction ends."""
        seller = lock_id("seller", dealer_id)
        if seller in self._shared:
            self._lock([lock_id("calendar", dealer_id, rooftop, department)])
        else:
            self._lock([seller])

    def _lock(self, numbers: Iterable[int]) -> None:
        wanted = sorted(set(numbers) - self._held)
        if wanted:
            self._run(self._sql["lock_each"], (wanted,))
            self._held.update(wanted)
