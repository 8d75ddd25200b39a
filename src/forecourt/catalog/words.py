"""The word index: which listings have a word that begins so."""

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable

import numpy as np
from pyroaring import FrozenBitMap

from forecourt.catalog.bitmap import EMPTY, Postings, PostingsBuilder
from forecourt.catalog.text import letters, tokens

__all__ = ["WordIndex", "WordIntake"]

_REMEMBERED = 64
_WIDE = 16
"""Prefixes of more tokens than this are worth remembering the union of."""

_AFTER_ALL = chr(0x10FFFF)
"""Sorts after every letter and digit."""


class WordIndex:
    """The tokens of the listings in order, each with its positions; a prefix is a run of tokens."""

    def __init__(self, words: list[str], postings: Postings) -> None:
        self._words = words
        self._postings = postings
        self._remembered: OrderedDict[str, FrozenBitMap] = OrderedDict()
        self._first_letters = {letter: self._union(letter) for letter in sorted({word[0] for word in words})}

    def matching(self, text: str) -> FrozenBitMap | None:
        """Return the positions that every word of `text` matches, None when `text` has no word at all."""
        found: FrozenBitMap | None = None
        for prefix in dict.fromkeys(map(letters, text.split())):
            if not prefix:
                continue
            bitmap = self._beginning(prefix)
            found = bitmap if found is None else found & bitmap
            if not found:
                return EMPTY
        return found

    def _beginning(self, prefix: str) -> FrozenBitMap:
        if len(prefix) == 1:
            return self._first_letters.get(prefix, EMPTY)
        remembered = self._remembered.get(prefix)
        return self._union(prefix) if remembered is None else remembered

    def _union(self, prefix: str) -> FrozenBitMap:
        first = bisect_left(self._words, prefix)
        end = bisect_left(self._words, prefix + _AFTER_ALL, lo=first)
        if first == end:
            return EMPTY
        union = self._postings.between(first, end)
        if end - first > _WIDE and len(prefix) > 1:
            self._remembered[prefix] = union
            if len(self._remembered) > _REMEMBERED:
                self._remembered.popitem(last=False)
        return union


class WordIntake:
    """Gathers the words of the listings, position after position."""

    _SHORT = 48
    _KNOWN_LIMIT = 200_000

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._known: dict[str, tuple[int, ...]] = {}
        self._codes = array("I")
        self._counts = array("I")
        self._start = 0
        self._builder = PostingsBuilder(heavy=32)

    def add(self, texts: Iterable[str], wordy: Iterable[str]) -> None:
        """Take the next position's words: `texts` recur from listing to listing, the words of `wordy` do."""
        known = self._known
        found: set[int] = set()
        for text in texts:
            ids = known.get(text)
            found.update(self._learn(text) if ids is None else ids)
        for text in wordy:
            for word in text.split():
                ids = known.get(word)
                found.update(self._learn(word) if ids is None else ids)
        self._codes.extend(found)
        self._counts.append(len(found))

    def _learn(self, text: str) -> tuple[int, ...]:
        ids = self._ids
        learned = tuple([ids.setdefault(token, len(ids)) for token in tokens(text)])
        if len(text) <= self._SHORT and len(self._known) < self._KNOWN_LIMIT:
            self._known[text] = learned
        return learned

    def close_chunk(self) -> None:
        """Sort in what came since the last time."""
        counts = np.frombuffer(self._counts, dtype=np.uint32)
        positions = np.repeat(np.arange(self._start, self._start + counts.size, dtype=np.uint32), counts)
        self._builder.add(np.frombuffer(self._codes, dtype=np.uint32), positions)
        self._start += counts.size
        self._codes, self._counts = array("I"), array("I")

    def finish(self) -> WordIndex:
        """Return the index."""
        self.close_chunk()
        self._known = {}
        words = sorted(self._ids)
        renumbered = np.empty(len(words), dtype=np.uint32)
        for new, word in enumerate(words):
            renumbered[self._ids[word]] = new
        self._ids = {}
        return WordIndex(words, self._builder.finish(renumbered, len(words)))
