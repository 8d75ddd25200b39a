"""Vehicles are serialised once, and keep their time while nothing else of them changes."""

import io
import json
from datetime import timedelta

from tests.feed.reading import NOW

from forecourt.feed import FeedOptions, KeptBodies, Report, read_bodies

ROWS = "stock,type,make,model,price,updated\nS1,Used,Honda,Civic,{},\nS2,Used,Honda,Fit,9000,2026-01-02T03:04:05Z\n"


def bodies(price: int, known: KeptBodies, hours: int = 0) -> list[bytes]:
    """Return the bodies of a feed with two vehicles, the second of which has a time of its own."""
    options = FeedOptions("d", rooftop="Main", now=NOW + timedelta(hours=hours))
    text = io.BytesIO(ROWS.format(price).encode())
    return [kept.body for kept in read_bodies(text, options, known, Report())]


def test_a_vehicle_that_did_not_change_has_the_same_bytes_again() -> None:
    first = bodies(20_000, KeptBodies())
    known = KeptBodies(first)
    assert bodies(20_000, known, hours=5) == first
    changed = bodies(20_001, known, hours=5)
    assert [json.loads(body)["updated_at"] for body in changed] == ["2026-11-30T17:00:00Z", "2026-01-02T03:04:05Z"]
    assert changed[1] == first[1]


def test_a_body_is_the_vehicle_and_its_identifiers_stand_beside_it() -> None:
    options = FeedOptions("d", rooftop="Main", now=NOW)
    kept = next(read_bodies(io.BytesIO(ROWS.format(1).encode()), options, KeptBodies(), Report()))
    assert kept[:4] == ("S1", "Main", None, "S1")
    vehicle = json.loads(kept.body)
    assert (vehicle["vehicle_id"], vehicle["model"], vehicle["updated_at"]) == ("S1", "Civic", "2026-11-30T12:00:00Z")
    assert b" " not in kept.body


def test_bodies_of_another_make_are_not_known() -> None:
    for body in (b"", b"{}", b'{"updated_at":"2026"}', b'{"a":1,"updated_at":"x","b":"y"}', b'{"a":",\\"updated_at"}'):
        assert len(KeptBodies([body])) == 0
    known = KeptBodies([b'{"a":1,"updated_at":"2026"}', b'{"a":2,"updated_at":"2027"}'])
    assert [known.updated_at(body) for body in (b'{"a":1}', b'{"a":2}', b'{"a":3}')] == ["2026", "2027", None]
