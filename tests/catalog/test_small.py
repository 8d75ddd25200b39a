"""Stocks of one dealer's size, searched as the bits of integers; `test_index_against_reference` has the rules."""

import json
from typing import Any

import pytest

from forecourt.catalog import Catalog, Listing, index
from forecourt.catalog.small import SMALL_STOCK, bits_of
from forecourt.model import Filters, Page, Sort


def stock(count: int) -> list[Listing]:
    """Return listings whose price falls as their id rises, every third a Honda, every seventh without a price."""
    return [
        Listing(f"d/{number:05}", "d", json.dumps(vehicle(count, number), separators=(",", ":")).encode())
        for number in range(count)
    ]


def vehicle(count: int, number: int) -> dict[str, Any]:
    body: dict[str, Any] = {"status": "available", "make": "Honda" if number % 3 == 0 else "Ford", "vehicle_id": number}
    return body if number % 7 == 0 else {**body, "price": 1000 * (count - number)}


def test_a_set_is_the_bits_of_a_number_lowest_first() -> None:
    from pyroaring import FrozenBitMap

    assert bits_of(FrozenBitMap([0, 3, 8]), 9) == 0b1_0000_1001
    assert bits_of(FrozenBitMap(), 9) == 0


def test_the_order_by_a_number_has_the_listings_without_one_last_in_both_directions() -> None:
    catalog = Catalog.build(stock(15))
    for descending, first, last in ((False, 13, 14), (True, 1, 14)):
        page = catalog.search(Filters(), Sort("price", descending), limit=15)
        numbers = [json.loads(body)["vehicle_id"] for body in page.listings]
        assert numbers[0] == first
        assert numbers[-3:] == [0, 7, last]


@pytest.mark.parametrize("filters", [Filters({"make": ["honda"]}), Filters(at_least={"price": 1_900_000}), Filters()])
@pytest.mark.parametrize("sort", [None, Sort("price"), Sort("price", descending=True), Sort("make")])
def test_both_ways_of_searching_agree_where_one_takes_over_from_the_other(
    filters: Filters, sort: Sort | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = stock(SMALL_STOCK)
    small = walk(Catalog.build(rows), filters, sort)
    monkeypatch.setattr(index, "SMALL_STOCK", -1)
    assert walk(Catalog.build(rows), filters, sort) == small


def walk(catalog: Catalog, filters: Filters, sort: Sort | None) -> list[tuple[int, list[bytes]]]:
    """Return all pages of a search."""
    pages: list[tuple[int, list[bytes]]] = []
    last = None
    for _ in range(100):
        page: Page = catalog.search(filters, sort, limit=97, after=last)
        pages.append((page.total, list(page.listings)))
        last = page.last
        if last is None:
            return pages
    raise AssertionError("the walk does not end")
