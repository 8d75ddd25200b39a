"""Reading a stock into columns in two passes: the first keeps the bodies and ids, the second reads them in the order of
ids.

Nothing is held per listing but a few numbers in typed arrays, so that a million listings fit in a small
process.
"""

import ctypes
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise
from operator import attrgetter, lt
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from forecourt.catalog.bitmap import Positions
from forecourt.catalog.bodies import Bodies, BodiesWriter
from forecourt.catalog.column import Codes, NumberColumn, Order, Spelt, compact, packed
from forecourt.catalog.identifier_order import IdentifierIntake, Identifiers, StockKeys
from forecourt.catalog.ids import Ids, starts_of
from forecourt.catalog.intake import (
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
from forecourt.catalog.listing import CAR, NUMBERS, OFFERED, AnyMembers, Listing, Members
from forecourt.catalog.parts import TEXTS, Columns, Dealers
from forecourt.catalog.text import normalise
from forecourt.catalog.words import WordIntake

__all__ = ["give_back", "read"]

_CHUNK = 1 << 16
_ROWS = 1 << 8
"""Listings whose members are objects at one time: few enough to stay in one core's cache, a third faster than 4,096."""

_IDENTIFIERS = ("vin", "vehicle_id", "stock")
_RUNNING = ("description", "notes")

_MEMBERS = msgspec.structs.fields(Members)
_READ = attrgetter(*[member.name for member in _MEMBERS])
_STATUS = [member.name for member in _MEMBERS].index("status")
_DECODE = msgspec.json.Decoder(Members).decode
_DECODE_ANY = msgspec.json.Decoder(AnyMembers).decode
_LISTS = ("features", "feature_codes")
_TEXT_MEMBERS = tuple(member.name for member in _MEMBERS if member.name not in (*NUMBERS, *_LISTS, "dc_fast_charge"))


def read(
    listings: Iterable[Listing], *, text_fields: Sequence[str], heap_limit: int, directory: Path | None
) -> Columns:
    """Read the listings, in any order, and return their columns. Raises ValueError when two share an
    id.
    """
    arrived, ids, order, dealers = _keep(listings, heap_limit, directory)
    bodies = arrived.reordered(order)
    del arrived

    texts = {name: Texts() for name in TEXTS}
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
        columns["vehicle_type"] = _vehicle_types(columns["vehicle_type"])
        for name, text_intake in texts.items():
            text_intake.add(columns[name])
        for name, number_intake in numbers.items():
            columns[name] = number_intake.take(columns[name])
        flags.take(columns["dc_fast_charge"])
        times.take(columns["updated_at"])
        for name, identifier in identifiers.items():
            identifier.take(first, columns[name])
        features.take(first, columns["feature_codes"])
        _take_words(words, text_fields, first, columns)
        first += len(columns["status"])
        if start % _CHUNK + _ROWS >= _CHUNK:
            words.close_chunk()
            features.close_chunk()
            bodies.let_go()
            for identifier in identifiers.values():
                identifier.close_chunk()

    dealer_codes = dealers.codes()[order]
    if dropped:
        kept = np.delete(np.arange(len(bodies), dtype=np.uint32), np.concatenate(dropped))
        bodies, ids, dealer_codes = bodies.reordered(kept), ids.reordered(kept), dealer_codes[kept]
    names: Sequence[str] = dealers.seen
    vins, vehicle_ids, stock = _identifiers(identifiers, bodies)
    return Columns(
        bodies=bodies,
        ids=ids,
        dealers=Dealers(names, compact(dealer_codes, len(names))),
        spelt={name: _spelt(texts.pop(name)) for name in TEXTS},
        numbers={name: _number_column(numbers.pop(name)) for name in NUMBERS},
        flags=_flag_column(flags),
        updated_at=_time_order(times.moments()),
        features=features.finish(),
        vins=vins,
        vehicle_ids=vehicle_ids,
        stock=stock,
        words=words.finish(),
    )


def give_back() -> None:
    """Return freed memory to the system; glibc keeps what building has freed, half as much again as the index."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def _columns(bodies: Sequence[bytes]) -> tuple[dict[str, Sequence[Any]], list[int]]:
    """Return the members of those bodies that are offered, a column each, and which bodies are not.

    Texts and lists of texts come out as such, with None for what is none; a look at each value is only taken when some
    body has a member of a wrong type.
    """
    try:
        rows = list(map(_READ, map(_DECODE, bodies)))
        sound = True
    except msgspec.ValidationError:
        rows = list(map(_READ, map(_DECODE_ANY, bodies)))
        sound = False
    unfit = [index for index, row in enumerate(rows) if not _offered(row[_STATUS])]
    if unfit:
        rows = [row for row in rows if _offered(row[_STATUS])]
    found: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * len(_MEMBERS)
    columns = {member.name: column for member, column in zip(_MEMBERS, found, strict=True)}
    if not sound:
        for name in _TEXT_MEMBERS:
            columns[name] = texts_of(columns[name])
        for name in _LISTS:
            columns[name] = [
                [text for text in value if type(text) is str] if type(value) is list else None
                for value in columns[name]
            ]
    return columns, unfit


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
        if name in _LISTS:
            words.take(*flattened(first, column))
        elif name in _RUNNING:
            words.take(*spread(first, words_of(column)))
        elif name == "year":
            words.take([None if year is None else str(year) for year in column], positions)
        elif name in _TEXT_MEMBERS:
            words.take(column, positions)


def _keep(
    listings: Iterable[Listing], heap_limit: int, directory: Path | None
) -> tuple[Bodies, Ids, Positions, ValueIntake[str]]:
    """Keep every listing; return bodies by arrival, ids in order, the order, and the dealers by arrival."""
    writer = BodiesWriter(heap_limit, directory)
    ids = bytearray()
    lengths = array("I")
    dealers: Texts = Texts()
    ascending = True
    last = b""
    rows = iter(listings)
    try:
        while some := list(islice(rows, _ROWS)):
            writer.add([listing.body for listing in some])
            encoded = [listing.listing_id.encode("utf-8", "surrogatepass") for listing in some]
            ascending = ascending and last < encoded[0] and all(map(lt, encoded, encoded[1:]))
            last = encoded[-1]
            ids += b"".join(encoded)
            lengths.extend(map(len, encoded))
            dealers.add([listing.dealer_id for listing in some])
        starts = starts_of(np.frombuffer(lengths, dtype=np.uint32))
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
    ranked = [encoded[arrival] for arrival in order]
    if any(one == other for one, other in pairwise(ranked)):
        raise ValueError("two listings have the same listing_id")
    return Ids.of(ranked), np.array(order, dtype=np.uint32)


def _offered(status: object) -> bool:
    return type(status) is str and status in OFFERED


def _identifiers(intakes: Mapping[str, IdentifierIntake], bodies: Bodies) -> tuple[Identifiers, Identifiers, Order]:
    vins = Identifiers("vin", intakes["vin"].finish(bodies)[0], bodies)
    vehicle_ids = Identifiers("vehicle_id", intakes["vehicle_id"].finish(bodies)[0], bodies)
    order, starts = intakes["stock"].finish(bodies)
    codes = intakes["stock"].codes(order, starts, len(bodies))
    return vins, vehicle_ids, Order(StockKeys("stock", order[starts], bodies), codes)


def _time_order(moments: npt.NDArray[np.int64]) -> Order:
    distinct = np.sort(moments)
    if distinct.size:
        distinct = distinct[np.append(True, distinct[1:] != distinct[:-1])]
    codes = np.searchsorted(distinct, moments)
    if distinct.size and distinct[0] == NO_TIME:
        distinct, codes = distinct[1:], codes - 1
    return Order(array("q", distinct.tobytes()), compact(codes, distinct.size))


def _spelt(intake: Texts) -> Spelt:
    keys = [(normalise(text), text) for text in intake.seen]
    ranked = sorted(key for key in keys if key[0])
    ranks = {text: rank for rank, (_, text) in enumerate(ranked)}
    return Spelt(ranked, intake.renumbered([ranks.get(text, -1) for text in intake.seen], len(ranked)))


def _number_column(intake: Numbers) -> NumberColumn:
    ranked = sorted(intake.seen)
    ranks = {value: rank for rank, value in enumerate(ranked)}
    return NumberColumn(packed(ranked), intake.renumbered([ranks[value] for value in intake.seen], len(ranked)))


def _flag_column(intake: Flags) -> tuple[Sequence[bool], Codes]:
    ranked = sorted(intake.seen)
    return ranked, intake.renumbered([ranked.index(flag) for flag in intake.seen], len(ranked))
