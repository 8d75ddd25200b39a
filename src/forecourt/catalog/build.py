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
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from forecourt.catalog.bitmap import Positions, Postings, PostingsBuilder, bitmap_of
from forecourt.catalog.bodies import Bodies, BodiesWriter, Ids
from forecourt.catalog.column import Codes, NumberColumn, Order, TermColumn, compact
from forecourt.catalog.facet import FacetTable
from forecourt.catalog.identifier_order import IdentifierIntake, Identifiers, StockKeys
from forecourt.catalog.listing import (
    CAR,
    FACET_RANGES,
    FACET_TERMS,
    NUMBERS,
    OFFERED,
    Listing,
    Members,
    instant,
    number,
)  # fmt: skip
from forecourt.catalog.text import normalise
from forecourt.catalog.words import WordIndex, WordIntake

__all__ = ["Parts", "give_back", "read"]

_CHUNK = 1 << 16
_MISSING = 0xFFFFFFFF
_TEXTS = tuple(name for name in FACET_TERMS if name not in ("year", "dc_fast_charge"))
_IDENTIFIERS = ("vin", "vehicle_id", "stock")
_NO_TIME = -(1 << 63)
_SMALL_VOCABULARY = 4096
_PACKED_LIMIT = 1 << 63


class Parts(msgspec.Struct):
    """What a catalog is made of."""

    bodies: Bodies
    ids: Ids
    dealers: Mapping[str, Positions]
    terms: Mapping[str, TermColumn]
    features: Mapping[str, Any]
    numbers: Mapping[str, NumberColumn]
    orders: Mapping[str, Order]
    identifiers: Mapping[str, Identifiers]
    words: WordIndex
    facets: FacetTable


class _Status(msgspec.Struct):
    status: Any = None


class _Intake:
    """One member's values as they come, numbered by first appearance."""

    __slots__ = ("codes", "seen")

    def __init__(self) -> None:
        self.codes = array("I")
        self.seen: dict[Any, int] = {}

    def add(self, value: Any) -> None:
        code = self.seen.get(value)
        if code is None:
            code = self.seen[value] = len(self.seen)
        self.codes.append(code)

    def renumbered(self, numbers: Sequence[int], groups: int) -> Codes:
        """Return the codes with `numbers` for the values in order of appearance, -1 meaning none."""
        table = np.array([*numbers, -1], dtype=np.int64)
        codes = np.frombuffer(self.codes, dtype=np.uint32)
        return compact(table[np.minimum(codes, len(numbers))], groups)


