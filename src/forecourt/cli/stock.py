"""`forecourt stock`: what is in stock, as it was imported."""

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from forecourt.cli._store import in_store

if TYPE_CHECKING:
    from forecourt.store import Store

_COLUMNS: Final = ("id", "year", "make", "model", "trim", "condition", "price", "mileage", "rooftop")


@click.command("stock")
@click.option("--dealer", metavar="ID", help="Only this seller's listings.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="How many to show.")
@click.option("--config", type=click.Path(dir_okay=False), envvar="FORECOURT_CONFIG", help="Configuration file.")
@click.option("--data", type=click.Path(file_okay=False), help="Folder of the database (default ./forecourt-data).")
@click.option("--json", "as_json", is_flag=True, help="Print the listings as one JSON array.")
def command(dealer: str | None, limit: int, config: str | None, data: str | None, as_json: bool) -> None:
    """Show what is in stock, by listing id.

    \b
    Example:
      forecourt stock --config forecourt.toml --limit 20
    """

    async def read(store: "Store") -> list[dict[str, Any]]:
        return [json.loads(listing.body) for listing in await store.stock(dealer, limit)]

    named = () if dealer is None else (dealer,)
    listings = in_store(config, data, "the stock cannot be read", read, ("--dealer", named))
    if as_json:
        click.echo(json.dumps(listings, ensure_ascii=False))
    elif not listings:
        click.echo("nothing is in stock")
    else:
        _show([[_cell(listing, column) for column in _COLUMNS] for listing in listings])


def _cell(listing: dict[str, Any], column: str) -> str:
    name = "vehicle_id" if column == "id" else column
    value = listing.get(name, "")
    if column in ("price", "mileage") and isinstance(value, int | float):
        return f"{value:,}"
    # Texts come from a feed: nothing in them may steer a terminal.
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in str(value))


def _show(rows: Sequence[Sequence[str]]) -> None:
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table()
        for column in _COLUMNS:
            table.add_column(column, justify="right" if column in ("year", "price", "mileage") else "left")
        for row in rows:
            table.add_row(*map(Text, row))
        Console().print(table)
        return
    # One line a listing with tabs between, which other programs read without counting spaces.
    click.echo("\n".join("\t".join(row) for row in [_COLUMNS, *rows]))
