"""`forecourt status`: how the dealership's agent stands, from the database it works on."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

from forecourt.cli._count import counted

__all__ = ["command"]

_MOST_ROOFTOPS: Final = 20
"""Up to so many rooftops all are shown."""
_MOST_ATTENTION: Final = 20
_NONE_YET: Final = "no import is known"


@click.command("status")
@click.option("--config", type=click.Path(dir_okay=False), envvar="FORECOURT_CONFIG", help="Configuration file.")
@click.option("--data", type=click.Path(file_okay=False), help="Folder of the database (default ./forecourt-data).")
@click.option("--dealer", metavar="ID", help="Only this seller.")
@click.option("--stalest", type=click.IntRange(1, 1000), default=10, show_default=True,
              help="Of more than 20 rooftops, how many of the stalest to show.")  # fmt: skip
@click.option("--stale-hours", type=click.FloatRange(0.1, 24 * 366), default=48.0, show_default=True,
              help="After how many hours without an import a rooftop's stock needs attention.")  # fmt: skip
@click.option("--check", is_flag=True, help="Print only what needs attention; status 1 if anything does.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
def command(
    config: str | None,
    data: str | None,
    dealer: str | None,
    stalest: int,
    stale_hours: float,
    check: bool,
    as_json: bool,
) -> None:
    """Show how the dealer agent stands.

    That is stock, imports, leads and deliveries, and what needs attention.

    The database is only read, beside a server or without one. Status 1 when it cannot be.

    \b
    Example:
      forecourt status --config forecourt.toml
      forecourt status --config forecourt.toml --check
    """
    import asyncio

    from forecourt.cli._mistake import wrong_usage
    from forecourt.server import ConfigError, load
    from forecourt.server.deployment import Deployment
    from forecourt.server.standing import standing
    from forecourt.store import NoDatabaseError, StoreError

    async def look() -> dict[str, Any]:
        try:
            return await standing(deployment, datetime.now(UTC), timedelta(hours=stale_hours), dealer)
        finally:
            await deployment.admission.close()

    try:
        deployment = Deployment(load(config, data=data))
        if dealer is not None and dealer not in deployment.sellers:
            raise ConfigError(f"--dealer: there is no seller {dealer!r}")
        found = asyncio.run(look())
    except ConfigError as error:
        raise wrong_usage(error, config) from None
    except NoDatabaseError as error:
        raise click.ClickException(str(error)) from None
    except StoreError as error:
        raise click.ClickException(f"the database does not answer: {error}") from None
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    elif check:
        click.echo("\n".join(_plain(line) for line in found["attention"]) or "well")
    else:
        # Names come from profiles and files: nothing in them may steer a terminal.
        click.echo("\n".join(_plain(line).rstrip() for line in _lines(found, stalest)))
    if check and found["attention"]:
        raise click.exceptions.Exit(1)


def _lines(found: dict[str, Any], stalest: int) -> Iterator[str]:
    from forecourt.server.standing import age

    count = len(found["attention"])
    at = found["at"].replace("T", " ").replace("Z", " UTC")
    yield f"{at}: " + (f"{count} thing{'' if count == 1 else 's'} to look at" if count else "well")
    for line in found["attention"][:_MOST_ATTENTION]:
        yield f"  {line}"
    if count > _MOST_ATTENTION:
        yield f"  and {count - _MOST_ATTENTION:,} more: forecourt status --check lists all"
    yield ""
    store, disk, limits, keys = (found[name] for name in ("store", "disk", "limits", "keys"))
    yield f"store       {store['kind']}, reached, at migration {store['migration']}"
    if disk is not None:
        yield f"disk        {_gigabytes(disk['free_bytes'])} of {_gigabytes(disk['total_bytes'])} free"
    reached = "counted together" if limits["reached"] else "the shared count cannot be reached"
    yield f"limits      {reached if limits['shared'] else 'counted by each process'}"
    yield f"keys        {keys['open']} open, {keys['revoked']} revoked" + ("" if keys["accepted"] else "; not accepted")
    yield f"PAP         {'on' if found['pap'] else 'off'}"
    if "dealers" not in found:
        return
    waiting = found["deliveries"]
    since = waiting["oldest_waiting_seconds"]
    yield f"leads       {found['leads_today']:,} today"
    oldest = "" if since is None else f", the oldest for {age(since)}"
    yield f"deliveries  {waiting['waiting']:,} waiting{oldest}; {waiting['parked']:,} parked"
    rooftops = [(dealer, rooftop) for dealer in found["dealers"] for rooftop in dealer["rooftops"]]
    sellers = f"{len(found['dealers']):,} sellers, " if len(found["dealers"]) > 1 else ""
    yield f"stock       {counted(found['listings'], 'listing')}, {sellers}{counted(len(rooftops), 'rooftop')}"
    yield ""
    yield from _stock(found, rooftops, stalest)
    feeds = [feed for dealer in found["dealers"] for feed in dealer["feeds"]]
    if feeds:
        yield ""
        yield from _imports(feeds, stalest, len(found["dealers"]) > 1)


def _stock(found: dict[str, Any], rooftops: Sequence[tuple[Any, Any]], stalest: int) -> Iterator[str]:
    from forecourt.server.standing import age

    several = len(found["dealers"]) > 1
    shown = rooftops
    if len(rooftops) > _MOST_ROOFTOPS:
        shown = sorted(rooftops, key=lambda pair: -(pair[1]["age_seconds"] or 0))[:stalest]
        yield f"The {len(shown)} stalest rooftops (--dealer ID shows one seller, --json all)"
    rows = [("rooftop", "listings", "last import", "leads today", "by the day of")]
    for dealer, rooftop in shown:
        name = f"{dealer['dealer_id']}, {rooftop['rooftop']}" if several else rooftop["rooftop"]
        imported = _NONE_YET if rooftop["age_seconds"] is None else f"{age(rooftop['age_seconds'])} ago"
        rows.append((name, f"{rooftop['listings']:,}", imported, str(rooftop["leads_today"]), rooftop["timezone"]))
    yield from _aligned(rows)


def _imports(feeds: Sequence[dict[str, Any]], stalest: int, several: bool) -> Iterator[str]:
    from forecourt.server.standing import age

    shown = feeds
    if len(feeds) > _MOST_ROOFTOPS:
        shown = sorted(feeds, key=lambda feed: str(feed.get("checked_at", "")), reverse=True)[:stalest]
        yield f"The {len(shown)} newest looks at feeds"
    rows = [("feed", "outcome", "when", "rows", "problem")]
    now = datetime.now(UTC)
    for feed in shown:
        name = f"{feed['dealer_id']}, {feed['source']}" if several else feed["source"]
        if feed.get("by_hand"):
            name += " (by hand)"
        when = ""
        if "checked_at" in feed:
            passed = (now - datetime.fromisoformat(feed["checked_at"])).total_seconds()
            when = f"{age(max(0, passed))} ago"
        count = f"{feed['rows']:,}" if "rows" in feed else ""
        rows.append((name, feed["outcome"], when, count, feed.get("problem", "")))
    yield from _aligned(rows)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(_plain(row[number])) for row in rows) for number in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"


def _plain(text: str) -> str:
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text)
