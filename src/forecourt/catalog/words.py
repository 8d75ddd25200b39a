"""The word index: which listings have a word that begins so."""

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from pyroaring import FrozenBitMap

from forecourt.catalog.bitmap import EMPTY, Positions
from forecourt.catalog.column import living, united
from forecourt.catalog.moves import Moves
from forecourt.catalog.postings import Postings, PostingsBuilder
from forecourt.catalog.text import letters, tokens

__all__ = ["WordIndex", "WordIntake"]

_REMEMBERED = 64
_WIDE = 16
"""Prefixes of more tokens than this are worth remembering the union of."""

_AFTER_ALL = chr(0x10FFFF)
"""Sorts after every letter and digit."""


class WordIndex:
    """The tokens of the listings in order, each with its positions; a prefix is a run of tokens."""

    def __init__(self, words: Sequence[str], postings: Postings) -> None:
        self._words = words
        self._postings = postings
        self._remembered: OrderedDict[str, FrozenBitMap] = OrderedDict()
        self._first_letters = {letter: self._union(letter) for letter in sorted({word[0] for word in words})}

    def followed(self, fresh: "WordIndex", moves: Moves) -> "WordIndex":
        """Return the index of a stock that follows from this one's by `moves`."""
        words, earlier_codes, fresh_codes = united(self._words, fresh._words)
        postings, alive = self._postings.followed(fresh._postings, moves, (earlier_codes, fresh_codes), len(words))
        return WordIndex(living(words, alive), postings)

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

    _KNOWN_LIMIT = 200_000

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._forget()
        self._codes: list[npt.NDArray[np.uint32]] = []
        self._positions: list[Positions] = []
        self._builder = PostingsBuilder(heavy=32)

    def _forget(self) -> None:
        self._known = _Known(self._ids)

    def take(self, texts: Sequence[str | None], positions: Positions) -> None:
        """Take texts, each of a position."""
        known = self._known
        numbers = np.fromiter(map(known.__getitem__, texts), np.uint32, len(texts))
        bounds = np.frombuffer(known.ends, dtype=np.uint32)
        tokens = np.frombuffer(known.tokens, dtype=np.uint32)
        starts, ends = bounds.take(numbers).astype(np.intp), bounds.take(numbers + 1).astype(np.intp)
        lengths = ends - starts
        # The place of each token of each text in `tokens`: the texts' starts, counted on from.
        steps = np.arange(lengths.sum(), dtype=np.intp)
        steps += np.repeat(starts - (lengths.cumsum() - lengths), lengths)
        self._codes.append(tokens[steps])
        self._positions.append(np.repeat(positions, lengths))
        if len(known) > self._KNOWN_LIMIT:
            self._forget()

    def close_chunk(self) -> None:
        """Sort in what came since the last time."""
        if self._codes:
            codes, positions = np.concatenate(self._codes), np.concatenate(self._positions)
            self._codes, self._positions = [], []
            self._builder.add(codes, positions)

    def finish(self) -> WordIndex:
        """Return the index."""
        self.close_chunk()
        self._forget()
        words = sorted(self._ids)
        renumbered = np.empty(len(words), dtype=np.uint32)
        for new, word in enumerate(words):
            renumbered[self._ids[word]] = new
        self._ids = {}
        return WordIndex(words, self._builder.finish(renumbered, len(words)))


class _Known(dict[str | None, int]):
    """Numbers texts by first appearance and keeps the tokens of each: `tokens` from its end to the next one's."""

    def __init__(self, ids: dict[str, int]) -> None:
        super().__init__({None: 0})
        self._ids = ids
        self.tokens = array("I")
        self.ends = array("I", [0, 0])

    def __missing__(self, text: str) -> int:
        ids = self._ids
        self.tokens.extend([ids.setdefault(token, len(ids)) for token in tokens(text)])
        self.ends.append(len(self.tokens))
        number = self[text] = len(self)
        return number
