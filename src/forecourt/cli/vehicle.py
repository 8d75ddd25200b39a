"""`forecourt vehicle`: one listing in full."""

from typing import Any

import click

from forecourt.cli._shop import dollars, miles, print_json, print_pairs, run, shopping

_MONEY = ("price", "list_price", "msrp")
_MILES = ("mileage", "electric_range_mi")
_FIRST = ("price", "mileage", "condition", "status", "vin", "stock", "vehicle_id", "rooftop")


@click.command("vehicle")
@shopping
@click.argument("vin", required=False)
@click.option("--stock", help="Name it by its stock number instead.")
@click.option("--id", "vehicle_id", help="Name it by its vehicle_id instead.")
@click.option("--dealer", "dealer_id", metavar="ID", help="A seller of a network (contract 3.1).")
def command(
    url: str,
    as_json: bool,
    vin: str | None,
    stock: str | None,
    vehicle_id: str | None,
    dealer_id: str | None,
    **options: Any,
) -> None:
    """Show one vehicle.

    One that is gone is told apart from one that never was here.

    \b
    Example:
      forecourt vehicle https://dealer.example.com 1G1FY6SW1NA000493
    """
    if not (vin or stock or vehicle_id):
        raise click.UsageError("name the vehicle: a VIN, --stock or --id")
    found = run(
        lambda dealer: dealer.vehicle(vin, stock=stock, vehicle_id=vehicle_id, dealer_id=dealer_id),
        url,
        as_json,
        **options,
    )
    if as_json:
        print_json(found.raw)
        return
    names = [*_FIRST, *(name for name in found.raw if name not in (*_FIRST, "year", "make", "model", "trim"))]
    print_pairs([("vehicle", found.title), *((name, _shown(name, found.raw.get(name))) for name in names)])


def _shown(name: str, value: Any) -> str:
    if name in _MONEY:
        return dollars(value)
    if name in _MILES:
        return miles(value)
    if name == "fees" and isinstance(value, list):
        fees = [entry for entry in value if isinstance(entry, dict)]
        return ", ".join(f"{fee.get('name')} {dollars(fee.get('amount'))}" for fee in fees)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}: {entry}" for key, entry in value.items())
    return "" if value is None else str(value)
