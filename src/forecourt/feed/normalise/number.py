"""Numbers as people and spreadsheets write them, read exactly."""

import re
from typing import Final, NamedTuple

from forecourt.feed.normalise.remembered import remembered

__all__ = ["PATTERN", "Number", "number", "quantity"]

PATTERN: Final = r"[+-]?[0-9][0-9.,'\u2019 \u00a0\u202f]*|[+-]?\.[0-9]+"
"""What may be a number, for expressions that look for one among other things."""

_SPACES: Final = re.compile(r"(?<=[0-9])['\u2019 \u00a0\u202f](?=[0-9]{3}(?![0-9]))")
_GROUPED: Final = re.compile(r"([+-]?)([0-9]{1,3}(?:,[0-9]{3})+)(?:\.([0-9]*))?")
_DOTTED: Final = re.compile(r"([+-]?)([1-9][0-9]{0,2}(?:\.[0-9]{3})+)(?:,([0-9]*))?")
_PLAIN: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?")
_COMMA: Final = re.compile(r"([+-]?)([0-9]+),([0-9]{1,2})")
_DIGITS: Final = 12


class Number(NamedTuple):
    """A decimal number: its whole part, the digits after the point, and whether it is below zero."""

    whole: int
    fraction: str = ""
    negative: bool = False

    def rounded(self) -> int:
        """Return the nearest whole number, halves up, of a number that is not negative."""
        return self.whole + (self.fraction[:1] >= "5")

    def is_whole(self) -> bool:
        """Tell whether nothing is lost by leaving the fraction off."""
        return not self.fraction.strip("0")

    def exact(self) -> float:
        """Return it as a float."""
        value = float(f"{self.whole}.{self.fraction or '0'}")
        return -value if self.negative else value


def number(text: str) -> Number | None:
    """Read a number, None if it is none: `42,875.00`, `42.875,00`, `42 875`, `64460.0`.

    Three digits after a single point are thousands ("42.875"): nothing in a feed is measured in thousandths.
    """
    plain = _SPACES.sub("", text.strip())
    for pattern in (_GROUPED, _DOTTED, _PLAIN, _COMMA):
        found = pattern.fullmatch(plain)
        if found:
            sign, whole, fraction = found.groups()
            digits = re.sub("[.,]", "", whole)
            if len(digits) > _DIGITS or not (digits or fraction):
                return None
            return Number(int(digits or 0), (fraction or "")[:9], sign == "-")
    return None


_QUANTITY: Final = re.compile(rf"({PATTERN})\s*[A-Za-z.]*")


@remembered(4096)
def quantity(text: str) -> float | None:
    """Return a number that may have a unit after it ("77.4 kWh"), None if it is something else."""
    found = _QUANTITY.fullmatch(text.strip())
    value = number(found[1]) if found else None
    return value.exact() if value else None
