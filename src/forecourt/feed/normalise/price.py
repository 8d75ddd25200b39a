"""Prices (FEEDS.md, points 2 and 13)."""

import re
from typing import Final, NamedTuple

from forecourt.feed.normalise.number import PATTERN, number
from forecourt.feed.normalise.remembered import remembered

__all__ = ["CENTS", "Money", "is_foreign", "is_odd", "money"]

CENTS: Final = "cents were rounded to the nearest dollar"
_NOT_A_PRICE: Final = "is not a price"
_NEGATIVE: Final = "is below zero"

_MONEY: Final = re.compile(rf"([^0-9+.,-]*)({PATTERN})([^0-9]*)")
_HAS_DIGIT: Final = re.compile("[0-9]")
_CURRENCIES: Final = {
    "": "", "$": "$", "us$": "USD", "us": "USD", "usd$": "USD", "c$": "CAD", "ca$": "CAD", "can$": "CAD", "a$": "AUD",
    "\u20ac": "EUR", "\u00a3": "GBP", "\u00a5": "JPY",
}  # fmt: skip
_CODE: Final = re.compile("[a-z]{3}")
_DOLLARS: Final = frozenset({"USD", "CAD", "AUD", "NZD", "MXN", "SGD", "HKD"})
_PLAIN: Final = re.compile(r"([$]?)([0-9]{1,9}|[0-9]{1,3}(?:,[0-9]{3}){1,2})(?:[.]0{0,2})?")
_FAR_BELOW: Final = 4
_FAR_ABOVE: Final = 3


class Money(NamedTuple):
    """An amount in whole units, None where there is no price, and the currency it names: a code, `$` or nothing."""

    amount: int | None
    currency: str = ""
    reasons: tuple[str, ...] = ()


@remembered(8192)
def money(text: str) -> Money:
    """Read a price. Blank, zero and words ("Call") are no price, and nothing to report."""
    plain = _PLAIN.fullmatch(text)
    if plain:
        return Money(int(plain[2].replace(",", "")) or None, plain[1])
    if not _HAS_DIGIT.search(text):
        return Money(None)
    found = _MONEY.fullmatch(text.strip().rstrip("*"))
    if not found:
        return Money(None, "", (_NOT_A_PRICE,))
    before, digits, after = found.groups()
    signs = [sign for each in (before, after) if (sign := _currency(each.strip().lower()))]
    value = number(digits)
    if value is None or None in signs or "?" in signs:
        return Money(None, "", (_NOT_A_PRICE,))
    named = next((sign for sign in signs if sign != "$"), signs[0] if signs else "")
    if value.negative:
        return Money(None, named, (_NEGATIVE,))
    return Money(value.rounded() or None, named, () if value.is_whole() else (CENTS,))


def _currency(sign: str) -> str:
    sign = sign.strip(" :\u00a0")
    return _CURRENCIES.get(sign, sign.upper() if _CODE.fullmatch(sign) else "?")


def is_foreign(named: str, currency: str) -> bool:
    """Tell whether a price that names a currency is in another one than `currency`; a bare `$` is any dollar."""
    if named == "$":
        return currency not in _DOLLARS
    return bool(named) and named != currency


def is_odd(price: int, msrp: int) -> bool:
    """Tell whether a price is so far from the MSRP that one of them is probably something else."""
    return price * _FAR_BELOW < msrp or price > msrp * _FAR_ABOVE
