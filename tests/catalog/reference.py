"""The rules of search, facets and look-ups once more, written for reading and as slow as that comes.

Straight from CONTRACTS.md section 5: one list of dictionaries, every question answered by going through all of it. It
shares no code with the catalog, so that the two can be held against each other.
"""

import functools
import json
import math
import unicodedata
from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from forecourt.model import Facets, Filters, Page, Place, Sort, VehicleReference

TEXT_MEMBERS = ["make", "model", "trim", "body", "exterior_color", "interior_color", "fuel", "driveline"]
COUNTED = [
    *["make", "model", "trim", "condition", "transmission", "fuel", "driveline", "body", "exterior_color"],
    *["interior_color", "rooftop", "status", "vehicle_type", "charge_port"],
]
RANGED = ["price", "mileage", "year", "displacement_cc", "electric_range_mi"]


@functools.lru_cache(maxsize=100_000)
def same(text: str) -> str:
    """What two texts have to share to be the same value."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if unicodedata.combining(c) == 0)
    return " ".join(plain.casefold().replace("\0", " ").split())


def pieces(word: str) -> list[str]:
    """The runs of letters and digits of a word."""
    return "".join(c if c.isalnum() else " " for c in same(word)).split()


def text_of(vehicle: dict[str, Any], member: str) -> str | None:
    value = vehicle.get(member)
    if member == "vehicle_type" and not (isinstance(value, str) and same(value)):
        return "car"
    return value if isinstance(value, str) and same(value) else None


def number_of(vehicle: dict[str, Any], member: str) -> int | float | None:
    value = vehicle.get(member)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if value == int(value):
        return int(value)
    return None if member == "year" else value


def instant_of(vehicle: dict[str, Any]) -> int | None:
    value = vehicle.get("updated_at")
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def features_of(vehicle: dict[str, Any]) -> set[str]:
    codes = vehicle.get("feature_codes")
    return {code for code in codes if isinstance(code, str)} if isinstance(codes, list) else set()


def words_of(vehicle: dict[str, Any]) -> set[str]:
    texts = [vehicle[member] for member in TEXT_MEMBERS if isinstance(vehicle.get(member), str)]
    year = number_of(vehicle, "year")
    if year is not None:
        texts.append(str(year))
    if isinstance(vehicle.get("features"), list):
        texts += [feature for feature in vehicle["features"] if isinstance(feature, str)]
    if isinstance(vehicle.get("description"), str):
        texts.append(vehicle["description"])
    words: set[str] = set()
    for text in texts:
        for word in text.split():
            words |= {*pieces(word), "".join(pieces(word))}
    return words - {""}


class Reference:
    """The same questions as the catalog's, over (listing_id, dealer_id, body)."""

    def __init__(self, listings: list[tuple[str, str, bytes]]) -> None:
        self.rows: list[Any] = sorted(
            (listing_id, dealer_id, body, json.loads(body)) for listing_id, dealer_id, body in listings
        )
        self.rows = [row for row in self.rows if row[3].get("status") in ("available", "intransit", "pending")]

    def matches(self, vehicle: dict[str, Any], filters: Filters) -> bool:
        for member, wanted in filters.terms.items():
            text = text_of(vehicle, member)
            if wanted and (text is None or same(text) not in {same(each) for each in wanted}):
                return False
        for member, bound in filters.at_least.items():
            value = number_of(vehicle, member)
            if value is None or not value >= bound:
                return False
        for member, bound in filters.at_most.items():
            value = number_of(vehicle, member)
            if value is None or not value <= bound:
                return False
        for member, flag in filters.flags.items():
            if vehicle.get(member) is not flag:
                return False
        for member, identifier in (("vin", filters.vin), ("stock", filters.stock)):
            if identifier is not None:
                text = text_of(vehicle, member)
                if text is None or same(text) != same(identifier):
                    return False
        codes = features_of(vehicle)
        if not codes.issuperset(filters.features_all) or not codes.isdisjoint(filters.features_none):
            return False
        if filters.features_any and codes.isdisjoint(filters.features_any):
            return False
        if filters.text is not None:
            words = words_of(vehicle)
            for wanted_word in filters.text.split():
                prefix = "".join(pieces(wanted_word))
                if prefix and not any(word.startswith(prefix) for word in words):
                    return False
        return True

    def matching_rows(self, filters: Filters, dealers: Collection[str] | None) -> list[Any]:
        return [row for row in self.rows if (dealers is None or row[1] in dealers) and self.matches(row[3], filters)]

    def search(
        self,
        filters: Filters,
        sort: Sort | None,
        *,
        skip: int = 0,
        limit: int,
        after: Place | None = None,
        dealers: Collection[str] | None = None,
    ) -> Page:
        def value(row: Any) -> Any:
            if sort is None:
                return None
            if sort.field == "updated_at":
                return instant_of(row[3])
            if sort.field in ("make", "model", "stock"):
                return text_of(row[3], sort.field)
            return number_of(row[3], sort.field)

        def key(one: Any) -> Any:
            return (same(one), one) if isinstance(one, str) else one

        def compare(left: tuple[Any, str], right: tuple[Any, str]) -> int:
            """Which of two (value, id) comes first: lacking values last, ties by id, whatever the direction."""
            (one, one_id), (other, other_id) = left, right
            if (one is None) != (other is None):
                return 1 if one is None else -1
            if one is not None and key(one) != key(other):
                smaller = key(one) < key(other)
                return -1 if smaller is not (sort is not None and sort.descending) else 1
            return (one_id > other_id) - (one_id < other_id)

        rows = self.matching_rows(filters, dealers)
        total = len(rows)
        placed: list[Any] = [((value(row), row[0]), row) for row in rows]
        by_place = functools.cmp_to_key(compare)
        placed.sort(key=lambda entry: by_place(entry[0]))
        rows = [row for _, row in placed]
        if after is not None:
            rows = [row for row in rows if compare((value(row), row[0]), (after.value, after.listing_id)) > 0]
        rows = rows[skip:]
        page = rows[:limit]
        last = Place(page[-1][0], value(page[-1])) if page and len(rows) > limit else None
        return Page(total, [row[2] for row in page], last)

    def facets(self, filters: Filters, *, dealers: Collection[str] | None = None) -> Facets:
        rows = self.matching_rows(filters, dealers)
        terms: dict[str, list[tuple[Any, int]]] = {}
        for member in COUNTED:
            spellings: dict[str, Counter[str]] = {}
            for row in self.rows:
                # How a value is written is learnt from the sellers that are asked alone.
                text = text_of(row[3], member) if dealers is None or row[1] in dealers else None
                if text is not None:
                    spellings.setdefault(same(text), Counter())[text] += 1
            shown = {normal: min(texts, key=lambda text: (-texts[text], text)) for normal, texts in spellings.items()}
            counts = Counter(shown[same(text)] for row in rows if (text := text_of(row[3], member)) is not None)
            terms[member] = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
        years = Counter(year for row in rows if (year := number_of(row[3], "year")) is not None)
        terms["year"] = sorted(years.items(), key=lambda entry: (-entry[1], entry[0]))
        flags = Counter(flag for row in rows if isinstance(flag := row[3].get("dc_fast_charge"), bool))
        terms["dc_fast_charge"] = sorted(flags.items(), key=lambda entry: (-entry[1], entry[0]))
        codes = Counter(code for row in rows for code in features_of(row[3]))
        terms["feature_codes"] = sorted(codes.items(), key=lambda entry: (-entry[1], entry[0]))
        ranges = {}
        for member in RANGED:
            values = [value for row in rows if (value := number_of(row[3], member)) is not None]
            if values:
                ranges[member] = (min(values), max(values))
        return Facets({member: pairs for member, pairs in terms.items() if pairs}, ranges)

    def find(self, reference: VehicleReference, *, dealers: Collection[str] | None = None) -> bytes | None:
        rows = self.matching_rows(Filters(), dealers)
        candidates: list[Any] | None = None
        for member in ("vin", "vehicle_id", "stock"):
            wanted = getattr(reference, member)
            if wanted is None:
                continue
            fitting = [
                row for row in rows
                if (text := text_of(row[3], member)) is not None and same(text) == same(wanted)
            ]  # fmt: skip
            if candidates is None:
                candidates = fitting
            elif fitting:
                candidates = [row for row in candidates if row in fitting]
        return candidates[0][2] if candidates else None
