"""vAuto."""

from typing import Any

from tests.feed.samples.fault import fill
from tests.feed.samples.sheet import Delimited, Sample

__all__ = ["vauto"]


def vauto() -> Sample:
    """vAuto: a file per dealer, N/U, features by bars, photos by commas, dispositions; in Windows-1252."""
    names = [
        "DealerId",
        "Stock #",
        "VIN",
        "New/Used",
        "Year",
        "Make",
        "Model",
        "Model Code",
        "Body",
        "Transmission",
        "Series",
        "Series Detail",
        "Door Count",
        "Odometer",
        "Engine Cylinder Ct",
        "Engine Displacement",
        "Drivetrain Desc",
        "Colour",
        "Interior Color",
        "Price",
        "MSRP",
        "Inventory Date",
        "Certified",
        "Description",
        "Features",
        "City MPG",
        "Highway MPG",
        "Photo Url List",
        "Dealer Name",
        "Engine",
        "Fuel",
        "Age",
        "Option Codes",
        "Disposition",
    ]

    def shape(car: dict[str, Any]) -> dict[str, Any]:
        return {
            "DealerId": "MP1234",
            "Stock #": car["stock"],
            "VIN": car["vin"],
            "New/Used": "N" if car["condition"] == "new" else "U",
            "Year": car["year"],
            "Make": car["make"],
            "Model": car["model"],
            "Model Code": "ABC1",
            "Body": "4D Sport Utility",
            "Transmission": "8-Speed Automatic with Overdrive",
            "Series": car.get("trim", "-"),
            "Series Detail": "Décor package",
            "Door Count": "4",
            "Odometer": car.get("mileage", "#N/A"),
            "Engine Cylinder Ct": "4",
            "Engine Displacement": "2.5",
            "Drivetrain Desc": "AWD",
            "Colour": car["exterior_color"] + " Métallisé",
            "Interior Color": car.get("interior_color", ""),
            "Price": car.get("list_price", ""),
            "MSRP": car.get("msrp", ""),
            "Inventory Date": "45950",
            "Certified": "Yes" if car["condition"] == "cpo" else "No",
            "Description": car["description"] + " “Très bien”",
            "Features": "|".join(car["features"]),
            "City MPG": car.get("city_mpg", ""),
            "Highway MPG": car.get("highway_mpg", ""),
            "Photo Url List": ",".join(car["photos"]),
            "Dealer Name": car["rooftop"],
            "Engine": car["engine"],
            "Fuel": "Gasoline",
            "Age": "28",
            "Option Codes": "A1,B2",
            "Disposition": "R",
        }

    sheet = Delimited(names, encoding="cp1252")
    rows, faults = fill(
        sheet,
        {
            "vin": "VIN",
            "stock": "Stock #",
            "price": "Price",
            "msrp": "MSRP",
            "mileage": "Odometer",
            "make": "Make",
            "photos": "Photo Url List",
            "year": "Year",
            "inventory_date": "Inventory Date",
            "condition": "New/Used",
            "certified": "Certified",
            "disposition": "Disposition",
        },
        shape,
        str,
    )
    return Sample("vauto.csv", sheet.data(), rows, faults, "delimited", ignored=["Age"])
