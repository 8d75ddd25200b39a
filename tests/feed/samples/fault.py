"""The cars of the samples, and the faults that are planted in them, one in a car.

Dirt that is only a way of writing (money with signs, padded or "#N/A" cells, line breaks in quotes, old code pages) is
in the files too and is no fault.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any

from tests.feed.samples.sheet import Delimited, Sheet

from forecourt.demo import stock

__all__ = ["Shape", "fill"]

TODAY = date(2026, 11, 30)
CARS = 320


def cars() -> Iterator[dict[str, Any]]:
    """Give cars that any exporter could have, without their id."""
    found = 0
    for unit in stock.listings(TODAY):
        if "vehicle_type" not in unit and unit["body"] != "camper van" and found < CARS:
            found += 1
            yield unit


Shape = Callable[[dict[str, Any]], dict[str, Any]]

LATER = "a later row of the same vehicle counts"
EARLIER = "another row of the same vehicle has a later update, and counts"


def fill(sheet: Sheet, columns: Mapping[str, str], shape: Shape, price: Callable[[int], str]) -> tuple[int, list[Any]]:
    """Write every car, with a fault in one of them each that the exporter's columns can have.

    `columns` says what the exporter calls the fields that faults are planted in.
    """
    faults: list[tuple[str, int, str, str]] = []
    rows = 0

    def write(row: Mapping[str, Any]) -> int:
        nonlocal rows
        rows += 1
        return sheet.write(row)

    for index, car in enumerate(cars()):
        row = shape(car)
        fault = _plant(index, row, columns, car, price)
        if index == 97 and isinstance(sheet, Delimited):
            rows += 1
            faults.append(("refused", sheet.short(row), "", "has another number of cells than the header has columns"))
            continue
        line = write(row)
        if fault:
            faults.append((fault[0], line, fault[1], fault[2]))
        if index == 79:
            again = write(row)
            # Both have the same update or none: the last counts.
            faults.append(("duplicate", line, "", LATER))
            assert again > line or not isinstance(sheet, Delimited)
        if index == 83 and "updated_at" in columns:
            older = shape({**car, "updated_at": "2026-01-15T08:00:00Z"})
            faults.append(("duplicate", write(older), "", EARLIER))
    return rows, faults


def _plant(
    index: int, row: dict[str, Any], columns: Mapping[str, str], car: dict[str, Any], price: Callable[[int], str]
) -> tuple[str, str, str] | None:
    def has(name: str) -> bool:
        return name in columns

    def put(name: str, value: Any) -> None:
        row[columns[name]] = value

    if index == 11:
        put("vin", f" {car['vin'].lower()} ")
        return "repaired", "vin", "small letters, spaces or dashes were repaired"
    if index == 23 and (has("stock") or has("id")):
        put("vin", car["vin"][:-1])
        return "repaired", "vin", "does not have 17 characters and was left out"
    if index == 31 and (has("stock") or has("id")):
        put("vin", car["vin"][:10] + "O" + car["vin"][11:])
        return "repaired", "vin", "has characters that no VIN has (I, O, Q or signs) and was left out"
    if index == 37:
        digit = "1" if car["vin"][8] != "1" else "2"
        put("vin", car["vin"][:8] + digit + car["vin"][9:])
        return "warning", "vin", "the check digit is wrong, as on imports and old vehicles, or a character is"
    if index == 41:
        put("price", price(25_000).replace("25000", "25000.50").replace("25,000.00", "25,000.50"))
        if has("msrp"):
            put("msrp", "")
        return "repaired", "price", "cents were rounded to the nearest dollar"
    if index == 43:
        put("price", "31,500.00 CAD")
        return "refused", "price", "is a price in another currency than the feed's"
    if index == 47 and has("mileage"):
        put("mileage", "50000 km")
        return "repaired", "mileage", "kilometers were converted to miles"
    if index == 53 and has("msrp"):
        put("price", price(1_495))
        put("msrp", price(38_000))
        if has("year"):
            put("year", "2026")
        return "warning", "price", "is so far from the MSRP that one of them is probably something else"
    if index == 59:
        put("make", "")
        return "refused", "", "has no make or no model"
    if index == 61:
        for name in ("vin", "stock", "id"):
            if has(name):
                put(name, "N/A")
        return "refused", "", "has no id, no usable VIN and no stock number"
    if index == 67 and has("photos"):
        if isinstance(row[columns["photos"]], list):
            row[columns["photos"]] = [*row[columns["photos"]], "ftp://photos.example.com/1.jpg"]
        else:
            put("photos", "ftp://photos.example.com/1.jpg")
        return "repaired", "photos", "what is no http(s) address was left out"
    if index == 71:
        put("year", "20222")
        return "repaired", "year", "is not a model year"
    if index == 73 and has("inventory_date"):
        put("inventory_date", "next week")
        return "repaired", "inventory_date", "is not a date"
    if index == 87 and has("disposition"):
        put("disposition", "W")
        return "left_out", "disposition", "is wholesale or fleet, not for retail"
    if index == 89 and has("certified"):
        if has("is_new"):
            put("is_new", "Y")
        else:
            put("condition", "New")
        put("certified", "Yes")
        return "repaired", "condition", "a certified new vehicle is new"
    if index == 101 and has("status"):
        put("status", "Sold")
        return "left_out", "status", "is sold or no longer available"
    return None
