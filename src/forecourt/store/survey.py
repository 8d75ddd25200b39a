"""What a look at a database tells, without opening the store: nothing is made, migrated or written by it.

A look works beside a running server and on a database that no server could use yet: one of an older or a newer version
says so, and one that was never made raises `NoDatabaseError`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from forecourt.store import FeedState

__all__ = ["MOST_ROWS", "Backlog", "LeadCount", "RooftopStock", "Survey"]

MOST_ROWS: Final = 100_000
"""How many rows of each kind a look returns at the most."""


@dataclass(frozen=True, slots=True)
class RooftopStock:
    """How many listings stand at one rooftop."""

    dealer_id: str
    rooftop: str
    listings: int


@dataclass(frozen=True, slots=True)
class LeadCount:
    """How many leads a rooftop got since a time; `rooftop` is None for those that name none."""

    since: datetime
    dealer_id: str
    rooftop: str | None
    leads: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """Deliveries to one target that are `waiting` or `parked`; `since` and `reason` are those of the oldest.

    Those of leads that were purged do not count: nothing of them can be sent any more.
    """

    target: str
    status: str
    deliveries: int
    since: datetime
    reason: str | None


@dataclass(frozen=True, slots=True)
class Survey:
    """A database at one moment.

    `applied` and `missing` are the names of migrations. Where some are missing there is nothing else. `unknown` is how
    many the database has that this version does not know.
    """

    applied: Sequence[str]
    missing: Sequence[str] = ()
    unknown: int = 0
    stock: Sequence[RooftopStock] = ()
    feeds: "Sequence[FeedState]" = ()
    leads: Sequence[LeadCount] = ()
    backlogs: Sequence[Backlog] = ()
    keys: int = 0
    keys_revoked: int = 0
