"""The table of column names (FEEDS.md, first table)."""

import pytest

from forecourt.feed.alias import FIELDS, aliases, meanings, normalised

# Every name in the table of FEEDS.md, by exporter.
NAMES = {
    "HomeNet": (
        "vin, stock, type, year, make, model, body, trim, modelnumber, doors, exteriorcolor, interiorcolor, "
        "enginecylinders, enginedisplacement, transmission, miles, sellingprice, msrp, bookvalue, invoice, "
        "certified, dateinstock, description, options, drivetrain, fuel_type, citympg, highwaympg, "
        "internet_price, misc_price1, misc_price3, marketclass, passengercapacity, imagelist"
    ),
    "vAuto": (
        "DealerId, Stock #, VIN, New/Used, Year, Make, Model, Model Code, Body, Transmission, Series, Series "
        "Detail, Door Count, Odometer, Engine Cylinder Ct, Engine Displacement, Drivetrain Desc, Colour, "
        "Interior Color, Price, MSRP, Inventory Date, Certified, Description, Features, City MPG, Highway "
        "MPG, Photo Url List, Photos, Dealer Name, Engine, Fuel, Age, Option Codes, Disposition"
    ),
    "Dealer.com": (
        "VIN, StockNumber, Year, Make, Model, Trim, NewUsed, VDPUrl, LastUpdated, Price, Status, Mileage, "
        "OdometerUnit, StockedDate, FirstListedDate, CarfaxUrl, AutoCheckUrl, CertificationType"
    ),
    "AutoTrader": (
        "DealerId, StockNumber, Year, Make, Model, Trim, VIN, Mileage, Price, ExteriorColor, InteriorColor, "
        "Tranmission, BodyType, EngineType, DriveType, FuelType, Options, ImageURL, VideoURL"
    ),
    "CarGurus": (
        "VIN, Stock Number, Price, MSRP, Certified, Is New, Transmission Type, Installed Options, Main Image, "
        "Image URLs, Dealer CRM Email"
    ),
    "Google": (
        "store_code, id, VIN, year, make, model, trim, exterior_color, interior_color, mileage, condition, "
        "certified, price, dealership_name, dealership_address, link, image_link, additional_image_link, "
        "vehicle_option, legal_disclaimer"
    ),
    "Meta": (
        "vehicle_id, title, description, url, make, model, year, mileage.value, mileage.unit, image[0].url, "
        "image[12].url, transmission, fuel_type, body_style, drivetrain, vin"
    ),
    "schema.org": (
        "vehicleIdentificationNumber, offers.price, mileageFromOdometer, mileageFromOdometer.value, itemCondition"
    ),
}


@pytest.mark.parametrize("exporter", NAMES)
def test_every_column_of_every_exporter_means_something(exporter: str) -> None:
    unknown = [name for name in NAMES[exporter].split(", ") if not meanings(name)]
    assert unknown == []


def test_case_spaces_punctuation_and_positions_make_no_difference() -> None:
    assert {normalised(name) for name in ("Image[0].URL", "image_url", "IMAGE URL", "image[12].url")} == {"imageurl"}


def test_no_name_serves_two_fields_but_prices_and_dates() -> None:
    shared = {
        tuple(sorted({meaning.field or meaning.other for meaning in found}))
        for found in aliases().values()
        if len({meaning.field or meaning.other for meaning in found}) > 1
    }
    assert shared == {
        ("list_price", "offer_price"),
        ("certification_type", "certified"),
        ("first_listed_date", "inventory_date"),
    }


def test_what_the_dealer_paid_and_how_to_reach_staff_means_nothing_to_shoppers() -> None:
    for name in ("invoice", "Book Value", "Dealer CRM Email", "misc_price2", "Unit Cost"):
        assert all(not meaning.field and not meaning.other for meaning in meanings(name))
        assert meanings(name)


def test_a_wrapper_and_a_list_around_a_name_are_seen_through() -> None:
    assert meanings("listing.vin") == meanings("vin")
    assert [meaning.field for meaning in meanings("imagelist.image")] == ["photos"]
    assert [meaning.field for meaning in meanings("options.option.name")] == ["features"]
    assert [meaning.field for meaning in meanings("Photo7")] == ["photos"]
    assert meanings("dealer.phone2.number") == ()


def test_fields_are_what_a_mapping_may_name() -> None:
    assert {"vin", "stock", "all_in_price", "offer_price", "certified", "odometer_unit", "photos"} <= FIELDS
