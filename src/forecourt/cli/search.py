"""`forecourt search`: a dealer's vehicles, by what the shopper wants."""

from typing import TYPE_CHECKING, Any

import click

from forecourt.cli._shop import COLUMNS, cell, clean, filtering, print_json, print_table, run, shopping

if TYPE_CHECKING:
    from forecourt.client import Client

_MOST_ROWS = 10_000


@click.command("search")
@shopping
@filtering
@click.option("--sort", metavar="FIELD", help="Sort by this field; with a minus for descending: -year.")
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="Vehicles a page.")
@click.option("--cursor", help="Go on from here (contract 3.1); the page before names it.")
@click.option("--skip", type=click.IntRange(0), help="Go on from here (contracts before 3.1).")
@click.option("--all", "everything", is_flag=True, help="Walk through every page.")
@click.option("--dealer", "dealer_id", metavar="ID", help="A seller of a network (contract 3.1).")
def command(
    url: str,
    as_json: bool,
    filters: dict[str, Any],
    sort: str | None,
    limit: int,
    cursor: str | None,
    skip: int | None,
    everything: bool,
    dealer_id: str | None,
    **options: Any,
) -> None:
    """Find a dealer's vehicles.

    Prices are what the buyer pays, the dealer's mandatory fees included.

    \b
    Example:
      forecourt search https://dealer.example.com --make Honda --price-max 30000 --sort price
    """
    if everything and (cursor or skip):
        raise click.UsageError("--all begins at the beginning; leave --cursor and --skip out")

    async def one(dealer: "Client") -> Any:
        return await dealer.search(filters, sort=sort, limit=limit, cursor=cursor, skip=skip, dealer_id=dealer_id)

    async def whole(dealer: "Client") -> Any:
        found = []
        async for vehicle in dealer.search_all(filters, sort=sort, limit=limit, dealer_id=dealer_id):
            found.append(vehicle)
            if len(found) == _MOST_ROWS:
                break
        return found

    found = run(whole if everything else one, url, as_json, **options)
    if as_json:
        print_json([vehicle.raw for vehicle in found] if everything else found.raw)
        return
    vehicles = found if everything else found.vehicles
    if not vehicles:
        click.echo("no vehicle matches")
        return
    rows = [[cell(vehicle, column) for column in COLUMNS] for vehicle in vehicles]
    print_table(COLUMNS, rows, right=("year", "price", "mileage"))
    if everything:
        click.echo(f"{len(vehicles):,} vehicles", err=True)
        return
    more = ""
    if found.next_cursor:
        more = f"; go on with --cursor {clean(found.next_cursor)}"
    elif "skip" in found.raw and found.total is not None and (skip or 0) + len(vehicles) < found.total:
        more = f"; go on with --skip {(skip or 0) + len(vehicles)}"
    click.echo(f"{len(vehicles):,} of {found.total:,} vehicles{more}" if found.total is not None else "", err=True)
