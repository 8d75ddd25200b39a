"""`forecourt import`: read a feed, make it the stock, print what became of every row."""

import contextlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from rich.progress import Progress

    from forecourt.feed import Report
    from forecourt.lead.seller import Seller
    from forecourt.server.config import Feed
    from forecourt.server.deployment import Deployment

_NO_SELLER: Final = (
    "there is no seller to import for: write a forecourt.toml with a [dealer] section and name it with --config"
    " or FORECOURT_CONFIG (the demo dealer brings its own stock)"
)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@click.command("import")
@click.argument("source")
@click.option("--dealer", metavar="ID", help="Whose stock it is; may be left out where there is one seller.")
@click.option("--rooftop", metavar="NAME", help="The one rooftop that the whole feed is of.")
@click.option("--map", "columns", metavar="FIELD=COLUMN", multiple=True, help="Take a field from this column.")
@click.option("--dry-run", is_flag=True, help="Do everything but change the stock.")
@click.option("--allow-shrink", is_flag=True, help="Import even if most of the stock vanishes.")
@click.option("--config", type=click.Path(dir_okay=False), envvar="FORECOURT_CONFIG", help="Configuration file.")
@click.option("--data", type=click.Path(file_okay=False), help="Folder of the database (default ./forecourt-data).")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
def command(
    source: str,
    dealer: str | None,
    rooftop: str | None,
    columns: tuple[str, ...],
    dry_run: bool,
    allow_shrink: bool,
    config: str | None,
    data: str | None,
    as_json: bool,
) -> None:
    """Make a feed the stock.

    SOURCE is a file, - for standard input, or an http or https address. The feed becomes the whole stock: what is not
    in it is no longer listed. A feed that is empty or drops more than half of the stock is refused, and the last good
    stock stays.

    \b
    Example:
      forecourt import stock.csv --config forecourt.toml --dry-run
    """
    import asyncio

    from forecourt.cli._mistake import wrong_usage
    from forecourt.server import ConfigError

    try:
        deployment, feed = _chosen(source, dealer, rooftop, columns, config, data)
    except ConfigError as error:
        raise wrong_usage(error, config) from None
    outcome = asyncio.run(_imported(deployment, feed, dry_run, allow_shrink))
    outcome.show(as_json, dry_run)
    if outcome.problem:
        raise click.ClickException(outcome.problem)


def _chosen(
    source: str,
    dealer: str | None,
    rooftop: str | None,
    columns: tuple[str, ...],
    config: str | None,
    data: str | None,
) -> "tuple[Deployment, Feed]":
    """Return the deployment and how the feed is read: as the configuration says of this source, and as was called."""
    import msgspec

    from forecourt.feed import FeedError
    from forecourt.feed.plan import check_mapping
    from forecourt.server import ConfigError, load
    from forecourt.server.config import Feed
    from forecourt.server.deployment import Deployment
    from forecourt.server.importing import feed_options
    from forecourt.server.schedule import seller_of

    settings = load(config, data=data)
    if not settings.all_dealers:
        raise ConfigError(_NO_SELLER)
    deployment = Deployment(settings)
    place = source if "://" in source else str(Path(source).absolute())
    configured = [
        feed
        for feed in settings.feeds
        if place == (feed.source if "://" in feed.source else str(Path(feed.source).absolute()))
        and dealer in (None, feed.dealer)
    ]
    feed = configured[0] if configured else Feed(source=source)
    mapping = dict(feed.columns)
    for entry in columns:
        field, equals, column = entry.partition("=")
        if not (field and equals and column):
            raise ConfigError(f"--map {entry}: write it as FIELD=COLUMN")
        mapping[field.strip()] = column
    feed = msgspec.structs.replace(
        feed, source=source, dealer=dealer or feed.dealer, rooftop=rooftop or feed.rooftop, columns=mapping
    )
    try:
        check_mapping(mapping)
    except FeedError as error:
        raise ConfigError(f"--map: {error}") from None
    feed_options(seller_of(feed, deployment.sellers), feed, deployment.vocabulary)
    return deployment, feed


