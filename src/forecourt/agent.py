"""The five skills over a catalog, a store and the sellers they belong to.

The agent knows no AAP version and no protocol: requests come as `forecourt.model` objects that a contract has checked
and read, replies and errors go back the same way. The order in which refusals win is the agent's from the cursor on
(CONTRACTS.md section 4, "Which code wins").
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypedDict

import msgspec

from forecourt.catalog import Catalog, Listing, Walk
from forecourt.cursor import Cursors, Standing, invalid_cursor
from forecourt.errors import CODES, AAPError, Problem
from forecourt.lead.consent import check_consent
from forecourt.lead.outbox import Dispatch
from forecourt.lead.seller import Seller
from forecourt.lead.submit import Stock, replay, replay_among, submit
from forecourt.model import (
    Capabilities,
    DealerInformationReply,
    DealerInformationRequest,
    FacetsReply,
    FacetsRequest,
    Filters,
    LeadReply,
    LeadRequest,
    Page,
    Reply,
    Request,
    SearchReply,
    SearchRequest,
    VehicleReference,
    VehicleReply,
    VehicleRequest,
    listing_id,
)
from forecourt.store import PastListing, Store

__all__ = ["Agent", "Caller"]

_REMEMBERED: Final = 1024
"""How many first pages are remembered."""
_REMEMBERED_BYTES: Final = 16 * 1024 * 1024
"""How much they may hold of listings: of a large stock they are copies, out of the file that it is in."""
_REMEMBERED_SECONDS: Final = 30.0
"""For how long: a remembered page carries the cursor that it was first given, whose half hour is running."""

_CHANGES: Final = 500_000
"""How many changes of listings a walk may have behind it; one that has more must begin again."""
_WALKS: Final = 8
"""How many generations are remembered whose walks go on; what they hold of old listings counts to `_CHANGES` too."""
_RENEWAL_SECONDS: Final = 3.0
"""How often, at most, an unknown key makes the agent look for new ones."""
_LAG_SECONDS: Final = 5.0
_LAG_PAUSE_SECONDS: Final = 0.05
"""How long a walk that began on a process which is ahead waits for this one to catch up, and in what steps."""

_DESCRIBED: Final = ("make", "model", "trim", "condition")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what the endpoint that was asked may show.

    `tenant` names the endpoint ("" is the whole deployment), `sellers` the dealer ids that it serves, None when it
    serves all of them. `identity` is who the caller has proved to be, None for an anonymous one.
    """

    tenant: str = ""
    sellers: tuple[str, ...] | None = None
    identity: str | None = None


