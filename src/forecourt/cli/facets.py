"""`forecourt facets`: what a dealer's stock is made of."""

from typing import Any

import click

from forecourt.cli._shop import dollars, filtering, miles, print_json, print_table, run, shopping

_SHOWN = {"price_range": dollars, "mileage_range": miles, "electric_range_mi_range": miles}


@click.command("facets")
@shopping
@filtering
@click.option("--dealer", "dealer_id", metavar="ID", help="A seller of a network (contract 3.1).")
@click.option("--top", type=click.IntRange(1, 10_000), default=10, show_default=True, help="Values shown a facet.")
def command(url: str, as_json: bool, filters: dict[str, Any], dealer_id: str | None, top: int, **options: Any) -> None:
    """Count a dealer's stock.

    By make, model, price and more; filters as for search.

    \b
    Example:
      forecourt facets https://dealer.example.com --fuel bev
    """
    found = run(lambda dealer: dealer.facets(filters, dealer_id=dealer_id), url, as_json, **options)
    if as_json:
        print_json(found.raw)
        return
    rows = []
    for name, counts in found.counts().items():
        rows += [
            [name, str(entry.value), f"{entry.count:,}" if entry.count is not None else ""] for entry in counts[:top]
        ]
        if len(counts) > top:
            rows.append([name, f"… {len(counts) - top} more", ""])
    for name, span in found.ranges().items():
        show = _SHOWN.get(name, str)
        rows.append([name, f"{show(span.min)} to {show(span.max)}", ""])
    if rows:
        print_table(("facet", "value", "count"), rows, right=("count",))
    else:
        click.echo("nothing matches")
