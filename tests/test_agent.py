"""The five skills over a catalog, a store and two sellers (CONTRACTS.md sections 4 to 6; "Errors and retries", section
"Important distinctions")."""

import asyncio
import json
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from forecourt import agent as agent_module
from forecourt.agent import Agent, Caller
from forecourt.catalog import Catalog, Listing
from forecourt.cursor import Cursors
from forecourt.errors import AAPError
from forecourt.lead.seller import Seller
from forecourt.model import (
    SORT_FIELDS,
    Capabilities,
    DealerInformationReply,
    DealerInformationRequest,
    FacetsReply,
    FacetsRequest,
    Filters,
    LeadReply,
    LeadRequest,
    Reply,
    Request,
    SearchReply,
    SearchRequest,
    Sort,
    VehicleReference,
    VehicleReply,
    VehicleRequest,
    listing_id,
)
from forecourt.store import Secret, StoredListing, StoreError, open_store

ZONE: Final = ZoneInfo("America/Los_Angeles")
NOW: Final = datetime(2026, 5, 4, 12, 0, tzinfo=ZONE)  # a Monday noon
WHOLE: Final = Caller()
ONLY_A: Final = Caller("dealer-a", ("dealer-a",))
ONLY_B: Final = Caller("dealer-b", ("dealer-b",))
WEEK: Final = {day: {"open": "09:00", "close": "18:00"} for day in ("monday", "tuesday", "wednesday")}


def seller(dealer_id: str) -> Seller:
    schedules = [{"name": "sales", "value": WEEK}]
    rooftop = {"name": f"Rooftop of {dealer_id}", "timezone": "America/Los_Angeles", "schedules": schedules}
    return Seller.from_profile(dealer_id, {"name": dealer_id, "rooftops": [rooftop]})


SELLERS: Final = {dealer_id: seller(dealer_id) for dealer_id in ("dealer-a", "dealer-b", "dealer-c")}


def vehicle(dealer_id: str, vehicle_id: str, **members: Any) -> dict[str, Any]:
    return {
        "dealer_id": dealer_id,
        "vehicle_id": vehicle_id,
        "vin": f"VIN{dealer_id[-1].upper()}{vehicle_id}",
        "stock": f"S{vehicle_id}",
        "rooftop": f"Rooftop of {dealer_id}",
        "year": 2024,
        "make": "Honda",
        "model": "Civic",
        "status": "available",
        **members,
    }


