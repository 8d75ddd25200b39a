"""What few words say of many vehicles: whether they are new, from which year, and whether they can be bought."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from forecourt.feed.normalise.condition import condition, is_retail, status
from forecourt.feed.normalise.date import model_year
from forecourt.feed.normalise.price import is_foreign
from forecourt.feed.options import FeedOptions
from forecourt.feed.report import Kind

__all__ = ["Found", "State", "read"]

Found = tuple[Kind, str, str]
"""What is to be reported of a row: kind, field, reason."""

_OLD: Final = 8
_BLANK_CONDITION: Final = "is blank; the default counts"
_NOT_FOR_RETAIL: Final = "is wholesale or fleet, not for retail"
_SOLD: Final = "is sold or no longer available"


class State(NamedTuple):
    """What the columns with few words say of a vehicle, and what is to be reported of it."""

    unfit_at_once: Found | None
    year: int | None
    condition: str
    status: str
    is_old: bool
    is_undecided: bool
    """Whether no column says whether it is new."""
    unfit: Found | None
    is_foreign: bool
    odometer_unit: str
    found: Sequence[Found]


def read(said: Mapping[str, str], options: FeedOptions, has_condition: bool) -> State:
    """Read the texts of the columns; `has_condition` is whether any of them is to say what is new.

    A vehicle of which none says that is what the options have as the default.
    """
    default = options.default_condition
    today = options.today
    repaired: list[Found] = []
    undecided = False
    unfit: Found | None = None
    disposition = said.get("disposition", "")
    at_once: Found | None = None
    if disposition and not is_retail(disposition):
        at_once = "left_out", "disposition", _NOT_FOR_RETAIL
    year = None
    if written := said.get("year"):
        year, reasons = model_year(written, today)
        repaired += [("repaired", "year", reason) for reason in reasons]
    found = condition(said.get("condition", ""), said.get("is_new", ""), said.get("certified", ""), default)
    place = status(said.get("status", ""))
    if not found.retail:
        unfit = "left_out", "condition", _NOT_FOR_RETAIL
    else:
        repaired += [("repaired", "condition", reason) for reason in found.reasons]
        if found.value is None:
            undecided = not has_condition
            if not undecided and not found.reasons:
                repaired.append(("repaired", "condition", _BLANK_CONDITION))
        if place.value is None:
            unfit = "left_out", "status", _SOLD
        repaired += [("repaired", "status", reason) for reason in place.reasons]
    value = found.value or default
    currency = said.get("currency", "").upper()
    return State(
        at_once,
        year,
        value,
        place.value or "",
        value == "used" and (year or 0) < today.year - _OLD,
        undecided,
        unfit,
        bool(currency) and is_foreign(currency, options.currency),
        said.get("odometer_unit", ""),
        tuple(repaired),
    )
