"""A feed becomes the stock: read, compared, and exchanged as a whole, or refused as a whole (FEEDS.md, point 11)."""

import asyncio
import contextlib
import threading
import unicodedata
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from forecourt.feed import (
    Fee,
    FeedError,
    FeedOptions,
    Kept,
    KeptBodies,
    Report,
    Tracked,
    can_read_beside,
    open_feed,
    read_beside,
    read_bodies,
)
from forecourt.feed.plan import check_mapping
from forecourt.lead.seller import Seller
from forecourt.model import listing_id
from forecourt.server.config import ConfigError, Feed
from forecourt.store import InventoryChange, Store, StoredListing
from forecourt.vocabulary import Vocabulary

__all__ = ["FeedRefusedError", "Progress", "feed_options", "import_feed", "rooftop_of"]

Progress = Callable[[int], None]
"""Called with the bytes of the source that were read so far, from another thread."""

_LARGE: Final = 4 << 20
"""From so many bytes on a process of its own is worth its start."""


class FeedRefusedError(FeedError):
    """The feed can be read, and is not to become the stock; the last good inventory stays.

    `report` is complete but for what was stored.
    """

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


class _Rehearsed(Exception):  # noqa: N818 - how a rehearsal ends, not an error
    """Leaves the transaction of a dry run without having written."""

    def __init__(self, change: InventoryChange) -> None:
        super().__init__()
        self.change = change


class _GivenUpError(Exception):
    """Ends the reading of a feed that nobody waits for any more."""


class _Rooftops(Mapping[str, str]):
    """Names of a seller's rooftops by what feeds call them, whatever the case and the spacing."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._names = {_comparable(called): name for called, name in names}

    def __getitem__(self, called: str) -> str:
        return self._names[_comparable(called)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _comparable(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def rooftop_of(seller: Seller, feed: Feed) -> str | None:
    """Return the one rooftop whose stock a feed replaces, None where it is the seller's whole stock."""
    return feed.rooftop if isinstance(feed.rooftop, str) and len(seller.profile["rooftops"]) > 1 else None


def feed_options(seller: Seller, feed: Feed, vocabulary: Vocabulary, now: datetime | None = None) -> FeedOptions:
    """Return how a feed of this seller is read.

    Every vehicle stands at a rooftop of the profile. A seller with one rooftop has everything there, whatever the
    feed calls it. With several, the feed is of the one that `feed.rooftop` names, or its rows name theirs: by the
    codes of `feed.rooftop`, or by the rooftops' own names; rows of others are refused and reported. Raises
    ConfigError.
    """
    names = [str(rooftop["name"]) for rooftop in seller.profile["rooftops"]]
    said = (feed.rooftop,) if isinstance(feed.rooftop, str) else tuple((feed.rooftop or {}).values())
    unknown = [name for name in said if name not in names]
    if unknown:
        raise ConfigError(f"the seller has no {unknown[0]!r}; it has {', '.join(map(repr, names))}", "rooftop")
    rooftop: str | Mapping[str, str]
    if len(names) == 1:
        rooftop = names[0]
    elif isinstance(feed.rooftop, str):
        rooftop = feed.rooftop
    else:
        rooftop = _Rooftops([*((name, name) for name in names), *(feed.rooftop or {}).items()])
    try:
        check_mapping(feed.columns)
    except FeedError as error:
        raise ConfigError(str(error), "columns") from error
    try:
        timezone = ZoneInfo(feed.timezone)
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:
        raise ConfigError(f"there is no {feed.timezone!r}; names are like America/Chicago", "timezone") from error
    return FeedOptions(
        seller.dealer_id,
        rooftop=rooftop,
        # Rooftops that send files of their own may use the same ids as one another.
        qualify_ids=len(names) > 1,
        mapping=feed.columns,
        keep_unmapped=feed.keep_unmapped,
        currency=feed.currency,
        odometer_unit=feed.odometer_unit,
        default_condition=feed.default_condition,
        fees={
            str(rooftop["name"]): [Fee(fee["name"], fee["amount"]) for fee in rooftop["fees"]]
            for rooftop in seller.profile["rooftops"]
            if rooftop.get("fees") is not None
        },
        timezone=timezone,
        now=now or datetime.now(UTC),
        vocabulary=vocabulary,
    )


