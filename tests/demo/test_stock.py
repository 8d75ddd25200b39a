"""The demo dealer's stock. Shapes come from the official vehicle schema and CONTRACTS.md, section 5."""

import json
import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from importlib import resources
from typing import Any

import jsonschema_rs
import pytest

from forecourt.demo import DEALER_ID, profile
from forecourt.demo.stock import SEED_CIVIC_VIN, check_digit, gone, listings
from forecourt.vocabulary import Vocabulary

SCHEMA = resources.files("forecourt.contract").joinpath("schema/1.1/vehicle.schema.json")
TODAY = date(2026, 11, 30)
STOCK = listings(TODAY)
GONE = gone(TODAY)
ROOFTOPS = {rooftop["name"]: rooftop for rooftop in profile()["rooftops"]}

# 49 CFR 565.15, table VII.
YEAR_LETTERS = dict(zip(range(2016, 2028), "GHJKLMNPRSTV", strict=True))

TYPES: dict[str, type | tuple[type, ...]] = {
    "dealer_id": str, "vehicle_id": str, "vin": str, "stock": str, "rooftop": str, "year": int, "make": str,
    "model": str, "trim": str, "condition": str, "status": str, "msrp": int, "list_price": int, "price": int,
    "fees": list, "mileage": int, "vehicle_type": str, "body": str, "transmission": str, "driveline": str,
    "engine": str, "displacement_cc": int, "fuel": str, "city_mpg": int, "highway_mpg": int,
    "electric_range_mi": (int, float), "battery_kwh": (int, float), "motor_power_hp": (int, float),
    "dc_fast_charge": bool, "charge_port": str, "exterior_color": str, "interior_color": str,
    "other_attributes": dict, "features": list, "photos": list, "vdp_url": str, "description": str,
    "inventory_date": str, "updated_at": str,
}  # fmt: skip


def seed_civic() -> dict[str, Any]:
    return next(unit for unit in STOCK if unit["vin"] == SEED_CIVIC_VIN)


@pytest.mark.parametrize(
    ("vin", "digit"),
    [
        ("1M8GDM9AXKP042788", "X"),  # the worked example that is published with the rule
        ("11111111111111111", "1"),  # every value 1: the weights add up to 89 = 8 * 11 + 1
        ("5GZCZ43D13S812715", "1"),
        ("1HGCM82633A004352", "3"),
    ],
)
def test_check_digits_of_published_vins(vin: str, digit: str) -> None:
    assert check_digit(vin) == digit
    assert check_digit(vin[:8] + "0" + vin[9:]) == digit


@pytest.mark.parametrize("vin", ["", "1M8GDM9AXKP04278", "1m8gdm9axkp042788", "IOQGDM9AXKP042788", "1" * 18])
def test_what_is_not_a_vin_has_no_check_digit(vin: str) -> None:
    with pytest.raises(ValueError, match="17 capital letters"):
        check_digit(vin)


def test_there_is_enough_stock_of_every_sort() -> None:
    assert len(STOCK) >= 540
    assert {unit["condition"] for unit in STOCK} == {"new", "used", "cpo"}
    assert {unit["fuel"] for unit in STOCK} == {"gas", "diesel", "hybrid", "phev", "bev"}
    bodies = {unit["body"] for unit in STOCK}
    assert {"sedan", "suv", "truck", "van", "minivan", "coupe", "hatchback", "wagon", "motorcycle"} <= bodies
    assert {"motorcycle", "rv"} == {unit["vehicle_type"] for unit in STOCK if "vehicle_type" in unit}
    assert {"nacs", "ccs1", "j1772"} == {unit["charge_port"] for unit in STOCK if "charge_port" in unit}
    assert {unit["rooftop"] for unit in STOCK} == set(ROOFTOPS)


def test_the_same_day_gives_the_same_stock_and_another_day_only_other_dates() -> None:
    assert listings(TODAY) == STOCK
    moving = {"inventory_date", "updated_at"}
    later = listings(TODAY + timedelta(days=400))
    assert later != STOCK
    for now, then in zip(STOCK, later, strict=True):
        assert {member for member in now if now[member] != then[member]} == moving