class _Outcome:
    """How an import ended."""

    def __init__(self, source: str, dealer_id: str) -> None:
        self.source, self.dealer_id = source, dealer_id
        self.report: Report | None = None
        self.problem = ""

    def show(self, as_json: bool, dry_run: bool) -> None:
        """Print the report, as far as there is one."""
        if as_json:
            word = "failed" if self.problem else "rehearsed" if dry_run else "imported"
            shown: dict[str, Any] = {"source": self.source, "dealer_id": self.dealer_id, "outcome": word}
            if self.problem:
                shown["problem"] = self.problem
            if self.report is not None:
                shown |= self.report.to_payload()
            click.echo(json.dumps(shown, ensure_ascii=False))
        elif self.report is not None:
            lines = self.report.lines()
            if dry_run and not self.problem:
                lines.append("nothing was changed: this was a dry run")
            # Names of columns come from the file: nothing in them may steer a terminal.
            lines = ["".join(sign if sign.isprintable() else "\ufffd" for sign in line) for line in lines]
            if sys.stdout.isatty():
                _print_styled(lines)
            else:
                click.echo("\n".join(lines))


def _print_styled(lines: list[str]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        style = "yellow" if line.startswith("warning") else "dim" if line.startswith(("line ", "column")) else ""
        console.print(Text(line, style=style))


async def _imported(deployment: "Deployment", feed: "Feed", dry_run: bool, allow_shrink: bool) -> _Outcome:
    from forecourt.feed import FeedError
    from forecourt.server.fetching import FetchError, shown
    from forecourt.server.importing import FeedRefusedError, import_feed
    from forecourt.server.schedule import seller_of
    from forecourt.store import StoreError

    seller = seller_of(feed, deployment.sellers)
    name = "standard input" if feed.source == "-" else shown(feed.source)
    outcome = _Outcome(name, seller.dealer_id)
    try:
        await deployment.store.open()
        try:
            with _progress() as bar, tempfile.TemporaryDirectory() as folder:
                source = await _source(feed.source, Path(folder), bar)
                if isinstance(source, Path):
                    with contextlib.suppress(OSError):
                        bar.begin("Importing", source.stat().st_size)
                else:
                    bar.begin("Importing", None)
                problem = ""
                try:
                    outcome.report = await import_feed(
                        deployment.store,
                        seller,
                        source,
                        feed,
                        deployment.vocabulary,
                        allow_shrink=allow_shrink,
                        dry_run=dry_run,
                        progress=bar.tell,
                    )
                except FeedError as error:
                    outcome.report, problem = getattr(error, "report", None), str(error)
                    raise
                finally:
                    if not dry_run and (problem or outcome.report is not None):
                        await _remember(deployment, seller, feed, name, outcome.report, problem)
        finally:
            await deployment.store.close()
    except FeedRefusedError as error:
        outcome.report = error.report
        outcome.problem = f"{name} was refused: {error}; --allow-shrink imports it all the same"
    except (FeedError, FetchError) as error:
        outcome.problem = f"{name} was not imported: {error}"
    except StoreError as error:
        outcome.problem = f"{name} was not imported: {error}"
    except OSError as error:
        outcome.problem = f"{name} was not imported: {error.strerror}"
    return outcome


async def _remember(
    deployment: "Deployment", seller: "Seller", feed: "Feed", name: str, report: "Report | None", problem: str
) -> None:
    """Keep how the import ended, for `forecourt status`."""
    from forecourt.server.by_hand import keep_by_hand
    from forecourt.server.importing import rooftop_of
    from forecourt.store import StoreError

    payload = None if report is None else report.to_payload()
    with contextlib.suppress(StoreError):
        await keep_by_hand(
            deployment.store, seller.dealer_id, rooftop_of(seller, feed), name, datetime.now(UTC),
            report=payload, problem=problem,
        )  # fmt: skip


async def _source(source: str, folder: Path, bar: "_Bar") -> "Path | IO[bytes]":
    import asyncio

    from forecourt.server.fetching import FetchError, fetch, is_address

    if source == "-":
        return sys.stdin.buffer
    if not is_address(source):
        if _SCHEME.match(source):
            raise FetchError("only http and https addresses are fetched")
        return Path(source)
    path = folder / "feed"
    bar.begin("Fetching", None)
    with path.open("wb") as file:
        await asyncio.to_thread(fetch, source, file, tell=bar.tell)
    return path


class _Bar:
    """A progress bar, or nothing where nobody looks at one."""

    def __init__(self, progress: "Progress | None" = None) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None) if progress else None

    def begin(self, title: str, total: int | None) -> None:
        """Start over with something else to do, of which the size may be known."""
        if self._progress is not None and self._task is not None:
            self._progress.reset(self._task, description=title, total=total)

    def tell(self, taken: int) -> None:
        """Show that so many bytes are done."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=taken)


@contextlib.contextmanager
def _progress() -> Iterator[_Bar]:
    if not sys.stderr.isatty():
        yield _Bar()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _Bar(progress)