STOCK: Final = [
    *[vehicle("dealer-a", f"{n:02}", price=20_000 + n // 3, model=("Civic", "Pilot")[n % 2]) for n in range(13)],
    *[vehicle("dealer-b", f"{n:02}", price=20_000 + n // 2, make="Ford") for n in range(7)],
    vehicle("dealer-b", "77", make="Fiat", model="500", year=2019),
    vehicle("dealer-b", "99", make="Fiat"),
]


class Floor:
    """Three sellers over one store, with a clock that stands still."""

    def __init__(self, path: Path, runner: asyncio.Runner) -> None:
        self.runner = runner
        self.store = open_store(f"sqlite:{path}")
        self.now = NOW
        self.held: set[str] = set()
        self.catalog = Catalog.build(())
        self.agent = Agent(
            SELLERS,
            lambda: self.catalog,
            self.store,
            Cursors([Secret("k", b"k" * 32)]),
            Capabilities((), (), SORT_FIELDS, default_limit=20, max_limit=100),
            now=lambda: self.now,
        )

    def stock(self, vehicles: Sequence[dict[str, Any]]) -> None:
        """Make `vehicles` the inventory, as an import and the refresh after it do."""
        before, self.held = self.held, {each["dealer_id"] for each in vehicles}
        for dealer_id in sorted(before | self.held):
            rows = [
                StoredListing(
                    listing_id(dealer_id, each["vehicle_id"]), dealer_id, each["rooftop"], each["vin"],
                    each["vehicle_id"], each["stock"], json.dumps(each).encode(),
                )
                for each in vehicles if each["dealer_id"] == dealer_id
            ]  # fmt: skip
            self.runner.run(self.store.replace_listings(dealer_id, None, rows, self.now))
        self.refresh()

    def refresh(self) -> None:
        """Take the store's inventory for the catalog of the moment."""
        generation, catalog = self.runner.run(
            self.store.read_listings(
                lambda rows: Catalog.build(Listing(row.listing_id, row.dealer_id, row.body) for row in rows)
            )
        )
        catalog.generation = generation
        self.catalog = catalog

    def now_of(self, listing: dict[str, Any]) -> dict[str, Any]:
        """Return the listing as it is in stock now."""
        found = self.vehicle(VehicleReference(vehicle_id=listing["vehicle_id"]), dealer_id=listing["dealer_id"])
        assert isinstance(found, dict)
        return found

    def run(self, request: Request, caller: Caller = WHOLE) -> Reply:
        return self.runner.run(self.agent.run(request, caller))

    def search(self, request: SearchRequest, caller: Caller = WHOLE) -> SearchReply:
        reply = self.run(request, caller)
        assert isinstance(reply, SearchReply)
        return reply

    def vehicle(self, reference: VehicleReference, caller: Caller = WHOLE, dealer_id: str | None = None) -> Any:
        reply = self.run(VehicleRequest(reference, dealer_id), caller)
        assert isinstance(reply, VehicleReply)
        return json.loads(reply.listing)

    def submit(self, lead: LeadRequest, caller: Caller = WHOLE) -> bytes:
        reply = self.run(lead, caller)
        assert isinstance(reply, LeadReply)
        return reply.receipt

    def refused(self, request: Request, caller: Caller = WHOLE) -> AAPError:
        with pytest.raises(AAPError) as raised:
            self.run(request, caller)
        return raised.value

    def dealers_of_leads(self) -> list[str]:
        return [row.dealer_id for row in self.runner.run(self.store.leads(None, 100))]


@pytest.fixture
def floor(tmp_path: Path) -> Iterator[Floor]:
    with asyncio.Runner() as runner:
        found = Floor(tmp_path / "forecourt.db", runner)
        runner.run(found.store.open())
        found.stock(STOCK)
        yield found
        runner.run(found.store.close())


def lead(key: str | None = None, dealer_id: str | None = None, **parts: Any) -> LeadRequest:
    business = {
        "customer": {"first_name": "Sam", "last_name": "Example", "email": "sam@example.com"},
        "consent": {
            "granted_at": "2026-05-04T11:59:00-07:00",
            "expires_at": "2026-05-04T13:00:00-07:00",
            "allowed_channels": ["email"],
            "consent_text": "Contact me.",
            "scope": ["lead_submission"],
        },
        "source_agent": {"name": "example-agent"},
        **parts,
    }
    return LeadRequest(business, key, dealer_id)


def at(error: AAPError) -> list[tuple[str, str]]:
    return [(problem.location, problem.keyword) for problem in error.problems]


# Sellers


def test_one_served_seller_needs_no_name_and_may_be_named(floor: Floor) -> None:
    for dealer_id in (None, "dealer-b"):
        reply = floor.run(DealerInformationRequest(dealer_id), ONLY_B)
        assert isinstance(reply, DealerInformationReply)
        assert reply.profile["dealer_id"] == "dealer-b"
        assert reply.capabilities.sort_fields == SORT_FIELDS
        assert floor.search(SearchRequest(Filters(), dealer_id=dealer_id), ONLY_B).total == 9


def test_several_sellers_are_searched_together_or_one_by_one(floor: Floor) -> None:
    assert floor.search(SearchRequest(Filters())).total == 22
    assert floor.search(SearchRequest(Filters(), dealer_id="dealer-a")).total == 13
    assert floor.search(SearchRequest(Filters()), Caller("x", ("dealer-b", "dealer-c"))).total == 9
    reply = floor.run(FacetsRequest(Filters()), ONLY_B)
    assert isinstance(reply, FacetsReply)
    assert list(reply.facets.terms["make"]) == [("Ford", 7), ("Fiat", 2)]


REQUESTS: Final[dict[str, Any]] = {
    "information": DealerInformationRequest,
    "facets": lambda dealer_id: FacetsRequest(Filters(), dealer_id),
    "search": lambda dealer_id: SearchRequest(Filters(), dealer_id=dealer_id),
    "vehicle": lambda dealer_id: VehicleRequest(VehicleReference("VINA00"), dealer_id),
    "lead": lambda dealer_id: lead(dealer_id=dealer_id),
}


@pytest.mark.parametrize("request_for", REQUESTS.values(), ids=REQUESTS)
def test_an_unknown_seller_and_one_that_is_not_served_here_look_the_same(floor: Floor, request_for: Any) -> None:
    seen = []
    for dealer_id, caller in (("dealer-x", ONLY_B), ("dealer-a", ONLY_B), ("DEALER-B", ONLY_B), ("dealer-x", WHOLE)):
        payload = floor.refused(request_for(dealer_id), caller).to_payload()
        assert payload["code"] == "DEALER_NOT_FOUND"
        assert payload["details"]["errors"][0]["instanceLocation"] == "/dealer_id"
        seen.append({**payload, "error_id": "", "created_at": ""})
    assert seen == [seen[0]] * 4
    assert "dealer-" not in json.dumps(seen[0])


@pytest.mark.parametrize("name", ["information", "lead"])
def test_several_sellers_of_which_none_is_named_miss_a_required_field(floor: Floor, name: str) -> None:
    error = floor.refused(REQUESTS[name](None))
    assert (error.code, at(error)) == ("MISSING_REQUIRED_FIELD", [("", "required")])
    assert "dealer_id" in error.message
    assert "dealer-" not in json.dumps(error.to_payload())


@pytest.mark.parametrize("named", [{"vin": "VINB77"}, {"vehicle_id": "77"}, {"stock": "S77"}])
def test_a_vehicle_reference_settles_the_seller_of_a_lead(floor: Floor, named: dict[str, str]) -> None:
    floor.submit(lead(vehicle_of_interest=named))
    assert floor.dealers_of_leads() == ["dealer-b"]
    assert floor.runner.run(floor.store.leads(None, 1))[0].listing_id == "dealer-b/77"


def test_a_description_does_not_settle_the_seller(floor: Floor) -> None:
    error = floor.refused(lead(vehicle_of_interest={"year": 2019, "make": "Fiat", "model": "500"}))
    assert error.code == "MISSING_REQUIRED_FIELD"


def test_a_vehicle_of_a_seller_that_is_not_served_settles_nothing(floor: Floor) -> None:
    two = Caller("x", ("dealer-b", "dealer-c"))
    assert floor.refused(lead(vehicle_of_interest={"vin": "VINA00"}), two).code == "MISSING_REQUIRED_FIELD"
    # Nor does stock of a seller that the deployment no longer has.
    floor.stock([vehicle("dealer-gone", "1")])
    assert floor.refused(lead(vehicle_of_interest={"stock": "S1"})).code == "MISSING_REQUIRED_FIELD"


def test_a_named_seller_does_not_get_a_lead_about_another_sellers_vehicle(floor: Floor) -> None:
    error = floor.refused(lead(dealer_id="dealer-c", vehicle_of_interest={"vin": "VINB77"}))
    assert (error.code, at(error)) == ("VEHICLE_NOT_FOUND", [("/vehicle_of_interest/vin", "reference")])


# Search


def walk(floor: Floor, request: SearchRequest, caller: Caller = WHOLE) -> list[tuple[str, str]]:
    """Follow the cursors to the end; return what was seen, in order."""
    seen: list[tuple[str, str]] = []
    cursor: str | None = None
    for _ in range(100):
        reply = floor.search(replace(request, cursor=cursor), caller)
        seen += [(each["dealer_id"], each["vehicle_id"]) for each in map(json.loads, reply.listings)]
        cursor = reply.next_cursor
        if cursor is None:
            return seen
    raise AssertionError("the walk does not end")


@pytest.mark.parametrize("sort", [None, Sort("price"), Sort("price", True), Sort("make"), Sort("model", True)])
def test_a_walk_by_cursors_sees_each_listing_exactly_once_in_the_order_of_one_big_page(
    floor: Floor, sort: Sort | None
) -> None:
    whole = floor.search(SearchRequest(Filters(), sort, limit=100))
    order = [(each["dealer_id"], each["vehicle_id"]) for each in map(json.loads, whole.listings)]
    assert len(set(order)) == 22
    for limit in (1, 4, 7, 21, 22, 100):
        request = SearchRequest(Filters(), sort, limit=limit, paged_by_cursor=True, fingerprint="f")
        assert walk(floor, request) == order


@pytest.mark.parametrize("descending", [False, True])
def test_listings_without_a_price_come_last_in_both_directions(floor: Floor, descending: bool) -> None:
    request = SearchRequest(Filters(), Sort("price", descending), limit=5, paged_by_cursor=True, fingerprint="f")
    assert walk(floor, request)[-2:] == [("dealer-b", "77"), ("dealer-b", "99")]


MAKES: Final = ("Ford", "Honda", "Kia")


@st.composite
def stocks(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Some of fourteen vehicles of two sellers, with few prices, so that many tie, and now and then none."""
    return [
        vehicle(
            f"dealer-{'ab'[number % 2]}",
            f"{number:02}",
            **draw(
                st.fixed_dictionaries(
                    {
                        "make": st.sampled_from(MAKES),
                        "status": st.sampled_from(["available", "available", "available", "sold"]),
                    },
                    optional={"price": st.integers(1, 6), "mileage": st.integers(1, 40)},
                )
            ),
        )
        for number in draw(st.sets(st.integers(0, 13)))
    ]


def offered(vehicles: Sequence[dict[str, Any]], chosen: Filters) -> dict[str, dict[str, Any]]:
    """Return what a search finds, by VIN: an obvious reading of its two filters."""
    makes, highest = {make.casefold() for make in chosen.terms.get("make", ())}, chosen.at_most.get("price")
    return {
        each["vin"]: each
        for each in vehicles
        if each["status"] == "available"
        and (not makes or each["make"].casefold() in makes)
        and (highest is None or each.get("price", highest + 1) <= highest)
    }


@given(
    st.lists(stocks(), min_size=2, max_size=7),
    st.sampled_from([Filters(), Filters({"make": ["ford", "KIA"]}), Filters(at_most={"price": 4})]),
    st.sampled_from(
        [None, *(Sort(field, down) for field in ("price", "mileage", "make", "stock") for down in (False, True))]
    ),
    st.integers(1, 4),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_a_walk_sees_what_stayed_and_matched_exactly_once_though_any_import_comes_between_its_pages(
    stocks: list[list[dict[str, Any]]], chosen: Filters, sort: Sort | None, limit: int, twice: bool
) -> None:
    """CONTRACTS.md section 5, "Continuation"; with `twice` every second import is not noticed on its own."""
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        floor = Floor(Path(folder) / "forecourt.db", runner)
        runner.run(floor.store.open())
        floor.stock(stocks[0])
        request = SearchRequest(chosen, sort, limit=limit, paged_by_cursor=True, fingerprint="f")
        shown = floor.search(SearchRequest(chosen, sort, limit=100, fingerprint="g")).listings
        order = [json.loads(each)["vin"] for each in shown]
        later = iter(stocks[1:])
        now, always = stocks[0], offered(stocks[0], chosen)
        seen: list[str] = []
        cursor = None
        for _ in range(30):
            reply = floor.search(replace(request, cursor=cursor))
            matching = offered(now, chosen)
            assert reply.total == len(matching)
            for each in map(json.loads, reply.listings):
                assert each == matching[each["vin"]], "what is shown is what it is now"
                seen.append(each["vin"])
            cursor = reply.next_cursor
            if cursor is None:
                break
            for _ in range(1 + twice):
                now = next(later, now)
                always = {vin: each for vin, each in always.items() if vin in offered(now, chosen)}
                floor.stock(now)
        runner.run(floor.store.close())
    assert cursor is None
    assert len(seen) == len(set(seen)), "none twice"
    assert set(always) <= set(seen), "none that stayed is missing"
    assert seen == [vin for vin in order if vin in seen], "in the order of the beginning, without newcomers"


def test_a_walk_goes_on_though_every_price_is_turned_round_between_its_pages(floor: Floor) -> None:
    request = SearchRequest(Filters(), Sort("price"), limit=3, paged_by_cursor=True, fingerprint="f")
    before = [(each["dealer_id"], each["vehicle_id"]) for each in STOCK]
    seen: list[tuple[str, str]] = []
    cursor = None
    for step in range(8):
        reply = floor.search(replace(request, cursor=cursor))
        found = [json.loads(each) for each in reply.listings]
        assert reply.total == len(STOCK)
        assert [each.get("price", 0) for each in found] == [each.get("price", 0) for each in map(floor.now_of, found)]
        seen += [(each["dealer_id"], each["vehicle_id"]) for each in found]
        cursor = reply.next_cursor
        sign = -1 if step % 2 else 1
        floor.stock([{**each, "price": 50_000 + sign * number} for number, each in enumerate(STOCK)])
    assert cursor is None
    assert sorted(seen) == sorted(before)


def test_a_walk_whose_beginning_is_forgotten_must_begin_again(floor: Floor) -> None:
    request = SearchRequest(Filters(), Sort("price"), limit=3, paged_by_cursor=True, fingerprint="f")
    walked = replace(request, cursor=floor.search(request).next_cursor)
    floor.stock(STOCK[1:])
    floor.now += timedelta(minutes=29)
    floor.stock(STOCK[2:])
    reply = floor.search(walked)
    assert len(reply.listings) == 3
    floor.now += timedelta(minutes=17)
    floor.stock(STOCK[3:])
    assert floor.refused(replace(request, cursor=reply.next_cursor)).code == "INVALID_CURSOR"


def test_the_pages_of_one_walk_read_what_has_changed_from_the_store_once(floor: Floor) -> None:
    request = SearchRequest(Filters(), Sort("price"), limit=3, paged_by_cursor=True, fingerprint="f")
    cursor = floor.search(request).next_cursor
    floor.stock(STOCK[5:])
    second = floor.search(replace(request, cursor=cursor))
    floor.runner.run(floor.store.close())
    third = floor.search(replace(request, cursor=second.next_cursor))
    assert len(third.listings) == 3
    floor.runner.run(floor.store.open())


def test_a_walk_that_began_on_a_process_which_is_ahead_waits_until_this_one_has_caught_up(floor: Floor) -> None:
    behind = floor.catalog
    floor.stock(STOCK[2:])
    request = SearchRequest(Filters(), limit=3, paged_by_cursor=True, fingerprint="f")
    walked = replace(request, cursor=floor.search(request).next_cursor)
    ahead, floor.catalog = floor.catalog, behind

    async def catch_up() -> Reply:
        page = asyncio.create_task(floor.agent.run(walked, WHOLE))
        await asyncio.sleep(0.01)
        assert not page.done()
        floor.catalog = ahead
        return await page

    reply = floor.runner.run(catch_up())
    assert isinstance(reply, SearchReply)
    assert (reply.total, len(reply.listings)) == (20, 3)


def test_a_walk_that_this_process_does_not_catch_up_with_can_be_tried_again(
    floor: Floor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_module, "_LAG_SECONDS", 0.0)
    behind = floor.catalog
    floor.stock(STOCK[2:])
    request = SearchRequest(Filters(), limit=3, paged_by_cursor=True, fingerprint="f")
    walked = replace(request, cursor=floor.search(request).next_cursor)
    floor.catalog = behind
    error = floor.refused(walked)
    assert (error.code, error.retryable) == ("INTERNAL_ERROR", True)


def test_a_walk_with_too_many_changes_behind_it_must_begin_again(floor: Floor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_module, "_CHANGES", 4)
    request = SearchRequest(Filters(), limit=3, paged_by_cursor=True, fingerprint="f")
    walked = replace(request, cursor=floor.search(request).next_cursor)
    floor.stock(STOCK[4:])
    assert len(floor.search(walked).listings) == 3
    floor.stock(STOCK[5:])
    assert floor.refused(walked).code == "INVALID_CURSOR"


def test_a_key_that_another_process_has_just_made_is_looked_for_once(floor: Floor) -> None:
    old, new, foreign = (Secret(name, name.encode() * 8) for name in ("old", "new", "foreign"))
    looked: list[float] = []

    async def renew() -> Cursors:
        looked.append(1)
        await asyncio.sleep(0)
        return Cursors([new, old])

    capabilities = Capabilities((), (), SORT_FIELDS)
    ours, theirs, strangers = (
        Agent(SELLERS, lambda: floor.catalog, floor.store, Cursors([key]), capabilities, lambda: floor.now, renew)
        for key in (old, new, foreign)
    )
    request = SearchRequest(Filters(), limit=3, paged_by_cursor=True, fingerprint="f")

    async def walked(by: Agent) -> SearchRequest:
        reply = await by.run(request, WHOLE)
        assert isinstance(reply, SearchReply)
        return replace(request, cursor=reply.next_cursor)

    async def together() -> list[Reply]:
        again = await walked(theirs)
        return await asyncio.gather(*(ours.run(again, WHOLE) for _ in range(5)))

    assert len(floor.runner.run(together())) == 5
    assert len(looked) == 1
    unknown = floor.runner.run(walked(strangers))
    for seconds, looks in ((1, 1), (1, 1), (3, 2)):
        floor.now += timedelta(seconds=seconds)
        for refused in (unknown, replace(request, cursor="x" * 40)):
            with pytest.raises(AAPError) as raised:
                floor.runner.run(ours.run(refused, WHOLE))
            assert raised.value.code == "INVALID_CURSOR"
        assert len(looked) == looks


def test_a_cursor_is_bound_to_its_request_tenant_and_caller_and_expires(floor: Floor) -> None:
    mine = Caller("t", None, "agent-1")
    request = SearchRequest(Filters(), limit=2, paged_by_cursor=True, fingerprint="f")
    cursor = floor.search(request, mine).next_cursor
    again = replace(request, cursor=cursor)
    assert len(floor.search(again, mine).listings) == 2
    for other, caller in (
        (replace(again, fingerprint="g"), mine),
        (again, Caller("u", None, "agent-1")),
        (again, Caller("t", None, "agent-2")),
        (again, Caller("t")),
        (replace(again, cursor=f"{cursor}A"), mine),
        (replace(again, cursor=""), mine),
    ):
        assert floor.refused(other, caller).code == "INVALID_CURSOR"
    # The size of a page is not part of what is searched for.
    assert len(floor.search(replace(again, limit=5), mine).listings) == 5
    floor.now = NOW + timedelta(minutes=29)
    floor.search(again, mine)
    floor.now = NOW + timedelta(minutes=31)
    assert floor.refused(again, mine).code == "INVALID_CURSOR"


def test_the_limit_has_a_default_and_a_cap_and_skipping_gives_no_cursor(floor: Floor) -> None:
    default = floor.search(SearchRequest(Filters()))
    assert (default.limit, len(default.listings), default.next_cursor) == (20, 20, None)
    assert floor.search(SearchRequest(Filters(), limit=1000)).limit == 100
    skipped = floor.search(SearchRequest(Filters(), skip=20, limit=7))
    assert (skipped.total, skipped.skip, skipped.limit, len(skipped.listings)) == (22, 20, 7, 2)
    assert floor.search(SearchRequest(Filters(), skip=10**9)).listings == []
    assert floor.search(SearchRequest(Filters(), limit=22, paged_by_cursor=True)).next_cursor is None


# Vehicles


def test_a_remembered_page_is_the_callers_own_and_goes_with_its_catalog(floor: Floor) -> None:
    request = SearchRequest(Filters(), fingerprint="everything", paged_by_cursor=True, limit=5)
    first = floor.search(request)
    assert floor.search(request) is first
    for caller in (Caller("dealer-b", ("dealer-b",)), Caller("", None, "agent-7")):
        other = floor.search(request, caller)
        assert other is not first
        assert other.next_cursor != first.next_cursor
    floor.stock([vehicle("dealer-a", "01")])
    assert floor.search(request).total == 1


def test_a_remembered_page_is_made_anew_before_its_cursor_is_old(floor: Floor) -> None:
    request = SearchRequest(Filters(), fingerprint="everything", paged_by_cursor=True, limit=5)
    first = floor.search(request)
    floor.now += timedelta(seconds=29)
    assert floor.search(request) is first
    floor.now += timedelta(seconds=2)
    assert floor.search(request).next_cursor != first.next_cursor


def test_no_more_pages_are_remembered_than_the_bound(floor: Floor) -> None:
    for number in range(3000):
        floor.search(SearchRequest(Filters(), fingerprint=str(number), limit=1))
    assert len(floor.agent._remembered) <= 1024


def test_remembered_pages_hold_no_more_of_listings_than_the_bound(floor: Floor) -> None:
    floor.stock([vehicle("dealer-a", "01", description="x" * 1_000_000)])
    held = []
    for number in range(60):
        floor.search(SearchRequest(Filters(), fingerprint=f"search {number}"))
        pages = floor.agent._remembered.values()
        held.append(sum(len(listing) for reply, _ in pages for listing in reply.listings))
    assert 10_000_000 < max(held) < 18_000_000
    assert held[-1] < 18_000_000


def test_a_vehicle_is_found_by_each_identifier(floor: Floor) -> None:
    for reference in (VehicleReference(" vinb77 "), VehicleReference(vehicle_id="77"), VehicleReference(stock="s77")):
        assert floor.vehicle(reference)["vin"] == "VINB77"
    assert floor.vehicle(VehicleReference(vehicle_id="00"), ONLY_B)["vin"] == "VINB00"
    assert floor.vehicle(VehicleReference(vehicle_id="00"), dealer_id="dealer-b")["vin"] == "VINB00"


@pytest.mark.requirement("ERR-VEHICLE-NEVER-KNOWN", "ERR-VEHICLE-FORMERLY-KNOWN")
@pytest.mark.parametrize(
    ("reference", "member"),
    [
        (VehicleReference("VINB77"), "vin"),
        (VehicleReference(vehicle_id="77"), "vehicle_id"),
        (VehicleReference(stock="S77"), "stock"),
    ],
)
def test_a_vehicle_that_left_is_unavailable_and_one_that_never_was_is_not_found(
    floor: Floor, reference: VehicleReference, member: str
) -> None:
    floor.stock([each for each in STOCK if each["vehicle_id"] != "77"])
    gone = floor.refused(VehicleRequest(reference))
    assert (gone.code, at(gone)) == ("VEHICLE_UNAVAILABLE", [(f"/{member}", "reference")])
    wanted = lead(dealer_id="dealer-b", vehicle_of_interest={member: getattr(reference, member)})
    from_lead = floor.refused(wanted)
    assert (from_lead.code, at(from_lead)) == (
        "VEHICLE_UNAVAILABLE",
        [(f"/vehicle_of_interest/{member}", "reference")],
    )
    never = floor.refused(VehicleRequest(VehicleReference(**{member: "never"})))
    assert (never.code, at(never)) == ("VEHICLE_NOT_FOUND", [(f"/{member}", "reference")])
    # To another seller's endpoint it never was.
    assert floor.refused(VehicleRequest(reference), ONLY_A).code == "VEHICLE_NOT_FOUND"
    assert floor.dealers_of_leads() == []


def test_identifiers_that_point_at_different_listings_are_not_found(floor: Floor) -> None:
    assert floor.refused(VehicleRequest(VehicleReference("VINA00", stock="S05"))).code == "VEHICLE_NOT_FOUND"


def test_a_vehicle_that_came_back_is_there_again(floor: Floor) -> None:
    floor.stock([])
    floor.stock(STOCK)
    assert floor.vehicle(VehicleReference("VINB77"))["vehicle_id"] == "77"


# Leads


def test_a_test_drive_needs_a_vehicle_before_anything_else_is_looked_at(floor: Floor) -> None:
    without: list[dict[str, Any]] = [{}, {"vehicle_of_interest": {}}]
    for parts in without:
        wish = {"appointment_type": "test_drive"}
        error = floor.refused(lead(dealer_id="dealer-x", appointment=wish, consent={}, **parts))
        assert (error.code, at(error)) == ("MISSING_REQUIRED_FIELD", [("", "required")])
        assert "vehicle_of_interest" in error.message


def test_a_description_that_fits_nothing_is_a_lead_unless_a_test_drive_is_asked(floor: Floor) -> None:
    dream = {"year": 1967, "make": "Lamborghini", "model": "Miura"}
    error = floor.refused(
        lead(dealer_id="dealer-a", vehicle_of_interest=dream, appointment={"appointment_type": "test_drive"})
    )
    assert (error.code, at(error)) == ("VEHICLE_NOT_FOUND", [("/vehicle_of_interest", "reference")])
    floor.submit(lead(dealer_id="dealer-a", vehicle_of_interest=dream))
    assert [row.listing_id for row in floor.runner.run(floor.store.leads(None, 9))] == [None]


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        ({"year": 2019, "make": "fiat", "model": "500"}, "dealer-b/77"),
        ({"year": 2019.0, "make": "Fiat", "model": "500"}, "dealer-b/77"),
        ({"make": "Fiat", "model": "500"}, None),
        ({"year": 2024, "make": "Ford", "model": "Civic"}, None),
    ],
    ids=["the only one", "year as 2019.0", "no year", "several"],
)
def test_a_description_stands_for_a_listing_only_when_it_is_whole_and_fits_a_single_one(
    floor: Floor, described: dict[str, Any], expected: str | None
) -> None:
    floor.submit(lead(dealer_id="dealer-b", vehicle_of_interest=described))
    assert [row.listing_id for row in floor.runner.run(floor.store.leads(None, 9))] == [expected]


def test_blank_identifiers_name_nothing(floor: Floor) -> None:
    floor.submit(lead(dealer_id="dealer-b", vehicle_of_interest={"vin": " ", "stock": "", "make": "Ford"}))
    assert floor.dealers_of_leads() == ["dealer-b"]


@pytest.mark.parametrize("dealer_id", [None, "dealer-b"])
def test_a_replay_is_answered_though_the_grant_has_expired_and_the_vehicle_is_sold(
    floor: Floor, dealer_id: str | None
) -> None:
    wanted = lead("key-1", dealer_id, vehicle_of_interest={"vin": "VINB77"})
    first = floor.submit(wanted)
    floor.now = NOW + timedelta(days=2)
    assert floor.submit(wanted) == first, "its grant has expired"
    floor.stock([each for each in STOCK if each["vehicle_id"] != "77"])
    assert floor.submit(wanted) == first, "its vehicle is sold"
    floor.stock([vehicle("dealer-a", "77", vin="VINB77")])
    assert floor.submit(wanted) == first, "its vehicle is another seller's"
    assert floor.dealers_of_leads() == ["dealer-b"]
    other = lead("key-2", "dealer-b", vehicle_of_interest={"vin": "VINB77"})
    assert floor.refused(other).code == "INVALID_CONSENT"


def test_a_replay_asks_the_store_once_however_many_sellers_there_are(
    floor: Floor, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = lead("key-1", vehicle_of_interest={"vin": "VINB77"})
    first = floor.submit(wanted)
    asked: list[list[str]] = []
    among, alone = floor.store.recall_among, floor.store.recall

    async def watched(scopes: Collection[str], key: str, now: datetime) -> Mapping[str, Any]:
        asked.append([*scopes])
        return await among(scopes, key, now)

    async def watched_alone(scope: str, key: str, now: datetime) -> Any:
        asked.append([scope])
        return await alone(scope, key, now)

    monkeypatch.setattr(floor.store, "recall_among", watched)
    monkeypatch.setattr(floor.store, "recall", watched_alone)
    assert floor.submit(wanted) == first
    assert len(asked) == 1
    assert len(asked[0]) > 1


def test_a_replay_belongs_to_its_caller(floor: Floor) -> None:
    mine, theirs = (Caller("dealer-b", ("dealer-b",), name) for name in ("agent-1", "agent-2"))
    wanted = lead("key-1", vehicle_of_interest={"vin": "VINB77"})
    first = floor.submit(wanted, mine)
    assert floor.submit(wanted, Caller("other", ("dealer-b",), "agent-1")) == first
    floor.now = NOW + timedelta(days=2)
    assert floor.submit(wanted, mine) == first
    assert floor.refused(wanted, theirs).code == "INVALID_CONSENT"


def test_the_same_lead_through_the_network_and_the_sellers_own_endpoint_is_one(floor: Floor) -> None:
    wanted = lead("key-1", vehicle_of_interest={"vin": "VINB77"})
    assert floor.submit(wanted) == floor.submit(wanted, ONLY_B) == floor.submit(replace(wanted, dealer_id="dealer-b"))
    assert floor.dealers_of_leads() == ["dealer-b"]


EXPIRED: Final = {**lead().business["consent"], "expires_at": "2026-05-04T11:59:30-07:00"}
IMPOSSIBLE: Final = {
    "appointment_type": "sales",
    "appointment_at": "2026-05-05T11:00:00-07:00",
    "duration_minutes": 2000,
}


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (lead("key-1", "dealer-x", consent=EXPIRED, vehicle_of_interest={"vin": "never"}), "DEALER_NOT_FOUND"),
        (lead("key-1", "dealer-b", consent=EXPIRED, vehicle_of_interest={"vin": "never"}), "INVALID_CONSENT"),
        (lead("key-1", "dealer-b", vehicle_of_interest={"vin": "never"}), "VEHICLE_NOT_FOUND"),
        (lead("key-1", "dealer-b", appointment=IMPOSSIBLE), "IDEMPOTENCY_CONFLICT"),
        (lead("key-2", "dealer-b", appointment=IMPOSSIBLE), "APPOINTMENT_TIME_UNAVAILABLE"),
    ],
    ids=["seller", "consent", "vehicle", "idempotency", "appointment"],
)
def test_of_several_refusals_the_earlier_in_the_contracts_order_wins(
    floor: Floor, wanted: LeadRequest, code: str
) -> None:
    floor.submit(lead("key-1", "dealer-b"))
    assert floor.refused(wanted).code == code
    assert len(floor.dealers_of_leads()) == 1


def test_a_bad_cursor_wins_over_an_unknown_seller(floor: Floor) -> None:
    request = SearchRequest(Filters(), cursor="x", paged_by_cursor=True, dealer_id="dealer-x")
    assert floor.refused(request).code == "INVALID_CURSOR"
    assert floor.refused(replace(request, cursor=None)).code == "DEALER_NOT_FOUND"


def test_no_refusal_repeats_what_was_sent(floor: Floor) -> None:
    mark = "MARKED"
    floor.submit(lead("key-" + mark, "dealer-b"))
    for request in (
        SearchRequest(Filters(), cursor=mark),
        SearchRequest(Filters(), dealer_id=mark),
        VehicleRequest(VehicleReference(mark, mark, mark)),
        lead(mark, mark),
        lead("key-" + mark, "dealer-b", message=mark),
        lead(dealer_id="dealer-b", vehicle_of_interest={"vin": mark}),
        lead(dealer_id="dealer-b", consent={**EXPIRED, "consent_text": mark, "allowed_channels": [mark]}),
    ):
        error = floor.refused(request)
        assert mark not in json.dumps(error.to_payload())
        assert mark not in str(error)


def test_a_failing_database_is_a_store_error_and_the_skills_without_it_go_on(floor: Floor) -> None:
    floor.runner.run(floor.store.close())
    with pytest.raises(StoreError):
        floor.run(lead("key-1", "dealer-b"))
    with pytest.raises(StoreError):
        floor.run(VehicleRequest(VehicleReference("never")))
    assert floor.search(SearchRequest(Filters())).total == 22
    floor.runner.run(floor.store.open())
    floor.submit(lead("key-1", "dealer-b"))
