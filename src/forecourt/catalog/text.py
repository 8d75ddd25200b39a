"""How texts are compared: whole values for filters, words for the text query (CONTRACTS.md section 5, both
ours).
"""

import re
import unicodedata

__all__ = ["letters", "normalise", "tokens"]

_RUN = re.compile(r"[^\W_]+")
"""A run of what `str.isalnum` holds true for."""


def normalise(text: str) -> str:
    """Return `text` without case, accents, surrounding spaces and repeated inner spaces.

    Compatibility forms count as their plain ones (NFKD); a NUL character counts as a space.
    """
    if text.isascii():
        if text.isalnum():
            return text.lower()
        folded = text.lower()
    else:
        decomposed = unicodedata.normalize("NFKD", text)
        folded = "".join([letter for letter in decomposed if not unicodedata.combining(letter)]).casefold()
    return " ".join(folded.replace("\0", " ").split())


def letters(word: str) -> str:
    """Return what is left of a word of a query once case, accents and punctuation are gone; it may be
    nothing.
    """
    return "".join(_RUN.findall(normalise(word)))


def tokens(text: str) -> set[str]:
    """Return what the words of a listing can be found by: each joined form ("CR-V" -> crv) and its pieces
    (cr, v).
    """
    found: set[str] = set()
    for word in text.split():
        if word.isascii() and word.isalnum():
            found.add(word.lower())
            continue
        pieces = _RUN.findall(normalise(word))
        if pieces:
            found.update(pieces)
            found.add("".join(pieces))
    return found
