"""HomeNet, as CSV over SFTP and as XML."""

from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

from tests.feed.samples.fault import fill
from tests.feed.samples.sheet import Delimited, Lines, Sample

__all__ = ["homenet_csv", "homenet_xml"]


def homenet_csv() -> Sample:
    """HomeNet over SFTP: lower-case names, options by commas, a byte order mark, CRLF, line breaks in quotes."""
    names = [
        "vin",
        "stock",
        "type",
        "year",
        "make",
        "model",
        "body",
        "trim",
        "modelnumber",
        "doors",
        "exteriorcolor",
        "interiorcolor",
        "enginecylinders",
        "enginedisplacement",
        "transmission",
        "miles",
        "sellingprice",
        "msrp",
        "bookvalue",
        "invoice",
        "certified",
        "dateinstock",
        "description",
        "options",
        "drivetrain",
        "fuel_type",
        "citympg",
        "highwaympg",
        "internet_price",
        "misc_price1",
        "misc_price2",
        "misc_price3",
        "marketclass",
        "passengercapacity",
        "imagelist",
    ]

    def shape(car: dict[str, Any]) -> dict[str, Any]:
        price = car.get("list_price")
        return {
            "vin": car["vin"],
            "stock": car["stock"],
            "type": {"new": "New", "used": "Used", "cpo": "CPO"}[car["condition"]],
            "year": car["year"],
            "make": car["make"],
            "model": car["model"],
            "body": "4dr Car",
            "trim": car.get("trim", "#N/A"),
            "modelnumber": "M" + car["stock"],
            "doors": "4",
            "exteriorcolor": f" {car['exterior_color']} ",
            "interiorcolor": car.get("interior_color", "null"),
            "enginecylinders": "4",
            "enginedisplacement": "2.0L",
            "transmission": "Automatic w/OD",
            "miles": car.get("mileage", ""),
            "sellingprice": price or "Call",
            "msrp": car.get("msrp", "0"),
            "bookvalue": "12000",
            "invoice": "11000",
            "certified": "",
            "dateinstock": "11/02/26",
            "description": car["description"] + '\nOne line more, "quoted".',
            "options": ",".join(car["features"]),
            "drivetrain": "All Wheel Drive",
            "fuel_type": "Gasoline Fuel",
            "citympg": car.get("city_mpg", ""),
            "highwaympg": car.get("highway_mpg", "nan"),
            "internet_price": price or "0",
            "misc_price1": "1",
            "misc_price2": "",
            "misc_price3": "",
            "marketclass": "4-door Compact Passenger Car",
            "passengercapacity": "5",
            "imagelist": "|".join(car["photos"]),
        }

    sheet = Delimited(names, newline="\r\n", encoding="utf-8-sig")
    rows, faults = fill(
        sheet,
        {
            "vin": "vin",
            "stock": "stock",
            "price": "internet_price",
            "msrp": "msrp",
            "mileage": "miles",
            "make": "make",
            "photos": "imagelist",
            "year": "year",
            "inventory_date": "dateinstock",
            "condition": "type",
            "certified": "certified",
        },
        shape,
        str,
    )
    ignored = ["bookvalue", "invoice", "misc_price1", "misc_price2", "misc_price3"]
    return Sample("homenet.csv", sheet.data(), rows, faults, "delimited", ignored=ignored)


def homenet_xml() -> Sample:
    """HomeNet as XML: one `<vehicle>` a row, photos as elements of their own."""

    def render(row: Mapping[str, Any]) -> str:
        def content(value: Any) -> str:
            if isinstance(value, list):
                return "".join(f"<image>{escape(url)}</image>" for url in value)
            return escape(str(value))

        cells = "".join(f"    <{name}>{content(value)}</{name}>\n" for name, value in row.items())
        return f"  <vehicle>\n{cells}  </vehicle>\n"

    def shape(car: dict[str, Any]) -> dict[str, Any]:
        return {
            "vin": car["vin"],
            "stock": car["stock"],
            "type": {"new": "N", "used": "U", "cpo": "U"}[car["condition"]],
            "year": car["year"],
            "make": car["make"],
            "model": car["model"],
            "body": "Sport Utility",
            "trim": car.get("trim", ""),
            "exteriorcolor": car["exterior_color"],
            "transmission": "8-Speed Automatic",
            "miles": f"{car['mileage']:,}" if "mileage" in car else "-",
            "sellingprice": car.get("list_price", 0),
            "msrp": car.get("msrp", ""),
            "certified": "True" if car["condition"] == "cpo" else "",
            "dateinstock": "2026-11-02",
            "description": car["description"] + " Town & country.",
            "options": "|".join(car["features"]),
            "drivetrain": "4x4",
            "fuel_type": "Flex Fuel Vehicle",
            "imagelist": car["photos"],
        }

    sheet = Lines('<?xml version="1.0" encoding="utf-8"?>\n<inventory>\n', "</inventory>\n", render)
    rows, faults = fill(
        sheet,
        {
            "vin": "vin",
            "stock": "stock",
            "price": "sellingprice",
            "msrp": "msrp",
            "mileage": "miles",
            "make": "make",
            "photos": "imagelist",
            "year": "year",
            "inventory_date": "dateinstock",
            "condition": "type",
            "certified": "certified",
        },
        shape,
        str,
    )
    return Sample("homenet.xml", sheet.data(), rows, faults, "xml_rows")
