"""schema.org vehicles in pages and files (FEEDS.md, table)."""

import json

from tests.feed.reading import read

CAR = {
    "@type": "Car", "sku": "S1", "brand": {"name": "Honda"}, "model": "Civic", "itemCondition": "https://schema.org/UsedCondition",
    "mileageFromOdometer": {"value": 50000, "unitCode": "KMT"}, "driveWheelConfiguration": "https://schema.org/FrontWheelDriveConfiguration",
    "image": [{"@type": "ImageObject", "contentUrl": "https://x.example.com/1.jpg"}],
    "offers": [{"@type": "Offer", "price": "24990.00", "priceCurrency": "USD", "seller": {"name": "North"}}],
}  # fmt: skip


def page(*scripts: str) -> str:
    tags = "\n".join(f"<script type='application/ld+json'>{script}</script>" for script in scripts)
    return f"<!doctype html>\n<html><body>{tags}</body></html>"


def test_a_car_is_read_with_its_offer_and_its_quantities() -> None:
    for data in (page(json.dumps(CAR)), json.dumps(CAR), json.dumps({"@graph": [{"@type": "WebPage"}, CAR]})):
        vehicle = read(data, rooftop=None).only
        assert vehicle["make"] == "Honda"
        assert (vehicle["price"], vehicle["mileage"], vehicle["driveline"]) == (24990, 31069, "fwd")
        assert (vehicle["condition"], vehicle["rooftop"]) == ("used", "North")
        assert vehicle["photos"] == ["https://x.example.com/1.jpg"]


def test_vehicles_are_found_inside_of_lists_and_offers() -> None:
    plain = {key: value for key, value in CAR.items() if key != "offers"}
    offer = {"@type": "Offer", "price": 19990, "priceCurrency": "USD", "itemOffered": {**plain, "sku": "S2"}}
    items = {"@type": "ItemList", "itemListElement": [{"@type": "ListItem", "item": CAR}, {"item": offer}]}
    reading = read(page(json.dumps(items)))
    assert [(vehicle["stock"], vehicle["price"]) for vehicle in reading.vehicles] == [("S1", 24990), ("S2", 19990)]


def test_a_broken_script_is_refused_with_its_line_and_the_others_are_read() -> None:
    reading = read(page("{broken", "<!--\n" + json.dumps(CAR) + "\n-->", '{"@type": "AutoDealer"}'))
    assert reading.only["stock"] == "S1"
    assert [finding.line for finding in reading.report.findings if finding.kind == "refused"] == [2]


def test_a_script_that_the_chunks_cut_in_two_is_whole() -> None:
    for padding in range(65_480, 65_540, 7):
        assert read(page().replace("<body>", "<body>" + "x" * padding) + page(json.dumps(CAR))).only["stock"] == "S1"
