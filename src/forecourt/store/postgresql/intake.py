"""The quick way for leads with new keys: a group of them is decided, and written by one statement that is its commit.

It goes over connections of the event loop's own. Through a thread, a group would wait for the interpreter twice, each
time for as long as the loop has something to do, and half of the time the server would have nothing.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import msgspec
import psycopg
from psycopg.rows import TupleRow

from forecourt.store import Foreseen, LeadTransaction, NewLead
from forecourt.store.new_lead import decide_new
from forecourt.store.postgresql.session import lock_id, store_error

__all__ = ["Intake", "values_of"]

_Connection: TypeAlias = psycopg.AsyncConnection[TupleRow]

_encode = msgspec.json.Encoder().encode


class Intake:
    """Takes groups of new leads, on as many connections as there are groups at a time."""

    def __init__(self, conninfo: str, statement: str) -> None:
        self._conninfo = conninfo
        self._statement = statement
        self._free: list[_Connection] = []
        self._is_possible = True

    async def take(self, works: Sequence[tuple[Callable[[LeadTransaction], Any], Foreseen]]) -> list[Any] | None:
        """Decide on leads and commit them; return what each returned, or None where they are to go the long way.

        That is where a key is known, one asks for more than its key, one fails, or the connection was lost: had the
        server committed all the same, the long way finds the keys and answers by their receipts. Raises StoreError when
        another process holds a lock for too long: which of the leads waits for it, is found out one by one.
        """
        if not self._is_possible:
            return None
        try:
            outcomes, added = decide_new(works)
            values = values_of(added)
        except Exception:
            # The long way meets it again and tells whose it is.
            return None
        if added:
            try:
                await self._write(values)
            except psycopg.errors.LockNotAvailable as error:
                refused = store_error(error)
            except psycopg.Error:
                return None
            else:
                return outcomes
            # Outside of the handler, so that the driver's error with the data in it is not carried along.
            raise refused
        return outcomes

    async def _write(self, values: dict[str, str]) -> None:
        connection = self._free.pop() if self._free else await self._connect()
        try:
            await connection.execute(self._statement, values)
        except psycopg.Error:
            if not connection.closed:
                self._free.append(connection)
            raise
        except BaseException:
            # Given up in the middle: nobody knows what the connection is about.
            await connection.close()
            raise
        self._free.append(connection)

    async def _connect(self) -> _Connection:
        try:
            return await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
        except psycopg.InterfaceError:
            # The event loop is none that the driver can wait with, as the default one on Windows.
            self._is_possible = False
            raise

    async def close(self) -> None:
        """Close the connections; nothing is under way."""
        while self._free:
            await asyncio.shield(self._free.pop().close())


def values_of(leads: Iterable[NewLead]) -> dict[str, str]:
    """Return the values of the statement that writes leads: JSON, with bytes in base 64."""
    leads = [*leads]
    return {"leads": _written(leads), "locks": _locks(leads)}


def _locks(leads: Iterable[NewLead]) -> str:
    """Return the locks that leads need as [number, shared], level by level, those of a level by number."""
    keys: set[int] = set()
    sellers: set[int] = set()
    persons: set[int] = set()
    for lead in leads:
        keys.add(lock_id("key", str(lead.scope), str(lead.key)))
        sellers.add(lock_id("seller", lead.dealer_id))
        persons.update(lock_id("person", lead.dealer_id, person_key) for person_key in lead.person_keys)
    levels = ((keys, False), (sellers, True), (persons, False))
    return _encode([[str(number), shared] for level, shared in levels for number in sorted(level)]).decode()


def _written(leads: Iterable[NewLead]) -> str:
    """Return leads as the statement reads them."""
    return _encode(
        [
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
                "snapshot": lead.snapshot,
                "body": lead.grant,
                "person_keys": lead.person_keys,
                "scope": lead.scope,
                "key": str(lead.key).encode(),
                "fingerprint": lead.fingerprint,
                "expires_at": lead.expires_at,
                "deliveries": [
                    {
                        "delivery_id": delivery.delivery_id,
                        "target": delivery.target,
                        "kind": delivery.kind,
                        "content": delivery.content,
                    }
                    for delivery in lead.deliveries
                ],
            }
            for lead in leads
        ]
    ).decode()
