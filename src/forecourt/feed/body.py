"""Vehicles as they are kept: compact JSON, serialised once, and compared with what was kept before.

A vehicle of which the feed does not say when it last changed keeps the `updated_at` that it has in stock for as long
as nothing else of it changes, so that importing a file again changes nothing.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import IO, Any, Final, NamedTuple

import msgspec

from forecourt.feed.options import FeedOptions
from forecourt.feed.read import read_undated, stamp
from forecourt.feed.report import Report

__all__ = ["Kept", "KeptBodies", "read_bodies", "read_rows"]

_UPDATED: Final = b',"updated_at":"'
_END: Final = b'"}'
_LONGEST_TIME: Final = 40


class Kept(NamedTuple):
    """One vehicle: what it is told apart by, and all of it as compact JSON."""

    vehicle_id: str
    rooftop: str
    vin: str | None
    stock: str | None
    body: bytes


class KeptBodies:
    """What is in stock, as twelve bytes a vehicle: a hash of its body without `updated_at`, and which time that was."""

    def __init__(self, bodies: Iterable[bytes] = ()) -> None:
        hashes, places = array("Q"), array("L")
        times: dict[bytes, int] = {}
        for body in bodies:
            # A vehicle whose time the feed gave has it in the same place, and is not asked about.
            at = body.rfind(_UPDATED)
            time = body[at + len(_UPDATED) : -len(_END)]
            if at > 0 and body.endswith(_END) and len(time) <= _LONGEST_TIME and b'"' not in time:
                hashes.append(_hash(body[:at]))
                places.append(times.setdefault(time, len(times)))
        order = sorted(range(len(hashes)), key=hashes.__getitem__)
        self._hashes = array("Q", [hashes[at] for at in order])
        self._places = array("L", [places[at] for at in order])
        self._times = [time.decode() for time in times]

    def __len__(self) -> int:
        """Return how many vehicles are known."""
        return len(self._hashes)

    def updated_at(self, body: bytes) -> str | None:
        """Return the `updated_at` under which a vehicle is in stock, given its body without that."""
        wanted = _hash(body[:-1])
        at = bisect_left(self._hashes, wanted)
        if at == len(self._hashes) or self._hashes[at] != wanted:
            return None
        return self._times[self._places[at]]


def _hash(body: bytes) -> int:
    return int.from_bytes(blake2b(body, digest_size=8).digest(), "little")


def read_bodies(stream: IO[bytes], options: FeedOptions, known: KeptBodies, report: Report) -> Iterator[Kept]:
    """Give the vehicles of a feed as `read_feed` does, each serialised, with the times of those that did not change."""
    return map(Kept._make, read_rows(stream, options, known, report))


def read_rows(
    stream: IO[bytes], options: FeedOptions, known: KeptBodies, report: Report
) -> Iterator[tuple[str, str, str | None, str | None, bytes]]:
    """Give what `read_bodies` gives, as plain tuples, which are faster to make and to hand over."""
    encode: Callable[[Mapping[str, Any]], bytes] = msgspec.json.Encoder().encode
    end = b'%b%b"}' % (_UPDATED, stamp(options.now).encode())
    is_known = len(known) > 0
    for vehicle, updated in read_undated(stream, options, report):
        body = encode(vehicle)
        if updated is None:
            since = known.updated_at(body) if is_known else None
            body = body[:-1] + (b"".join((_UPDATED, since.encode(), _END)) if since else end)
        yield vehicle["vehicle_id"], vehicle["rooftop"], vehicle.get("vin"), vehicle.get("stock"), body
