"""What an operator says about a feed; every member but the seller has a default that fits most files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, tzinfo
from typing import Any

from forecourt.vocabulary import Vocabulary

__all__ = ["Fee", "FeedOptions"]


@dataclass(frozen=True, slots=True)
class Fee:
    """A fee that every buyer pays to the dealer, in whole US dollars (3.1 vehicle schema, `fees`)."""

    name: str
    amount: int


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """How one feed is to be read.

    Where `rooftop` is a text, every row belongs to that rooftop. Where it is a mapping, the row's store code, dealer
    id or dealer name is looked up in it, and a row of a rooftop that is not in it is refused. Where it is None, the
    row's own dealer name counts, else its store code or dealer id, else `dealer_id`.
    """

    dealer_id: str
    """The seller whose stock it is."""

    rooftop: str | Mapping[str, str] | None = None
    """The rooftop's name, or names by the feed's own store codes and dealer names, or None to take the feed's."""

    qualify_ids: bool | None = None
    """Whether a `vehicle_id` begins with its rooftop, so that rooftops of one seller cannot use the same one.

    None: only if the file may hold several rooftops, that is, if `rooftop` is not one name. A seller whose rooftops
    send files of their own sets it to True for each of them.
    """

    format: str | None = None
    """The name of a reader (`delimited`, `json_ld`, `json_rows`, `xml_rows`); None to recognise it by the content."""

    mapping: Mapping[str, str] = field(default_factory=dict)
    """`{FIELD: COLUMN}`: wins over the table of aliases. Fields are those of `forecourt.feed.alias.FIELDS`."""

    keep_unmapped: bool = False
    """Whether columns that nobody maps become `other_attributes`."""

    currency: str = "USD"
    """The feed's currency; a row with a price in another one is refused."""

    odometer_unit: str = "mi"
    """What an odometer without a unit counts: `mi` or `km`."""

    default_condition: str = "used"
    """What a vehicle is of which the feed does not say whether it is new: `used` promises a buyer the least."""

    fees: Mapping[str, Sequence[Fee]] = field(default_factory=dict)
    """Mandatory fees by the name of the rooftop; an empty sequence says that there are none."""

    timezone: tzinfo = UTC
    """The time zone of times without an offset."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When the feed is read; aware. The `updated_at` of vehicles of which nothing says when they last changed."""

    unchanged_since: Callable[[Mapping[str, Any]], str | None] | None = None
    """Asked for the `updated_at` of a vehicle of which the feed gives none, so that reading a file again does not
    make every vehicle look changed. It is given the vehicle without `updated_at`, and returns the `updated_at` under
    which the same vehicle is known, or None if it is new or differs: `now` counts then."""

    vocabulary: Vocabulary = field(default_factory=Vocabulary.packaged)
    """What feature texts are recognised by."""

    def __post_init__(self) -> None:
        """Raise ValueError for options that no feed could be read by."""
        if self.odometer_unit not in ("mi", "km"):
            raise ValueError("odometer_unit is mi or km")
        if self.default_condition not in ("new", "used"):
            raise ValueError("default_condition is new or used")
        if self.now.tzinfo is None:
            raise ValueError("now must have a time zone")

    @property
    def today(self) -> date:
        """The day on which the feed is read, where the feed's times are from."""
        return self.now.astimezone(self.timezone).date()
