"""`forecourt stock`: what is in stock, as it was imported."""

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from forecourt.server import Config

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
    import asyncio

    from forecourt.cli._mistake import wrong_usage
    from forecourt.server import ConfigError, load
    from forecourt.store import StoreError

    try:
        settings = load(config, data=data)
        known = [each.id for each in settings.all_dealers]
        if dealer is not None and known and dealer not in known:
            raise ConfigError(f"--dealer: there is no seller {dealer!r}")
        listings = asyncio.run(_read(settings, dealer, limit))
    except ConfigError as error:
        raise wrong_usage(error, config) from None
    except StoreError as error:
        raise click.ClickException(f"the stock cannot be read: {error}") from None
    if as_json:
        click.echo(json.dumps(listings, ensure_ascii=False))
    elif not listings:
        click.echo("nothing is in stock")
    else:
        _show([[_cell(listing, column) for column in _COLUMNS] for listing in listings])


async def _read(settings: "Config", dealer: str | None, limit: int) -> list[dict[str, Any]]:
    from forecourt.server import ConfigError
    from forecourt.store import open_store

    try:
        store = open_store(settings.store_address)
    except ValueError as error:
        raise ConfigError(str(error), "store") from error
    await store.open()
    try:
        return [json.loads(listing.body) for listing in await store.stock(dealer, limit)]
    finally:
        await store.close()


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
