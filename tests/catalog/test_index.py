"""The rules of search, facets and look-ups, one by one (CONTRACTS.md section 5)."""

import json
from pathlib import Path
from typing import Any

import pytest

from forecourt.catalog import Catalog, Listing
from forecourt.model import Filters, Place, Sort, VehicleReference


def listing(listing_id: str, dealer_id: str = "north", **members: Any) -> Listing:
    vehicle = {"status": "available", **members}
    return Listing(listing_id, dealer_id, json.dumps({"vehicle_id": f"v-{listing_id}", **vehicle}).encode())


def catalog(*listings: Listing) -> Catalog:
    return Catalog.build(listings)


def ids(bodies: Any) -> list[str]:
    return [json.loads(body)["vehicle_id"].removeprefix("v-") for body in bodies]


def found(stock: Catalog, filters: Filters = Filters(), sort: Sort | None = None, **more: Any) -> list[str]:  # noqa: B008 - frozen
    return ids(stock.search(filters, sort, limit=100, **more).listings)


def test_bodies_come_back_byte_for_byte() -> None:
    body = b'{ "status":"available" , "price":26780.0 }'
    assert catalog(Listing("a", "north", body)).search(Filters(), None, limit=1).listings == [body]


@pytest.mark.parametrize("status", ["sold", "AVAILABLE", "", None, 1, ["available"]])
def test_only_available_intransit_and_pending_are_ever_shown_or_counted(status: Any) -> None:
    stock = catalog(
        listing("a", make="Kia", status=status), listing("b", status="intransit"), listing("c", status="pending")
    )
    assert len(stock) == 2
    assert found(stock) == ["b", "c"]
    assert "make" not in stock.facets(Filters()).terms
    assert stock.find(VehicleReference(vehicle_id="v-a")) is None


def test_a_listing_without_status_is_not_shown() -> None:
    assert len(Catalog.build([Listing("a", "north", b'{"make":"Kia"}')])) == 0


def test_two_listings_with_one_id_are_refused() -> None:
    with pytest.raises(ValueError, match="same listing_id"):
        catalog(listing("b"), listing("a"), listing("b"))
    with pytest.raises(ValueError, match="same listing_id"):
        catalog(listing("a"), listing("a"))


def test_an_empty_stock_answers_everything_with_nothing() -> None:
    stock = catalog()
    for field in ("price", "make", "stock", "updated_at"):
        assert stock.search(Filters(), Sort(field, True), limit=5, after=Place("x", None)).total == 0
    assert stock.search(Filters(text="honda", at_least={"price": 1}, vin="x"), None, limit=5).total == 0
    assert stock.facets(Filters()).terms == {}
    assert stock.facets(Filters(features_none=["a"])).ranges == {}
    assert stock.find(VehicleReference(vin="x")) is None


@pytest.mark.parametrize("wanted", ["Citroën", "CITROEN", "  citroën ", "Citroe\u0308n"])
def test_texts_match_without_case_accents_or_surrounding_spaces(wanted: str) -> None:
    stock = catalog(listing("a", make="Citroën"), listing("b", make="Citroen C4"))
    assert found(stock, Filters(terms={"make": [wanted]})) == ["a"]


def test_any_of_the_values_of_one_filter_matches_and_all_filters_must() -> None:
    stock = catalog(
        listing("a", make="Kia", fuel="gas"), listing("b", make="Honda", fuel="gas"), listing("c", make="Kia")
    )
    assert found(stock, Filters(terms={"make": ["kia", "honda"]})) == ["a", "b", "c"]
    assert found(stock, Filters(terms={"make": ["kia", "honda"], "fuel": ["gas"]})) == ["a", "b"]
    assert found(stock, Filters(terms={"make": ["no such make"]})) == []


def test_an_empty_list_sets_no_condition() -> None:
    assert found(catalog(listing("a")), Filters(terms={"make": []}, features_any=[], features_all=[])) == ["a"]


def test_a_listing_without_vehicle_type_is_a_car() -> None:
    stock = catalog(listing("a"), listing("b", vehicle_type="trailer"), listing("c", vehicle_type=None))
    assert found(stock, Filters(terms={"vehicle_type": ["Car"]})) == ["a", "c"]
    assert stock.facets(Filters()).terms["vehicle_type"] == [("car", 2), ("trailer", 1)]


def test_bounds_are_included_and_what_has_no_price_matches_none() -> None:
    stock = catalog(listing("a", price=100), listing("b", price=200), listing("c"))
    assert found(stock, Filters(at_least={"price": 100}, at_most={"price": 100})) == ["a"]
    assert found(stock, Filters(at_least={"price": 0})) == ["a", "b"]
    assert found(stock, Filters(at_least={"price": 201})) == []
    assert found(stock, Filters(at_least={"price": 150}, at_most={"price": 120})) == []


