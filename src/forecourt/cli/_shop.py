"""What the buyer's commands share: their options, one place where failures are told, and tables."""

import functools
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import click

from forecourt.cli._header import credentials

if TYPE_CHECKING:
    from forecourt.client import Client, Vehicle

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_LISTS: Final = {
    "make": "make, for example Honda",
    "model": "model",
    "trim": "trim",
    "condition": "new, used or cpo",
    "body": "body, for example suv",
    "fuel": "fuel, for example bev",
    "driveline": "driveline, for example awd",
    "transmission": "transmission",
    "exterior_color": "colour outside",
}
_BOUNDS: Final = {
    "year_min": "from this year",
    "year_max": "up to this year",
    "price_min": "from this price (what the buyer pays, in dollars)",
    "price_max": "up to this price",
    "mileage_max": "up to so many miles",
}
COLUMNS: Final = ("vin", "year", "make", "model", "trim", "condition", "price", "mileage", "status", "rooftop")


def shopping(command: F) -> F:
    """Add what every buyer's command takes."""
    options = [
        click.argument("url"),
        click.option("--contract", help="Insist on this AAP version, for example 1.1."),
        click.option("--binding", type=click.Choice(["a2a", "mcp", "pap"]), help="Insist on this binding."),
        click.option(
            "--timeout", type=click.FloatRange(0.1, 600), default=30.0, show_default=True, help="Seconds for a try."
        ),
        click.option(
            "--header",
            "headers",
            multiple=True,
            metavar="NAME:VALUE",
            help="Credentials, or @FILE with them, one a line; may be repeated.",
        ),
        click.option(
            "--identity", type=click.Path(dir_okay=False), metavar="FILE", help="Shop over PAP as this personal agent."
        ),
        click.option("--json", "as_json", is_flag=True, help="Print the answer's data as JSON."),
    ]
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), command)


def filtering(command: F) -> F:
    """Add the filters of a search; their values arrive as `filters`."""

    @functools.wraps(command)
    def gathering(**values: Any) -> Any:
        return command(filters=_filters(values), **values)

    added: Any = gathering
    named = click.option("--filter", "others", multiple=True, metavar="NAME=VALUE", help="Any other filter.")
    added = named(added)
    added = click.option("--feature", multiple=True, metavar="CODE", help="A feature code to have.")(added)
    added = click.option("--query", help="Words that must all be found.")(added)
    for name, text in reversed(_BOUNDS.items()):
        added = click.option(f"--{name.replace('_', '-')}", type=int, help=f"{text[:1].upper()}{text[1:]}.")(added)
    for name, text in reversed(_LISTS.items()):
        added = click.option(f"--{name.replace('_', '-')}", multiple=True, help=f"A {text}; repeatable.")(added)
    found: F = added
    return found


def _filters(values: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {name: list(chosen) for name in _LISTS if (chosen := values.pop(name))}
    found |= {name: value for name in _BOUNDS if (value := values.pop(name)) is not None}
    if query := values.pop("query"):
        found["query"] = query
    if features := values.pop("feature"):
        found["features_all"] = list(features)
    for other in values.pop("others"):
        name, equals, text = other.partition("=")
        if not equals or not name:
            raise click.UsageError("--filter is NAME=VALUE")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def run(
    work: "Callable[[Client], Awaitable[T]]", url: str, as_json: bool, identity: str | None = None, **options: Any
) -> T:
    """Connect, do the work, close; a failure is told and ends the command with status 1 (wrong usage: 2)."""
    import asyncio

    from forecourt.a2a import A2AError
    from forecourt.client import DealerError, PendingError, TransportError, connect
    from forecourt.client.address import http_address
    from forecourt.errors import AAPError

    try:
        http_address(url)
        chosen = connecting(**options)
        if identity is not None:
            url, more = _identify(identity, http_address(url), options["binding"], options["headers"])
            chosen |= more
        elif chosen["binding"] == "pap":
            raise click.ClickException("PAP needs an identity: give --identity FILE")
        connection = connect(url, **chosen)
    except (DealerError, ValueError) as error:
        raise click.UsageError(str(error)) from None

    async def whole() -> T:
        async with connection as dealer:
            return await work(dealer)

    try:
        return asyncio.run(whole())
    except AAPError as error:
        _refused(error, as_json)
    except A2AError as error:
        raise click.ClickException(clean(f"the dealer agent refuses the request: {error}")) from None
    except TransportError as error:
        if error.status == 401 and chosen["binding"] != "pap":
            raise click.ClickException(f"{clean(str(error))}; give right ones with --header") from None
        raise click.ClickException(clean(str(error))) from None
    except (PendingError, OSError) as error:
        raise click.ClickException(clean(str(error))) from None
    except (ValueError, TypeError) as error:
        raise click.UsageError(clean(str(error))) from None


def _identify(path: str, url: str, binding: str | None, headers: Sequence[str]) -> tuple[str, dict[str, Any]]:
    from forecourt.cli._identity import identified

    if binding not in (None, "pap"):
        raise click.UsageError(f"--identity is for PAP; leave --binding {binding} out")
    if headers:
        raise click.UsageError("--identity takes the place of --header: PAP has credentials of its own")
    return identified(path, url)


def connecting(
    contract: str | None, binding: str | None, timeout: float, headers: Sequence[str], agent: str = "forecourt"
) -> dict[str, Any]:
    """Return the options of `connect` from those of the command line."""
    return {
        "contract": contract,
        "binding": binding,
        "timeout": timeout,
        "credentials": credentials(headers) or None,
        "agent": agent,
    }


def _refused(error: Any, as_json: bool) -> NoReturn:
    """Tell a skill's failure: as the `aap.error` for machines, in lines for people."""
    if as_json:
        click.echo(json.dumps(error.received or error.to_payload(), ensure_ascii=False))
    else:
        click.echo(clean(f"{error.code}: {error.message}"), err=True)
        for problem in error.problems if len(error.problems) > 1 else ():
            click.echo(clean(f"  {problem.location or '/'}: {problem.error}"), err=True)
        if error.hint:
            click.echo(clean(error.hint), err=True)
    raise click.exceptions.Exit(1)


def clean(text: str) -> str:
    """Return a text in which nothing steers a terminal: it came from a stranger."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text)


def dollars(value: Any) -> str:
    """Return an amount as people read it, "" for what is none."""
    return f"${value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else ""


def miles(value: Any) -> str:
    """Return a distance as people read it, "" for what is none."""
    return f"{value:,} mi" if isinstance(value, int | float) and not isinstance(value, bool) else ""


def cell(vehicle: "Vehicle", column: str) -> str:
    """Return one cell of a table of vehicles."""
    value = getattr(vehicle, column)
    if column == "price":
        return dollars(value)
    if column == "mileage":
        return miles(value)
    return "" if value is None else str(value)


def print_json(value: Any) -> None:
    """Print a value as JSON, on several lines on a terminal."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Print a table: drawn on a terminal, lines with tabs between in a pipe."""
    rows = [[clean(text) for text in row] for row in rows]
    if not sys.stdout.isatty():
        click.echo("\n".join("\t".join(row) for row in [columns, *rows]))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def print_pairs(pairs: Mapping[str, str] | Sequence[tuple[str, str]]) -> None:
    """Print what is known of one thing: a name and its value a line, what is empty left out."""
    given = pairs.items() if isinstance(pairs, Mapping) else pairs
    shown = [(name, clean(value)) for name, value in given if value]
    width = max((len(name) for name, _ in shown), default=0) if sys.stdout.isatty() else 0
    for name, value in shown:
        click.echo(f"{name:<{width}}  {value}" if width else f"{name}\t{value}")