class _Scope(TypedDict):
    """What a cursor belongs to."""

    request: str
    tenant: str
    caller: str | None


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Agent:
    """Runs skills. `catalog` gives the index of the moment; `now` is the clock, replaced in tests.

    `cursors` may be exchanged at any time. `renew` gets the newest ones, for a cursor whose key another process has
    just made. `dispatch` says where leads are sent; without it they are kept and sent nowhere.
    """

    def __init__(
        self,
        sellers: Mapping[str, Seller],
        catalog: Callable[[], Catalog],
        store: Store,
        cursors: Cursors,
        capabilities: Capabilities,
        now: Callable[[], datetime] = _utc_now,
        renew: Callable[[], Awaitable[Cursors]] | None = None,
        dispatch: Dispatch | None = None,
    ) -> None:
        self._sellers = dict(sellers)
        self._catalog = catalog
        self._store = store
        self.cursors = cursors
        self._renew = renew
        self._dispatch = dispatch
        self._renewal: asyncio.Task[None] | None = None
        self._renewed_at = 0.0
        self._capabilities = capabilities
        self._now = now
        self._remembered: dict[tuple[Any, ...], tuple[SearchReply, float]] = {}
        self._remembered_of: Catalog | None = None
        self._remembered_bytes = 0
        self._walks: dict[int, asyncio.Task[Walk | None]] = {}
        self._walks_of: Catalog | None = None
        # Every page with a successor asks for the time; making a datetime of it first costs more than the rest.
        self._seconds = time.time if now is _utc_now else lambda: now().timestamp()

    async def run(self, request: Request, caller: Caller) -> Reply:
        """Run one skill. Raises AAPError for every refusal; StoreError when the database fails."""
        match request:
            case SearchRequest(cursor=None):
                return self._search(request, caller)
            case SearchRequest():
                return await self._continue(request, request.cursor or "", caller)
            case FacetsRequest():
                dealers = self._dealers(request.dealer_id, caller)
                return FacetsReply(self._catalog().facets(request.filters, dealers=dealers))
            case VehicleRequest():
                return await self._vehicle(request, caller)
            case DealerInformationRequest():
                seller = self._one_seller(request.dealer_id, caller)
                return DealerInformationReply(seller.profile, self._capabilities)
            case LeadRequest():
                return LeadReply(await self._lead(request, caller))

    # Sellers

    def _dealers(self, dealer_id: str | None, caller: Caller) -> Collection[str] | None:
        """Return whose listings may be looked at, None for everybody's."""
        if dealer_id is not None:
            return (self._allowed(dealer_id, caller).dealer_id,)
        return caller.sellers

    def _allowed(self, dealer_id: str, caller: Caller) -> Seller:
        """Return the seller; one that is unknown and one that is not served here look the same."""
        seller = self._sellers.get(dealer_id)
        if seller is None or (caller.sellers is not None and dealer_id not in caller.sellers):
            raise AAPError(
                "DEALER_NOT_FOUND",
                CODES["DEALER_NOT_FOUND"].message,
                problems=[Problem("/dealer_id", "dealer", "is not a seller of this endpoint")],
            )
        return seller

    def _served(self, caller: Caller) -> tuple[str, ...]:
        return tuple(self._sellers) if caller.sellers is None else caller.sellers

    def _one_seller(self, dealer_id: str | None, caller: Caller) -> Seller:
        """Return the one seller that is meant; MISSING_REQUIRED_FIELD when there are several and none is named."""
        if dealer_id is not None:
            return self._allowed(dealer_id, caller)
        served = self._served(caller)
        if len(served) == 1:
            return self._sellers[served[0]]
        raise AAPError(
            "MISSING_REQUIRED_FIELD",
            problems=[
                Problem(
                    "",
                    "required",
                    "needs the field `dealer_id`",
                    "Several sellers are served here; take the dealer_id from a listing.",
                )
            ],
        )

    # Inventory

    def _search(self, request: SearchRequest, caller: Caller) -> SearchReply:
        catalog, now = self._catalog(), self._seconds()
        if not request.fingerprint:
            return self._answered(catalog, request, caller, now)
        if (
            catalog is not self._remembered_of
            or len(self._remembered) >= _REMEMBERED
            or self._remembered_bytes > _REMEMBERED_BYTES
        ):
            # A catalog never changes, so an answer from it is right for as long as it is the catalog of the moment.
            self._remembered, self._remembered_of, self._remembered_bytes = {}, catalog, 0
        # The caller's parts, since a tuple's hash needs no call of Python's.
        whose = caller.tenant, caller.sellers, caller.identity
        key = (request.fingerprint, request.skip, request.limit, request.paged_by_cursor, whose)
        known = self._remembered.get(key)
        if known is not None and now < known[1]:
            return known[0]
        reply = self._answered(catalog, request, caller, now)
        if known is None:
            self._remembered_bytes += sum(map(len, reply.listings))
        self._remembered[key] = (reply, now + _REMEMBERED_SECONDS)
        return reply

    def _answered(self, catalog: Catalog, request: SearchRequest, caller: Caller, now: float) -> SearchReply:
        dealers = self._dealers(request.dealer_id, caller)
        limit = self._limit(request)
        page = catalog.search(request.filters, request.sort, skip=request.skip, limit=limit, dealers=dealers)
        return self._page(page, limit, catalog.generation, request, caller, now)

    def _limit(self, request: SearchRequest) -> int:
        return min(request.limit or self._capabilities.default_limit, self._capabilities.max_limit)

    def _page(
        self, page: Page, limit: int, generation: int, request: SearchRequest, caller: Caller, now: float
    ) -> SearchReply:
        cursor = None
        if request.paged_by_cursor and page.last is not None:
            cursor = self.cursors.issue(Standing(page.last, generation), now=now, **_scope(request, caller))
        return SearchReply(page.total, request.skip, limit, page.listings, cursor)

    # Walks by cursor

    async def _continue(self, request: SearchRequest, cursor: str, caller: Caller) -> SearchReply:
        """Answer with the next page of a walk, in the order that the inventory had when it began."""
        now = self._seconds()
        place, generation = await self._resumed(cursor, now, _scope(request, caller))
        dealers = self._dealers(request.dealer_id, caller)
        limit = self._limit(request)
        catalog = await self._catalog_from(generation)
        if generation == catalog.generation:
            page = catalog.search(request.filters, request.sort, limit=limit, after=place, dealers=dealers)
        else:
            walk = await self._walk(catalog, generation)
            page = walk.search(request.filters, request.sort, limit=limit, after=place, dealers=dealers)
        return self._page(page, limit, generation, request, caller, now)

    async def _resumed(self, cursor: str, now: float, scope: _Scope) -> Standing:
        try:
            return self.cursors.resume(cursor, now=now, **scope)
        except AAPError:
            if self._renew is None or not self.cursors.lacks_key_of(cursor):
                raise
        # All that meet an unknown key at about one time share one look for it.
        if self._renewal is None or now >= self._renewed_at + _RENEWAL_SECONDS:
            self._renewed_at = now
            self._renewal = asyncio.create_task(self._exchange_cursors(self._renew), name="forecourt-cursor-keys")
        await asyncio.shield(self._renewal)
        return self.cursors.resume(cursor, now=now, **scope)

    async def _exchange_cursors(self, renew: Callable[[], Awaitable[Cursors]]) -> None:
        self.cursors = await renew()

    async def _catalog_from(self, generation: int) -> Catalog:
        """Return the catalog of the moment, once it is of this generation or a later one."""
        until = time.monotonic() + _LAG_SECONDS
        while (catalog := self._catalog()).generation < generation:
            if time.monotonic() > until:
                raise AAPError("INTERNAL_ERROR", "The inventory of this process is behind.", reason="inventory behind")
            await asyncio.sleep(_LAG_PAUSE_SECONDS)
        return catalog

    async def _walk(self, catalog: Catalog, generation: int) -> Walk:
        """Return the catalog in the order of an earlier generation; all walks from there share it."""
        if catalog is not self._walks_of:
            self._walks, self._walks_of = {}, catalog
        walks = self._walks
        task = walks.pop(generation, None)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = asyncio.create_task(self._make_walk(catalog, generation), name="forecourt-walk")
        walks[generation] = task
        walk = await asyncio.shield(task)
        held = [
            done.result() for done in walks.values() if done.done() and not done.cancelled() and not done.exception()
        ]
        if len(walks) > 1 and (len(walks) > _WALKS or sum(map(len, filter(None, held))) > _CHANGES):
            del walks[next(iter(walks))]
        if walk is None:
            raise invalid_cursor()
        return walk

    async def _make_walk(self, catalog: Catalog, generation: int) -> Walk | None:
        """Make a walk from what the store remembers; None when it has forgotten, or has changed too much."""
        read = 0

        def changed(rows: Iterable[PastListing]) -> Iterable[tuple[str, Listing | None]]:
            nonlocal read
            for read, row in enumerate(rows, 1):  # noqa: B007
                then = None if row.body is None else Listing(row.listing_id, row.dealer_id, row.body)
                yield row.listing_id, then

        walk = await self._store.past_listings(
            generation, catalog.generation, _CHANGES + 1, lambda rows: Walk(catalog, changed(rows))
        )
        return walk if read <= _CHANGES else None

    async def _vehicle(self, request: VehicleRequest, caller: Caller) -> VehicleReply:
        dealers = self._dealers(request.dealer_id, caller)
        return VehicleReply(await self._listing(request.vehicle, dealers, ""))

    async def _listing(self, reference: VehicleReference, dealers: Collection[str] | None, location: str) -> bytes:
        """Return the listing that is meant; the two ways of not having it are told apart by what was in stock once."""
        listing = self._catalog().find(reference, dealers=dealers)
        if listing is not None:
            return listing
        named = next(name for name in ("vin", "vehicle_id", "stock") if getattr(reference, name) is not None)
        served = tuple(self._sellers) if dealers is None else tuple(dealers)
        gone = await self._store.has_departed(served, reference)
        code, phrase = (
            ("VEHICLE_UNAVAILABLE", "names a vehicle that can no longer be offered")
            if gone
            else ("VEHICLE_NOT_FOUND", "names no listing of this endpoint")
        )
        raise AAPError(
            code,
            CODES[code].message,
            problems=[Problem(f"{location}/{named}", "reference", phrase)],
        )

    # Leads

    async def _lead(self, request: LeadRequest, caller: Caller) -> bytes:
        _check_test_drive(request)
        now = self._now()
        if request.dealer_id is None and len(served := self._served(caller)) > 1:
            # The vehicle settles the seller, and may be sold or offered elsewhere since the lead was accepted.
            receipt = await replay_among(self._store, served, request, caller.identity, now)
            if receipt is not None:
                return receipt
        seller = self._seller_of_lead(request, caller)
        try:
            check_consent(request.consent, request.customer, now)
            stock = await self._vehicle_of_interest(request, seller)
        except AAPError:
            # A lead that was accepted before is answered as it was then, though its grant may have run out since and
            # its vehicle may be sold.
            receipt = await replay(self._store, seller, request, caller.identity, now)
            if receipt is None:
                raise
            return receipt
        return await submit(self._store, seller, request, stock, caller.identity, now, self._dispatch)

    def _seller_of_lead(self, request: LeadRequest, caller: Caller) -> Seller:
        """Return who gets the lead: the seller that is named, else the one whose vehicle is."""
        if request.dealer_id is None:
            reference = _reference(request.part("vehicle_of_interest"))
            listing = self._catalog().find(reference, dealers=self._served(caller)) if reference else None
            if listing is not None:
                return self._sellers[_members(listing).dealer_id]
        return self._one_seller(request.dealer_id, caller)

    async def _vehicle_of_interest(self, request: LeadRequest, seller: Seller) -> Stock:
        """Find what the shopper is interested in.

        Identifiers must name a listing. A description need not fit one, unless a test drive is asked for; it stands
        for a listing only when it fits a single one.
        """
        vehicle = request.part("vehicle_of_interest")
        if not vehicle:
            return Stock()
        reference = _reference(vehicle)
        if reference:
            return _stock(await self._listing(reference, (seller.dealer_id,), "/vehicle_of_interest"))
        described = self._catalog().search(_described(vehicle), limit=2, dealers=(seller.dealer_id,)).listings
        if not described and _is_test_drive(request):
            raise AAPError(
                "VEHICLE_NOT_FOUND",
                CODES["VEHICLE_NOT_FOUND"].message,
                problems=[Problem("/vehicle_of_interest", "reference", "describes no vehicle in stock")],
            )
        if len(described) == 1 and all(vehicle.get(member) for member in ("year", "make", "model")):
            return _stock(described[0])
        return Stock(None, _stock(described[0]).rooftop if described else None)