@pytest.mark.parametrize("large", [10**400, 1e308, float("inf")])
def test_no_bound_is_too_large(large: float) -> None:
    stock = catalog(listing("a", price=2**31), listing("b"))
    assert found(stock, Filters(at_most={"price": large})) == ["a"]
    assert found(stock, Filters(at_least={"price": large})) == []
    assert found(stock, Filters(at_least={"price": -large})) == ["a"]


def test_large_prices_are_told_apart_exactly() -> None:
    stock = catalog(listing("a", price=2**53), listing("b", price=2**53 + 1))
    assert found(stock, Filters(at_least={"price": 2**53 + 1})) == ["b"]


def test_a_flag_must_be_there_and_equal() -> None:
    stock = catalog(listing("a", dc_fast_charge=True), listing("b", dc_fast_charge=False), listing("c"))
    assert found(stock, Filters(flags={"dc_fast_charge": True})) == ["a"]
    assert found(stock, Filters(flags={"dc_fast_charge": False})) == ["b"]


def test_features_are_asked_for_as_all_any_and_none() -> None:
    stock = catalog(
        listing("a", feature_codes=["sunroof", "tow_hitch"]), listing("b", feature_codes=["sunroof"]), listing("c")
    )
    assert found(stock, Filters(features_all=["sunroof", "tow_hitch"])) == ["a"]
    assert found(stock, Filters(features_any=["tow_hitch", "sunroof"])) == ["a", "b"]
    assert found(stock, Filters(features_none=["tow_hitch"])) == ["b", "c"]
    assert found(stock, Filters(features_all=["unheard_of"])) == []
    assert found(stock, Filters(features_none=["unheard_of"])) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("query", "hits"),
    [
        ("cr-v", ["a"]), ("CRV", ["a"]), ("cr v", ["a"]), ("crv 2024 hond", ["a"]), ("f150", ["b"]),
        ("F-150 xlt", ["b"]), ("150", ["b"]), ("rojo", ["b"]), ("carplay", ["a"]), ("immaculee", ["a"]),
        ("honda xlt", []), ("ar", []), ("-- !!", ["a", "b"]), ("", ["a", "b"]), ("  ", ["a", "b"]),
        ("c", ["a"]), ("v", ["a"]), ("zzz", []), ("gas", ["a"]),
    ],
)  # fmt: skip
def test_every_word_of_a_query_must_begin_some_word_of_the_listing(query: str, hits: list[str]) -> None:
    stock = catalog(
        listing("a", year=2024, make="Honda", model="CR-V", features=["Apple CarPlay"], fuel="gas",
                description="Une voiture immaculée.", notes="zzz"),
        listing("b", make="Ford", model="F-150", trim="XLT", exterior_color="Rojo"),
    )  # fmt: skip
    assert found(stock, Filters(text=query)) == hits


def test_the_text_fields_can_be_chosen() -> None:
    stock = Catalog.build([listing("a", make="Kia", notes="one owner")], text_fields=("notes",))
    assert found(stock, Filters(text="owner")) == ["a"]
    assert found(stock, Filters(text="kia")) == []


def test_what_has_no_price_comes_last_in_both_directions_and_ties_go_by_id() -> None:
    stock = catalog(listing("d"), listing("c", price=5), listing("b", price=5), listing("a", price=9), listing("0"))
    assert found(stock, sort=Sort("price")) == ["b", "c", "a", "0", "d"]
    assert found(stock, sort=Sort("price", descending=True)) == ["a", "b", "c", "0", "d"]


def test_without_a_sort_the_order_is_that_of_ids() -> None:
    assert found(catalog(listing("b"), listing("a"), listing("é"), listing("B"))) == ["B", "a", "b", "é"]


def test_texts_sort_by_their_normal_form_and_then_as_written() -> None:
    stock = catalog(
        listing("a", make="kia"), listing("b", make="Kia"), listing("c", make="Écho"), listing("d", make="Ford")
    )
    assert found(stock, sort=Sort("make")) == ["c", "d", "b", "a"]
    assert found(stock, sort=Sort("make", descending=True)) == ["a", "b", "d", "c"]


def test_times_sort_by_instant_whatever_their_offset() -> None:
    stock = catalog(
        listing("a", updated_at="2026-04-30T08:00:00Z"),
        listing("b", updated_at="2026-04-30T09:00:00+02:00"),
        listing("c", updated_at="2026-04-30T10:00:00+02:00"),
        listing("d", updated_at="soon"),
    )
    assert found(stock, sort=Sort("updated_at")) == ["b", "a", "c", "d"]
    assert found(stock, sort=Sort("updated_at", descending=True)) == ["a", "c", "b", "d"]


