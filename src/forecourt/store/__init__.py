"""What must survive: one interface of domain operations, one implementation per database, SQL in files.

`open_store(address)` finds the implementation by the address's scheme: `sqlite:PATH` is `forecourt.store.sqlite`.
"""

import importlib
import pkgutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec

from forecourt.model import VehicleReference
from forecourt.store.access import AccessRecord, AccessStore, Admission, Mark
from forecourt.store.backup import Backup, BackupError
from forecourt.store.outbox import (
    DELIVERED,
    PARKED,
    WAITING,
    Delivery,
    LeadFields,
    NewDelivery,
    NewStatus,
    Outbox,
    Outcome,
    Purge,
    Purged,
    StatusChange,
)
from forecourt.store.survey import Backlog, LeadCount, RooftopStock, Survey

__all__ = [
    "DELIVERED",
    "PARKED",
    "PAST_KEPT",
    "RETIRED_KEPT",
    "WAITING",
    "APIKey",
    "AccessRecord",
    "AccessStore",
    "Admission",
    "Backlog",
    "Backup",
    "BackupError",
    "Booking",
    "Delivery",
    "FeedState",
    "Foreseen",
    "InventoryChange",
    "LeadCount",
    "LeadFields",
    "LeadRecord",
    "LeadTransaction",
    "Mark",
    "NewDelivery",
    "NewLead",
    "NewStatus",
    "NoDatabaseError",
    "Outbox",
    "Outcome",
    "PastListing",
    "Purge",
    "Purged",
    "Remembered",
    "RooftopStock",
    "Secret",
    "StatusChange",
    "Store",
    "StoreError",
    "StoredListing",
    "Survey",
    "open_store",
]

Result = TypeVar("Result")

PAST_KEPT: Final = timedelta(minutes=45)
"""How long a listing that was changed or removed is kept as it was: a little longer than a cursor lives."""

RETIRED_KEPT: Final = timedelta(hours=1)
"""How long a key is kept after the next one was made: what it signed last has ended by then, on every process."""


class StoreError(Exception):
    """The database did not do what was asked: nothing of the operation was kept, and it may be tried again.

    Raised for every failure of a driver; the cause is chained and holds no data of a lead.
    """


class NoDatabaseError(StoreError):
    """There is no database where one was to be looked at; the message says where, and holds no password."""


@dataclass(frozen=True, slots=True)
class StoredListing:
    """One listing. `body` is the AAP Vehicle as compact JSON; the identifiers repeat what is in it.

    What a store gives back has its identifiers as they are compared: in lower case, without surrounding spaces.
    `generation` is the store's: that of the inventory when this listing was last written.
    """

    listing_id: str
    dealer_id: str
    rooftop: str
    vin: str | None
    vehicle_id: str | None
    stock: str | None
    body: bytes
    generation: int = 0


@dataclass(frozen=True, slots=True)
class PastListing:
    """A listing as it was at an earlier generation; `body` is None when it was not in stock then."""

    listing_id: str
    dealer_id: str
    body: bytes | None


@dataclass(frozen=True, slots=True)
class InventoryChange:
    """What replacing an inventory did, in listings."""

    imported: int
    changed: int
    unchanged: int
    removed: int


@dataclass(frozen=True, slots=True)
class Remembered:
    """A key that was used before: the fingerprint of what it came with, and the receipt that was given."""

    fingerprint: str
    receipt: bytes


@dataclass(frozen=True, slots=True)
class Booking:
    """An appointment to keep. Only a confirmed one has `start` and `end`, and only a confirmed one holds its slot."""

    appointment_id: str
    department: str
    kind: str
    status: str
    start: datetime | None
    end: datetime | None


class NewLead(msgspec.Struct, frozen=True):
    """Everything that is stored for one accepted lead, in one transaction.

    `business` and `grant` are JSON as it came, sealed where the deployment has a key; `person_keys` are hashes;
    `expires_at` is when its key may be forgotten. `snapshot` is what the lead's mapping needs of its listing, as JSON.
    """

    lead_id: str
    dealer_id: str
    rooftop: str | None
    listing_id: str | None
    received_at: datetime
    caller: str | None
    person_keys: Collection[str]
    vehicle_key: str
    business: bytes
    grant: bytes
    receipt: bytes
    booking: Booking | None
    scope: str | None = None
    key: str | None = None
    fingerprint: str | None = None
    expires_at: datetime | None = None
    snapshot: bytes | None = None
    deliveries: Sequence[NewDelivery] = ()


@dataclass(frozen=True, slots=True)
class LeadRecord:
    """A lead as the dealer sees it. One that was purged has `purged_at`, and nothing in `business`."""

    lead_id: str
    dealer_id: str
    rooftop: str | None
    listing_id: str | None
    status: str
    received_at: str
    business: bytes
    grant: bytes
    receipt: bytes
    snapshot: bytes | None = None
    purged_at: str | None = None
    booking: Booking | None = None


