"""Leads in PostgreSQL: deciding on one, and everything that becomes of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

from forecourt.store import Booking, Foreseen, LeadRecord, LeadTransaction, Remembered
from forecourt.store.comparable import time_text
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
from forecourt.store.postgresql.group import LeadGroups
from forecourt.store.postgresql.lead import PostgreSQLLeadTransaction, recall
from forecourt.store.postgresql.session import Connection

__all__ = ["PostgreSQLLeads"]

Result = TypeVar("Result")

_BATCH: Final = 500
"""How many leads one transaction forgets."""
_PURGE: Final = ("purge_lead", "purge_persons", "purge_deliveries")
_FORGET: Final = (
    "forget_changes", "forget_deliveries", "forget_appointment", "forget_key", "forget_grant", "forget_lead",
)  # fmt: skip


class PostgreSQLLeads(ABC):
    """The part of the store that is about leads."""

    _sql: dict[str, str]
    _groups: LeadGroups

    @abstractmethod
    async def _write(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` in a transaction that is committed when this returns."""

    @abstractmethod
    async def _read(self, work: Callable[[Connection], Result], begin: str = "BEGIN READ ONLY") -> Result:
        """Run `work` in a transaction that only reads."""

    # Taking a lead

    async def decide_lead(self, work: Callable[[LeadTransaction], Result], foreseen: Foreseen | None = None) -> Result:
        """Run `work` in a transaction, with that of other leads where it is foreseen what they ask.

        A transaction waits for those of other leads that it meets, and for no more. When the server is lost during the
        commit, nobody can tell whether the lead is kept: this is a StoreError too, and asking again finds the lead by
        its key or as its twin.
        """
        if foreseen is None:
            return await self._write(partial(self._decide_alone, work))
        result: Result = await self._groups.decide(work, foreseen)
        return result

    def _decide_alone(self, work: Callable[[LeadTransaction], Result], connection: Connection) -> Result:
        return work(PostgreSQLLeadTransaction(connection, self._sql))

    async def recall(self, scope: str, key: str, now: datetime) -> Remembered | None:
        """Look a key up, without a lock."""
        return await self._read(lambda connection: recall(connection, self._sql, scope, key, now))

    async def recall_among(self, scopes: Collection[str], key: str, now: datetime) -> Mapping[str, Remembered]:
        """Look a key up in all scopes, without a lock."""

        def work(connection: Connection) -> Mapping[str, Remembered]:
            rows = connection.execute(self._sql["recall_among"], ([*scopes], key.encode(), now))
            return {scope: Remembered(*found) for scope, *found in rows}

        return await self._read(work)

    async def leads(self, dealer_id: str | None, limit: int) -> Sequence[LeadRecord]:
        """Read the newest leads."""
        values = {"dealer_id": dealer_id, "limit": limit}
        return await self._read(
            lambda connection: [_lead(found) for found in connection.execute(self._sql["leads"], values)]
        )

    async def lead(self, lead_id: str) -> LeadRecord | None:
        """Read one lead."""

        def work(connection: Connection) -> LeadRecord | None:
            found = connection.execute(self._sql["lead"], (lead_id,)).fetchone()
            return _lead(found) if found else None

        return await self._read(work)

    # Deliveries

    async def claim_deliveries(
        self, holder: str, now: datetime, until: datetime, limit: int, without: Collection[str] = ()
    ) -> Sequence[Delivery]:
        """Take what is due, passing over the rows that another process is just taking."""
        values = {"holder": holder, "now": now, "until": until, "limit": limit, "without": list(without)}
        found = await self._write(lambda connection: connection.execute(self._sql["claim"], values).fetchall())
        return sorted((Delivery(*row) for row in found), key=lambda delivery: (delivery.since, delivery.delivery_id))

    async def hold_delivery(self, delivery: Delivery, until: datetime) -> bool:
        """Write the later end."""
        values = {**_claimed(delivery), "until": until}
        return await self._write(lambda connection: connection.execute(self._sql["hold"], values).rowcount == 1)

    async def settle_delivery(self, delivery: Delivery, outcome: Outcome) -> bool:
        """Write the outcome."""
        values = {
            **_claimed(delivery), "status": outcome.status, "reason": outcome.reason, "next_at": outcome.next_at,
            "settled_at": None if outcome.status == WAITING else outcome.at,
        }  # fmt: skip
        return await self._write(lambda connection: connection.execute(self._sql["settle"], values).rowcount == 1)

    async def next_delivery_at(self) -> datetime | None:
        """Read the first time."""

        def work(connection: Connection) -> datetime | None:
            found = connection.execute(self._sql["next_due"]).fetchone()
            return found[0] if found else None

        return await self._read(work)

    async def deliveries(self, lead_ids: Collection[str]) -> Sequence[Delivery]:
        """Read the deliveries of some leads."""
        values = (list(lead_ids),)
        return await self._read(
            lambda connection: [Delivery(*row) for row in connection.execute(self._sql["deliveries"], values)]
        )

    async def resend_deliveries(self, lead_id: str, now: datetime, target: str | None = None) -> int:
        """Make them due."""
        values = {"lead_id": lead_id, "now": now, "target": target}
        return await self._write(lambda connection: connection.execute(self._sql["resend"], values).rowcount)

    async def delivery_counts(self) -> Mapping[str, int]:
        """Count what is not delivered."""

        def work(connection: Connection) -> Mapping[str, int]:
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
        """Change what differs, with the lead's row locked, and with the calendar for an appointment that is."""

        def work(connection: Connection) -> Sequence[StatusChange]:
            if wanted.appointment is not None:
                self._lock_calendar(connection, lead_id)
            standing = connection.execute(self._sql["standing"], (lead_id,)).fetchone()
            if standing is None:
                return []
            changes = []
            lead_status, appointment_id, appointment_status = standing[:3]
            if wanted.lead is not None and wanted.lead != lead_status:
                values = {"lead_id": lead_id, "status": wanted.lead}
                connection.execute(self._sql["set_lead_status"], values)
                changes.append(StatusChange(lead_id, lead_id, lead_status, wanted.lead, now))
            if appointment_id is not None and wanted.appointment not in (None, appointment_status):
                assert wanted.appointment is not None
                span = {"start": wanted.start, "end": wanted.end}
                values = {"lead_id": lead_id, "status": wanted.appointment}
                connection.execute(self._sql["set_appointment_status"], {**values, **span})
                changes.append(StatusChange(lead_id, appointment_id, appointment_status, wanted.appointment, now))
            for change in changes:
                row = (change.lead_id, change.entity_id, change.previous, change.status, now)
                connection.execute(self._sql["add_status_change"], row)
            for delivery in deliveries(changes) if changes else ():
                connection.execute(
                    self._sql["add_delivery"],
                    {
                        "delivery_id": delivery.delivery_id, "lead_id": lead_id, "target": delivery.target,
                        "kind": delivery.kind, "content": delivery.content, "now": now,
                    },
                )  # fmt: skip
            return changes

        return await self._write(work)

    def _lock_calendar(self, connection: Connection, lead_id: str) -> None:
        """Lock the calendar that an appointment is in before any row, in the order in which leads lock."""
        found = connection.execute(self._sql["calendar_of"], (lead_id,)).fetchone()
        if found is not None:
            PostgreSQLLeadTransaction(connection, self._sql).lock_calendar(*found)

    async def status_changes(self, lead_id: str) -> Sequence[StatusChange]:
        """Read the history."""
        return await self._read(
            lambda connection: [
                StatusChange(*row) for row in connection.execute(self._sql["status_changes"], (lead_id,))
            ]
        )

    # Forgetting

    async def purge_leads(self, purge: Purge) -> Purged:
        """Forget batch by batch."""
        values = _purge_values(purge)

        def sweep(connection: Connection) -> int:
            return connection.execute(self._sql["sweep_keys"], {**values, "limit": _BATCH}).rowcount

        if purge.lead_id is not None:
            return Purged(await self._forget("to_purge_one", _PURGE, values), 0, 0)
        leads = await self._forget("to_purge", _PURGE, values)
        proofs = await self._forget("proofs_to_purge", _FORGET, values)
        keys = 0
        while swept := await self._write(sweep):
            keys += swept
        return Purged(leads, proofs, keys)

    async def _forget(self, question: str, steps: Sequence[str], values: dict[str, Any]) -> int:
        def work(connection: Connection) -> int:
            found = connection.execute(self._sql[question], {**values, "limit": _BATCH}).fetchall()
            leads = [lead_id for (lead_id,) in found]
            for step in steps:
                connection.execute(self._sql[step], {**values, "leads": leads, "reason": FORGOTTEN})
            return len(leads)

        forgotten = 0
        while count := await self._write(work):
            forgotten += count
        return forgotten

    async def count_purge(self, purge: Purge) -> Purged:
        """Count what there is to forget."""
        values = _purge_values(purge)

        def work(connection: Connection) -> Purged:
            if purge.lead_id is not None:
                return Purged(len(connection.execute(self._sql["one_to_purge"], values).fetchall()), 0, 0)
            counts = []
            for name, given in (
                ("count_to_purge", values),
                ("count_proofs_to_purge", values),
                ("count_expired_keys", (purge.now,)),
            ):
                found = connection.execute(self._sql[name], given).fetchone()
                counts.append(found[0] if found else 0)
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

        def work(connection: Connection) -> int:
            found = connection.execute(self._sql["count_fields_unlike"], {"beginning": unlike}).fetchone()
            return found[0] if found else 0

        return await self._read(work)

    async def exchange_lead_fields(self, changes: Sequence[tuple[LeadFields, LeadFields]]) -> int:
        """Write over what is as it was, passing over leads that another transaction works on."""

        def work(connection: Connection) -> int:
            changed = 0
            held = {
                lead_id
                for (lead_id,) in connection.execute(self._sql["hold_leads"], ([old.lead_id for old, _ in changes],))
            }
            for old, new in changes:
                if old.lead_id not in held:
                    continue
                values = {"lead_id": old.lead_id, "old": old.business, "new": new.business}
                business = connection.execute(self._sql["put_business"], values).rowcount
                # A grant is never altered, and its row never updated: it is laid down anew, as it was.
                grant = connection.execute(self._sql["take_grant"], {**values, "old": old.grant}).rowcount
                if grant:
                    connection.execute(self._sql["add_grant"], (old.lead_id, new.grant))
                changed += bool(business or grant)
            return changed

        return await self._write(work)

    async def sweep(self, now: datetime, persons_before: datetime, limit: int) -> int:
        """Delete the oldest, but for keys that a lead is just taking over."""
        values = {"now": now, "before": persons_before, "limit": limit}

        def work(connection: Connection) -> int:
            return sum(connection.execute(self._sql[name], values).rowcount for name in ("sweep_keys", "sweep_persons"))

        return await self._write(work)


def _claimed(delivery: Delivery) -> dict[str, Any]:
    return {"delivery_id": delivery.delivery_id, "holder": delivery.holder, "turn": delivery.turn}


def _purge_values(purge: Purge) -> dict[str, Any]:
    return {
        "before": purge.before, "proofs_before": purge.proofs_before, "now": purge.now, "dealer_id": purge.dealer_id,
        "lead_id": purge.lead_id,
    }  # fmt: skip


def _lead(found: tuple[Any, ...]) -> LeadRecord:
    """Return a lead, its times as text like every store gives them."""
    values = list(found[:11])
    values[5] = time_text(values[5])
    values[10] = None if values[10] is None else time_text(values[10])
    values.append(None if found[11] is None else Booking(*found[11:]))
    return LeadRecord(*values)
