"""Vehicle identification numbers (FEEDS.md, point 8)."""

import re
from typing import Final

__all__ = ["CHECK_DIGIT", "REPAIRED", "vin"]

REPAIRED: Final = "small letters, spaces or dashes were repaired"
CHECK_DIGIT: Final = "the check digit is wrong, as on imports and old vehicles, or a character is"
_LENGTH: Final = "does not have 17 characters and was left out"
_CHARACTERS: Final = "has characters that no VIN has (I, O, Q or signs) and was left out"

_VIN: Final = re.compile("[A-HJ-NPR-Z0-9]{17}")
_OPTICAL: Final = re.compile(r"[\s\u200b-]+")
_LETTERS: Final = 17

# 49 CFR 565.15(c), tables III and IV: the value of each character, times the weight of its place, modulo 11.
_VALUES: Final = {
    **{ord(digit): at for at, digit in enumerate("0123456789")},
    **{ord(letter): at for at, letter in enumerate("ABCDEFGH", 1)},
    **{ord(letter): at for at, letter in enumerate("JKLMN", 1)},
    ord("P"): 7,
    ord("R"): 9,
    **{ord(letter): at for at, letter in enumerate("STUVWXYZ", 2)},
}
_TABLE: Final = bytes(_VALUES.get(code, 0) for code in range(256))


def vin(text: str) -> tuple[str | None, tuple[str, ...], bool]:
    """Return the VIN, reasons, and whether its check digit is wrong, which is no reason to leave it out."""
    reasons: tuple[str, ...] = ()
    if not _VIN.fullmatch(text):
        repaired = _OPTICAL.sub("", text).upper()
        if not _VIN.fullmatch(repaired):
            return None, (_LENGTH if len(repaired) != _LETTERS else _CHARACTERS,), False
        text, reasons = repaired, (REPAIRED,)
    a, b, c, d, e, f, g, h, _, i, j, k, m, n, o, p, q = text.encode().translate(_TABLE)
    total = 8 * (a + j) + 7 * (b + k) + 6 * (c + m) + 5 * (d + n) + 4 * (e + o) + 3 * (f + p) + 2 * (g + q)
    total += 10 * h + 9 * i
    return text, reasons, "0123456789X"[total % 11] != text[8]
