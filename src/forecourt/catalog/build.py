"""Building the index in two passes: the first keeps the bodies and ids, the second reads them in the order of
ids.

Nothing is held per listing but a few numbers in typed arrays, so that a million listings fit in a small
process.
"""

import ctypes
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from forecourt.catalog.bitmap import Positions, Postings, PostingsBuilder
from forecourt.catalog.bodies import Bodies, BodiesWriter, Ids
from forecourt.catalog.column import Codes, NumberColumn, Order, TermColumn, compact
from forecourt.catalog.facet import FacetTable
from forecourt.catalog.identifier_order import IdentifierIntake, Identifiers, StockKeys
from forecourt.catalog.intake import (
    MISSING,
    NO_TIME,
    FeatureIntake,
    Flags,
    Numbers,
    Texts,
    Times,
    ValueIntake,
    flattened,
    spread,
    texts_of,
    words_of,
)
from forecourt.catalog.listing import (
    CAR,
    FACET_RANGES,
    FACET_TERMS,
    NUMBERS,
    OFFERED,
    Listing,
    Members,
)  # fmt: skip
from forecourt.catalog.spelling import Spellings, spellings_of
from forecourt.catalog.text import normalise
from forecourt.catalog.words import WordIndex, WordIntake

__all__ = ["Parts", "give_back", "read"]

_CHUNK = 1 << 16
_ROWS = 1 << 12
"""Listings whose members are objects at one time: few enough to stay in the processor's cache."""

_TEXTS = tuple(name for name in FACET_TERMS if name not in ("year", "dc_fast_charge"))
_IDENTIFIERS = ("vin", "vehicle_id", "stock")
_RUNNING = ("description", "notes")
_SMALL_VOCABULARY = 4096
_PACKED_LIMIT = 1 << 63


class Parts(msgspec.Struct):
    """What a catalog is made of."""

    bodies: Bodies
    ids: Ids
    dealers: Mapping[str, Positions]
    terms: Mapping[str, TermColumn]
    spellings: Spellings
    features: Mapping[str, Any]
    numbers: Mapping[str, NumberColumn]
    orders: Mapping[str, Order]
    identifiers: Mapping[str, Identifiers]
    words: WordIndex
    facets: FacetTable


_MEMBERS = msgspec.structs.fields(Members)
_READ = attrgetter(*[member.name for member in _MEMBERS])
_STATUS = [member.name for member in _MEMBERS].index("status")
_DECODE = msgspec.json.Decoder(Members).decode


def read(listings: Iterable[Listing], *, text_fields: Sequence[str], heap_limit: int, directory: Path | None) -> Parts:
    """Read the listings, in any order, and return the index's parts. Raises ValueError when two share an
    id.
    """
    arrived, ids, order, dealer_intake = _keep(listings, heap_limit, directory)
    bodies = arrived.reordered(order)
    del arrived

    texts = {name: Texts() for name in _TEXTS}
    numbers = {name: Numbers(whole=name == "year") for name in NUMBERS}
    flags = Flags()
    times = Times()
    features = FeatureIntake()
    identifiers = {name: IdentifierIntake(name) for name in _IDENTIFIERS}
    words = WordIntake()
    dropped: list[npt.NDArray[np.intp]] = []
    first = 0
    for start in range(0, len(bodies), _ROWS):
        columns, unfit = _columns(bodies.of(range(start, min(start + _ROWS, len(bodies)))))
        if unfit:
            dropped.append(np.array(unfit, dtype=np.intp) + start)
        for name in _TEXTS:
            columns[name] = texts_of(columns[name])
        columns["vehicle_type"] = _vehicle_types(columns["vehicle_type"])
        for name, text_intake in texts.items():
            text_intake.add(columns[name])
        for name, number_intake in numbers.items():
            columns[name] = number_intake.take(columns[name])
        flags.take(columns["dc_fast_charge"])
        times.take(columns["updated_at"])
        for name, identifier in identifiers.items():
            identifier.take(first, texts_of(columns[name]))
        features.take(first, columns["feature_codes"])
        _take_words(words, text_fields, first, columns)
        first += len(columns["status"])
        if start % _CHUNK + _ROWS >= _CHUNK:
            words.close_chunk()
            features.close_chunk()
            bodies.let_go()
            for identifier in identifiers.values():
                identifier.close_chunk()

    if dropped:
        kept = np.delete(np.arange(len(bodies), dtype=np.uint32), np.concatenate(dropped))
        bodies, ids, order = bodies.reordered(kept), ids.reordered(kept), order[kept]
    count = len(bodies)
    word_index = words.finish()
    held_identifiers, stock_order = _identifiers(identifiers, bodies)
    orders = {"stock": stock_order, "updated_at": _time_order(times.moments())}
    for name in ("make", "model"):
        orders[name] = _text_order(texts[name])
    dealer_codes, dealer_names = dealer_intake.codes()[order], dealer_intake.seen
    terms: dict[str, tuple[TermColumn, Codes]] = {}
    spellings: dict[str, dict[str, dict[str, dict[str, int]]]] = {}
    for name in _TEXTS:
        terms[name], spellings[name] = _text_column(texts.pop(name), dealer_codes, dealer_names)
    number_columns = {name: _number_column(numbers.pop(name)) for name in NUMBERS}
    for name in ("price", "list_price", "msrp", "mileage", "year"):
        orders[name] = Order(number_columns[name].values, number_columns[name].codes)
    terms["year"] = _year_column(number_columns["year"])
    terms["dc_fast_charge"] = _flag_column(flags)
    feature_bitmaps = features.finish()
    term_codes = {name: column[1] for name, column in terms.items()}
    term_columns = {name: column[0] for name, column in terms.items()}
    return Parts(
        bodies=bodies,
        ids=ids,
        dealers=_dealers(dealer_codes, dealer_names),
        terms=term_columns,
        spellings=Spellings(spellings),
        features=feature_bitmaps,
        numbers=number_columns,
        orders=orders,
        identifiers=held_identifiers,
        words=word_index,
        facets=FacetTable(
            count,
            [(name, term_columns[name], term_codes.pop(name)) for name in FACET_TERMS],
            feature_bitmaps,
            [(name, number_columns[name]) for name in FACET_RANGES],
        ),
    )


