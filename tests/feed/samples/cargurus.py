"""CarGurus."""

from typing import Any

from tests.feed.samples.fault import fill
from tests.feed.samples.sheet import Delimited, Sample

__all__ = ["cargurus"]


def cargurus() -> Sample:
    """CarGurus: Is New and Certified as Y/N, a main image and others, staff's addresses; tabs, UTF-16."""
    names = [
        "VIN",
        "Stock Number",
        "Year",
        "Make",
        "Model",
        "Trim",
        "Price",
        "MSRP",
        "Mileage",
        "Certified",
        "Is New",
        "Transmission Type",
        "Installed Options",
        "Main Image",
        "Image URLs",
        "Dealer CRM Email",
        "Exterior Color",
    ]

    def shape(car: dict[str, Any]) -> dict[str, Any]:
        return {
            "VIN": car["vin"],
            "Stock Number": car["stock"],
            "Year": car["year"],
            "Make": car["make"],
            "Model": car["model"],
            "Trim": car.get("trim", ""),
            "Price": car.get("list_price", "Contact us"),
            "MSRP": car.get("msrp", "null"),
            "Mileage": car.get("mileage", ""),
            "Certified": "Y" if car["condition"] == "cpo" else "N",
            "Is New": "Y" if car["condition"] == "new" else "N",
            "Transmission Type": "CVT",
            "Installed Options": ", ".join(car["features"]),
            "Main Image": car["photos"][0],
            "Image URLs": ",".join(car["photos"]),
            "Dealer CRM Email": "leads@dealer.example.com",
            "Exterior Color": car["exterior_color"],
        }

    sheet = Delimited(names, delimiter="\t", encoding="utf-16")
    rows, faults = fill(
        sheet,
        {
            "vin": "VIN",
            "stock": "Stock Number",
            "price": "Price",
            "msrp": "MSRP",
            "mileage": "Mileage",
            "make": "Make",
            "photos": "Image URLs",
            "year": "Year",
            "is_new": "Is New",
            "certified": "Certified",
        },
        shape,
        str,
    )
    return Sample("cargurus.tsv", sheet.data(), rows, faults, "delimited", ignored=["Dealer CRM Email"])
