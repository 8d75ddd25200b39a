"""A lead after it was taken: its deliveries, the changes of its status, and its being forgotten.

A delivery is written in the transaction of its lead, or of the change of status that it tells of, and stays until the
lead's proof of consent goes. Any number of processes take what is due: one that takes a delivery holds it for a time,
and while it does nobody else gets it. A holder that dies is succeeded when that time is over, so what is sent is sent
at least once, always under the same delivery id.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, Protocol

__all__ = [
    "DELIVERED",
    "FORGOTTEN",
    "PARKED",
    "WAITING",
    "Delivery",
    "LeadFields",
    "NewDelivery",
    "NewStatus",
    "Outbox",
    "Outcome",
    "Purge",
    "Purged",
    "StatusChange",
]

WAITING: Final = "waiting"
DELIVERED: Final = "delivered"
PARKED: Final = "parked"
"""What a delivery is: still to be sent, sent, or given up until somebody asks for it again."""

FORGOTTEN: Final = "the lead's personal data was deleted"
"""The reason of a delivery that was still waiting when its lead was purged."""


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """What is to be sent to one target. `content` is given where it cannot be made from the lead later (an event)."""

    delivery_id: str
    target: str
    kind: str
    content: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery and how it stands.

    `attempts` counts since `since`, when it was made or last asked for again; `turn` counts the latter. `next_at` is
    when it may be taken: for one that is held, when its holder's time is over. `reason` is in words of ours.
    """

    delivery_id: str
    lead_id: str
    target: str
    kind: str
    content: bytes | None = field(repr=False)
    status: str
    attempts: int
    turn: int
    since: datetime
    next_at: datetime
    settled_at: datetime | None
    reason: str | None
    holder: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an attempt: `next_at` where it is to be tried again."""

    status: Literal["waiting", "delivered", "parked"]
    at: datetime
    next_at: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class NewStatus:
    """What a lead and its appointment are to be; None leaves them as they are.

    `start` and `end` are given with an appointment that is confirmed, which holds its slot from then on.
    """

    lead: str | None = None
    appointment: str | None = None
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class StatusChange:
    """One change; `entity_id` is the lead's id or its appointment's."""

    lead_id: str
    entity_id: str
    previous: str
    status: str
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class Purge:
    """What is to be forgotten: the personal data of leads from before `before`, and of leads from before
    `proofs_before` everything. `dealer_id` is whose leads, None everybody's.

    With `lead_id` it is the personal data of that one lead, whatever its age, and nothing else.
    """

    before: datetime
    proofs_before: datetime
    now: datetime
    dealer_id: str | None = None
    lead_id: str | None = None


@dataclass(frozen=True, slots=True)
class LeadFields:
    """The personal data of a lead as it is kept, sealed or not; a purged one has nothing in `business`."""

    lead_id: str
    business: bytes = field(repr=False)
    grant: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Purged:
    """How many leads lost their personal data, how many their proof of consent too, how many keys had expired."""

    leads: int
    proofs: int
    keys: int


class Outbox(Protocol):
    """The part of a store that works on leads which are there."""

    async def claim_deliveries(
        self, holder: str, now: datetime, until: datetime, limit: int, without: Collection[str] = ()
    ) -> Sequence[Delivery]:
        """Take what is due and nobody holds, the longest due first, at most `limit`; it is `holder`'s until `until`.

        Counts an attempt of each, so that one which ends its process is not tried for ever. Deliveries to the targets
        `without` are left alone.
        """
        ...

    async def hold_delivery(self, delivery: Delivery, until: datetime) -> bool:
        """Hold a claimed delivery for longer; False when it is not its holder's any more."""
        ...

    async def settle_delivery(self, delivery: Delivery, outcome: Outcome) -> bool:
        """Record the outcome of a claimed delivery and give it up; tell whether it counted.

        A success counts even when the holder's time is over, a failure does not; nothing counts once the delivery was
        asked for again.
        """
        ...

    async def next_delivery_at(self) -> datetime | None:
        """Return when the first waiting delivery may be taken, None when none waits."""
        ...

    async def deliveries(self, lead_ids: Collection[str]) -> Sequence[Delivery]:
        """Return all deliveries of these leads, in the order in which they were made."""
        ...

    async def resend_deliveries(self, lead_id: str, now: datetime, target: str | None = None) -> int:
        """Make a lead's deliveries due again, under their old ids, and return how many.

        Without a `target` these are all but the events that have arrived. A delivery that was tried before begins its
        next `turn`. A purged lead has nothing to send.
        """
        ...

    async def delivery_counts(self) -> Mapping[str, int]:
        """Return how many deliveries are waiting and parked."""
        ...

    async def change_status(
        self,
        lead_id: str,
        wanted: NewStatus,
        now: datetime,
        deliveries: Callable[[Sequence[StatusChange]], Sequence[NewDelivery]],
    ) -> Sequence[StatusChange]:
        """Change a lead and its appointment, with the history of it and the deliveries that tell of it, at once.

        `deliveries` is called with the changes inside of the transaction, when there are any: what is so already is no
        change, nor is anything about a lead or an appointment that is not there. An appointment that is not confirmed
        any more gives its slot up.
        """
        ...

    async def status_changes(self, lead_id: str) -> Sequence[StatusChange]:
        """Return what has changed since the lead was taken, oldest first."""
        ...

    async def purge_leads(self, purge: Purge) -> Purged:
        """Forget, in transactions of bounded length; what was done stays done if it fails on the way.

        A lead that lost its personal data keeps its grant, its ids, its times and the outcome of its deliveries, and
        nothing is sent of it any more. Keys that have expired by `purge.now` are deleted too.
        """
        ...

    async def count_purge(self, purge: Purge) -> Purged:
        """Return what `purge_leads` would do."""
        ...

    async def lead_fields(self, after: str, limit: int, unlike: bytes = b"") -> Sequence[LeadFields]:
        """Return leads whose ids come after `after`, in the order of their ids, at most `limit`.

        With `unlike` only those of which something that is kept does not begin with it.
        """
        ...

    async def count_lead_fields(self, unlike: bytes) -> int:
        """Return of how many leads something that is kept does not begin with `unlike`."""
        ...

    async def exchange_lead_fields(self, changes: Sequence[tuple[LeadFields, LeadFields]]) -> int:
        """Put the latter of each pair in the place of the former, in one transaction; return how many leads changed.

        What is not as the former says, because somebody has purged it meanwhile, stays as it is.
        """
        ...

    async def sweep(self, now: datetime, persons_before: datetime, limit: int) -> int:
        """Delete idempotency keys that have expired, and the hashes by which leads from before `persons_before` would
        be recognised as of one person: at most `limit` of each. Return how many.
        """
        ...