def test_a_sort_field_that_does_not_exist_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        found(catalog(), sort=Sort("horsepower"))


def test_stock_numbers_that_differ_only_far_in_are_told_apart() -> None:
    long = "x" * 80
    stock = catalog(
        listing("a", stock=long + "2"), listing("b", stock=long + "1"), listing("c", stock="w"), listing("d", stock="y")
    )
    assert found(stock, sort=Sort("stock")) == ["c", "b", "a", "d"]
    assert found(stock, Filters(stock=long.upper() + "2")) == ["a"]


def test_long_identifiers_of_whole_networks_are_in_order_and_found() -> None:
    # Rooftop and VIN, as imports write them: 300 of each rooftop, which differ within and beyond what is sorted by.
    ids_of = {
        f"{rooftop:02}-{number:03}": f"Example-Motors-{'Of-The-Far-' * (rooftop % 4)}{rooftop:04}:1FT{number:014}"
        for rooftop in range(8)
        for number in range(300)
    }
    stock = catalog(*(listing(name, vehicle_id=text, stock=text) for name, text in ids_of.items()))
    expected = sorted(ids_of.values(), key=str.lower)
    assert ids(stock.search(Filters(), Sort("stock"), limit=len(ids_of)).listings) == expected
    for name in ("00-000", "03-299", "07-150"):
        listed = stock.find(VehicleReference(vehicle_id=ids_of[name].upper()))
        assert listed is not None
        assert ids([listed]) == [ids_of[name]]


def test_the_total_counts_all_matches_whatever_the_page() -> None:
    stock = catalog(*(listing(f"{number}", price=number) for number in range(9)))
    page = stock.search(Filters(at_least={"price": 3}), Sort("price"), skip=4, limit=1, after=Place("3", 3))
    assert (page.total, ids(page.listings), page.last) == (6, ["8"], None)


def test_the_last_place_is_given_only_while_more_follows() -> None:
    stock = catalog(listing("a", price=1), listing("b", price=2), listing("c"))
    assert stock.search(Filters(), Sort("price"), limit=2).last == Place("b", 2)
    assert stock.search(Filters(), Sort("price"), limit=3).last is None
    assert stock.search(Filters(), Sort("price", True), skip=1, limit=1).last == Place("a", 1)
    assert stock.search(Filters(), None, limit=1).last == Place("a", None)
    assert stock.search(Filters(), Sort("price"), skip=10**400, limit=1).listings == []


def test_a_walk_goes_on_after_a_listing_that_is_gone() -> None:
    stock = catalog(listing("a", price=1), listing("c", price=2), listing("d", price=3), listing("e"))
    assert found(stock, sort=Sort("price"), after=Place("b", 2)) == ["c", "d", "e"]
    assert found(stock, sort=Sort("price", True), after=Place("b", 2.5)) == ["c", "a", "e"]
    assert found(stock, sort=Sort("price"), after=Place("dd", None)) == ["e"]
    assert found(stock, after=Place("b")) == ["c", "d", "e"]


def test_facets_come_by_count_and_then_by_value_and_without_empty_members() -> None:
    stock = catalog(
        listing("a", make="Kia", year=2024, dc_fast_charge=True, feature_codes=["b", "a", "a"], price=5),
        listing("b", make="Audi", year=2023, dc_fast_charge=False, feature_codes=["a"], price=9.5),
        listing("c", make="Kia", year=2024.0),
    )
    facets = stock.facets(Filters())
    assert facets.terms == {
        "make": [("Kia", 2), ("Audi", 1)],
        "year": [(2024, 2), (2023, 1)],
        "status": [("available", 3)],
        "vehicle_type": [("car", 3)],
        "dc_fast_charge": [(False, 1), (True, 1)],
        "feature_codes": [("a", 2), ("b", 1)],
    }
    assert facets.ranges == {"price": (5, 9.5), "year": (2023, 2024)}
    assert [type(bound) for bound in facets.ranges["price"]] == [int, float]


def test_spellings_of_one_value_are_counted_together_as_the_catalog_most_often_has_them() -> None:
    stock = catalog(
        listing("a", make="HONDA"), listing("b", make="Honda"), listing("c", make="Honda"),
        listing("d", fuel="Gas"), listing("e", fuel="GAS"),
    )  # fmt: skip
    assert stock.facets(Filters(vin=None, terms={"make": ["honda"]})).terms["make"] == [("Honda", 3)]
    assert stock.facets(Filters()).terms["fuel"] == [("GAS", 2)]


