"""Google vehicle listings."""

import gzip
from typing import Any

from tests.feed.samples.fault import fill
from tests.feed.samples.sheet import Delimited, Sample

__all__ = ["google"]


def google() -> Sample:
    """Google vehicle listings: units and currencies in the cells, several stores, gzipped."""
    names = [
        "store_code",
        "id",
        "VIN",
        "year",
        "make",
        "model",
        "trim",
        "exterior_color",
        "interior_color",
        "mileage",
        "condition",
        "certified",
        "price",
        "dealership_name",
        "dealership_address",
        "link",
        "image_link",
        "additional_image_link",
        "vehicle_option",
        "legal_disclaimer",
    ]

    def shape(car: dict[str, Any]) -> dict[str, Any]:
        return {
            "store_code": "SF" if "San Francisco" in car["rooftop"] else "DC",
            "id": car["stock"],
            "VIN": car["vin"],
            "year": car["year"],
            "make": car["make"],
            "model": car["model"],
            "trim": car.get("trim", ""),
            "exterior_color": car["exterior_color"],
            "interior_color": car.get("interior_color", ""),
            "mileage": f"{car['mileage']:,} miles" if "mileage" in car else "",
            "condition": {"new": "n", "used": "used", "cpo": "u"}[car["condition"]],
            "certified": "1" if car["condition"] == "cpo" else "0",
            "price": f"{car['list_price']:,}.00 USD" if "list_price" in car else "",
            "dealership_name": car["rooftop"],
            "dealership_address": "1 Main Street, Springfield",
            "link": car["vdp_url"],
            "image_link": car["photos"][0],
            "additional_image_link": ",".join(car["photos"][1:]),
            "vehicle_option": ",".join(car["features"]),
            "legal_disclaimer": "Plus tax, title and license.",
        }

    sheet = Delimited(names)
    rows, faults = fill(
        sheet,
        {
            "vin": "VIN",
            "id": "id",
            "price": "price",
            "mileage": "mileage",
            "make": "make",
            "photos": "additional_image_link",
            "year": "year",
            "condition": "condition",
            "certified": "certified",
        },
        shape,
        lambda amount: f"{amount:,}.00 USD",
    )
    data = gzip.compress(sheet.data(), mtime=0)
    return Sample("google.csv.gz", data, rows, faults, "delimited", ignored=["dealership_address"])
