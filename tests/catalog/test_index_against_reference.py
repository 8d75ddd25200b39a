"""The catalog and the reference give the same answers, whatever the stock and the question.

`FORECOURT_LONG=1` tries thousands of stocks and questions.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.catalog.reference import Reference

from forecourt.catalog import (
    Catalog,
    Listing,
    bodies,
    build,
    facet,
    identifier_order,
    index,
    matching,
    paging,
    parts,
    postings,
    words,
)
from forecourt.model import (
    FLAG_FILTERS,
    MAX_FILTERS,
    MIN_FILTERS,
    SORT_FIELDS,
    TERM_FILTERS,
    Filters,
    Page,
    Place,
    Sort,
    VehicleReference,
)  # fmt: skip

Stock = list[tuple[str, str, bytes]]

EXAMPLES = 2000 if os.environ.get("FORECOURT_LONG") else 75
checked = settings(max_examples=EXAMPLES, deadline=None)

TEXTS = [
    *["Honda", "honda", " HONDA ", "Citroën", "CITROEN", "CR-V", "crv", "F-150", "F 150", "f  150", "Škoda", ""],
    *["  ", "ß", "SS", "\uff28\uff4f\uff4e\uff44\uff41", "BMW 3-Series", "a_b", "½", "--", "İstanbul"],
    *["\u0344x", "x\0y", "日本", "é" * 60],
]
AMOUNTS = [0, 1, 2, 3, 4, 5, 6, 7, 2**31, 2**53, 2**53 + 1, 300.0, 299.5, 20000]
BOUNDS = [*AMOUNTS, -1, 2020, 2021, 2022, 10**400, -(10**400), 1e308, -1e308]
IDENTIFIERS = ["A1", "a1", "á1", "B2", "b 2", "C3", "", "x" * 70, "x" * 69 + "y", "A1\0", "D4", "E5"]
FEATURES = ["apple_carplay", "heated_seats", "sunroof", "tow_hitch", "Sunroof"]
MOMENTS = [
    *["2026-04-30T08:42:00Z", "2026-04-30T10:42:00+02:00", "2026-04-30T09:42:00+02:00", "2026-04-30T08:42:00"],
    *["2026-04-30T08:42:00.123456Z", "1969-12-31T23:59:59.5Z", "yesterday", "0001-01-01T00:00:00+14:00"],
]
JUNK: list[Any] = [None, True, 5, "x", [], {}, 1.5]
RANGED = sorted({*MIN_FILTERS.values(), *MAX_FILTERS.values()})


def vehicle(chance: Random, few: int) -> dict[str, Any]:
    """Return a listing's body with some of the members, some of them nonsense; texts come from the first `few`."""
    texts = TEXTS[:few]
    whole: dict[str, Any] = {member: chance.choice(texts) for member in TERM_FILTERS.values()}
    whole |= {member: chance.choice(AMOUNTS) for member in (*RANGED, "list_price", "msrp")}
    whole |= {member: chance.random() < 0.5 for member in FLAG_FILTERS.values()}
    whole |= {member: chance.choice(IDENTIFIERS) for member in ("vin", "stock", "vehicle_id")}
    whole["updated_at"] = chance.choice(MOMENTS)
    whole["year"] = chance.choice([2019, 2020, 2021, 2022, 2023, 2020.0, 2020.5])
    whole["feature_codes"] = chance.choices(FEATURES, k=chance.randrange(4))
    whole["features"] = chance.choices(texts, k=chance.randrange(3))
    whole["description"] = " ".join(chance.choices(texts, k=chance.randrange(4)))
    body = {
        member: chance.choice(JUNK) if chance.random() < 0.03 else value
        for member, value in whole.items()
        if chance.random() < 0.8
    }
    return {**body, "status": chance.choice(["available"] * 8 + ["intransit", "pending", "sold", "Available", None])}


def stock_of(seed: int, size: int) -> Stock:
    """Return listings of three sellers in no order."""
    chance = Random(seed)
    names = [f"l{number}" for number in range(60)] + ["é", "L1", "日", "x\0", "x", "l1 ", "l\U0001f697", "l\uffee"]
    few = chance.choice([2, 4, 8, len(TEXTS)])
    return [
        (name, chance.choice(["north", "south", "east"]), json.dumps(vehicle(chance, few)).encode())
        for name in chance.sample(names, size)
    ]


