"""Dealer.com."""

from datetime import datetime
from typing import Any

from tests.feed.samples.fault import fill
from tests.feed.samples.sheet import Delimited, Sample

__all__ = ["dealer_com"]


def dealer_com() -> Sample:
    """Dealer.com: money in quotes with signs, US times, statuses, unit in a column of its own."""
    names = [
        "VIN",
        "StockNumber",
        "Year",
        "Make",
        "Model",
        "Trim",
        "NewUsed",
        "VDPUrl",
        "LastUpdated",
        "Price",
        "Status",
        "Mileage",
        "OdometerUnit",
        "StockedDate",
        "FirstListedDate",
        "CarfaxUrl",
        "AutoCheckUrl",
        "CertificationType",
    ]

    def shape(car: dict[str, Any]) -> dict[str, Any]:
        return {
            "VIN": car["vin"],
            "StockNumber": car["stock"],
            "Year": f"{car['year']}.0",
            "Make": car["make"],
            "Model": car["model"],
            "Trim": car.get("trim", ""),
            "NewUsed": "N" if car["condition"] == "new" else "U",
            "VDPUrl": car["vdp_url"],
            "LastUpdated": _us(car["updated_at"]),
            "Price": _dollars(car["list_price"]) if "list_price" in car else "N/A",
            "Status": "In Transit" if car["status"] == "intransit" else "In Stock",
            "Mileage": car.get("mileage", ""),
            "OdometerUnit": "MI",
            "StockedDate": "11/2/2026",
            "FirstListedDate": "11/3/2026",
            "CarfaxUrl": "https://history.example.com/" + car["vin"],
            "AutoCheckUrl": "",
            "CertificationType": "Manufacturer Certified" if car["condition"] == "cpo" else "",
        }

    sheet = Delimited(names, newline="\r\n")
    rows, faults = fill(
        sheet,
        {
            "vin": "VIN",
            "stock": "StockNumber",
            "price": "Price",
            "mileage": "Mileage",
            "make": "Make",
            "year": "Year",
            "inventory_date": "StockedDate",
            "condition": "NewUsed",
            "certified": "CertificationType",
            "status": "Status",
            "updated_at": "LastUpdated",
        },
        shape,
        _dollars,
    )
    return Sample("dealer-com.csv", sheet.data(), rows, faults, "delimited")


def _us(moment: str) -> str:
    when = datetime.fromisoformat(moment)
    return f"{when.month}/{when.day}/{when.year} {when.hour % 12 or 12}:{when:%M:%S} {'PM' if when.hour > 11 else 'AM'}"


def _dollars(amount: int) -> str:
    return f"${amount:,}.00"
