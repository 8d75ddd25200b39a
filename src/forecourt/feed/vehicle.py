"""From one row to one AAP vehicle: which column says what, what to leave out, and what to report."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from forecourt.feed.alias import normalised
from forecourt.feed.normalise.condition import condition, is_retail, status
from forecourt.feed.normalise.date import day, model_year, moment
from forecourt.feed.normalise.mileage import mileage
from forecourt.feed.normalise.number import quantity
from forecourt.feed.normalise.photo import NOT_HTTP, address, photos
from forecourt.feed.normalise.price import is_foreign, is_odd, money
from forecourt.feed.normalise.text import LONGEST_NOTHING, NOTHING, flag, items, text
from forecourt.feed.normalise.vin import CHECK_DIGIT, vin
from forecourt.feed.normalise.word import engine_size, short
from forecourt.feed.options import FeedOptions
from forecourt.feed.plan import Plan, plan
from forecourt.feed.report import Kind, Report
from forecourt.feed.row import Cell, Row

__all__ = ["Unfit", "Vehicles"]

_Places = tuple[int, ...]

_COLORS: Final = ("exterior_color", "interior_color")
_REMARKS: Final = ("description", "notes")
_WORDS: Final = ("body", "transmission", "driveline", "fuel")
_WHOLE: Final = ("city_mpg", "highway_mpg")
_AMOUNTS: Final = ("electric_range_mi", "battery_kwh", "motor_power_hp")
_NUMBERS: Final = (*_WHOLE, *_AMOUNTS)
_COUNTS: Final = frozenset({"doors", "passenger_capacity"})
_LISTS: Final = frozenset({"option_codes"})
_OLD: Final = 8
_PLANS: Final = 1024
_REMEMBERED: Final = 4096
_MOST_MPG: Final = 400
_DIGITS: Final = 3

_NO_NUMBER: Final = "is not a number"
_ODD_PRICE: Final = "is so far from the MSRP that one of them is probably something else"
_NOT_RUN: Final = "0 miles on a used vehicle was left out"
_BLANK_CONDITION: Final = "is blank; the default counts"
_NOT_FOR_RETAIL: Final = "is wholesale or fleet, not for retail"
_SOLD: Final = "is sold or no longer available"
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


class Vehicles:
    """Makes vehicles of the rows of one feed."""

    def __init__(self, options: FeedOptions, report: Report) -> None:
        self._options = options
        self._today = options.today
        self._report = report
        self._columns: tuple[str, ...] | None = None
        self._plans: dict[tuple[str, ...], Plan] = {}
        self._plan = Plan()
        self._kilometers: frozenset[int] = frozenset()
        self._values: Any = ()
        self._said: dict[str, str] = {}
        self._builds: dict[tuple[Any, ...], tuple[dict[str, Any], dict[str, Any], list[tuple[Kind, str, str]]]] = {}
        self._known_codes: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.found: list[tuple[Kind, str, str]] = []
        """What is to be reported of the latest row if it is imported: kind, field, reason."""

    def make(self, row: Row) -> tuple[dict[str, Any], str, str, str | None]:
        """Return the vehicle of a row, its rooftop, its id in the feed or "", and its update.

        Its `vehicle_id` is still to be filled in, and `updated_at` is there only if the feed has it. Raises Unfit.
        """
        if row.columns is not self._columns:
            self._use(row.columns)
        self._values = row.values
        self.found = []
        said = self._said = self._say(self._plan.texts)
        self._check_retail()
        make, model, stock = said.get("make"), said.get("model"), said.get("stock")
        own_id = said.get("vehicle_id", "")
        vehicle: dict[str, Any] = {"dealer_id": self._options.dealer_id, "vehicle_id": ""}
        self._vin(vehicle)
        if stock:
            vehicle["stock"] = stock
        elif not own_id and "vin" not in vehicle:
            raise Unfit("refused", "", _NO_IDENTIFIER)
        if not make or not model:
            raise Unfit("refused", "", _NO_MAKE_OR_MODEL)
        vehicle["rooftop"] = rooftop = self._rooftop()
        self._year(vehicle)
        vehicle["make"], vehicle["model"] = make, model
        if trim := said.get("trim"):
            vehicle["trim"] = trim
        self._condition(vehicle)
        self._prices(vehicle, rooftop)
        self._mileage(vehicle)
        members, other = self._build()
        vehicle.update(members)
        for field in _COLORS:
            if field in said:
                vehicle[field] = said[field]
        other = dict(other)
        self._others(self._plan.others, other)
        self._unmapped(other)
        if other:
            vehicle["other_attributes"] = other
        self._lists(vehicle)
        for field in _REMARKS:
            if field in said:
                vehicle[field] = said[field]
        updated = self._dates(vehicle)
        return vehicle, rooftop, own_id, updated

    def _use(self, columns: tuple[str, ...]) -> None:
        """Find what the columns are for, and name those that nothing is made of."""
        made = self._plans.get(columns)
        if made is None:
            made = plan(columns, self._options.mapping)
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            self._plans[columns] = made
            self._report.name_columns(made.unmapped, made.ignored)
        self._columns, self._plan = columns, made
        self._builds.clear()
        self._kilometers = frozenset(
            at for at in made.fields.get("mileage", ()) if normalised(columns[at]) in ("kilometers", "kms", "km")
        )

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
                if (len(found) <= LONGEST_NOTHING and found in NOTHING) or not found.isprintable():
                    found = text(cell)
            else:
                found = text(cell)
            if found:
                said[field] = found
        return said

    def _repaired(self, field: str, reasons: Iterable[str]) -> None:
        if not reasons:
            return
        for reason in reasons:
            self.found.append(("repaired", field, reason))

    def _check_retail(self) -> None:
        disposition = self._said.get("disposition", "")
        if disposition and not is_retail(disposition):
            raise Unfit("left_out", "disposition", _NOT_FOR_RETAIL)

    def _vin(self, vehicle: dict[str, Any]) -> None:
        said = self._said.get("vin", "")
        if said:
            value, reasons, is_odd_digit = vin(said)
            self._repaired("vin", reasons)
            if value:
                vehicle["vin"] = value
                if is_odd_digit:
                    self.found.append(("warning", "vin", CHECK_DIGIT))

    def _rooftop(self) -> str:
        rooftop = self._options.rooftop
        if isinstance(rooftop, str):
            return rooftop
        fields = self._plan.fields
        places = (*fields.get("rooftop_name", ()), *fields.get("rooftop_code", ()))
        said = [name for at in places if (name := text(self._values[at]))]
        if rooftop is None:
            return said[0] if said else self._options.dealer_id
        for name in said:
            if name in rooftop:
                return rooftop[name]
        raise Unfit("refused", "rooftop", _NO_ROOFTOP)

    def _year(self, vehicle: dict[str, Any]) -> None:
        if said := self._said.get("year"):
            value, reasons = model_year(said, self._today)
            self._repaired("year", reasons)
            if value:
                vehicle["year"] = value

    def _condition(self, vehicle: dict[str, Any]) -> None:
        fields = self._plan.fields
        default = self._options.default_condition
        found = condition(
            self._said.get("condition", ""), self._said.get("is_new", ""), self._said.get("certified", ""), default
        )
        if not found.retail:
            raise Unfit("left_out", "condition", _NOT_FOR_RETAIL)
        self._repaired("condition", found.reasons)
        if found.value is None:
            if not fields.get("condition") and not fields.get("is_new"):
                self._report.warn(_NO_CONDITION.format(default))
            elif not found.reasons:
                self._repaired("condition", (_BLANK_CONDITION,))
        vehicle["condition"] = found.value or default
        place = status(self._said.get("status", ""))
        if place.value is None:
            raise Unfit("left_out", "status", _SOLD)
        self._repaired("status", place.reasons)
        vehicle["status"] = place.value

    def _prices(self, vehicle: dict[str, Any], rooftop: str) -> None:
        """Find `price`, what the buyer pays to the dealer with every mandatory fee, and `list_price`, before discounts.

        A column that says in so many words that fees are in it is `price`. Else the most specific offer (internet
        price, sale price, selling price, price) and the rooftop's configured fees make `price`; without configured
        fees it is the offer alone, and `fees` stay unknown. `list_price` is the most specific advertised price (list,
        asking, regular, then price); it is never below the offer, so that where a feed gives one price it is both.
        """
        fields = self._plan.fields
        noted: set[int] = set()
        offer = self._amount("price", fields.get("offer_price", ()), noted)
        asked = self._amount("list_price", fields.get("list_price", ()), noted)
        msrp = self._amount("msrp", fields.get("msrp", ()), noted)
        price = self._amount("price", fields.get("all_in_price", ()), noted)
        fees = self._options.fees.get(rooftop)
        if msrp is not None:
            vehicle["msrp"] = msrp
        if offer is not None:
            vehicle["list_price"] = max(asked or 0, offer)
            if price is None:
                price = offer + sum([fee.amount for fee in fees or ()])
        currency = self._said.get("currency", "").upper()
        if currency and is_foreign(currency, self._options.currency) and (price or msrp):
            raise Unfit("refused", "price", _FOREIGN)
        if price is None:
            return
        vehicle["price"] = price
        if fees is not None:
            vehicle["fees"] = [{"name": fee.name, "amount": fee.amount} for fee in fees]
        is_old = vehicle["condition"] == "used" and vehicle.get("year", 0) < self._today.year - _OLD
        if msrp is not None and is_odd(price, msrp) and not is_old:
            self.found.append(("warning", "price", _ODD_PRICE))

    def _amount(self, field: str, places: _Places, noted: set[int]) -> int | None:
        for at in places:
            if (cell := self._values[at]) and (said := text(cell)):
                amount, currency, reasons = money(said)
                if currency and is_foreign(currency, self._options.currency):
                    raise Unfit("refused", "price", _FOREIGN)
                if reasons and at not in noted:
                    noted.add(at)
                    self._repaired(field, reasons)
                if amount is not None:
                    return amount
        return None

    def _mileage(self, vehicle: dict[str, Any]) -> None:
        for at in self._plan.fields.get("mileage", ()):
            if said := text(self._values[at]):
                unit = "km" if at in self._kilometers else self._said.get("odometer_unit", "")
                miles, reasons = mileage(said, unit, self._options.odometer_unit)
                self._repaired("mileage", reasons)
                if miles == 0 and vehicle["condition"] != "new":
                    self._repaired("mileage", (_NOT_RUN,))
                elif miles is not None:
                    vehicle["mileage"] = miles
                return

    def _build(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return how the vehicle is built: members, and other attributes; neither is to be changed.

        Vehicles of one trim say the same, so the latest answers are remembered by what the cells hold.
        """
        values = self._values
        key = tuple([values[at] for at in self._plan.build_places])
        try:
            known = self._builds.get(key)
        except TypeError:
            # A list in a cell has no hash.
            return self._read_build()
        if known is None:
            if len(self._builds) >= _REMEMBERED:
                self._builds.clear()
            before = len(self.found)
            members, other = self._read_build()
            self._builds[key] = members, other, self.found[before:]
            return members, other
        members, other, found = known
        self.found += found
        return members, other

    def _read_build(self) -> tuple[dict[str, Any], dict[str, Any]]:
        said, self._said = self._said, self._say(self._plan.build_texts)
        members: dict[str, Any] = {}
        other: dict[str, Any] = {}
        self._words(members, other)
        self._engine(members)
        self._numbers(members)
        self._electric(members, other)
        self._others(self._plan.build_others, other)
        self._said = said
        return members, other

    def _words(self, vehicle: dict[str, Any], other: dict[str, Any]) -> None:
        for field in _WORDS:
            if said := self._said.get(field):
                word, says_more = short(field, said)
                vehicle[field] = word or said
                if word and says_more:
                    other[f"{field}_description"] = said
        if said := self._said.get("vehicle_type"):
            word, says_more = short("vehicle_type", said)
            if word and word != "car":
                vehicle["vehicle_type"] = word
            if says_more:
                other["vehicle_type_description"] = said

    def _engine(self, vehicle: dict[str, Any]) -> None:
        """Find the engine; without a text of its own, put it into words from displacement and cylinders."""
        size, cylinders = self._said.get("displacement_cc", ""), self._said.get("cylinders", "")
        if size and (cubic := engine_size(size)):
            vehicle["displacement_cc"] = cubic
        if said := self._said.get("engine"):
            vehicle["engine"] = said
        elif size or cylinders:
            count = cylinders.removesuffix(".0")
            counted = f"{count}-cylinder" if count.isdigit() else cylinders
            liters = f"{size}L" if "displacement_cc" in vehicle and "." in size and size[-1:].isdigit() else size
            vehicle["engine"] = f"{liters} {counted}".strip()

    def _electric(self, vehicle: dict[str, Any], other: dict[str, Any]) -> None:
        if said := self._said.get("dc_fast_charge"):
            fast = flag(said)
            if fast is not None:
                vehicle["dc_fast_charge"] = fast
        if said := self._said.get("charge_port"):
            word, _ = short("charge_port", said)
            vehicle["charge_port"] = word or said
            if not word:
                other.setdefault("charge_port_description", said)

    def _numbers(self, vehicle: dict[str, Any]) -> None:
        for field in _NUMBERS:
            if said := self._said.get(field):
                value = quantity(said)
                if value is None or value < 0 or (field in _WHOLE and value > _MOST_MPG):
                    self._repaired(field, (_NO_NUMBER,))
                elif value:
                    vehicle[field] = int(value + 0.5) if field in _WHOLE or value.is_integer() else value

    def _lists(self, vehicle: dict[str, Any]) -> None:
        fields, values = self._plan.fields, self._values
        places = [at for at in fields.get("features", ()) if values[at]]
        if places:
            listed = items(values[places[0]])
            for at in places[1:]:
                known = {item.lower() for item in listed}
                listed += tuple([item for item in items(values[at]) if item.lower() not in known])
            if listed:
                vehicle["features"] = list(listed)
                if codes := self._codes(listed):
                    vehicle["feature_codes"] = list(codes)
        addresses: dict[str, None] = {}
        dropped = False
        for at in fields.get("photos", ()):
            if values[at]:
                some, others = photos(values[at])
                addresses.update(dict.fromkeys(some))
                dropped = dropped or others
        if dropped:
            self._repaired("photos", (NOT_HTTP,))
        if addresses:
            vehicle["photos"] = list(addresses)
        if said := self._said.get("vdp_url"):
            page = address(said)
            if page:
                vehicle["vdp_url"] = page
            else:
                self._repaired("vdp_url", (NOT_HTTP,))

    def _codes(self, features: tuple[str, ...]) -> tuple[str, ...]:
        """Recognise features; vehicles of one trim have the same ones, so the latest answers are remembered."""
        codes = self._known_codes.get(features)
        if codes is None:
            if len(self._known_codes) >= _REMEMBERED:
                self._known_codes.clear()
            codes = self._known_codes[features] = self._options.vocabulary.recognise(features)
        return codes

    def _dates(self, vehicle: dict[str, Any]) -> str | None:
        options = self._options
        if said := self._said.get("inventory_date"):
            value, reasons = day(said, options.now)
            self._repaired("inventory_date", reasons)
            if value:
                vehicle["inventory_date"] = value
        updated = None
        if said := self._said.get("updated_at"):
            updated, reasons = moment(said, options.timezone, options.now)
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
        if self._options.keep_unmapped:
            for column, at in self._plan.unmapped.items():
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
