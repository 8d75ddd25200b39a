"""The Meta catalog, as CSV and as XML."""

import json
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

from tests.feed.samples.fault import fill
from tests.feed.samples.sheet import Delimited, Lines, Sample

__all__ = ["meta_csv", "meta_xml"]


def meta_csv() -> Sample:
    """The Meta catalog: JSON-path columns and JSON in cells, mixed."""
    names = [
        "vehicle_id",
        "title",
        "description",
        "url",
        "make",
        "model",
        "year",
        "mileage.value",
        "mileage.unit",
        "image[0].url",
        "image[1].url",
        "image[0].tag[0]",
        "transmission",
        "fuel_type",
        "body_style",
        "drivetrain",
        "vin",
        "price",
        "state_of_vehicle",
        "exterior_color",
        "address",
        "availability",
    ]

    def shape(car: dict[str, Any]) -> dict[str, Any]:
        second = json.dumps([{"url": url, "tag": ["rear"]} for url in car["photos"][1:3]])
        return {
            "vehicle_id": car["vehicle_id"],
            "title": f"{car['year']} {car['make']} {car['model']}",
            "description": car["description"],
            "url": car["vdp_url"],
            "make": car["make"],
            "model": car["model"],
            "year": car["year"],
            "mileage.value": car.get("mileage", ""),
            "mileage.unit": "MI",
            "image[0].url": car["photos"][0],
            "image[1].url": second,
            "image[0].tag[0]": "front",
            "transmission": "Automatic",
            "fuel_type": "GASOLINE",
            "body_style": "SUV",
            "drivetrain": "FWD",
            "vin": car["vin"],
            "price": f"{car['list_price']} USD" if "list_price" in car else "",
            "state_of_vehicle": {"new": "NEW", "used": "USED", "cpo": "CPO"}[car["condition"]],
            "exterior_color": car["exterior_color"],
            "address": '{"addr1": "1 Main Street", "city": "Springfield"}',
            "availability": "AVAILABLE",
        }

    sheet = Delimited(names)
    rows, faults = fill(
        sheet,
        {
            "vin": "vin",
            "id": "vehicle_id",
            "price": "price",
            "mileage": "mileage.value",
            "make": "make",
            "photos": "image[0].url",
            "year": "year",
            "status": "availability",
        },
        shape,
        lambda amount: f"{amount} USD",
    )
    return Sample("meta.csv", sheet.data(), rows, faults, "delimited", ignored=["image[0].tag[0]", "address"])


def meta_xml() -> Sample:
    """The Meta catalog as XML: `<listing>` with nested elements."""

    def render(row: Mapping[str, Any]) -> str:
        row = dict(row)
        photos = row.pop("photos")
        urls = photos if isinstance(photos, list) else [photos]
        images = "".join(f"<image><url>{escape(url)}</url><tag>x</tag></image>" for url in urls)
        mileage = f"<mileage><value>{row.pop('miles')}</value><unit>MI</unit></mileage>"
        cells = "".join([f"<{name}>{escape(str(value))}</{name}>" for name, value in row.items()])
        return f"<listing>{cells}{mileage}\n{images}</listing>\n"

    def shape(car: dict[str, Any]) -> dict[str, Any]:
        return {
            "vehicle_id": car["vehicle_id"],
            "vin": car["vin"],
            "make": car["make"],
            "model": car["model"],
            "year": car["year"],
            "price": f"{car['list_price']} USD" if "list_price" in car else "",
            "miles": car.get("mileage", ""),
            "photos": car["photos"],
            "state_of_vehicle": "NEW" if car["condition"] == "new" else "USED",
            "availability": "available",
            "url": car["vdp_url"],
        }

    sheet = Lines('<?xml version="1.0"?>\n<listings>\n', "</listings>\n", render)
    rows, faults = fill(
        sheet,
        {
            "vin": "vin",
            "id": "vehicle_id",
            "price": "price",
            "mileage": "miles",
            "make": "make",
            "photos": "photos",
            "year": "year",
            "status": "availability",
        },
        shape,
        lambda amount: f"{amount} USD",
    )
    return Sample("meta.xml", sheet.data(), rows, faults, "xml_rows", ignored=["image.tag"])