def read(listings: Iterable[Listing], *, text_fields: Sequence[str], heap_limit: int, directory: Path | None) -> Parts:
    """Read the listings, in any order, and return the index's parts. Raises ValueError when two share an
    id.
    """
    arrived, ids, order, dealer_intake = _keep(listings, heap_limit, directory)
    bodies = arrived.reordered(order)
    del arrived
    count = len(bodies)

    texts = {name: _Intake() for name in _TEXTS}
    numbers = {name: _Intake() for name in NUMBERS}
    flags = _Intake()
    times = array("q")
    features: dict[str, array[int]] = {}
    identifiers = {name: IdentifierIntake(name) for name in _IDENTIFIERS}
    words = WordIntake()
    text_pairs = [(name, intake.seen, intake.codes.append) for name, intake in texts.items()]
    number_pairs = list(numbers.items())
    identifier_pairs = [(name, intake.add) for name, intake in identifiers.items()]
    recurring = [name for name in text_fields if name not in ("features", "description", "notes")]
    wordy = [name for name in text_fields if name in ("description", "notes")]
    with_features = "features" in text_fields
    decode = msgspec.json.Decoder(Members).decode

    for position in range(count):
        members = decode(bodies[position])
        if members.vehicle_type is None or not _text(members.vehicle_type):
            members.vehicle_type = CAR
        for name, seen, append in text_pairs:
            value = getattr(members, name)
            if type(value) is str:
                code = seen.get(value)
                if code is None:
                    code = seen[value] = len(seen)
                append(code)
            else:
                append(_MISSING)
        for name, intake in number_pairs:
            value = getattr(members, name)
            if type(value) is not int:
                value = number(value)
                if name == "year" and type(value) is float:
                    value = None
            if value is None:
                intake.codes.append(_MISSING)
            else:
                intake.add(value)
        if type(members.dc_fast_charge) is bool:
            flags.add(members.dc_fast_charge)
        else:
            flags.codes.append(_MISSING)
        moment = instant(members.updated_at)
        times.append(_NO_TIME if moment is None else moment)
        for name, add in identifier_pairs:
            value = getattr(members, name)
            if type(value) is str:
                add(position, value)
        if type(members.feature_codes) is list:
            for feature in members.feature_codes:
                if type(feature) is str:
                    held = features.get(feature)
                    if held is None:
                        held = features[feature] = array("I")
                    if not held or held[-1] != position:
                        held.append(position)
        said: list[str] = []
        for name in recurring:
            value = getattr(members, name)
            if type(value) is str:
                said.append(value)
            elif name == "year" and (value := number(value)) is not None and type(value) is int:
                said.append(str(value))
        if with_features and type(members.features) is list:
            said += [feature for feature in members.features if type(feature) is str]
        told = [value for name in wordy if type(value := getattr(members, name)) is str]
        words.add(said, told)
        if position % _CHUNK == _CHUNK - 1:
            words.close_chunk()
            bodies.let_go()
            for identifier in identifiers.values():
                identifier.close_chunk()

    word_index = words.finish()
    held_identifiers, stock_order = _identifiers(identifiers, bodies)
    orders = {"stock": stock_order, "updated_at": _time_order(times)}
    for name in ("make", "model"):
        orders[name] = _text_order(texts[name])
    terms = {name: _text_column(texts.pop(name)) for name in _TEXTS}
    columns = {name: _number_column(numbers.pop(name)) for name in NUMBERS}
    for name in ("price", "list_price", "msrp", "mileage", "year"):
        orders[name] = Order(columns[name].values, columns[name].codes)
    terms["year"] = _year_column(columns["year"])
    terms["dc_fast_charge"] = _flag_column(flags)
    feature_bitmaps = {}
    for name in sorted(features):
        feature_bitmaps[name] = bitmap_of(np.frombuffer(features.pop(name), dtype=np.uint32))
    term_codes = {name: column[1] for name, column in terms.items()}
    term_columns = {name: column[0] for name, column in terms.items()}
    return Parts(
        bodies=bodies,
        ids=ids,
        dealers=_dealers(dealer_intake, order),
        terms=term_columns,
        features=feature_bitmaps,
        numbers=columns,
        orders=orders,
        identifiers=held_identifiers,
        words=word_index,
        facets=FacetTable(
            count,
            [(name, term_columns[name], term_codes.pop(name)) for name in FACET_TERMS],
            feature_bitmaps,
            [(name, columns[name]) for name in FACET_RANGES],
        ),
    )