def test_the_stock_does_not_change_from_one_python_to_another() -> None:
    # Written down from one run: whoever changes the catalogue changes this line as well.
    last = STOCK[-1]
    values = (last["vin"], last["stock"], last.get("list_price"), len(STOCK))
    assert values == ("3C6LRVDG6NE000579", "D10578", 72250, 554)


def test_callers_get_objects_of_their_own() -> None:
    first = listings(TODAY)
    for unit in first:
        unit["features"].clear()
        unit.get("fees", []).clear()
        unit.get("other_attributes", {}).clear()
    assert listings(TODAY) == STOCK
    bikes = [unit for unit in STOCK if "other_attributes" in unit]
    assert len({id(unit["other_attributes"]) for unit in bikes}) == len(bikes)


@pytest.mark.parametrize("member", ["vehicle_id", "vin", "stock", "vdp_url"])
def test_identifiers_belong_to_one_car(member: str) -> None:
    values = [unit[member] for unit in STOCK + GONE]
    assert len(set(values)) == len(values)


def test_members_have_their_types_and_stand_in_a_readers_order() -> None:
    order = list(TYPES)
    for unit in STOCK + GONE:
        assert list(unit) == [member for member in order if member in unit]
        for member, value in unit.items():
            assert isinstance(value, TYPES[member]), member
            assert value != "", member
            if TYPES[member] is int:
                assert type(value) is int
                assert value >= 0
        assert unit["dealer_id"] == DEALER_ID


def test_vins_are_well_formed_for_their_year() -> None:
    for unit in STOCK + GONE:
        vin = unit["vin"]
        assert re.fullmatch(r"[A-HJ-NPR-Z0-9]{17}", vin)
        assert vin[8] == check_digit(vin)
        assert vin[9] == YEAR_LETTERS[unit["year"]]
        assert vin[12:].isdigit()
        if "vehicle_type" not in unit:
            # 49 CFR 565.15(b): from model year 2010 on position 7 of a light vehicle is a letter.
            assert vin[6].isalpha(), unit["model"]


def test_price_is_the_list_price_and_the_rooftops_fees() -> None:
    for unit in STOCK + GONE:
        if "price" in unit:
            assert unit["fees"] == ROOFTOPS[unit["rooftop"]]["fees"]
            assert unit["price"] == unit["list_price"] + sum(fee["amount"] for fee in unit["fees"])
        else:
            assert not unit.keys() & {"list_price", "price", "fees"}


def test_shares_of_statuses_and_of_cars_without_a_price() -> None:
    statuses = Counter(unit["status"] for unit in STOCK)
    assert set(statuses) == {"available", "pending", "intransit"}
    assert 0.05 < statuses["pending"] / len(STOCK) < 0.07
    assert 0.07 < statuses["intransit"] / len(STOCK) < 0.09
    assert 0.03 < sum("price" not in unit for unit in STOCK) / len(STOCK) < 0.05


def test_only_new_cars_are_in_transit_or_have_a_sticker_price() -> None:
    for unit in STOCK:
        if unit["condition"] == "new":
            assert "msrp" in unit
            assert unit["year"] >= 2026
            assert unit.get("mileage", 0) <= 40
            assert ("mileage" in unit) is (unit["status"] != "intransit")
        elif unit["vin"] != SEED_CIVIC_VIN:
            assert unit["status"] != "intransit"
            assert "msrp" not in unit
            assert unit["mileage"] > 1000
        if unit["condition"] == "cpo":
            assert 2026 - unit["year"] <= 5


def test_powertrains_have_the_members_that_belong_to_them() -> None:
    electric = {"electric_range_mi", "battery_kwh", "motor_power_hp", "dc_fast_charge", "charge_port"}
    for unit in STOCK:
        plugs_in = unit["fuel"] in ("bev", "phev")
        assert (electric <= unit.keys()) is plugs_in
        assert bool(electric & unit.keys()) is plugs_in
        if unit["fuel"] == "bev":
            assert "city_mpg" not in unit
            assert "displacement_cc" not in unit
        if "displacement_cc" in unit:
            assert unit["vehicle_type"] == "motorcycle"
        if unit.get("vehicle_type") == "motorcycle":
            assert unit["body"] == "motorcycle"
            assert unit["other_attributes"]["final_drive"] in ("belt", "chain")