def give_back() -> None:
    """Return freed memory to the system; glibc keeps what building has freed, half as much again as the index."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def _columns(bodies: Sequence[bytes]) -> tuple[dict[str, Sequence[Any]], list[int]]:
    """Return the members of those bodies that are offered, a column each, and which bodies are not."""
    rows = list(map(_READ, map(_DECODE, bodies)))
    unfit = [index for index, row in enumerate(rows) if not _offered(row[_STATUS])]
    if unfit:
        rows = [row for row in rows if _offered(row[_STATUS])]
    columns: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * len(_MEMBERS)
    return {member.name: column for member, column in zip(_MEMBERS, columns, strict=True)}, unfit


def _vehicle_types(column: Sequence[str | None]) -> Sequence[str | None]:
    shown = {text: text if text is not None and normalise(text) else CAR for text in set(column)}
    return list(map(shown.__getitem__, column))


def _take_words(
    words: WordIntake, text_fields: Sequence[str], first: int, columns: Mapping[str, Sequence[Any]]
) -> None:
    """Give the word index what a text query looks into: whole texts that recur, and the words of running text."""
    positions = np.arange(first, first + len(columns["status"]), dtype=np.uint32)
    for name in text_fields:
        column = columns[name]
        if name == "features":
            words.take(*flattened(first, column))
        elif name in _RUNNING:
            words.take(*spread(first, words_of(texts_of(column))))
        elif name == "year":
            words.take([None if year is None else str(year) for year in column], positions)
        else:
            words.take(texts_of(column), positions)


def _keep(
    listings: Iterable[Listing], heap_limit: int, directory: Path | None
) -> tuple[Bodies, Ids, Positions, ValueIntake[str]]:
    """Keep every listing; return bodies by arrival, ids in order, the order, and the dealers by arrival."""
    writer = BodiesWriter(heap_limit, directory)
    ids = bytearray()
    starts = array("Q", [0])
    names: list[str] = []
    dealers: Texts = Texts()
    ascending = True
    previous: bytes | None = None
    try:
        for listing in listings:
            writer.add(listing.body)
            encoded = listing.listing_id.encode("utf-8", "surrogatepass")
            ascending = ascending and (previous is None or previous < encoded)
            previous = encoded
            ids += encoded
            starts.append(len(ids))
            names.append(listing.dealer_id)
            if len(names) == _ROWS:
                dealers.add(names)
                names.clear()
        dealers.add(names)
        if ascending:
            order = np.arange(len(starts) - 1, dtype=np.uint32)
            return writer.finish(), Ids(bytes(ids), starts), order, dealers
        sorted_ids, order = _sorted_ids(ids, starts)
        return writer.finish(), sorted_ids, order, dealers
    except BaseException:
        writer.discard()
        raise


def _sorted_ids(ids: bytearray, starts: "array[int]") -> tuple[Ids, Positions]:
    """Return the ids in order, and the order. Raises ValueError when two are the same."""
    encoded = [bytes(ids[start:end]) for start, end in pairwise(starts)]
    order = sorted(range(len(encoded)), key=encoded.__getitem__)
    moved = array("Q", [0])
    buffer = bytearray()
    for rank, arrival in enumerate(order):
        if rank and encoded[arrival] == encoded[order[rank - 1]]:
            raise ValueError("two listings have the same listing_id")
        buffer += encoded[arrival]
        moved.append(len(buffer))
    return Ids(bytes(buffer), moved), np.array(order, dtype=np.uint32)


def _offered(status: object) -> bool:
    return type(status) is str and status in OFFERED


def _dealers(codes: npt.NDArray[np.uint32], names: Sequence[str]) -> dict[str, Positions]:
    by_dealer = codes.argsort(kind="stable").astype(np.uint32)
    bounds = np.searchsorted(codes[by_dealer], np.arange(len(names) + 1)).tolist()
    return {name: by_dealer[bounds[code] : bounds[code + 1]] for code, name in enumerate(names)}


def _identifiers(intakes: Mapping[str, IdentifierIntake], bodies: Bodies) -> tuple[dict[str, Identifiers], Order]:
    found: dict[str, Identifiers] = {}
    for name in ("vin", "vehicle_id"):
        found[name] = Identifiers(name, intakes[name].finish(bodies)[0], bodies)
    order, starts = intakes["stock"].finish(bodies)
    codes = intakes["stock"].codes(order, starts, len(bodies))
    stock = Order(StockKeys("stock", order[starts], bodies), codes)
    found["stock"] = Identifiers("stock", stock.ascending[: stock.present], bodies)
    return found, stock


def _time_order(moments: npt.NDArray[np.int64]) -> Order:
    distinct = np.sort(moments)
    if distinct.size:
        distinct = distinct[np.append(True, distinct[1:] != distinct[:-1])]
    codes = np.searchsorted(distinct, moments)
    if distinct.size and distinct[0] == NO_TIME:
        distinct, codes = distinct[1:], codes - 1
    return Order(array("q", distinct.tobytes()), compact(codes, distinct.size))


def _text_order(intake: Texts) -> Order:
    keys = [(normalise(text), text) for text in intake.seen]
    ranked = sorted(key for key in keys if key[0])
    ranks = {text: rank for rank, (_, text) in enumerate(ranked)}
    return Order(ranked, intake.renumbered([ranks.get(text, -1) for text in intake.seen], len(ranked)))


def _text_column(
    intake: Texts, dealers: npt.NDArray[np.uint32], names: Sequence[str]
) -> tuple[tuple[TermColumn, Codes], dict[str, dict[str, dict[str, int]]]]:
    """Group spellings by normal form and show each group as it is most often written, ties by the smaller text.

    The second that is returned says which sellers write a value how, where they differ.
    """
    spelt = intake.codes()
    counts = np.bincount(spelt[spelt != MISSING], minlength=len(intake.seen)).tolist()
    shown: dict[str, tuple[int, str]] = {}
    seen = intake.seen
    normals = [normalise(text) for text in seen]
    for text, normal, count in zip(seen, normals, counts, strict=True):
        if normal and (normal not in shown or (-count, text) < shown[normal]):
            shown[normal] = (-count, text)
    ranked = sorted((text, normal) for normal, (_, text) in shown.items())
    ranks = {normal: rank for rank, (_, normal) in enumerate(ranked)}
    numbers = [ranks.get(normal, -1) for normal in normals]
    codes = intake.renumbered(numbers, len(ranked))
    found: dict[str | bool, int] = {}
    found.update(ranks)
    found.update((text, number) for text, number in zip(seen, numbers, strict=True) if number >= 0)
    values = [text for text, _ in ranked]
    column = TermColumn(values, found, _postings(codes, len(ranked)))
    return (column, codes), spellings_of(seen, spelt, numbers, values, dealers, names)


def _number_column(intake: Numbers) -> NumberColumn:
    ranked = sorted(intake.seen)
    ranks = {value: rank for rank, value in enumerate(ranked)}
    codes = intake.renumbered([ranks[value] for value in intake.seen], len(ranked))
    if all(type(value) is int and abs(value) < _PACKED_LIMIT for value in ranked):
        return NumberColumn(array("q", ranked), codes)
    return NumberColumn(ranked, codes)


def _year_column(years: NumberColumn) -> tuple[TermColumn, Codes]:
    return TermColumn([int(year) for year in years.values], {}, _postings(years.codes, 0)), years.codes


def _flag_column(intake: Flags) -> tuple[TermColumn, Codes]:
    ranked = sorted(intake.seen)
    codes = intake.renumbered([ranked.index(flag) for flag in intake.seen], len(ranked))
    found: dict[str | bool, int] = {flag: rank for rank, flag in enumerate(ranked)}
    return TermColumn(ranked, found, _postings(codes, len(ranked))), codes


def _postings(codes: Codes, groups: int) -> Postings:
    """Return where each code stands; rare ones share an array when there are very many."""
    builder = PostingsBuilder(heavy=1 if groups <= _SMALL_VOCABULARY else 16)
    if groups:
        positions = np.flatnonzero(codes != np.iinfo(codes.dtype).max)
        builder.add(codes[positions], positions.astype(np.uint32))
    return builder.finish(None, groups)