@dataclass(frozen=True, slots=True)
class Secret:
    """A key of this deployment's own making."""

    key_id: str
    value: bytes


@dataclass(frozen=True, slots=True)
class FeedState:
    """The last look at a scheduled source.

    `imported_at` is when its content last became the stock, None when it never did. `etag` and `last_modified` are
    what its server said of that content, to be repeated in a conditional request. `outcome` is a short word of the
    importer's, `report` the whole report as JSON.
    """

    source: str
    checked_at: datetime
    imported_at: datetime | None
    etag: str | None
    last_modified: str | None
    outcome: str
    report: bytes


@dataclass(frozen=True, slots=True)
class APIKey:
    """A key that a caller proves itself with, as it is kept: by the SHA-256 digest of its secret half.

    `sellers` are the only ones it reaches, None for all; `requests` in `seconds` is its own limit, None for the
    deployment's; a revoked one opens nothing any more.
    """

    key_id: str
    digest: bytes
    name: str
    sellers: tuple[str, ...] | None
    requests: int | None
    seconds: int | None
    made_at: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a lead's work is going to ask: for this key first, and for nothing else; it adds no appointment.

    So a store may take many such leads in one transaction, and look their keys up at once.
    """

    scope: str
    key: str
    now: datetime


class LeadTransaction(Protocol):
    """What can be asked and done while a lead is decided. Everything is kept or nothing is.

    No two transactions overlap in what they decide: what `recall`, `twin` and `busy` answer stays true until the
    transaction ends, on every process that shares the store.
    """

    def recall(self, scope: str, key: str, now: datetime) -> Remembered | None:
        """Return what `key` came with before in this scope, unless it has expired by `now`."""
        ...

    def twin(self, dealer_id: str, person_keys: Collection[str], vehicle_key: str, since: datetime) -> bytes | None:
        """Return the receipt of the earliest lead since `since` of any of these persons about this vehicle."""
        ...

    def busy(self, dealer_id: str, rooftop: str, department: str, start: datetime, end: datetime) -> int:
        """Return how many confirmed appointments overlap [start, end)."""
        ...

    def add(self, lead: NewLead) -> None:
        """Keep the lead, its grant, its key, its appointment and its deliveries."""
        ...


class Store(Outbox, Protocol):
    """The database of a deployment. Any number of processes may share one; methods may be called concurrently."""

    @property
    def access(self) -> AccessStore:
        """What access control keeps: Sessions of agents, and what they may use once."""
        ...

    async def open(self) -> None:
        """Connect, and bring the schema up to date under a lock that other processes respect."""
        ...

    async def close(self) -> None:
        """Finish what was begun and disconnect."""
        ...

    async def check(self) -> None:
        """Raise StoreError unless the database can be read and written now."""
        ...

    async def survey(self, starts: Collection[datetime]) -> Survey:
        """Return what the database holds, with the leads since each of `starts`; the store need not be open.

        Makes, migrates and writes nothing. NoDatabaseError when there is nothing to look at.
        """
        ...

    async def back_up(self, file: Path) -> Backup:
        """Write a copy of the database as of one moment into a new file, checked; the store need not be open.

        Others may go on reading and writing. Raises BackupError, and StoreError when the database fails.
        """
        ...

    async def restore(self, file: Path) -> Backup:
        """Make the database of a backup; the store must not be open, and there must be no database yet.

        The whole of it or nothing is there afterwards. Raises BackupError, and StoreError when the database fails.
        """
        ...

    async def inventory_generation(self) -> int:
        """Return a number that grows with every change of any listing."""
        ...

    async def replace_listings(
        self,
        dealer_id: str,
        rooftop: str | None,
        listings: Iterable[StoredListing],
        now: datetime,
        check: Callable[[InventoryChange], None] | None = None,
    ) -> InventoryChange:
        """Make `listings` the whole stock of the seller (of one rooftop, if named), atomically.

        `listings` is used up outside of the event loop, in memory that does not grow with its length; of several with
        one id the last counts. Only what differs is written, in one short transaction. Listings that vanish are
        remembered as departed. `check` is told what is about to change and refuses it by raising; what it raises, or
        what `listings` raises, comes out and leaves the old stock.
        """
        ...

    async def remember_departed(self, dealer_id: str, references: Iterable[VehicleReference], now: datetime) -> None:
        """Remember listings as once known without ever having held them."""
        ...

    async def read_listings(
        self, take: Callable[[Iterable[StoredListing]], Result], dealer_id: str | None = None
    ) -> tuple[int, Result]:
        """Give `take` every listing, of one seller unless that is None, ordered by listing id, as of one generation.

        Return the generation and what `take` made. What other sellers have costs one seller's reading next to nothing.
        `take` runs outside of the event loop and must use up the iterable before it returns.
        """
        ...

    async def changed_listings(
        self, since: int, take: Callable[[Iterable[StoredListing]], Result]
    ) -> tuple[int, Result, Sequence[str]] | None:
        """Give `take` every listing written after generation `since`, ordered by listing id.

        Return the generation that they are of, what `take` made, and the ids, in order, of the listings that were in
        stock at `since` and have been removed. Whatever is named nowhere stayed as it was. None when what happened
        since has been forgotten (`PAST_KEPT`), or when the inventory has never been at `since`. `take` runs outside of
        the event loop and must use up the iterable before it returns.
        """
        ...

    async def past_listings(
        self, generation: int, until: int, limit: int, take: Callable[[Iterable[PastListing]], Result]
    ) -> Result | None:
        """Give `take` what has changed after `generation` up to generation `until`, as it was at the former.

        At most `limit` rows, in no order: one with a body for each listing that was in stock and was changed or
        removed, and besides these any number without a body for each that was written. Whatever is not named stayed
        as it was. None when that generation has been forgotten (`PAST_KEPT`). `take` runs outside of the event loop
        and must use up the iterable before it returns.
        """
        ...

    async def stock(self, dealer_id: str | None, limit: int) -> Sequence[StoredListing]:
        """Return the first listings, at most `limit`, by listing id; of one seller unless that is None."""
        ...

    async def has_departed(self, dealer_ids: Collection[str], reference: VehicleReference) -> bool:
        """Tell whether a listing named so was in stock once, of any of these sellers."""
        ...

    async def decide_lead(self, work: Callable[[LeadTransaction], Result], foreseen: Foreseen | None = None) -> Result:
        """Run `work` in a transaction and return what it returns once that is durable; what it raises undoes it.

        `work` may run outside of the event loop and must not wait for anything. What it adds may be written after it
        has returned, in the same transaction; when that fails, this raises and nothing of it is kept. What is foreseen
        of it may be taken for granted at first: where it proves wrong, nothing of that is kept and `work` is run again.
        """
        ...

    async def recall(self, scope: str, key: str, now: datetime) -> Remembered | None:
        """Return what `key` came with before, without a transaction."""
        ...

    async def recall_among(self, scopes: Collection[str], key: str, now: datetime) -> Mapping[str, Remembered]:
        """Return what `key` came with before in each of these scopes that know it: one question for all of them."""
        ...

    async def leads(self, dealer_id: str | None, limit: int) -> Sequence[LeadRecord]:
        """Return the newest leads, at most `limit`."""
        ...

    async def lead(self, lead_id: str) -> LeadRecord | None:
        """Return one lead with its grant."""
        ...

    async def secrets(
        self, purpose: str, make: Callable[[], Secret], now: datetime, rotate_after: timedelta | None = None
    ) -> Sequence[Secret]:
        """Return the keys for `purpose`, newest first; the first caller makes the first one, for all processes.

        With `rotate_after` a new one is made once the newest is that old, by whoever asks first, and keys are deleted
        that have had a successor for `RETIRED_KEPT`.
        """
        ...

    async def add_api_key(self, key: APIKey) -> None:
        """Keep a new key."""
        ...

    async def api_keys(self) -> Sequence[APIKey]:
        """Return every key, revoked ones too, in the order in which they were made."""
        ...

    async def revoke_api_key(self, key_id: str, now: datetime) -> bool:
        """Let a key open nothing any more; tell whether there was one that still did."""
        ...

    async def lease(self, name: str, holder: str, seconds: float, now: datetime) -> bool:
        """Take or renew what only one process does at a time; tell whether it is `holder`'s until `now` + `seconds`.

        One that has run out may be taken by anybody.
        """
        ...

    async def release(self, name: str, holder: str) -> None:
        """Give a lease up, if it is `holder`'s."""
        ...

    async def feed_state(self, source: str) -> FeedState | None:
        """Return the last look at a scheduled source, None when there was none."""
        ...

    async def keep_feed_state(self, state: FeedState) -> None:
        """Keep what the last look at a source found, in the place of the one before."""
        ...

    async def feed_states(self) -> Sequence[FeedState]:
        """Return the last look at every source, in the order of their names."""
        ...


def open_store(address: str) -> Store:
    """Return the store at `address`, not yet opened; ValueError when no implementation has its scheme."""
    scheme = address.split(":", 1)[0].split("+", 1)[0].lower()
    module: Any = None
    if scheme in {module.name for module in pkgutil.iter_modules(__path__)}:
        module = importlib.import_module(f"{__name__}.{scheme}")
    if not hasattr(module, "STORE"):
        raise ValueError("the store's address begins with the name of a database, for example sqlite:forecourt.db")
    store: Store = module.STORE(address)
    return store