def filters_of(seed: int) -> Filters:
    """Return no, some or many conditions."""
    chance = Random(seed)
    kinds = chance.choices(["term", "least", "most", "flag", "vin", "stock", "text", "all", "any", "none"],
                           [6, 5, 5, 1, 1, 1, 2, 1, 2, 2], k=chance.choice([0, 1, 1, 1, 2, 2, 3, 5]))  # fmt: skip
    parts: dict[str, Any] = {"terms": {}, "at_least": {}, "at_most": {}, "flags": {}}
    for kind in kinds:
        if kind == "term":
            texts = chance.choices(TEXTS[: chance.choice([2, 8, len(TEXTS)])], k=chance.randrange(4))
            parts["terms"][chance.choice(sorted(TERM_FILTERS.values()))] = texts
        elif kind in ("least", "most"):
            parts[f"at_{kind}"][chance.choice(RANGED)] = chance.choice(BOUNDS)
        elif kind == "flag":
            parts["flags"]["dc_fast_charge"] = chance.random() < 0.5
        elif kind in ("vin", "stock"):
            parts[kind] = chance.choice(IDENTIFIERS)
        elif kind == "text":
            words = " ".join(chance.choices([*TEXTS, "h", "c", "20", "2020", "f1", "!", "s"], k=chance.randrange(3)))
            parts["text"] = words[: chance.randrange(len(words) + 1)]
        else:
            parts[f"features_{kind}"] = chance.choices([*FEATURES, "unknown"], k=chance.randrange(3))
    return Filters(**parts)


def name_of(seed: int) -> VehicleReference:
    """Return one to three identifiers."""
    chance = Random(seed)
    members = chance.sample(["vin", "vehicle_id", "stock"], chance.randint(1, 3))
    return VehicleReference(**{member: chance.choice(IDENTIFIERS) for member in members})


seeds = st.integers(0, 2**64)
stocks = st.builds(stock_of, seeds, st.one_of(st.integers(0, 5), st.integers(30, 60), st.integers(30, 60)))
requests = st.builds(filters_of, seeds)
names = st.builds(name_of, seeds)
sorts = st.one_of(st.none(), st.builds(Sort, st.sampled_from(SORT_FIELDS), st.booleans()))
sellers = st.one_of(st.none(), st.none(), st.lists(st.sampled_from(["north", "south", "nowhere"]), max_size=2))


scales = st.sampled_from(["small", "middling", "large"])


@contextmanager
def scaled(scale: str) -> Iterator[None]:
    """Catalogs go the ways that are meant for stocks of a size."""
    with pytest.MonkeyPatch.context() as patch:
        if scale != "small":
            patch.setattr(index, "SMALL_STOCK", -1)
        if scale == "large":
            for module in (index, matching, paging):
                patch.setattr(module, "_SMALL", 0)
            patch.setattr(index, "_LISTINGS_BETWEEN", 99)
            patch.setattr(matching, "_SPARSE", 3)
            patch.setattr(matching, "_BLOCK", 7)
            patch.setattr(paging, "_RANKED_ONCE", 0)
            patch.setattr(paging, "_RANKED", 0)
            patch.setattr(facet, "_FEW", 0)
            patch.setattr(facet, "_LISTINGS_A_COMBINATION", 1)
            patch.setattr(facet, "_RANKS_A_CELL", 3)
            patch.setattr(facet, "_DENSE", 2)
            patch.setattr(facet, "_BLOCK", 7)
            patch.setattr(parts, "_SMALL_VOCABULARY", 1)
            patch.setattr(build, "_CHUNK", 8)
            patch.setattr(words, "_WIDE", 1)
            patch.setattr(words, "_REMEMBERED", 1)
            patch.setattr(identifier_order, "_KEY_LIMIT", 4)
            patch.setattr(identifier_order, "_FINDER_STEP", 2)
            patch.setattr(postings, "_GROWN", 3)
            patch.setattr(bodies, "_READ_BEFORE_LETTING_GO", 3)
            patch.setattr(bodies, "_PIECE", 64)
        yield


@contextmanager
def both(stock: Stock, scale: str) -> Iterator[tuple[Catalog, Reference]]:
    """The catalog and the reference."""
    large = scale == "large"
    with scaled(scale):
        yield Catalog.build((Listing(*row) for row in stock), heap_limit=99 if large else 1 << 20), Reference(stock)


def plain(page: Page) -> tuple[Any, ...]:
    return page.total, list(page.listings), page.last, type(page.last and page.last.value)


