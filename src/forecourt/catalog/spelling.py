"""How values are spelled by some sellers: what is shown to those who ask them says nothing about the others."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from forecourt.model import Facets

__all__ = ["Spellings", "spellings_of"]

Shown = Mapping[str, str]
"""The spelling to show in place of each that the whole catalog shows."""


class Spellings:
    """Which sellers write those values, member by member, that are written in more than one way.

    `members` maps a member to the value the catalog shows, and that to each seller's spellings with their numbers of
    listings.
    """

    __slots__ = ("_members", "_remembered")

    _LIMIT = 256

    def __init__(self, members: Mapping[str, Mapping[str, Mapping[str, Mapping[str, int]]]]) -> None:
        self._members = {member: values for member, values in members.items() if values}
        self._remembered: dict[tuple[frozenset[str], str], Shown] = {}

    def shown(self, facets: Facets, dealers: Collection[str]) -> Facets:
        """Return the facets with each value as these sellers, and no others, most often write it.

        Ties go to the smaller text, and values of one count come in the order of what is shown.
        """
        sellers = frozenset(dealers)
        terms = dict(facets.terms)
        for member in self._members.keys() & terms.keys():
            shown = self._of(sellers, member)
            if any(shown.get(value, value) != value for value, _ in terms[member] if isinstance(value, str)):
                spelt = [(shown.get(value, value), count) for value, count in terms[member] if isinstance(value, str)]
                spelt.sort(key=lambda pair: (-pair[1], pair[0]))
                terms[member] = list[tuple[str | int | bool, int]](spelt)
        return Facets(terms, facets.ranges)

    def _of(self, sellers: frozenset[str], member: str) -> Shown:
        known = self._remembered.get((sellers, member))
        if known is not None:
            return known
        shown: dict[str, str] = {}
        for value, by_seller in self._members[member].items():
            counts: Counter[str] = Counter()
            for seller in sellers & by_seller.keys():
                counts.update(by_seller[seller])
            if counts:
                shown[value] = min(counts, key=lambda text, counts=counts: (-counts[text], text))  # type: ignore[misc]
        if len(self._remembered) >= self._LIMIT:
            self._remembered.clear()
        self._remembered[sellers, member] = shown
        return shown


def spellings_of(
    written: Sequence[str],
    spelt: npt.NDArray[Any],
    numbers: Sequence[int],
    values: Sequence[str],
    dealers: npt.NDArray[Any],
    names: Sequence[str],
) -> dict[str, dict[str, dict[str, int]]]:
    """Return the values of one member that are written in several ways: value, seller, spelling, listings.

    `spelt` holds each position's code in `written` (a greater one: none), `numbers` the place in `values` that each
    code stands for, `dealers` each position's code in `names`.
    """
    found: dict[str, dict[str, dict[str, int]]] = {}
    if len(values) == len(written):
        return found
    ways = np.bincount(numbers, minlength=len(values))
    varied = np.append(ways[numbers] > 1, False)
    at = varied[np.minimum(spelt, len(written))]
    pairs = np.sort(dealers[at].astype(np.int64) * len(written) + spelt[at])
    starts = np.flatnonzero(np.diff(pairs, prepend=-1))
    counts = np.diff(starts, append=pairs.size).tolist()
    for pair, count in zip(pairs[starts].tolist(), counts, strict=True):
        dealer, code = divmod(pair, len(written))
        found.setdefault(values[numbers[code]], {}).setdefault(names[dealer], {})[written[code]] = count
    return found