def _scope(request: SearchRequest, caller: Caller) -> _Scope:
    return {"request": request.fingerprint, "tenant": caller.tenant, "caller": caller.identity}


def _is_test_drive(request: LeadRequest) -> bool:
    appointment = request.part("appointment")
    return appointment is not None and appointment["appointment_type"] == "test_drive"


def _check_test_drive(request: LeadRequest) -> None:
    if _is_test_drive(request) and not request.part("vehicle_of_interest"):
        problem = Problem(
            "",
            "required",
            "needs the field `vehicle_of_interest` for a test drive",
            "Name the vehicle to drive, for example by its VIN.",
        )
        raise AAPError("MISSING_REQUIRED_FIELD", problems=[problem])


def _reference(vehicle: Mapping[str, Any] | None) -> VehicleReference:
    if not vehicle:
        return VehicleReference()
    named = {name: vehicle.get(name) for name in ("vin", "vehicle_id", "stock")}
    return VehicleReference(
        **{name: value for name, value in named.items() if isinstance(value, str) and value.strip()}
    )


def _described(vehicle: Mapping[str, Any]) -> Filters:
    terms = {
        member: [vehicle[member]]
        for member in _DESCRIBED
        if isinstance(vehicle.get(member), str) and vehicle[member].strip()
    }
    year = {"year": vehicle["year"]} if "year" in vehicle else {}
    return Filters(terms, at_least=year, at_most=year)


class _Members(msgspec.Struct):
    """What the agent looks at in a listing's body."""

    dealer_id: str
    vehicle_id: str
    rooftop: str | None = None


_members = msgspec.json.Decoder(_Members).decode


def _stock(listing: bytes) -> Stock:
    members = _members(listing)
    return Stock(listing_id(members.dealer_id, members.vehicle_id), members.rooftop, listing)
