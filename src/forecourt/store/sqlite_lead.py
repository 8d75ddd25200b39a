"""Leads in SQLite: deciding on one, and everything that becomes of it, on the connections of `store/sqlite.py`."""

import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from forecourt.store import Booking, Foreseen, LeadRecord, LeadTransaction, Remembered
from forecourt.store.comparable import time_of, time_text
from forecourt.store.outbox import (
    DELIVERED,
    FORGOTTEN,
    PARKED,
    WAITING,
    Delivery,
    LeadFields,
    NewDelivery,
    NewStatus,
    Outcome,
    Purge,
    Purged,
    StatusChange,
)
from forecourt.store.sqlite_group import LeadWork, Work, recall
from forecourt.store.sqlite_intake import new_delivery

__all__ = ["SQLiteLeads"]

Result = TypeVar("Result")

_BATCH: Final = 500
"""How many leads one transaction forgets: others that write wait for it."""
_PURGE: Final = ("purge_lead", "purge_persons", "purge_deliveries")
_FORGET: Final = (
    "forget_changes", "forget_deliveries", "forget_appointment", "forget_key", "forget_grant", "forget_lead",
)  # fmt: skip


class SQLiteLeads(ABC):
    """The part of the store that is about leads."""

    _sql: dict[str, str]

    @abstractmethod
    async def _write(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run `work` on the writer's connection, committed when this returns."""

    @abstractmethod
    async def _queue(self, work: Work | LeadWork) -> Any:
        """Have work done by the writer, and return what it returned once that is committed."""

    @abstractmethod
    async def _read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run `work` on a connection for reading."""

    # Taking a lead

    async def decide_lead(self, work: Callable[[LeadTransaction], Result], foreseen: Foreseen | None = None) -> Result:
        """Run `work` on the writer's thread; no other writer of this file runs at the same time."""
        result: Result = await self._queue(LeadWork(work, foreseen))
        return result

    async def recall(self, scope: str, key: str, now: datetime) -> Remembered | None:
        """Look a key up."""
        return await self._read(lambda connection: recall(connection, self._sql, scope, key, now))

    async def recall_among(self, scopes: Collection[str], key: str, now: datetime) -> Mapping[str, Remembered]:
        """Look a key up in all scopes."""
        values = {"scopes": json.dumps([*scopes]), "key": key, "now": time_text(now)}

        def work(connection: sqlite3.Connection) -> Mapping[str, Remembered]:
            rows = connection.execute(self._sql["recall_among"], values)
            return {scope: Remembered(*found) for scope, *found in rows}

        return await self._read(work)

    async def leads(self, dealer_id: str | None, limit: int) -> Sequence[LeadRecord]:
        """Read the newest leads."""
        values = {"dealer_id": dealer_id, "limit": limit}
        return await self._read(
            lambda connection: [_lead(row) for row in connection.execute(self._sql["leads"], values)]
        )

    async def lead(self, lead_id: str) -> LeadRecord | None:
        """Read one lead."""

        def work(connection: sqlite3.Connection) -> LeadRecord | None:
            row = connection.execute(self._sql["lead"], (lead_id,)).fetchone()
            return _lead(row) if row else None

        return await self._read(work)

    # Deliveries

    async def claim_deliveries(
        self, holder: str, now: datetime, until: datetime, limit: int, without: Collection[str] = ()
    ) -> Sequence[Delivery]:
        """Take what is due; there is one writer at a time, so nothing is taken twice."""
        values = {
            "holder": holder, "now": time_text(now), "until": time_text(until), "limit": limit,
            "without": json.dumps(list(without)),
        }  # fmt: skip
        found = await self._write(lambda connection: connection.execute(self._sql["claim"], values).fetchall())
        return sorted(map(_delivery, found), key=lambda delivery: (delivery.since, delivery.delivery_id))

    async def hold_delivery(self, delivery: Delivery, until: datetime) -> bool:
        """Write the later end."""
        values = {**_claimed(delivery), "until": time_text(until)}
        return await self._write(lambda connection: connection.execute(self._sql["hold"], values).rowcount == 1)

    async def settle_delivery(self, delivery: Delivery, outcome: Outcome) -> bool:
        """Write the outcome."""
        values = {
            **_claimed(delivery), "status": outcome.status, "reason": outcome.reason,
            "next_at": None if outcome.next_at is None else time_text(outcome.next_at),
            "settled_at": None if outcome.status == WAITING else time_text(outcome.at),
        }  # fmt: skip
        return await self._write(lambda connection: connection.execute(self._sql["settle"], values).rowcount == 1)

    async def next_delivery_at(self) -> datetime | None:
        """Read the first time."""

        def work(connection: sqlite3.Connection) -> datetime | None:
            return _time(connection.execute(self._sql["next_due"]).fetchone()[0])

        return await self._read(work)

    async def deliveries(self, lead_ids: Collection[str]) -> Sequence[Delivery]:
        """Read the deliveries of some leads."""
        values = (json.dumps(list(lead_ids)),)
        return await self._read(
            lambda connection: [*map(_delivery, connection.execute(self._sql["deliveries"], values))]
        )

    async def resend_deliveries(self, lead_id: str, now: datetime, target: str | None = None) -> int:
        """Make them due."""
        values = {"lead_id": lead_id, "now": time_text(now), "target": target}
        return await self._write(lambda connection: connection.execute(self._sql["resend"], values).rowcount)

    async def delivery_counts(self) -> Mapping[str, int]:
        """Count what is not delivered."""

        def work(connection: sqlite3.Connection) -> Mapping[str, int]:
            found = connection.execute(self._sql["delivery_counts"]).fetchall()
            return {WAITING: 0, PARKED: 0} | {status: count for status, count in found if status != DELIVERED}

        return await self._read(work)

    # Status

    async def change_status(
        self,
        lead_id: str,
        wanted: NewStatus,
        now: datetime,
        deliveries: Callable[[Sequence[StatusChange]], Sequence[NewDelivery]],
    ) -> Sequence[StatusChange]:
        """Change what differs, on the writer's thread."""

        def work(connection: sqlite3.Connection) -> Sequence[StatusChange]:
            standing = connection.execute(self._sql["standing"], (lead_id,)).fetchone()
            if standing is None:
                return []
            changes = []
            lead_status, appointment_id, appointment_status = standing
            if wanted.lead is not None and wanted.lead != lead_status:
                values = {"lead_id": lead_id, "status": wanted.lead}
                connection.execute(self._sql["set_lead_status"], values)
                changes.append(StatusChange(lead_id, lead_id, lead_status, wanted.lead, now))
            if appointment_id is not None and wanted.appointment not in (None, appointment_status):
                assert wanted.appointment is not None
                span = {"start": _seconds(wanted.start), "end": _seconds(wanted.end)}
                values = {"lead_id": lead_id, "status": wanted.appointment}
                connection.execute(self._sql["set_appointment_status"], {**values, **span})
                changes.append(StatusChange(lead_id, appointment_id, appointment_status, wanted.appointment, now))
            for change in changes:
                row = (change.lead_id, change.entity_id, change.previous, change.status, time_text(now))
                connection.execute(self._sql["add_status_change"], row)
            for delivery in deliveries(changes) if changes else ():
                connection.execute(self._sql["add_delivery"], new_delivery(delivery, lead_id, now))
            return changes

        return await self._write(work)

    async def status_changes(self, lead_id: str) -> Sequence[StatusChange]:
        """Read the history."""

        def work(connection: sqlite3.Connection) -> Sequence[StatusChange]:
            found = connection.execute(self._sql["status_changes"], (lead_id,)).fetchall()
            return [StatusChange(*[*row[:4], time_of(row[4])]) for row in found]

        return await self._read(work)

    # Forgetting

    async def purge_leads(self, purge: Purge) -> Purged:
        """Forget batch by batch; what is deleted is overwritten on the disk, in the file and in its log."""
        values = _purge_values(purge)
        first = "to_purge" if purge.lead_id is None else "to_purge_one"

        def sweep(connection: sqlite3.Connection) -> int:
            return connection.execute(self._sql["sweep_keys"], {**values, "limit": _BATCH}).rowcount

        await self._write(lambda connection: connection.execute("PRAGMA secure_delete = ON") and None)
        try:
            leads = await self._forget(first, _PURGE, values)
            proofs = keys = 0
            if purge.lead_id is None:
                proofs = await self._forget("proofs_to_purge", _FORGET, values)
            while purge.lead_id is None and (swept := await self._write(sweep)):
                keys += swept
        finally:
            await self._write(lambda connection: connection.execute("PRAGMA secure_delete = OFF") and None)
        await self._write_out_log()
        return Purged(leads, proofs, keys)

    async def _forget(self, question: str, steps: Sequence[str], values: dict[str, Any]) -> int:
        def work(connection: sqlite3.Connection) -> int:
            found = connection.execute(self._sql[question], {**values, "limit": _BATCH}).fetchall()
            for step in steps:
                rows = [{**values, "lead_id": lead_id, "reason": FORGOTTEN} for (lead_id,) in found]
                connection.executemany(self._sql[step], rows)
            return len(found)

        forgotten = 0
        while count := await self._write(work):
            forgotten += count
        return forgotten

    @abstractmethod
    async def _write_out_log(self) -> None:
        """Copy the log into the file and begin it anew."""

    async def count_purge(self, purge: Purge) -> Purged:
        """Count what there is to forget."""
        values = _purge_values(purge)

        def work(connection: sqlite3.Connection) -> Purged:
            if purge.lead_id is not None:
                return Purged(len(connection.execute(self._sql["to_purge_one"], values).fetchall()), 0, 0)
            counts = [
                connection.execute(self._sql[name], given).fetchone()[0]
                for name, given in (
                    ("count_to_purge", values),
                    ("count_proofs_to_purge", values),
                    ("count_expired_keys", (time_text(purge.now),)),
                )
            ]
            return Purged(*counts)

        return await self._read(work)

    # Sealing anew

    async def lead_fields(self, after: str, limit: int, unlike: bytes = b"") -> Sequence[LeadFields]:
        """Read the next leads."""
        values = {"after": after, "limit": limit, "beginning": unlike}
        statement = self._sql["lead_fields_unlike" if unlike else "lead_fields"]
        return await self._read(lambda connection: [LeadFields(*row) for row in connection.execute(statement, values)])

    async def count_lead_fields(self, unlike: bytes) -> int:
        """Count them."""

        def work(connection: sqlite3.Connection) -> int:
            count: int = connection.execute(self._sql["count_fields_unlike"], {"beginning": unlike}).fetchone()[0]
            return count

        return await self._read(work)

    async def exchange_lead_fields(self, changes: Sequence[tuple[LeadFields, LeadFields]]) -> int:
        """Write over what is as it was; the room that it leaves is overwritten on the disk, too."""

        def work(connection: sqlite3.Connection) -> int:
            changed = 0
            # What a key that leaked has sealed must not stay in free pages of the file.
            connection.execute("PRAGMA secure_delete = ON")
            try:
                for old, new in changes:
                    values = {"lead_id": old.lead_id, "old": old.business, "new": new.business}
                    business = connection.execute(self._sql["put_business"], values).rowcount
                    # A grant is never altered, and its row never updated: it is laid down anew, as it was.
                    grant = connection.execute(self._sql["take_grant"], {**values, "old": old.grant}).rowcount
                    if grant:
                        connection.execute(self._sql["add_grant"], (old.lead_id, new.grant))
                    changed += bool(business or grant)
            finally:
                connection.execute("PRAGMA secure_delete = OFF")
            return changed

        return await self._write(work)

    async def sweep(self, now: datetime, persons_before: datetime, limit: int) -> int:
        """Delete the oldest."""
        values = {"now": time_text(now), "before": time_text(persons_before), "limit": limit}

        def work(connection: sqlite3.Connection) -> int:
            return sum(connection.execute(self._sql[name], values).rowcount for name in ("sweep_keys", "sweep_persons"))

        return await self._write(work)


def _claimed(delivery: Delivery) -> dict[str, Any]:
    return {"delivery_id": delivery.delivery_id, "holder": delivery.holder, "turn": delivery.turn}


def _purge_values(purge: Purge) -> dict[str, Any]:
    return {
        "before": time_text(purge.before), "proofs_before": time_text(purge.proofs_before),
        "now": time_text(purge.now), "dealer_id": purge.dealer_id, "lead_id": purge.lead_id,
    }  # fmt: skip


def _lead(row: tuple[Any, ...]) -> LeadRecord:
    appointment_id, department, kind, status, start, end = row[11:]
    booking = None
    if appointment_id is not None:
        booking = Booking(appointment_id, department, kind, status, _moment(start), _moment(end))
    values = [*row[:11], booking]
    return LeadRecord(*values)


def _delivery(row: tuple[Any, ...]) -> Delivery:
    values = list(row)
    values[8:11] = map(_time, values[8:11])
    return Delivery(*values)


def _time(text: str | None) -> datetime | None:
    return None if text is None else time_of(text)


def _seconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp())


def _moment(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
