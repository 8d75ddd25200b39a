"""What a catalog is made of, and how it is put together from columns, wherever those come from.

A stock that is read from its bodies (build.py) and one that follows from an earlier one (follow.py) both come down to
the same columns, and from there on are made in the same way.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from pyroaring import FrozenBitMap

from forecourt.catalog.bitmap import bitmap_of
from forecourt.catalog.bodies import Bodies
from forecourt.catalog.column import Codes, NumberColumn, Order, Spelt, TermColumn, recoded, sorted_positions
from forecourt.catalog.facet import FacetTable
from forecourt.catalog.identifier_order import Identifiers
from forecourt.catalog.ids import Ids
from forecourt.catalog.listing import FACET_RANGES, FACET_TERMS
from forecourt.catalog.postings import Postings
from forecourt.catalog.spelling import Spellings, spellings_of
from forecourt.catalog.words import WordIndex

__all__ = ["TEXTS", "Columns", "Dealers", "Parts", "assembled"]

TEXTS: Final = tuple(name for name in FACET_TERMS if name not in ("year", "dc_fast_charge"))
"""Members that are texts and counted."""

_SMALL_VOCABULARY: Final = 4096
_RARE: Final = 16
"""In a large vocabulary, values on fewer listings share an array: a bitmap takes some hundred bytes."""


class Dealers(msgspec.Struct):
    """Each position's seller: a code into `names`."""

    names: Sequence[str]
    codes: Codes


class Columns(msgspec.Struct):
    """A stock as columns: what every position says of each member."""

    bodies: Bodies
    ids: Ids
    dealers: Dealers
    spelt: dict[str, Spelt]
    numbers: dict[str, NumberColumn]
    flags: tuple[Sequence[bool], Codes]
    updated_at: Order
    features: Mapping[str, FrozenBitMap]
    vins: Identifiers
    vehicle_ids: Identifiers
    stock: Order
    words: WordIndex


class Parts(msgspec.Struct):
    """What a catalog answers from."""

    bodies: Bodies
    ids: Ids
    dealers: Dealers
    listings_of: Mapping[str, FrozenBitMap]
    terms: Mapping[str, TermColumn]
    spellings: Spellings
    features: Mapping[str, FrozenBitMap]
    numbers: Mapping[str, NumberColumn]
    orders: Mapping[str, Order]
    identifiers: Mapping[str, Identifiers]
    words: WordIndex
    facets: FacetTable
    text_fields: Sequence[str]
    heap_limit: int
    directory: Path | None


def assembled(columns: Columns, *, text_fields: Sequence[str], heap_limit: int, directory: Path | None) -> Parts:
    """Return what answers questions about a stock."""
    orders = {"stock": columns.stock, "updated_at": columns.updated_at}
    terms: dict[str, TermColumn] = {}
    codes: dict[str, Codes] = {}
    spellings: dict[str, dict[str, dict[str, dict[str, int]]]] = {}
    for name in TEXTS:
        spelt = columns.spelt.pop(name)
        if name in ("make", "model"):
            orders[name] = Order(spelt.ranked, spelt.codes)
        terms[name], codes[name], spellings[name] = _term_column(spelt, columns.dealers)
    for name in ("price", "list_price", "msrp", "mileage", "year"):
        orders[name] = Order(columns.numbers[name].values, columns.numbers[name].codes)
    years = columns.numbers["year"]
    terms["year"] = TermColumn([int(year) for year in years.values], {}, _postings(years.codes, 0))
    codes["year"] = years.codes
    flags, codes["dc_fast_charge"] = columns.flags
    found: dict[str | bool, int] = {flag: rank for rank, flag in enumerate(flags)}
    terms["dc_fast_charge"] = TermColumn(flags, found, _postings(codes["dc_fast_charge"], len(flags)))
    return Parts(
        bodies=columns.bodies,
        ids=columns.ids,
        dealers=columns.dealers,
        listings_of=_listings_of(columns.dealers),
        terms=terms,
        spellings=Spellings(spellings),
        features=columns.features,
        numbers=columns.numbers,
        orders=orders,
        identifiers={
            "vin": columns.vins,
            "vehicle_id": columns.vehicle_ids,
            "stock": Identifiers("stock", columns.stock.ascending[: columns.stock.present], columns.bodies),
        },
        words=columns.words,
        facets=FacetTable(
            len(columns.bodies),
            [(name, terms[name], codes.pop(name)) for name in FACET_TERMS],
            columns.features,
            [(name, columns.numbers[name]) for name in FACET_RANGES],
        ),
        text_fields=text_fields,
        heap_limit=heap_limit,
        directory=directory,
    )


def _term_column(spelt: Spelt, dealers: Dealers) -> tuple[TermColumn, Codes, dict[str, dict[str, dict[str, int]]]]:
    """Group spellings by normal form and show each group as it is most often written, ties by the smaller text.

    The last that is returned says which sellers write a value how, where they differ.
    """
    total = len(spelt.ranked)
    counts = np.bincount(spelt.codes[spelt.codes != np.iinfo(spelt.codes.dtype).max], minlength=total).tolist()
    shown: dict[str, tuple[int, str]] = {}
    for (normal, text), count in zip(spelt.ranked, counts, strict=True):
        if normal not in shown or (-count, text) < shown[normal]:
            shown[normal] = (-count, text)
    values = sorted((text, normal) for normal, (_, text) in shown.items())
    ranks = {normal: rank for rank, (_, normal) in enumerate(values)}
    numbers = [ranks[normal] for normal, _ in spelt.ranked]
    codes = recoded(spelt.codes, np.array(numbers, dtype=np.int64), len(values))
    found: dict[str | bool, int] = {}
    found.update(ranks)
    found.update((text, number) for (_, text), number in zip(spelt.ranked, numbers, strict=True))
    texts = [text for text, _ in values]
    column = TermColumn(texts, found, _postings(codes, len(values)), spelt if len(values) < total else None)
    written = [text for _, text in spelt.ranked]
    return column, codes, spellings_of(written, spelt.codes, numbers, texts, dealers.codes, dealers.names)


def _listings_of(dealers: Dealers) -> dict[str, FrozenBitMap]:
    order = sorted_positions(dealers.codes)
    bounds = np.searchsorted(dealers.codes.take(order), np.arange(len(dealers.names) + 1)).tolist()
    return {name: bitmap_of(order[bounds[code] : bounds[code + 1]]) for code, name in enumerate(dealers.names)}


def _postings(codes: Codes, groups: int) -> Postings:
    """Return where each code stands; rare ones share an array when there are very many."""
    positions = sorted_positions(codes)
    counts = np.bincount(codes[codes != np.iinfo(codes.dtype).max], minlength=groups)[:groups]
    if not groups:
        return Postings({}, positions[:0], np.zeros(1, dtype=np.int64))
    ends = np.cumsum(counts)
    positions = positions[: int(ends[-1])]
    heavy = counts >= (1 if groups <= _SMALL_VOCABULARY else _RARE)
    bitmaps = {
        code: bitmap_of(positions[end - count : end])
        for code, count, end in zip(
            np.flatnonzero(heavy).tolist(), counts[heavy].tolist(), ends[heavy].tolist(), strict=True
        )
    }
    light = positions[np.repeat(~heavy, counts)]
    return Postings(bitmaps, light, np.concatenate(([0], np.cumsum(np.where(heavy, 0, counts)))))
