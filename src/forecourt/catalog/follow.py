"""A stock that follows from an earlier one: what changed is read, and everything else is taken over.

An import changes a small part of a stock, and reading bodies is what building costs. So the changed listings are read
by themselves, and the columns of both are brought together; positions shift, since they follow the ids.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from pyroaring import FrozenBitMap

from forecourt.catalog.bitmap import EMPTY, Mask, Positions
from forecourt.catalog.build import read
from forecourt.catalog.column import Codes, NumberColumn, Order, Spelt, followed, living, packed, recoded, united
from forecourt.catalog.identifier_order import stock_followed
from forecourt.catalog.ids import Ids
from forecourt.catalog.listing import NUMBERS, Listing
from forecourt.catalog.moves import NOWHERE, Moves
from forecourt.catalog.parts import TEXTS, Columns, Dealers, Parts, assembled
from forecourt.catalog.text import normalise

__all__ = ["following"]


def following(parts: Parts, changed: Iterable[Listing], removed: Collection[str]) -> Parts:
    """Return the parts of the stock in which `changed` are new or as they are now and `removed` are no more.

    Raises ValueError when two of the changed share an id.
    """
    named: list[str] = []

    def noted() -> Iterable[Listing]:
        for listing in changed:
            named.append(listing.listing_id)
            yield listing

    fresh = read(noted(), text_fields=parts.text_fields, heap_limit=parts.heap_limit, directory=parts.directory)
    gone: Mask = np.zeros(len(parts.bodies), dtype=np.bool_)
    for listing_id in (*named, *removed):
        position = parts.ids.find(listing_id)
        if position is not None:
            gone[position] = True
    places, replaced = _placed(parts.ids, fresh.ids)
    columns = _united(parts, fresh, Moves(len(parts.bodies), gone, places), replaced)
    return assembled(columns, text_fields=parts.text_fields, heap_limit=parts.heap_limit, directory=parts.directory)


def _placed(earlier: Ids, fresh: Ids) -> tuple[Any, Positions]:
    """Return how many earlier ids are smaller than each fresh one, and where the same id was."""
    places: list[int] = []
    replaced: list[int] = []
    for position in range(len(fresh)):
        listing_id = fresh[position]
        after = earlier.after(listing_id)
        same = after > 0 and earlier[after - 1] == listing_id
        places.append(after - same)
        replaced.append(after - 1 if same else NOWHERE)
    return np.array(places, dtype=np.int64), np.array(replaced, dtype=np.uint32)


def _united(parts: Parts, fresh: Columns, moves: Moves, replaced: Positions) -> Columns:
    bodies = parts.bodies.followed(fresh.bodies, moves.source, parts.directory)
    names, earlier_codes, fresh_codes = _dealers_united(parts.dealers.names, fresh.dealers.names)
    dealer_codes, alive = followed(
        moves, parts.dealers.codes, fresh.dealers.codes, (earlier_codes, fresh_codes), len(names)
    )
    flags = parts.terms["dc_fast_charge"].values, parts.facets.codes("dc_fast_charge")
    flag_values, flag_codes = _followed(moves, *flags, *fresh.flags)
    times = parts.orders["updated_at"]
    moments, time_codes = _followed(moves, times.values, times.codes, fresh.updated_at.values, fresh.updated_at.codes)
    return Columns(
        bodies=bodies,
        ids=parts.ids.followed(fresh.ids, moves.source),
        dealers=Dealers(living(names, alive), dealer_codes),
        spelt={name: _spelt_followed(parts, name, fresh.spelt[name], moves) for name in TEXTS},
        numbers={name: _number_followed(parts.numbers[name], fresh.numbers[name], moves) for name in NUMBERS},
        flags=(flag_values, flag_codes),
        updated_at=Order(moments, time_codes),
        features=_features_followed(parts, fresh, moves),
        vins=parts.identifiers["vin"].followed(fresh.vins, moves, replaced, bodies),
        vehicle_ids=parts.identifiers["vehicle_id"].followed(fresh.vehicle_ids, moves, replaced, bodies),
        stock=stock_followed(parts.orders["stock"], fresh.stock, moves, replaced, bodies),
        words=parts.words.followed(fresh.words, moves),
    )


def _followed(
    moves: Moves, earlier_values: Sequence[Any], earlier: Codes, fresh_values: Sequence[Any], fresh: Codes
) -> tuple[Sequence[Any], Codes]:
    """Return the distinct values, ascending, of a column of the stock that follows, and its codes among them."""
    values, *tables = united(earlier_values, fresh_values)
    codes, alive = followed(moves, earlier, fresh, (tables[0], tables[1]), len(values))
    return living(values, alive), codes


def _dealers_united(earlier: Sequence[str], fresh: Sequence[str]) -> tuple[list[str], Positions, Positions]:
    numbers = {name: number for number, name in enumerate(dict.fromkeys((*earlier, *fresh)))}
    return (
        list(numbers),
        np.arange(len(earlier), dtype=np.uint32),
        np.array([*map(numbers.get, fresh)], dtype=np.uint32),
    )


def _number_followed(earlier: NumberColumn, fresh: NumberColumn, moves: Moves) -> NumberColumn:
    values, codes = _followed(moves, earlier.values, earlier.codes, fresh.values, fresh.codes)
    return NumberColumn(packed(values), codes)


def _spelt_followed(parts: Parts, name: str, fresh: Spelt, moves: Moves) -> Spelt:
    earlier = _spelt(parts, name)
    return Spelt(*_followed(moves, earlier.ranked, earlier.codes, fresh.ranked, fresh.codes))


def _spelt(parts: Parts, name: str) -> Spelt:
    """Return how a member is written, as it was read once."""
    order = parts.orders.get(name)
    if order is not None:
        return Spelt(order.values, order.codes)
    column = parts.terms[name]
    if column.spelt is not None:
        return column.spelt
    keys = sorted((normalise(text), text, code) for code, text in enumerate(column.values) if isinstance(text, str))
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[[code for _, _, code in keys]] = np.arange(len(keys))
    return Spelt([key[:2] for key in keys], recoded(parts.facets.codes(name), ranks, len(keys)))


def _features_followed(parts: Parts, fresh: Columns, moves: Moves) -> dict[str, FrozenBitMap]:
    codes = sorted(parts.features.keys() | fresh.features.keys())
    moved = {code: moves.bitmap(parts.features.get(code, EMPTY), fresh.features.get(code)) for code in codes}
    return {code: bitmap for code, bitmap in moved.items() if bitmap}
