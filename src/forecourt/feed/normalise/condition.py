"""Whether a vehicle is new, used or certified, and whether it is to be shown at all (FEEDS.md, point 5)."""

from typing import Final, NamedTuple

from forecourt.feed.normalise.remembered import remembered
from forecourt.feed.normalise.text import flag

__all__ = ["Condition", "Place", "condition", "is_retail", "status"]

_CERTIFIED_NEW: Final = "a certified new vehicle is new"
_CONTRADICTS: Final = "the certified column says that it is not certified"
_NEW_CONTRADICTS: Final = "the columns contradict each other on whether it is new; the condition column counts"
_UNKNOWN: Final = "says nothing known about new or used"
_UNKNOWN_STATUS: Final = "is no known status; the vehicle counts as available"

_WORDS: Final = {
    **dict.fromkeys(("n", "new", "newcondition", "brand new", "nw"), "new"),
    **dict.fromkeys(
        ("u", "used", "usedcondition", "pre-owned", "preowned", "pre owned", "refurbished", "refurbishedcondition",
         "damagedcondition", "demo", "demonstrator", "loaner", "service loaner", "uncertified", "used non-certified"),
        "used",
    ),
    **dict.fromkeys(
        ("c", "cpo", "certified", "certified pre-owned", "certified preowned", "certified pre owned", "certified used",
         "used certified", "certifiedpreowned", "cert", "certified_pre_owned"),
        "cpo",
    ),
}  # fmt: skip
_NOT_RETAIL: Final = frozenset({"w", "f", "wholesale", "fleet", "auction", "w - wholesale", "f - fleet"})
_NOT_CERTIFIED: Final = frozenset({"not certified", "non-certified", "noncertified", "no certification", "uncertified"})

_STATUS: Final = {
    **dict.fromkeys(
        ("available", "in stock", "instock", "in-stock", "in_stock", "active", "a", "i", "for sale", "live", "online",
         "on lot", "in inventory", "limitedavailability", "instoreonly", "onlineonly", "frontline ready", "stock", "s",
         "inventory", "ready", "true", "1", "yes", "published", "retail", "r"),
        "available",
    ),
    **dict.fromkeys(
        ("intransit", "in transit", "in-transit", "in_transit", "transit", "t", "arriving soon", "coming soon",
         "on order", "in production", "preorder", "pre-order", "presale", "backorder", "incoming", "allocated",
         "being built", "build", "shipped", "madetoorder"),
        "intransit",
    ),
    **dict.fromkeys(
        ("pending", "p", "sale pending", "sale_pending", "pending sale", "deal pending", "on hold", "hold", "deposit",
         "deposit taken", "reserved"),
        "pending",
    ),
    **dict.fromkeys(
        ("sold", "out of stock", "outofstock", "out_of_stock", "out-of-stock", "soldout", "sold out", "not_available",
         "not available", "unavailable", "discontinued", "removed", "deleted", "inactive", "delivered", "off lot",
         "false", "0", "no"),
        "",
    ),
}  # fmt: skip


class Condition(NamedTuple):
    """`new`, `used` or `cpo`, None if nothing says; whether it is for retail; reasons."""

    value: str | None
    reasons: tuple[str, ...] = ()
    retail: bool = True


class Place(NamedTuple):
    """`available`, `intransit` or `pending`; None where it is sold; reasons."""

    value: str | None
    reasons: tuple[str, ...] = ()


@remembered(4096)
def condition(said: str, is_new: str, certified: str, default: str) -> Condition:
    """Return what the columns say together. `cpo` is only a vehicle that is used and certified.

    Without a word on new or used, `default` counts; that is reported by whoever knows whether there is such a column.
    """
    low = said.rsplit("/", 1)[-1].strip().lower() if "://" in said else said.lower()
    if low in _NOT_RETAIL:
        return Condition(None, (), retail=False)
    reasons: tuple[str, ...] = (_UNKNOWN,) if low and low not in _WORDS else ()
    value = _WORDS.get(low)
    new = flag(is_new)
    if value is None and new is not None:
        value, reasons = ("new" if new else "used"), ()
    elif value is not None and new is not None and new != (value == "new"):
        reasons = (_NEW_CONTRADICTS,)
    sure = _certified(certified)
    known = value or default
    if known == "new" and sure and value:
        return Condition("new", (*reasons, _CERTIFIED_NEW))
    if known == "cpo" and sure is False:
        return Condition("used", (*reasons, _CONTRADICTS))
    if sure:
        return Condition("cpo", reasons)
    return Condition(value, reasons)


def _certified(said: str) -> bool | None:
    """Read a yes-or-no column, or one that names the kind of certification."""
    if not said:
        return None
    known = flag(said)
    return said.lower() not in _NOT_CERTIFIED if known is None else known


def is_retail(disposition: str) -> bool:
    """Tell whether a disposition (R retail, F fleet, W wholesale) lets a vehicle be offered to shoppers."""
    return disposition.lower() not in _NOT_RETAIL


@remembered(1024)
def status(said: str) -> Place:
    """Return where a vehicle stands. What is in a feed is in stock unless the feed says otherwise."""
    if not said:
        return Place("available")
    low = said.rsplit("/", 1)[-1].strip().lower() if "://" in said else said.lower()
    if low not in _STATUS:
        return Place("available", (_UNKNOWN_STATUS,))
    return Place(_STATUS[low] or None)
