"""A catalog that follows from an earlier one answers every question as one that is built of the whole stock."""

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.catalog.reference import Reference
from tests.catalog.test_index_against_reference import (
    EXAMPLES,
    Stock,
    filters_of,
    names,
    plain,
    requests,
    scaled,
    scales,
    seeds,
    sellers,
    sorts,
    stock_of,
    stocks,
    vehicle,
)

from forecourt.catalog import Catalog, Listing, bodies
from forecourt.model import SORT_FIELDS, Filters, Sort, VehicleReference

checked = settings(max_examples=EXAMPLES, deadline=None)

Change = tuple[list[Listing], list[str]]


def changed(stock: Stock, seed: int) -> tuple[Stock, Change]:
    """Return a stock after some of it was changed, removed and added to, and what that was."""
    chance = Random(seed)
    kind = chance.choice(["prices", "some", "all", "none"])
    rows = {row[0]: row for row in stock}
    written: dict[str, tuple[str, str, bytes]] = {}
    removed: list[str] = []
    if kind == "prices":
        for listing_id, dealer_id, body in chance.sample(stock, len(stock) // 3):
            members = json.loads(body)
            written[listing_id] = (
                listing_id,
                dealer_id,
                json.dumps({**members, "price": chance.randrange(9)}).encode(),
            )
    elif kind != "none":
        share = 1 if kind == "all" else 3
        for row in stock_of(chance.randrange(2**64), chance.randint(0, 60 // share)):
            written[row[0]] = row
        removed = [each for each in rows if each not in written and chance.random() < 0.9 / share]
        removed += [each for each in ("never", "l99") if chance.random() < 0.2]
    after = {**rows, **written}
    for listing_id in removed:
        after.pop(listing_id, None)
    listings = [Listing(*row) for row in written.values()]
    chance.shuffle(listings)
    return list(after.values()), (listings, removed)


@checked
@given(
    stocks, st.lists(seeds, min_size=1, max_size=4), scales,
    st.lists(st.tuples(requests, sorts, sellers, names), min_size=1, max_size=4),
)  # fmt: skip
def test_it_answers_as_one_that_is_built_of_the_whole_stock(
    stock: Stock,
    imports: list[int],
    scale: str,
    questions: list[tuple[Filters, Sort | None, list[str] | None, VehicleReference]],
) -> None:
    with scaled(scale):
        limit = 99 if scale == "large" else 1 << 20
        catalog = Catalog.build((Listing(*row) for row in stock), heap_limit=limit)
        for seed in imports:
            stock, (listings, removed) = changed(stock, seed)
            catalog = catalog.followed(listings, removed)
            whole, reference = Catalog.build((Listing(*row) for row in stock), heap_limit=limit), Reference(stock)
            assert len(catalog) == len(whole)
            for filters, sort, dealers, name in questions:
                same_answers(catalog, whole, reference, filters, sort, dealers)
                found = catalog.find(name, dealers=dealers)
                assert found == whole.find(name, dealers=dealers) == reference.find(name, dealers=dealers)


def same_answers(
    catalog: Catalog,
    whole: Catalog,
    reference: Reference,
    filters: Filters,
    sort: Sort | None,
    dealers: list[str] | None,
) -> None:
    page = catalog.search(filters, sort, limit=3, dealers=dealers)
    wanted = reference.search(filters, sort, limit=3, dealers=dealers)
    assert plain(page) == plain(whole.search(filters, sort, limit=3, dealers=dealers)) == plain(wanted)
    if page.last is not None:
        rest = catalog.search(filters, sort, limit=99, after=page.last, dealers=dealers)
        assert plain(rest) == plain(reference.search(filters, sort, limit=99, after=page.last, dealers=dealers))
    facets, counted = catalog.facets(filters, dealers=dealers), reference.facets(filters, dealers=dealers)
    assert {name: list(pairs) for name, pairs in facets.terms.items()} == counted.terms
    assert repr(dict(sorted(facets.ranges.items()))) == repr(dict(sorted(counted.ranges.items())))
    assert facets == whole.facets(filters, dealers=dealers)


def test_thousands_of_listings_follow_as_they_are_built() -> None:
    chance = Random(3)
    stock = {
        f"l{number:05}": (f"l{number:05}", f"d{number % 7}", json.dumps(vehicle(chance, 8)).encode())
        for number in range(0, 18_000, 2)
    }
    catalog = Catalog.build(Listing(*row) for row in stock.values())
    for size in (3, 500, 4000):
        numbers = chance.sample(range(19_000), size)
        fresh = [(f"l{n:05}", f"d{n % 5}", json.dumps(vehicle(chance, 8)).encode()) for n in numbers]
        removed = chance.sample(sorted(stock.keys() - {row[0] for row in fresh}), size // 2)
        stock |= {row[0]: row for row in fresh}
        for listing_id in removed:
            del stock[listing_id]
        catalog = catalog.followed((Listing(*row) for row in fresh), removed)
        whole = Catalog.build(Listing(*row) for row in stock.values())
        assert catalog.facets(Filters()) == whole.facets(Filters())
        for seed in range(60):
            filters, sort = filters_of(seed), Sort(chance.choice(SORT_FIELDS), chance.random() < 0.5)
            found = catalog.search(filters, sort, skip=seed, limit=50)
            assert plain(found) == plain(whole.search(filters, sort, skip=seed, limit=50))
            assert catalog.facets(filters) == whole.facets(filters)


def test_the_earlier_catalog_stays_as_it_was() -> None:
    rows = [Listing(f"{number}", "north", b'{"status":"available","price":%d}' % number) for number in range(9)]
    for heap_limit in (10, 1 << 20):
        earlier = Catalog.build(rows, heap_limit=heap_limit)
        one = earlier.followed([Listing("1", "north", b'{"status":"pending"}')], ["2"])
        other = earlier.followed([], ["1"])
        assert list(earlier.search(Filters(), limit=9).listings) == [row.body for row in rows]
        assert one.search(Filters(), limit=2).listings == [rows[0].body, b'{"status":"pending"}']
        assert other.search(Filters(), limit=2).listings == [rows[0].body, rows[2].body]


def test_two_changes_of_one_listing_are_refused() -> None:
    with pytest.raises(ValueError, match="same listing_id"):
        Catalog.build(()).followed([Listing("a", "north", b"{}"), Listing("a", "north", b"{}")])


def test_what_stands_on_many_listings_and_what_grows_into_it_are_found_after_many_imports() -> None:
    catalog = Catalog.build(())
    for start in range(0, 3000, 100):
        rows = [
            Listing(f"{n:04}", "d", body(make="Honda" if n % 3 else "Kia", note=n)) for n in range(start, start + 100)
        ]
        catalog = catalog.followed(rows, [f"{start - 100 + n:04}" for n in range(0, 100, 4)])
    assert (
        catalog.search(Filters(text="honda"), limit=0).total
        == catalog.search(Filters(terms={"make": ["Honda"]}), limit=0).total
        == sum(1 for n in range(3000) if n % 3 and (n % 4 or n >= 2900))
    )
    assert catalog.search(Filters(text="note2999"), limit=1).total == 1
    assert catalog.search(Filters(text="note0"), limit=1).total == 0


def body(make: str, note: int) -> bytes:
    members: dict[str, Any] = {"status": "available", "make": make, "description": f"note{note} {make}"}
    return json.dumps(members).encode()


def test_a_file_of_bodies_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    files = []

    class Noted(bodies._BodyFile):
        def append(self, new: Any) -> int:
            files.append(self)
            return super().append(new)

    monkeypatch.setattr(bodies, "_BodyFile", Noted)
    rows = [Listing(f"{n:03}", "d", body("Kia", n)) for n in range(200)]
    catalog = Catalog.build(rows, heap_limit=1000)
    whole = sum(len(row.body) for row in rows)
    for turn in range(40):
        rows[turn * 5 : turn * 5 + 50] = [
            Listing(row.listing_id, "d", body("Kia", turn)) for row in rows[turn * 5 : turn * 5 + 50]
        ]
        catalog = catalog.followed(rows[turn * 5 : turn * 5 + 50])
        assert list(catalog.search(Filters(), limit=200).listings) == [row.body for row in rows]
    assert max(file.size for file in files) < 3 * whole
    assert len(set(map(id, files))) > 1