async def import_feed(
    store: Store,
    seller: Seller,
    source: Path | IO[bytes],
    feed: Feed,
    vocabulary: Vocabulary,
    *,
    allow_shrink: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
    now: datetime | None = None,
    before_storing: Callable[[], None] | None = None,
) -> Report:
    """Make what `source` holds the stock of the seller, or of the one rooftop that the feed is of.

    `source` is a file, or an open binary stream; `feed` says how it is read and whose it is (its own `source` and
    `every` play no part). A feed that leaves nothing, or less of the stock than `feed.most_removed` allows, is refused
    unless `allow_shrink`. With `dry_run` everything is done but the writing. When the caller is cancelled, the import
    is undone before this returns. `before_storing` is called in the store's transaction, from another thread, when all
    is read and nothing is written yet; what it raises is raised here, and the stock stays as it is.

    Raises ConfigError for a feed that does not fit its seller, FeedError where the feed cannot be used,
    FeedRefusedError where it is refused, StoreError.
    """
    options = feed_options(seller, feed, vocabulary, now)
    scope = rooftop_of(seller, feed)
    report = Report()
    given_up = threading.Event()

    def tell(taken: int) -> None:
        if given_up.is_set():
            raise _GivenUpError
        if progress is not None:
            progress(taken)

    def check(change: InventoryChange) -> None:
        if given_up.is_set():
            raise _GivenUpError
        report.stored(
            added=change.imported - change.changed - change.unchanged,
            changed=change.changed,
            unchanged=change.unchanged,
            removed=change.removed,
        )
        if not allow_shrink:
            _check_shrink(change, feed.most_removed, report)
        if dry_run:
            raise _Rehearsed(change)
        if before_storing is not None:
            before_storing()

    async def work() -> None:
        _, known = await store.read_listings(lambda rows: KeptBodies(row.body for row in rows), seller.dealer_id)
        listings = _listings(seller.dealer_id, _read(source, options, known, report, tell))
        with contextlib.suppress(_Rehearsed), contextlib.closing(listings):
            await store.replace_listings(seller.dealer_id, scope, listings, options.now, check)

    working = asyncio.ensure_future(work())
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        given_up.set()
        with contextlib.suppress(Exception):
            await working
        raise
    return report


def _read(
    source: Path | IO[bytes], options: FeedOptions, known: KeptBodies, report: Report, tell: Progress
) -> Generator[Kept, None, None]:
    if not isinstance(source, Path):
        with open_feed(Tracked(source, tell)) as stream:  # type: ignore[arg-type]
            yield from read_bodies(stream, options, known, report)
        return
    try:
        size = source.stat().st_size
        file = source.open("rb")
    except OSError as error:
        raise FeedError("the file cannot be opened") from error
    with file:
        if size >= _LARGE and source.is_file() and can_read_beside():
            with contextlib.closing(read_beside(source, options, known, report, tell)) as found:
                yield from found
        else:
            yield from _read(file, options, known, report, tell)


def _listings(dealer_id: str, found: Generator[Kept, None, None]) -> Generator[StoredListing, None, None]:
    prefix = listing_id(dealer_id, "")
    with contextlib.closing(found):
        for vehicle_id, rooftop, vin, stock, body in found:
            yield StoredListing(prefix + vehicle_id, dealer_id, rooftop, vin, vehicle_id, stock, body)


def _check_shrink(change: InventoryChange, most_removed: float, report: Report) -> None:
    before = change.changed + change.unchanged + change.removed
    if not change.imported:
        raise FeedRefusedError("the feed leaves no vehicle in stock", report)
    if change.removed > most_removed * before:
        raise FeedRefusedError(
            f"the feed drops {change.removed} of {before} vehicles, more than the {most_removed:.0%} that may vanish at"
            " once",
            report,
        )
