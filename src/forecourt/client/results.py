"""What the skills answer, typed: every member that a contract names, and whatever else came, untouched in `raw`.

Reading is patient: a member of another type than expected reads as absent and stays in `raw`. Amounts are whole US
dollars, distances miles. Whole numbers are integers, also where a dealer wrote 26780.0.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar, overload

__all__ = [
    "Appointment",
    "Count",
    "DealerInformation",
    "Facets",
    "Fee",
    "Range",
    "Receipt",
    "Record",
    "Rooftop",
    "SearchPage",
    "Vehicle",
]

T = TypeVar("T")


class Member(Generic[T]):
    """A member of a payload as an attribute; `read` gives None for a value of another type."""

    def __init__(self, read: Callable[[Any], T], doc: str = "") -> None:
        self._read = read
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, record: None, owner: type) -> "Member[T]": ...
    @overload
    def __get__(self, record: "Record", owner: type) -> T: ...
    def __get__(self, record: "Record | None", owner: type) -> "Member[T] | T":
        if record is None:
            return self
        return self._read(record.raw.get(self._name))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _integer(value: Any) -> int | None:
    number = _number(value)
    return number if isinstance(number, int) else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(entry for entry in value if isinstance(entry, str)) if isinstance(value, list) else ()


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _anything(value: Any) -> Any:
    return value


class Record:
    """One object of a payload. `raw` is the whole of it as it came."""

    __slots__ = ("raw",)

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw

    @property
    def extra(self) -> dict[str, Any]:
        """The members that this version does not know."""
        known = self.members()
        return {name: value for name, value in self.raw.items() if name not in known}

    @classmethod
    def members(cls) -> frozenset[str]:
        """Return the names of the members that this version knows."""
        return frozenset(
            name for each in cls.__mro__ for name, value in vars(each).items() if isinstance(value, Member)
        )

    def __getitem__(self, name: str) -> Any:
        """Return a member as it came; KeyError when it is absent."""
        return self.raw[name]

    def __contains__(self, name: object) -> bool:
        """Tell whether a member came."""
        return name in self.raw

    def __eq__(self, other: object) -> bool:
        """Compare what came."""
        return type(other) is type(self) and isinstance(other, Record) and other.raw == self.raw

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Name the members that came, without their values: a log is no place for them."""
        return f"{type(self).__name__}({', '.join(map(str, self.raw))})"


def _records(kind: type["R"]) -> Callable[[Any], "tuple[R, ...]"]:
    def read(value: Any) -> tuple[R, ...]:
        return tuple(kind(entry) for entry in value if isinstance(entry, dict)) if isinstance(value, list) else ()

    return read


def _record(kind: type["R"]) -> Callable[[Any], "R | None"]:
    return lambda value: kind(value) if isinstance(value, dict) else None


R = TypeVar("R", bound=Record)


class Fee(Record):
    """A mandatory fee, already inside the price."""

    __slots__ = ()
    name = Member(_text)
    amount = Member(_number)


class Vehicle(Record):
    """One listing. `price` is what the buyer pays to the dealer, mandatory fees included."""

    __slots__ = ()
    vin = Member(_text)
    stock = Member(_text)
    vehicle_id = Member(_text)
    dealer_id = Member(_text)
    year = Member(_integer)
    make = Member(_text)
    model = Member(_text)
    trim = Member(_text)
    condition = Member(_text)
    status = Member(_text)
    body = Member(_text)
    fuel = Member(_text)
    driveline = Member(_text)
    transmission = Member(_text)
    exterior_color = Member(_text)
    interior_color = Member(_text)
    rooftop = Member(_text)
    mileage = Member(_number)
    price = Member(_number)
    list_price = Member(_number)
    msrp = Member(_number)
    fees = Member(_records(Fee))
    features = Member(_texts)
    feature_codes = Member(_texts)
    photos = Member(_texts)
    vdp_url = Member(_text)
    notes = Member(_text)
    engine = Member(_text)
    city_mpg = Member(_integer)
    highway_mpg = Member(_integer)
    inventory_date = Member(_text)
    description = Member(_text)
    updated_at = Member(_text)
    vehicle_type = Member(_text)
    electric_range_mi = Member(_number)
    battery_kwh = Member(_number)
    dc_fast_charge = Member(_flag)
    charge_port = Member(_text)
    displacement_cc = Member(_number)
    motor_power_hp = Member(_number)
    other_attributes = Member(_object)

    @property
    def title(self) -> str:
        """Year, make, model and trim, as far as they came."""
        return " ".join(str(part) for part in (self.year, self.make, self.model, self.trim) if part is not None)

    @property
    def reference(self) -> dict[str, str]:
        """The identifiers by which the dealer finds this listing again."""
        found = {"vin": self.vin, "vehicle_id": self.vehicle_id, "stock": self.stock}
        return {name: value for name, value in found.items() if value is not None}


