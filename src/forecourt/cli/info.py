"""`forecourt info`: who a dealer is."""

from typing import Any

import click

from forecourt.cli._shop import dollars, print_json, print_pairs, run, shopping


@click.command("info")
@shopping
@click.option("--dealer", "dealer_id", metavar="ID", help="A seller of a network (contract 3.1).")
def command(url: str, as_json: bool, dealer_id: str | None, **options: Any) -> None:
    """Show who a dealer is.

    Its profile, its rooftops with their fees, and what can be searched by.

    \b
    Example:
      forecourt info https://dealer.example.com
    """
    found = run(lambda dealer: _ask(dealer, dealer_id), url, as_json, **options)
    information, contract, binding, endpoint = found
    if as_json:
        print_json(information.raw)
        return
    print_pairs(
        [
            ("dealer", information.name or ""),
            ("id", information.dealer_id or ""),
            ("", information.welcome_message or ""),
            ("speaks", f"AAP {contract} over {binding} at {endpoint}"),
        ]
    )
    for rooftop in information.rooftops:
        phones = [str(phone.raw.get("value", "")) for phone in rooftop.phones]
        fees = ", ".join(f"{fee.name} {dollars(fee.amount)}" for fee in rooftop.fees)
        click.echo()
        print_pairs(
            [
                ("rooftop", rooftop.name or ""),
                ("address", ", ".join(str(part) for part in _address(rooftop.address) if part)),
                ("phones", ", ".join(phones)),
                ("website", rooftop.website or ""),
                ("time zone", rooftop.timezone or ""),
                ("fees", fees),
            ]
        )
    filters = information.search_capabilities.get("filters")
    if isinstance(filters, list):
        click.echo()
        print_pairs({"filters": ", ".join(str(name) for name in filters)})


async def _ask(dealer: Any, dealer_id: str | None) -> tuple[Any, str, str, str]:
    information = await dealer.information(dealer_id=dealer_id)
    return information, dealer.contract, dealer.binding, dealer.endpoint


def _address(address: Any) -> list[Any]:
    names = ("address_line_1", "address_line_2", "city", "state", "zip", "country")
    return [address.get(name) for name in names]