def give_back() -> None:
    """Return freed memory to the system; glibc keeps what building has freed, half as much again as the index."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def _text(value: object) -> str:
    return normalise(value) if isinstance(value, str) else ""


def _keep(
    listings: Iterable[Listing], heap_limit: int, directory: Path | None
) -> tuple[Bodies, Ids, Positions, _Intake]:
    """Keep what is offered; return bodies by arrival, ids in order, the order, and the dealers by arrival."""
    writer = BodiesWriter(heap_limit, directory)
    ids = bytearray()
    starts = array("Q", [0])
    dealers = _Intake()
    status = msgspec.json.Decoder(_Status).decode
    ascending = True
    previous = b""
    try:
        for listing in listings:
            if _offered(status(listing.body).status):
                writer.add(listing.body)
                encoded = listing.listing_id.encode("utf-8", "surrogatepass")
                ascending = ascending and (previous < encoded or not len(dealers.codes))
                previous = encoded
                ids += encoded
                starts.append(len(ids))
                dealers.add(listing.dealer_id)
        if ascending:
            order = np.arange(len(dealers.codes), dtype=np.uint32)
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
    return isinstance(status, str) and status in OFFERED


def _dealers(intake: _Intake, order: Positions) -> dict[str, Positions]:
    codes = np.frombuffer(intake.codes, dtype=np.uint32)[order]
    by_dealer = codes.argsort(kind="stable").astype(np.uint32)
    bounds = np.searchsorted(codes[by_dealer], np.arange(len(intake.seen) + 1)).tolist()
    return {name: by_dealer[bounds[code] : bounds[code + 1]] for name, code in intake.seen.items()}


def _identifiers(intakes: Mapping[str, IdentifierIntake], bodies: Bodies) -> tuple[dict[str, Identifiers], Order]:
    found: dict[str, Identifiers] = {}
    for name in ("vin", "vehicle_id"):
        found[name] = Identifiers(name, intakes[name].finish(bodies)[0], bodies)
    order, starts = intakes["stock"].finish(bodies)
    codes = intakes["stock"].codes(order, starts, len(bodies))
    stock = Order(StockKeys("stock", order[starts], bodies), codes)
    found["stock"] = Identifiers("stock", stock.ascending[: stock.present], bodies)
    return found, stock


def _time_order(times: "array[int]") -> Order:
    moments = np.frombuffer(times, dtype=np.int64)
    distinct, codes = np.unique(moments, return_inverse=True)
    if distinct.size and distinct[0] == _NO_TIME:
        distinct, codes = distinct[1:], codes - 1
    return Order(array("q", distinct.tobytes()), compact(codes, distinct.size))


def _text_order(intake: _Intake) -> Order:
    keys = [(normalise(text), text) for text in intake.seen]
    ranked = sorted(key for key in keys if key[0])
    ranks = {text: rank for rank, (_, text) in enumerate(ranked)}
    return Order(ranked, intake.renumbered([ranks.get(text, -1) for text in intake.seen], len(ranked)))


def _text_column(intake: _Intake) -> tuple[TermColumn, Codes]:
    """Group spellings by normal form and show each group as it is most often written, ties by the smaller
    text.
    """
    spelt = np.frombuffer(intake.codes, dtype=np.uint32)
    counts = np.bincount(spelt[spelt != _MISSING], minlength=len(intake.seen)).tolist()
    shown: dict[str, tuple[int, str]] = {}
    normals = [normalise(text) for text in intake.seen]
    for text, normal, count in zip(intake.seen, normals, counts, strict=True):
        if normal and (normal not in shown or (-count, text) < shown[normal]):
            shown[normal] = (-count, text)
    ranked = sorted((text, normal) for normal, (_, text) in shown.items())
    ranks = {normal: rank for rank, (_, normal) in enumerate(ranked)}
    numbers = [ranks.get(normal, -1) for normal in normals]
    codes = intake.renumbered(numbers, len(ranked))
    found: dict[str | bool, int] = {}
    found.update(ranks)
    found.update((text, number) for text, number in zip(intake.seen, numbers, strict=True) if number >= 0)
    return TermColumn([text for text, _ in ranked], found, _postings(codes, len(ranked))), codes


def _number_column(intake: _Intake) -> NumberColumn:
    values = {seen: number(seen) for seen in intake.seen}
    ranked = sorted({value for value in values.values() if value is not None})
    ranks = {value: rank for rank, value in enumerate(ranked)}
    codes = intake.renumbered([ranks[value] for value in intake.seen], len(ranked))
    if all(type(value) is int and abs(value) < _PACKED_LIMIT for value in ranked):
        return NumberColumn(array("q", ranked), codes)
    return NumberColumn(ranked, codes)


def _year_column(years: NumberColumn) -> tuple[TermColumn, Codes]:
    return TermColumn([int(year) for year in years.values], {}, _postings(years.codes, 0)), years.codes


def _flag_column(intake: _Intake) -> tuple[TermColumn, Codes]:
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
