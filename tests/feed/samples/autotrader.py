"""AutoTrader exports."""

from typing import Any

from tests.feed.samples.fault import fill
from tests.feed.samples.sheet import Delimited, Sample

__all__ = ["autotrader"]

USED = "no column says whether vehicles are new or used; they are listed as used"


def autotrader() -> Sample:
    """AutoTrader: nothing says what is new, "Tranmission" is spelt so, semicolons, in ISO-8859-15."""
    names = [
        "DealerId",
        "StockNumber",
        "Year",
        "Make",
        "Model",
        "Trim",
        "VIN",
        "Mileage",
        "Price",
        "ExteriorColor",
        "InteriorColor",
        "Tranmission",
        "BodyType",
        "EngineType",
        "DriveType",
        "FuelType",
        "Options",
        "ImageURL",
        "VideoURL",
    ]

    def shape(car: dict[str, Any]) -> dict[str, Any]:
        return {
            "DealerId": "889",
            "StockNumber": car["stock"],
            "Year": car["year"],
            "Make": car["make"],
            "Model": car["model"],
            "Trim": car.get("trim", ""),
            "VIN": car["vin"],
            "Mileage": car.get("mileage", ""),
            "Price": f"{car['list_price']}.0" if "list_price" in car else "",
            "ExteriorColor": "Rouge cœur",
            "InteriorColor": car.get("interior_color", ""),
            "Tranmission": "Manual",
            "BodyType": "Crew Cab Pickup",
            "EngineType": car["engine"],
            "DriveType": "Rear Wheel Drive",
            "FuelType": "Diesel",
            "Options": ", ".join(car["features"]),
            "ImageURL": ";".join(car["photos"]),
            "VideoURL": "",
        }

    sheet = Delimited(names, delimiter=";", encoding="iso-8859-15")
    rows, faults = fill(
        sheet,
        {
            "vin": "VIN",
            "stock": "StockNumber",
            "price": "Price",
            "mileage": "Mileage",
            "make": "Make",
            "photos": "ImageURL",
            "year": "Year",
        },
        shape,
        str,
    )
    return Sample("autotrader.csv", sheet.data(), rows, faults, "delimited", warnings=[USED])
