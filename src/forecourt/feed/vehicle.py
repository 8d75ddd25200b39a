"""From one row to one AAP vehicle: which column says what, what to leave out, and what to report."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

from forecourt.feed.alias import normalised
from forecourt.feed.build import read as read_build
from forecourt.feed.normalise.date import day, moment
from forecourt.feed.normalise.mileage import mileage
from forecourt.feed.normalise.photo import NOT_HTTP, address, photos
from forecourt.feed.normalise.price import is_foreign, is_odd, money
from forecourt.feed.normalise.text import LONGEST_NOTHING, NOTHING, is_clean, items, text
from forecourt.feed.normalise.vin import CHECK_DIGIT, vin
from forecourt.feed.options import FeedOptions
from forecourt.feed.plan import Plan, plan
from forecourt.feed.report import Kind, Report
from forecourt.feed.row import Cell, Row
from forecourt.feed.state import Found, State
from forecourt.feed.state import read as read_state

__all__ = ["Unfit", "Vehicles"]

_Places = tuple[int, ...]

_COUNTS: Final = frozenset({"doors", "passenger_capacity"})
_LISTS: Final = frozenset({"option_codes"})
_PLANS: Final = 1024
_REMEMBERED: Final = 4096
"""How many answers of a kind are remembered."""
_REMEMBERED_LENGTH: Final = 2048
"""Of how many characters at the most, so that a feed of long cells does not fill the memory."""
_DIGITS: Final = 3
_PLAIN_DIGITS: Final = 7
_KILOMETERS: Final = frozenset({"kilometers", "kms", "km"})

_ODD_PRICE: Final = "is so far from the MSRP that one of them is probably something else"
_NOT_RUN: Final = "0 miles on a used vehicle was left out"
_NO_MAKE_OR_MODEL: Final = "has no make or no model"
_NO_IDENTIFIER: Final = "has no id, no usable VIN and no stock number"
_FOREIGN: Final = "is a price in another currency than the feed's"
_NO_ROOFTOP: Final = "belongs to a rooftop that is not configured"
_NO_CONDITION: Final = "no column says whether vehicles are new or used; they are listed as {}"


class Unfit(Exception):  # noqa: N818 - not every row that is left out is an error
    """A row of which no listing is made; `kind` is `refused` or `left_out`."""

    def __init__(self, kind: Kind, field: str, reason: str) -> None:
        super().__init__(reason)
        self.kind, self.field, self.reason = kind, field, reason


class _Build(NamedTuple):
    """What vehicles of one trim have in common; members and other attributes are not to be changed."""

    make: str
    model: str
    trim: str
    members: dict[str, Any]
    other: dict[str, Any]
    found: Sequence[Found]


class _Columns:
    """What is made of the columns of one header, and the latest answers about their cells.

    Dealers' files repeat themselves: a hundred thousand vehicles have some thousand trims. Cells that were read
    before are not read again.
    """

    def __init__(self, columns: tuple[str, ...], made: Plan, default_unit: str) -> None:
        self.plan = made
        fields = made.fields
        self.state_cells = _picker(made.state_places)
        self.build_cells = _picker(made.build_places)
        self.states: dict[Any, State] = {}
        self.builds: dict[Any, _Build] = {}
        self.offers = fields.get("offer_price", ())
        self.asked = fields.get("list_price", ())
        self.msrps = fields.get("msrp", ())
        self.sums = fields.get("all_in_price", ())
        self.mileages = fields.get("mileage", ())
        self.features = fields.get("features", ())
        self.photos = fields.get("photos", ())
        self.kilometers = frozenset([at for at in self.mileages if normalised(columns[at]) in _KILOMETERS])
        self.takes_miles = default_unit == "mi" and not self.kilometers


def _picker(places: _Places) -> Callable[[Sequence[Cell]], Any]:
    """Return what takes the cells at these places, as something that can be remembered by."""
    return itemgetter(*places) if places else lambda _: ()


def _is_short(key: Any) -> bool:
    return (len(key) if isinstance(key, str) else sum(map(len, key))) <= _REMEMBERED_LENGTH


class Vehicles:
    """Makes vehicles of the rows of one feed."""

    def __init__(self, options: FeedOptions, report: Report) -> None:
        self._options = options
        self._report = report
        self._names: tuple[str, ...] | None = None
        self._known: dict[tuple[str, ...], _Columns] = {}
        self._columns = _Columns((), Plan(), "")
        self._answers = 0
        self._values: Any = ()
        self._missing = {normalised(column) for column in options.mapping.values()}
        self._listed: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._days: dict[str, tuple[str | None, tuple[str, ...]]] = {}
        self._is_undecided = False
        self._noted: set[int] = set()
        """The columns of the row's prices of which something was reported already."""
        self.found: list[Found] = []
        """What is to be reported of the latest row if it is imported."""

    def make(self, row: Row) -> tuple[dict[str, Any], str, str, str | None]:
        """Return the vehicle of a row, its rooftop, its id in the feed or "", and its update.

        Its `vehicle_id` is still to be filled in, and `updated_at` is there only if the feed has it. Raises Unfit.
        """
        _, names, values = row
        if names is not self._names:
            self._use(names)
        columns = self._columns
        self._values = values
        found = self.found = []
        state, build = self._state(columns), self._build(columns)
        if state.unfit_at_once:
            raise Unfit(*state.unfit_at_once)
        said = self._say(columns.plan.texts)
        vehicle: dict[str, Any] = {"dealer_id": self._options.dealer_id, "vehicle_id": ""}
        own_id = said.get("vehicle_id", "")
        if "vin" in said:
            self._vin(vehicle, said["vin"])
        if "stock" in said:
            vehicle["stock"] = said["stock"]
        elif not own_id and "vin" not in vehicle:
            raise Unfit("refused", "", _NO_IDENTIFIER)
        if not build.make or not build.model:
            raise Unfit("refused", "", _NO_MAKE_OR_MODEL)
        rooftop = self._options.rooftop
        if not isinstance(rooftop, str):
            rooftop = self._rooftop(rooftop)
        vehicle["rooftop"] = rooftop
        if state.year:
            vehicle["year"] = state.year
        vehicle["make"], vehicle["model"] = build.make, build.model
        if build.trim:
            vehicle["trim"] = build.trim
        if state.is_undecided and not self._is_undecided:
            self._is_undecided = True
            self._report.warn(_NO_CONDITION.format(self._options.default_condition))
        if state.unfit:
            raise Unfit(*state.unfit)
        vehicle["condition"], vehicle["status"] = state.condition, state.status
        if state.found:
            found += state.found
        self._prices(vehicle, rooftop, state)
        if columns.mileages:
            self._mileage(vehicle, state.odometer_unit)
        if build.found:
            found += build.found
        vehicle.update(build.members)
        if "exterior_color" in said:
            vehicle["exterior_color"] = said["exterior_color"]
        if "interior_color" in said:
            vehicle["interior_color"] = said["interior_color"]
        other = build.other.copy()
        if columns.plan.others:
            self._others(columns.plan.others, other)
        if self._options.keep_unmapped:
            self._unmapped(other)
        if other:
            vehicle["other_attributes"] = other
        if columns.features:
            self._features(vehicle, columns.features)
        if columns.photos:
            self._photos(vehicle, columns.photos)
        if "vdp_url" in said:
            self._page(vehicle, said["vdp_url"])
        if "description" in said:
            vehicle["description"] = said["description"]
        if "notes" in said:
            vehicle["notes"] = said["notes"]
        if "inventory_date" in said:
            self._inventory_date(vehicle, said["inventory_date"])
        return vehicle, rooftop, own_id, self._updated(vehicle, said["updated_at"]) if "updated_at" in said else None

    def missing(self) -> list[tuple[str, str]]:
        """Return the fields, each with its column, of which the operator's mapping names a column that no row had."""
        mapping = self._options.mapping.items()
        return [(name, column) for name, column in mapping if normalised(column) in self._missing]

    def _use(self, names: tuple[str, ...]) -> None:
        """Find what the columns are for, and name those that nothing is made of."""
        known = self._known.get(names)
        if known is None:
            made = plan(names, self._options.mapping)
            if len(self._known) >= _PLANS:
                self._known.clear()
            known = self._known[names] = _Columns(names, made, self._options.odometer_unit)
            self._report.name_columns(made.unmapped, made.ignored)
            if self._missing:
                self._missing -= {normalised(name) for name in names}
        self._names, self._columns = names, known

    def _remember(self, answers: dict[Any, Any], key: Any, answer: Any) -> None:
        """Keep an answer; the bound is one over all headers that a feed has, which may be as many as its rows."""
        if self._answers >= 2 * _REMEMBERED:
            for columns in self._known.values():
                columns.states.clear()
                columns.builds.clear()
            self._answers = 0
        if _is_short(key):
            self._answers += 1
            answers[key] = answer

    def _say(self, places: list[tuple[str, int]]) -> dict[str, str]:
        """Find the first text among the columns of each field, for all at once: much of a row's time goes here."""
        said: dict[str, str] = {}
        values = self._values
        for field, at in places:
            cell = values[at]
            if not cell or field in said:
                continue
            if cell.__class__ is str:
                found = cell.strip()
                if len(found) <= LONGEST_NOTHING:
                    if found in NOTHING or not found.isprintable():
                        found = text(cell)
                elif not is_clean(found):
                    found = text(cell)
            else:
                found = text(cell)
            if found:
                said[field] = found
        return said

    def _repaired(self, field: str, reasons: Iterable[str]) -> None:
        for reason in reasons:
            self.found.append(("repaired", field, reason))

    def _vin(self, vehicle: dict[str, Any], said: str) -> None:
        value, reasons, is_odd_digit = vin(said)
        if reasons:
            self._repaired("vin", reasons)
        if value:
            vehicle["vin"] = value
            if is_odd_digit:
                self.found.append(("warning", "vin", CHECK_DIGIT))

    def _rooftop(self, rooftops: Mapping[str, str] | None) -> str:
        fields = self._columns.plan.fields
        places = (*fields.get("rooftop_name", ()), *fields.get("rooftop_code", ()))
        said = [name for at in places if (name := text(self._values[at]))]
        if rooftops is None:
            return said[0] if said else self._options.dealer_id
        for name in said:
            if name in rooftops:
                return rooftops[name]
        raise Unfit("refused", "rooftop", _NO_ROOFTOP)

    def _state(self, columns: _Columns) -> State:
        key = columns.state_cells(self._values)
        try:
            known = columns.states.get(key)
        except TypeError:
            # A list in a cell has no hash.
            return self._read_state()
        if known is None:
            known = self._read_state()
            self._remember(columns.states, key, known)
        return known

    def _read_state(self) -> State:
        made = self._columns.plan
        has_condition = bool(made.fields.get("condition") or made.fields.get("is_new"))
        return read_state(self._say(made.state_texts), self._options, has_condition)

    def _prices(self, vehicle: dict[str, Any], rooftop: str, state: State) -> None:
        """Find `price`, what the buyer pays to the dealer with every mandatory fee, and `list_price`, before discounts.

        A column that says in so many words that fees are in it is `price`. Else the most specific offer (internet
        price, sale price, selling price, price) and the rooftop's configured fees make `price`; without configured
        fees it is the offer alone, and `fees` stay unknown. `list_price` is the most specific advertised price (list,
        asking, regular, then price); it is never below the offer, so that where a feed gives one price it is both.
        """
        columns, found = self._columns, self.found
        if self._noted:
            self._noted.clear()
        offer = self._amount("price", columns.offers)
        # Most feeds have one price column, which is both.
        asked = offer if columns.asked == columns.offers else self._amount("list_price", columns.asked)
        msrp = self._amount("msrp", columns.msrps)
        price = self._amount("price", columns.sums)
        fees = self._options.fees.get(rooftop) if self._options.fees else None
        if msrp is not None:
            vehicle["msrp"] = msrp
        if offer is not None:
            vehicle["list_price"] = offer if asked is None or asked < offer else asked
            if price is None:
                price = offer + sum([fee.amount for fee in fees]) if fees else offer
        if state.is_foreign and (price or msrp):
            raise Unfit("refused", "price", _FOREIGN)
        if price is None:
            return
        vehicle["price"] = price
        if fees is not None:
            vehicle["fees"] = [{"name": fee.name, "amount": fee.amount} for fee in fees]
        if msrp is not None and not state.is_old and is_odd(price, msrp):
            found.append(("warning", "price", _ODD_PRICE))

    def _amount(self, field: str, places: _Places) -> int | None:
        values = self._values
        for at in places:
            cell = values[at]
            if cell.__class__ is str and len(cell) < _PLAIN_DIGITS and cell.isdigit() and cell.isascii():
                if whole := int(cell):
                    return whole
            elif cell and (said := text(cell)):
                amount, currency, reasons = money(said)
                if currency and is_foreign(currency, self._options.currency):
                    raise Unfit("refused", "price", _FOREIGN)
                if reasons and at not in self._noted:
                    self._noted.add(at)
                    self._repaired(field, reasons)
                if amount is not None:
                    return amount
        return None

    def _mileage(self, vehicle: dict[str, Any], unit: str) -> None:
        columns = self._columns
        for at in columns.mileages:
            cell = self._values[at]
            miles: int | None = None
            reasons: tuple[str, ...] = ()
            is_plain = columns.takes_miles and not unit and cell.__class__ is str and len(cell) < _PLAIN_DIGITS
            if is_plain and cell.isdigit() and cell.isascii():
                said, miles = cell, int(cell)
            elif said := text(cell):
                miles, reasons = mileage(said, "km" if at in columns.kilometers else unit, self._options.odometer_unit)
            if said:
                if reasons:
                    self._repaired("mileage", reasons)
                if miles == 0 and vehicle["condition"] != "new":
                    self._repaired("mileage", (_NOT_RUN,))
                elif miles is not None:
                    vehicle["mileage"] = miles
                return

    def _build(self, columns: _Columns) -> _Build:
        key = columns.build_cells(self._values)
        try:
            known = columns.builds.get(key)
        except TypeError:
            return self._read_build()
        if known is None:
            known = self._read_build()
            self._remember(columns.builds, key, known)
        return known

    def _read_build(self) -> _Build:
        made = self._columns.plan
        said = self._say(made.build_texts)
        members: dict[str, Any] = {}
        other: dict[str, Any] = {}
        before, self.found = self.found, read_build(said, members, other)
        self._others(made.build_others, other)
        found, self.found = tuple(self.found), before
        return _Build(said.get("make", ""), said.get("model", ""), said.get("trim", ""), members, other, found)

    def _features(self, vehicle: dict[str, Any], places: _Places) -> None:
        values = self._values
        cell = values[places[0]]
        listed: tuple[str, ...] = ()
        if len(places) == 1 and isinstance(cell, str):
            if not cell:
                return
            known = self._listed.get(cell)
            if known is None:
                listed = items(cell)
                known = listed, self._options.vocabulary.recognise(listed)
                if _is_short(cell):
                    if len(self._listed) >= _REMEMBERED:
                        self._listed.clear()
                    self._listed[cell] = known
            listed, codes = known
        else:
            for at in places:
                if values[at]:
                    seen = {item.lower() for item in listed}
                    listed += tuple([item for item in items(values[at]) if item.lower() not in seen])
            codes = self._options.vocabulary.recognise(listed)
        if listed:
            vehicle["features"] = list(listed)
            if codes:
                vehicle["feature_codes"] = list(codes)

    def _photos(self, vehicle: dict[str, Any], places: _Places) -> None:
        values = self._values
        if len(places) == 1:
            found, dropped = photos(values[places[0]]) if values[places[0]] else ((), False)
        else:
            addresses: dict[str, None] = {}
            dropped = False
            for at in places:
                if values[at]:
                    some, others = photos(values[at])
                    addresses.update(dict.fromkeys(some))
                    dropped = dropped or others
            found = tuple(addresses)
        if dropped:
            self._repaired("photos", (NOT_HTTP,))
        if found:
            vehicle["photos"] = list(found)

    def _page(self, vehicle: dict[str, Any], said: str) -> None:
        page = address(said)
        if page:
            vehicle["vdp_url"] = page
        else:
            self._repaired("vdp_url", (NOT_HTTP,))

    def _inventory_date(self, vehicle: dict[str, Any], said: str) -> None:
        known = self._days.get(said)
        if known is None:
            known = day(said, self._options.now)
            if _is_short(said):
                if len(self._days) >= _REMEMBERED:
                    self._days.clear()
                self._days[said] = known
        value, reasons = known
        if reasons:
            self._repaired("inventory_date", reasons)
        if value:
            vehicle["inventory_date"] = value

    def _updated(self, vehicle: dict[str, Any], said: str) -> str | None:
        updated, reasons = moment(said, self._options.timezone, self._options.now)
        if reasons:
            self._repaired("updated_at", reasons)
        if updated:
            vehicle["updated_at"] = updated
        return updated

    def _others(self, others: Mapping[str, _Places], other: dict[str, Any]) -> None:
        values = self._values
        for name, places in others.items():
            for at in places:
                if values[at] and (value := self._other(name, values[at])):
                    other[name] = value
                    break

    def _unmapped(self, other: dict[str, Any]) -> None:
        values = self._values
        for column, at in self._columns.plan.unmapped.items():
            name = _snake(column)
            if name and name not in other:
                value = list(items(values[at])) if isinstance(values[at], list) else text(values[at])
                if value:
                    other[name] = value

    def _other(self, name: str, cell: Cell) -> Any:
        if name in _LISTS:
            return list(items(cell))
        said = text(cell)
        if name in _COUNTS:
            count = said.removesuffix(".0")
            return int(count) if count.isascii() and count.isdigit() and len(count) < _DIGITS else said
        if said and name.endswith("_url"):
            page = address(said)
            if page is None:
                self._repaired(name, (NOT_HTTP,))
            return page
        if said and name.endswith("_date"):
            return day(said, self._options.now)[0]
        return said


@lru_cache(maxsize=4096)
def _snake(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name.strip().lower()).strip("_")
