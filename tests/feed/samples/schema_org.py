"""schema.org vehicles, in a page and in a file."""

import html
import json
from collections.abc import Mapping
from typing import Any

from tests.feed.samples.fault import fill
from tests.feed.samples.sheet import Lines, Sample

__all__ = ["schema_org_graph", "schema_org_page"]


def _thing(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "@context": "https://schema.org",
        "@type": "Car",
        "name": row["name"],
        "vehicleIdentificationNumber": row["vin"],
        "sku": row["stock"],
        "brand": {"@type": "Brand", "name": row["make"]},
        "model": row["model"],
        "vehicleModelDate": row["year"],
        "itemCondition": row["condition"],
        "image": row["photos"],
        "url": row["url"],
        "mileageFromOdometer": {"@type": "QuantitativeValue", "value": row["miles"], "unitCode": "SMI"},
        "vehicleTransmission": "Automatic",
        "driveWheelConfiguration": "https://schema.org/AllWheelDriveConfiguration",
        "vehicleEngine": {"@type": "EngineSpecification", "fuelType": "Gasoline"},
        "color": row["color"],
        "offers": {
            "@type": "Offer",
            "price": row["price"],
            "priceCurrency": "USD",
            "availability": row["availability"],
        },
    }


def _thing_shape(car: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": f"{car['year']} {car['make']} {car['model']}",
        "vin": car["vin"],
        "stock": car["stock"],
        "make": car["make"],
        "model": car["model"],
        "year": str(car["year"]),
        "photos": car["photos"],
        "url": car["vdp_url"],
        "condition": "https://schema.org/" + ("NewCondition" if car["condition"] == "new" else "UsedCondition"),
        "miles": car.get("mileage"),
        "color": car["exterior_color"],
        "price": car.get("list_price"),
        "availability": "https://schema.org/InStock",
    }


_THING_COLUMNS = {
    "vin": "vin",
    "stock": "stock",
    "price": "price",
    "mileage": "miles",
    "make": "make",
    "photos": "photos",
    "year": "year",
    "status": "availability",
}


def schema_org_page() -> Sample:
    """A page with one script a vehicle, and others that are no vehicles."""

    def render(row: Mapping[str, Any]) -> str:
        script = json.dumps(_thing(row), indent=1)
        return f'<h2>{html.escape(row["name"])}</h2><script type="application/ld+json">\n{script}\n</script>\n'

    dealer = '<script type="application/ld+json">{"@type": "AutoDealer", "name": "Demo", "url": "https://x.example"}</script>\n'
    sheet = Lines(
        f"<!DOCTYPE html>\n<html><head><title>Cars</title>\n{dealer}</head><body>\n", "</body></html>\n", render
    )
    rows, faults = fill(sheet, _THING_COLUMNS, _thing_shape, str)
    return Sample("schema-org.html", sheet.data(), rows, faults, "json_ld")


def schema_org_graph() -> Sample:
    """A JSON-LD file with a graph, in which a dealer stands among the vehicles."""

    def render(row: Mapping[str, Any]) -> str:
        return json.dumps(_thing(row), indent=1)

    head = '{"@context": "https://schema.org",\n "@graph": [\n{"@type": "AutoDealer", "name": "Demo"},\n'
    sheet = Lines(head, "\n]}\n", render, between=",\n")
    rows, faults = fill(sheet, _THING_COLUMNS, _thing_shape, str)
    return Sample("schema-org.jsonld", sheet.data(), rows, faults, "json_rows")