@pytest.mark.requirement("RPC-EX-SEARCH-VEHICLES")
@checked
@given(
    stocks, scales, st.lists(st.tuples(requests, sorts, sellers), min_size=1, max_size=5),
    st.integers(0, 4), st.integers(0, 5),
)  # fmt: skip
def test_search_answers_as_the_reference_does(
    stock: Stock,
    scale: str,
    questions: list[tuple[Filters, Sort | None, list[str] | None]],
    skip: int,
    limit: int,
) -> None:
    with both(stock, scale) as (catalog, reference):
        for filters, sort, dealers in questions:
            found = catalog.search(filters, sort, skip=skip, limit=limit, dealers=dealers)
            wanted = reference.search(filters, sort, skip=skip, limit=limit, dealers=dealers)
            assert plain(found) == plain(wanted)


@checked
@given(stocks, stocks, scales, requests, sorts, st.integers(1, 3), st.integers(0, 2))
def test_a_walk_goes_on_as_in_the_reference_when_the_stock_has_changed_under_it(
    before: Stock,
    now: Stock,
    scale: str,
    filters: Filters,
    sort: Sort | None,
    limit: int,
    skip: int,
) -> None:
    earlier = Reference(before)
    places: list[Place] = []
    for size in range(1, len(before)):
        last = earlier.search(filters, sort, limit=size).last
        if last is None:
            break
        places.append(last)
    with both(now, scale) as (catalog, reference):
        for place in places[:6]:
            found = catalog.search(filters, sort, skip=skip, limit=limit, after=place)
            wanted = reference.search(filters, sort, skip=skip, limit=limit, after=place)
            assert plain(found) == plain(wanted)


@pytest.mark.requirement("RPC-EX-FACETS-COUNTS")
@checked
@given(stocks, scales, st.lists(st.tuples(requests, sellers), min_size=1, max_size=4))
def test_facets_are_as_the_reference_counts_them(
    stock: Stock, scale: str, questions: list[tuple[Filters, list[str] | None]]
) -> None:
    with both(stock, scale) as (catalog, reference):
        for filters, dealers in questions:
            found = catalog.facets(filters, dealers=dealers)
            wanted = reference.facets(filters, dealers=dealers)
            assert {name: list(pairs) for name, pairs in found.terms.items()} == wanted.terms
            assert repr(dict(sorted(found.ranges.items()))) == repr(dict(sorted(wanted.ranges.items())))


@checked
@given(stocks, scales, st.lists(st.tuples(names, sellers), min_size=1, max_size=6))
def test_find_names_the_listing_that_the_reference_does(
    stock: Stock,
    scale: str,
    questions: list[tuple[VehicleReference, list[str] | None]],
) -> None:
    with both(stock, scale) as (catalog, reference):
        for name, dealers in questions:
            assert catalog.find(name, dealers=dealers) == reference.find(name, dealers=dealers)


def spelled(stock: Stock, seed: int) -> Stock:
    """Return the stock with each seller's texts in a way of writing of its own."""
    chance = Random(seed)
    ways = {"north": str.upper, "south": str.lower, "east": str.title}
    told: Stock = []
    for listing_id, dealer_id, body in stock:
        members = json.loads(body)
        way = ways[dealer_id] if chance.random() < 0.8 else str.swapcase
        for member in TERM_FILTERS.values():
            if isinstance(members.get(member), str) and member != "status":
                members[member] = way(members[member])
        told.append((listing_id, dealer_id, json.dumps(members).encode()))
    return told


@checked
@given(st.builds(spelled, stocks, seeds), scales, requests, sorts, st.sampled_from(["north", "south"]))
def test_an_answer_is_the_same_as_if_the_asked_seller_were_alone(
    stock: Stock, scale: str, filters: Filters, sort: Sort | None, seller: str
) -> None:
    alone = [row for row in stock if row[1] == seller]
    with both(stock, scale) as (together, reference), both(alone, scale) as (single, _):
        found = together.facets(filters, dealers=[seller])
        assert {name: list(pairs) for name, pairs in found.terms.items()} == reference.facets(
            filters, dealers=[seller]
        ).terms
        assert found.terms == single.facets(filters).terms
        assert dict(found.ranges) == dict(single.facets(filters).ranges)
        for skip in (0, 3):
            page = together.search(filters, sort, skip=skip, limit=3, dealers=[seller])
            assert plain(page) == plain(single.search(filters, sort, skip=skip, limit=3))
            follow = together.search(filters, sort, limit=3, after=page.last, dealers=[seller])
            assert plain(follow) == plain(single.search(filters, sort, limit=3, after=page.last))