def test_a_question_about_some_sellers_sees_no_others() -> None:
    stock = catalog(
        listing("a", make="Kia"), listing("b", "south", make="Audi", price=7, vin="V1"), listing("c", "east")
    )
    assert found(stock, dealers=["north", "east"]) == ["a", "c"]
    assert found(stock, dealers=[]) == []
    assert found(stock, dealers=["unknown"]) == []
    facets = stock.facets(Filters(), dealers=["north"])
    assert facets.terms["make"] == [("Kia", 1)]
    assert facets.ranges == {}
    assert stock.find(VehicleReference(vin="V1"), dealers=["north"]) is None


def test_facets_show_a_value_as_the_asked_sellers_write_it_and_no_other() -> None:
    stock = catalog(
        listing("a", make="HONDA"), listing("b", "south", make="Honda"), listing("c", "south", make="Honda"),
        listing("d", make="Kia"), listing("e", "east", make="honda"), listing("f", "east", make="Honda"),
        listing("g", make="Ibex"),
    )  # fmt: skip
    assert stock.facets(Filters()).terms["make"][0] == ("Honda", 5)
    assert stock.facets(Filters(), dealers=["north"]).terms["make"] == [("HONDA", 1), ("Ibex", 1), ("Kia", 1)]
    assert stock.facets(Filters(), dealers=["south"]).terms["make"] == [("Honda", 2)]
    assert stock.facets(Filters(), dealers=["east"]).terms["make"] == [("Honda", 2)]
    assert stock.facets(Filters(), dealers=["east", "north"]).terms["make"][0] == ("HONDA", 3)


def test_values_of_one_count_come_in_the_order_of_the_spelling_that_is_shown() -> None:
    stock = catalog(
        listing("a", make="kia"), listing("b", make="Lada"), listing("c", "south", make="Kia"),
        listing("d", "south", make="Kia"),
    )  # fmt: skip
    assert stock.facets(Filters(), dealers=["north"]).terms["make"] == [("Lada", 1), ("kia", 1)]
    assert stock.facets(Filters(), dealers=["south"]).terms["make"] == [("Kia", 2)]


def test_find_reads_identifiers_without_case_and_spaces() -> None:
    stock = catalog(listing("a", vin="1HGCV1F30NA123456", stock="H12"))
    for name in (VehicleReference(vin=" 1hgcv1f30na123456"), VehicleReference(stock="h12")):
        body = stock.find(name)
        assert body is not None
        assert ids([body]) == ["a"]


def test_find_refuses_identifiers_of_different_listings() -> None:
    stock = catalog(listing("a", vin="V1", stock="S1"), listing("b", vin="V2", stock="S2"))
    assert stock.find(VehicleReference(vin="V1", stock="S2")) is None
    assert stock.find(VehicleReference(vehicle_id="v-a", stock="S2")) is None
    assert stock.find(VehicleReference()) is None


def test_find_goes_by_the_most_specific_identifier_when_no_listing_has_the_others() -> None:
    stock = catalog(listing("a", vin="V1", stock="S1"))
    assert stock.find(VehicleReference(vin="V1", stock="gone")) is not None
    assert stock.find(VehicleReference(vin="gone", stock="S1")) is None


def test_find_takes_of_one_vin_at_two_rooftops_the_one_that_the_stock_number_fits() -> None:
    stock = catalog(listing("b", vin="V1", stock="S2"), listing("a", vin="V1", stock="S1"))
    assert ids([stock.find(VehicleReference(vin="V1"))]) == ["a"]
    assert ids([stock.find(VehicleReference(vin="V1", stock="S2"))]) == ["b"]


def test_members_of_the_wrong_type_read_as_absent() -> None:
    stock = catalog(listing("a", make=5, price="9", year=True, features="x", feature_codes={}, updated_at=3, stock=[]))
    assert set(stock.facets(Filters()).terms) == {"status", "vehicle_type"}
    assert found(stock, sort=Sort("stock")) == ["a"]


def test_bodies_can_live_in_a_file_that_leaves_no_name_behind(tmp_path: Path) -> None:
    listings = [listing(f"{number:02}", description="long " * 50) for number in range(50)]
    stock = Catalog.build(reversed(listings), heap_limit=1000, directory=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert list(stock.search(Filters(), None, limit=50).listings) == [each.body for each in listings]


def test_a_build_that_breaks_off_leaves_nothing_behind(tmp_path: Path) -> None:
    listings = [listing("a", description="long " * 50), listing("b"), listing("b")]
    with pytest.raises(ValueError, match="same listing_id"):
        Catalog.build(listings, heap_limit=10, directory=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_id_can_be_looked_for() -> None:
    stock = catalog(listing("a"), listing("c"))
    assert "a" in stock
    assert "b" not in stock