def test_listings_were_updated_in_the_fourteen_days_before_today() -> None:
    midnight = datetime(TODAY.year, TODAY.month, TODAY.day, tzinfo=UTC)
    for unit in STOCK:
        assert unit["updated_at"].endswith("Z")
        updated = datetime.fromisoformat(unit["updated_at"])
        assert midnight - timedelta(days=14) <= updated < midnight
        assert date.fromisoformat(unit["inventory_date"]) <= updated.date()


def test_some_texts_are_not_ascii() -> None:
    for member in ("trim", "exterior_color", "interior_color", "model", "features"):
        assert any(not str(unit.get(member, "")).isascii() for unit in STOCK), member


def test_features_are_words_that_the_vocabulary_knows_and_some_it_does_not() -> None:
    vocabulary = Vocabulary.packaged()
    known = {text: bool(vocabulary.recognise([text])) for unit in STOCK for text in unit["features"]}
    assert 10 <= sum(not is_known for is_known in known.values()) <= 40
    codes = {code for unit in STOCK for code in vocabulary.recognise(unit["features"])}
    assert len(codes) >= 50
    assert {"apple_carplay", "heat_pump", "quick_shifter", "third_row_seats", "tow_package"} <= codes


def test_the_catalogues_equipment_texts_state_the_code_that_they_stand_under() -> None:
    catalogue = json.loads(resources.files("forecourt.demo").joinpath("catalogue.json").read_bytes())
    vocabulary = Vocabulary.packaged()
    for code, texts in catalogue["equipment"]["texts"].items():
        for text in texts:
            assert code in vocabulary.recognise([text]), text
    for texts in catalogue["equipment"]["others"].values():
        assert vocabulary.recognise(texts) == ()


def test_listings_fit_the_vehicle_schema_of_1_1() -> None:
    schema = json.loads(SCHEMA.read_bytes())
    validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    for unit in STOCK + GONE:
        assert [error.message for error in validator.iter_errors(unit)] == []


def test_the_car_of_the_protocols_examples_is_there() -> None:
    # "Skills over A2A", section "inventory.vehicle"; the VIN and the dealer_id are ours.
    expected = {
        "stock": "T12345",
        "rooftop": "Demo Toyota San Francisco",
        "year": 2022,
        "make": "Honda",
        "model": "Civic",
        "trim": "EX",
        "condition": "cpo",
        "status": "available",
        "msrp": 26500,
        "list_price": 24990,
        "price": 26780,
        "city_mpg": 31,
        "highway_mpg": 40,
        "features": ["Adaptive Cruise Control", "Apple CarPlay", "Lane Keep Assist"],
        "vdp_url": "https://demo-toyota.example.com/inventory/T12345",
    }
    civic = seed_civic()
    assert {member: civic[member] for member in expected} == expected
    assert Vocabulary.packaged().recognise(civic["features"]) == (
        "adaptive_cruise_control",
        "apple_carplay",
        "lane_keep_assist",
    )


def test_the_search_of_the_protocols_examples_fits_on_one_page() -> None:
    # "Skills over A2A", section "inventory.search": Honda, used or cpo, from 2020, up to 30000, limit 20.
    found = [
        unit["vin"]
        for unit in STOCK
        if unit["make"] == "Honda"
        and unit["condition"] in ("used", "cpo")
        and unit["year"] >= 2020
        and "price" in unit
        and unit["price"] <= 30000
    ]
    assert SEED_CIVIC_VIN in found
    assert 1 <= len(found) <= 20


def test_twenty_five_cars_were_sold_before() -> None:
    assert len(GONE) == 25
    assert gone(TODAY) == GONE
    for unit in GONE:
        assert "status" not in unit
        assert unit["inventory_date"] < unit["updated_at"][:10] < (TODAY - timedelta(days=14)).isoformat()
        assert {"vin", "stock", "vehicle_id", "make", "model"} <= unit.keys()
