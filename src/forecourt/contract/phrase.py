"""What is said about a broken schema rule: phrases that fit after a field's name, and hints.

Everything said here comes from the schema. Of the request at most a field's name is used, and only if it
looks like one, because a message must not echo what a customer sent ("Errors and retries", section "One
automotive error").
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

__all__ = [
    "INVALID_TEXT",
    "UNKNOWN_FIELD",
    "UNKNOWN_NAMES",
    "UNNAMED_MEMBER",
    "enum_hint",
    "for_alternatives",
    "for_keyword",
    "for_missing",
    "is_identifier",
    "type_hint",
    "unknown_hint",
]

UNKNOWN_FIELD: Final = "is not a known field"
UNKNOWN_NAMES: Final = "has fields with unknown names"
UNNAMED_MEMBER: Final = "has a member that does not fit"
INVALID_TEXT: Final = "must be valid Unicode text"

_TYPES: Final[Mapping[str, str]] = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}

_FORMATS: Final[Mapping[str, str]] = {
    "date": "must be a date, like 2026-05-03",
    "date-time": "must be a date-time with an offset, like 2026-05-03T11:00:00-07:00",
    "email": "must be an email address",
    "uri": "must be an absolute URI, like https://www.example.com/",
}

_PATTERNS: Final[Mapping[str, str]] = {
    "^[A-HJ-NPR-Z0-9]{17}$": "must be 17 characters A-Z and 0-9 without I, O and Q",
    r"^\+[1-9]\d{1,14}$": "must be a phone number in E.164 form: a plus sign, the country code, digits only",
    r"^([01]\d|2[0-3]):[0-5]\d$": "must be a time HH:MM between 00:00 and 23:59",
    "^[a-z][a-z0-9_]*$": "must be a word of a-z, 0-9 and _ that starts with a letter",
    r"^[a-z_]+(\.[a-z_]+){1,2}$": "must be two or three lower-case words with dots between them",
}

_ENUM_SHOWN = 20
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,39}\Z")
_NAME_LIMIT = 40
_CLOSE = 0.75


def is_identifier(name: str) -> bool:
    """Tell whether a member name from a request looks like a field name; others may be data."""
    return _IDENTIFIER.match(name) is not None


def for_missing(name: str) -> str:
    """Say that the field `name` is missing."""
    return f"needs the field `{name}`"


def for_alternatives(names: Sequence[str]) -> str:
    """Say that at least one of the fields `names` is needed."""
    return f"needs at least one of {_listed(names)}"


def for_keyword(rule: Mapping[str, Any], keyword: str) -> str:
    """Say what the `keyword` of the schema `rule` asks for."""
    wanted = rule[keyword]
    match keyword:
        case "type":
            return f"must be {_one_of_types([wanted] if isinstance(wanted, str) else wanted)}"
        case "const":
            return f"must be {_literal(wanted)}"
        case "enum":
            more = f" or {len(wanted) - _ENUM_SHOWN} others" if len(wanted) > _ENUM_SHOWN else ""
            return f"must be one of {_listed(wanted[:_ENUM_SHOWN])}{more}"
        case "format":
            return _FORMATS.get(wanted, f"must have the format {wanted}")
        case "pattern":
            return _PATTERNS.get(wanted, f"must match the pattern {wanted}")
        case "minimum":
            return f"must be at least {wanted}"
        case "maximum":
            return f"must be at most {wanted}"
        case "minLength":
            return "must not be empty" if wanted == 1 else f"must be at least {wanted} characters long"
        case "maxLength":
            return f"must be at most {wanted} characters long"
        case "minItems":
            return "needs at least one entry" if wanted == 1 else f"needs at least {wanted} entries"
        case "maxItems":
            return f"must have at most {wanted} {'entry' if wanted == 1 else 'entries'}"
        case "uniqueItems":
            return "must not repeat an entry"
        case "contains":
            return f"must contain {wanted.get('title', 'a fitting entry')}"
        case "anyOf" | "oneOf":
            types = [branch["type"] for branch in wanted if isinstance(branch.get("type"), str)]
            if len(types) == len(wanted):
                return f"must be {_one_of_types(types)}"
    return "does not fit its schema"


def _one_of_types(types: Sequence[str]) -> str:
    words = [_TYPES[name] for name in types]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(_literal, values))


def _literal(value: Any) -> str:
    if value is True:
        return "true"
    if value is False:
        return "false"
    return f"`{value}`"


def type_hint(rule: Mapping[str, Any], value: Any, place: str) -> str | None:
    """Advise on a value of the wrong type where the mistake is a usual one."""
    wanted = rule["type"]
    if wanted == "array" and not isinstance(value, dict):
        return f"`{place}` takes an array, also for a single value."
    if isinstance(value, str) and wanted in ("integer", "number"):
        return f"`{place}` takes a number without quotes."
    if isinstance(value, str) and wanted == "boolean":
        return f"`{place}` takes true or false without quotes."
    return None


_WORDS: Final[Mapping[str, str]] = {
    "ascending": "asc",
    "call": "phone",
    "certified": "cpo",
    "certified_pre_owned": "cpo",
    "certified_preowned": "cpo",
    "descending": "desc",
    "in_stock": "available",
    "motorbike": "motorcycle",
    "on_order": "intransit",
    "pre_owned": "used",
    "preowned": "used",
    "text": "sms",
}
"""Words that people use for a word of the contract."""


def enum_hint(options: Sequence[Any], value: Any, place: str) -> str | None:
    """Suggest the option that was probably meant; the value itself is not repeated."""
    if not isinstance(value, str) or len(value) > _NAME_LIMIT:
        return None
    words = {_plain(option): option for option in options if isinstance(option, str)}
    plain = _plain(value)
    meant = words.get(plain) or words.get(_plain(_WORDS.get(_snake(value), "")))
    if meant is None:
        close = get_close_matches(plain, words, n=1, cutoff=_CLOSE)
        meant = words[close[0]] if close else None
    return f"`{place}`: did you mean `{meant}`?" if meant is not None else None


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text)).lower()


def _snake(name: str) -> str:
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", parted.lower()).strip("_")


_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "body_style": ("body",),
    "body_type": ("body",),
    "brand": ("make",),
    "color": ("exterior_color",),
    "colour": ("exterior_color",),
    "dealer": ("dealer_id",),
    "drive": ("driveline",),
    "drive_type": ("driveline",),
    "drivetrain": ("driveline",),
    "email_address": ("email",),
    "ev_range_min": ("electric_range_mi_min",),
    "features": ("features", "features_all"),
    "fuel_type": ("fuel",),
    "gearbox": ("transmission",),
    "keyword": ("query",),
    "keywords": ("query",),
    "location": ("rooftop", "rooftops"),
    "manufacturer": ("make",),
    "max_mileage": ("mileage_max",),
    "max_miles": ("mileage_max",),
    "max_price": ("price_max",),
    "max_year": ("year_max",),
    "miles": ("mileage",),
    "min_price": ("price_min",),
    "min_year": ("year_min",),
    "odometer": ("mileage",),
    "offset": ("skip",),
    "order_by": ("sort",),
    "page_size": ("limit",),
    "per_page": ("limit",),
    "phone_number": ("phone",),
    "postal_code": ("zip",),
    "q": ("query",),
    "range_min": ("electric_range_mi_min",),
    "seller_id": ("dealer_id",),
    "sort_by": ("sort",),
    "stock_number": ("stock",),
    "street": ("address_line_1",),
    "text": ("query",),
    "trade": ("trade_in",),
    "vehicle": ("vehicle_of_interest",),
    "zip_code": ("zip",),
    "zipcode": ("zip",),
}
"""Names that people use for a field of the contract, and what is meant: the first that exists."""

_CURSOR_HINT: Final = (
    "This contract pages with `pagination.cursor`: send the `next_cursor` of the page before. `skip` does not exist."
)
_PAGING: Final = frozenset({"from", "offset", "page", "page_number", "skip", "start"})


def unknown_hint(name: str, known: Collection[str], places: Mapping[str, Sequence[str]], place: str) -> str | None:
    """Advise on the unknown field `name`, to be found at `place`.

    `known` are the fields that exist there, `places` where in the whole request a field of some name exists.
    """
    plain = _snake(name)
    if plain in _PAGING and "skip" not in places and "cursor" in places:
        return _CURSOR_HINT
    for meant in _meant(name, plain):
        if meant in known:
            return f"`{place}` is unknown; did you mean `{meant}`?"
    for meant in _meant(name, plain):
        inside = places.get(meant)
        if inside is not None:
            where = " or ".join(f"inside `{parent}`" if parent else "at the top level" for parent in inside)
            if meant == name:
                return f"`{meant}` belongs {where}."
            return f"`{place}` is unknown; did you mean `{meant}` {where}?"
    if plain in _PAGING and "skip" in places:
        return "Pages are chosen by `pagination.skip` and `pagination.limit`."
    close = get_close_matches(plain, known, n=1, cutoff=_CLOSE)
    return f"`{place}` is unknown; did you mean `{close[0]}`?" if close else None


def _meant(name: str, plain: str) -> Iterator[str]:
    yield name
    yield plain
    yield from _NAMES.get(plain, ())
