"""The vehicles of a lead (ADF.md, "Rules for the mapping")."""

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.lead.adf.sample import LISTING, TRADE_IN

from forecourt.lead.adf.element import document
from forecourt.lead.adf.vehicle import vehicle_of_interest, vehicle_to_trade_in


def wanted(
    said: Mapping[str, Any] | None, listing: Mapping[str, Any] | None = None, interest: str = "buy"
) -> ElementTree.Element:
    """Return a vehicle of interest as it is read."""
    return ElementTree.fromstring(document(vehicle_of_interest(said, listing, interest, "Forecourt")))


def traded(said: Mapping[str, Any], *, condition_element: bool = False) -> ElementTree.Element:
    """Return a trade-in as it is read."""
    return ElementTree.fromstring(document(vehicle_to_trade_in(said, "Forecourt", condition_element=condition_element)))


def test_what_the_shopper_left_out_is_completed_from_the_listing() -> None:
    vehicle = wanted({"stock": "DT-2611"}, LISTING)
    names = ("year", "make", "model", "vin", "stock", "trim", "bodystyle", "transmission", "odometer", "price")
    assert [vehicle.findtext(name) for name in names] == [
        "2024", "Honda", "CR-V", "1HGCY2F57RA000001", "DT-2611", "EX-L", "suv", "cvt", "14820", "32995",
    ]  # fmt: skip
    assert vehicle.findtext("id") == "veh_2611"
    assert vehicle.findtext("imagetag") == "https://photos.example.com/2611/1.jpg"


def test_the_shoppers_words_stay_and_the_listings_facts_win() -> None:
    vehicle = wanted({"make": "HONDA", "trim": "EXL", "mileage": 10, "condition": "new", "year": None}, LISTING)
    assert [vehicle.findtext(name) for name in ("year", "make", "trim", "odometer")] == [
        "2024",
        "HONDA",
        "EXL",
        "14820",
    ]
    assert vehicle.attrib == {"interest": "buy", "status": "used"}


def test_without_a_vehicle_there_is_a_neutral_one() -> None:
    for said in (None, {}, {"make": " "}):
        vehicle = wanted(said)
        assert [(child.tag, child.text) for child in vehicle] == [
            ("year", "0"),
            ("make", "Unknown"),
            ("model", "Unknown"),
            ("comments", "No particular vehicle."),
        ]
        assert vehicle.attrib == {"interest": "buy"}


@pytest.mark.parametrize(("condition", "status"), [("new", "new"), ("used", "used"), ("cpo", "used")])
def test_the_condition_is_adfs_status(condition: str, status: str) -> None:
    assert wanted({"make": "Honda", "condition": condition}, None, "test-drive").attrib == {
        "interest": "test-drive",
        "status": status,
    }


def test_certified_pre_owned_is_said_first_in_the_comments() -> None:
    assert wanted({"condition": "cpo"}).findtext("comments") == "certified pre-owned"
    assert wanted({"notes": "Blue"}, {**LISTING, "condition": "cpo"}).findtext("comments") == (
        "certified pre-owned\nNotes: Blue"
    )


def test_what_adf_has_no_element_for_is_in_the_comments() -> None:
    said = {
        "engine": "2.0L", "fuel": "gas", "driveline": "awd", "features": ["Tow Hitch", " ", 5, "Sunroof"],
        "description": "Fine", "notes": "Blue",
    }  # fmt: skip
    assert wanted(said).findtext("comments") == (
        "Engine: 2.0L\nFuel: gas\nDrive: awd\nFeatures: Tow Hitch, 5, Sunroof\nDescription: Fine\nNotes: Blue"
    )


def test_features_that_are_none_leave_no_comment() -> None:
    assert wanted({"make": "Honda", "features": []}).find("comments") is None


@pytest.mark.parametrize(
    ("said", "listing", "kind", "amount"),
    [
        ({}, {"price": 3, "list_price": 2, "msrp": 1}, "asking", "3"),
        ({}, {"list_price": 2, "msrp": 1}, "asking", "2"),
        ({}, {"msrp": 1}, "msrp", "1"),
        ({"price": 3, "msrp": 1}, {}, "quote", "3"),
        ({"price": 3.0}, None, "quote", "3"),
        ({"list_price": 2}, None, "quote", "2"),
        ({"msrp": 0}, None, "msrp", "0"),
    ],
)
def test_a_price_is_the_dealers_or_what_the_shopper_was_told(
    said: dict[str, Any], listing: dict[str, Any] | None, kind: str, amount: str
) -> None:
    (price,) = wanted(said, listing).findall("price")
    assert (price.text, price.attrib) == (amount, {"type": kind, "currency": "USD"})


def test_a_price_that_differs_from_what_the_shopper_was_told_is_remarked() -> None:
    assert wanted({"price": 31000}, LISTING).findtext("pricecomments") == "The shopper was told 31000 USD."
    assert wanted({"price": 32995.0}, LISTING).find("pricecomments") is None
    assert wanted({}, LISTING).find("pricecomments") is None


def test_a_trade_in_is_used_and_its_condition_is_in_the_comments() -> None:
    vehicle = traded(TRADE_IN)
    assert vehicle.attrib == {"interest": "trade-in", "status": "used"}
    assert vehicle.findtext("comments") == "Condition: good"
    assert vehicle.find("condition") is None
    odometer = vehicle.find("odometer")
    assert odometer is not None
    assert (odometer.text, odometer.attrib) == ("62000", {"units": "mi"})
    assert vehicle.findtext("colorcombination/exteriorcolor") == "White"
    assert vehicle.find("colorcombination/interiorcolor") is None


def test_the_condition_element_stands_after_the_odometer_where_it_is_wanted() -> None:
    tags = [child.tag for child in traded(TRADE_IN, condition_element=True)]
    assert tags[tags.index("odometer") + 1] == "condition"
    assert traded({"make": "Honda"}, condition_element=True).find("condition") is None


def test_a_trade_in_of_which_nothing_is_known_is_still_one() -> None:
    assert [child.text for child in traded({})] == ["0", "Unknown", "Unknown"]


@pytest.mark.parametrize("value", [-5, 1.5, "many", True, None, [4], 10**15])
def test_a_number_that_is_none_is_left_out(value: object) -> None:
    vehicle = wanted({"make": "Honda", "year": value, "mileage": value, "price": value, "doors": value})
    assert [child.tag for child in vehicle] == ["year", "make", "model"]
    assert vehicle.findtext("year") == "0"


def test_doors_are_written_where_they_are_said() -> None:
    assert wanted({"doors": 4}).findtext("doors") == "4"