class SearchPage(Record):
    """A page of a search. `request` is what was asked, so that the search can be refreshed or continued."""

    __slots__ = ("message", "request")
    total = Member(_integer)
    skip = Member(_integer)
    limit = Member(_integer)
    vehicles = Member(_records(Vehicle))
    next_cursor = Member(_text)

    def __init__(self, raw: Mapping[str, Any], request: Mapping[str, Any] | None = None, message: Any = None) -> None:
        super().__init__(raw)
        self.request = dict(request or {})
        self.message = _text(message)

    def __len__(self) -> int:
        """Count the vehicles of this page."""
        return len(self.vehicles)

    def __iter__(self) -> Iterator[Vehicle]:
        """Go through the vehicles of this page."""
        return iter(self.vehicles)


class Count(Record):
    """How many listings have a value."""

    __slots__ = ()
    value = Member(_anything)
    count = Member(_integer)


class Range(Record):
    """The lowest and the highest value."""

    __slots__ = ()
    min = Member(_number)
    max = Member(_number)


class Facets(Record):
    """What the stock is made of. A facet that is absent has nothing to count."""

    __slots__ = ()
    makes = Member(_records(Count))
    models = Member(_records(Count))
    trims = Member(_records(Count))
    years = Member(_records(Count))
    conditions = Member(_records(Count))
    transmissions = Member(_records(Count))
    fuels = Member(_records(Count))
    drivelines = Member(_records(Count))
    bodies = Member(_records(Count))
    exterior_colors = Member(_records(Count))
    interior_colors = Member(_records(Count))
    rooftops = Member(_records(Count))
    statuses = Member(_records(Count))
    vehicle_types = Member(_records(Count))
    dc_fast_charge = Member(_records(Count))
    charge_ports = Member(_records(Count))
    price_range = Member(_record(Range))
    mileage_range = Member(_record(Range))
    year_range = Member(_record(Range))
    displacement_cc_range = Member(_record(Range))
    electric_range_mi_range = Member(_record(Range))

    def counts(self) -> dict[str, tuple[Count, ...]]:
        """Return every facet that counts values, also those that this version does not know."""
        read = _records(Count)
        return {name: read(value) for name, value in self.raw.items() if isinstance(value, list)}

    def ranges(self) -> dict[str, Range]:
        """Return every facet that is a range, also those that this version does not know."""
        return {name: Range(value) for name, value in self.raw.items() if isinstance(value, dict)}


class Rooftop(Record):
    """One physical dealership."""

    __slots__ = ()
    name = Member(_text)
    legal_name = Member(_text)
    website = Member(_text)
    timezone = Member(_text)
    address = Member(_object)
    geo = Member(_object)
    phones = Member(_records(Record))
    emails = Member(_records(Record))
    schedules = Member(_records(Record))
    capabilities = Member(_anything)
    fees = Member(_records(Fee))
    notes = Member(_anything)


class DealerInformation(Record):
    """The dealer's profile."""

    __slots__ = ()
    dealer_id = Member(_text)
    name = Member(_text)
    welcome_message = Member(_text)
    rooftops = Member(_records(Rooftop))
    search_capabilities = Member(_object)


class Appointment(Record):
    """What became of the appointment: "confirmed", "proposed", "requested" or "rejected"."""

    __slots__ = ()
    appointment_id = Member(_text)
    status = Member(_text)
    confirmed_at = Member(_text)
    proposed_times = Member(_texts)


class Receipt(Record):
    """An accepted lead. `key` is the idempotency key that it went by; `message` is for the shopper."""

    __slots__ = ("key", "message")
    lead_id = Member(_text)
    status = Member(_text)
    appointment = Member(_record(Appointment))
    dealer = Member(_object)

    def __init__(self, raw: Mapping[str, Any], key: str = "", message: Any = None) -> None:
        super().__init__(raw)
        self.key = key
        self.message = _text(message)
