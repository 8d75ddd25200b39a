"""Several vehicles or several dealers at once: bounded, and a failure of one is told beside the others' answers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from forecourt.a2a import A2AError, FailureKind
from forecourt.client.client import Client
from forecourt.client.connection import connect
from forecourt.client.failure import TransportError
from forecourt.client.results import SearchPage, Vehicle
from forecourt.errors import AAPError

__all__ = ["Availability", "Comparison", "Found", "availability", "compare", "search_dealers"]

T = TypeVar("T")
S = TypeVar("S")

Failure = AAPError | A2AError | TransportError

_MOST: Final = 1000
_COMPARED: Final = (
    "price", "mileage", "year", "make", "model", "trim", "condition", "status", "fuel", "driveline", "body",
    "exterior_color", "rooftop", "electric_range_mi",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Availability:
    """What the dealer says of one VIN: "available", "intransit", "pending" (with the listing), "gone" (it was here),
    "unknown" (it never was), or "failed" (nobody knows; `error` says why).
    """

    vin: str
    status: str
    vehicle: Vehicle | None = None
    error: Failure | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Vehicles side by side. `rows` has, for each member that differs, one value a vehicle; `missing` are the VINs that
    cannot be compared, each with what the dealer said of it.
    """

    vehicles: tuple[Vehicle, ...]
    rows: Mapping[str, tuple[Any, ...]]
    missing: tuple[Availability, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """One dealer's part of a search over several: its page, or why there is none."""

    url: str
    name: str = ""
    page: SearchPage | None = None
    error: Failure | None = None


async def availability(dealer: Client, vins: Iterable[str], *, at_once: int = 8) -> list[Availability]:
    """Ask about many VINs, `at_once` at a time; one answer for each different VIN, in the order given.

    Raises ValueError for more than 1,000 VINs.
    """

    async def ask(vin: str) -> Availability:
        try:
            vehicle = await dealer.vehicle(vin)
        except AAPError as error:
            told = {"VEHICLE_UNAVAILABLE": "gone", "VEHICLE_NOT_FOUND": "unknown"}
            return Availability(vin, told.get(error.code, "failed"), error=error)
        except (A2AError, TransportError) as error:
            return Availability(vin, "failed", error=error)
        return Availability(vin, vehicle.status or "available", vehicle)

    return await _each(list(dict.fromkeys(vins)), ask, at_once)


async def compare(dealer: Client, vins: Iterable[str], *, at_once: int = 8) -> Comparison:
    """Look at several vehicles and return where they differ."""
    answers = await availability(dealer, vins, at_once=at_once)
    vehicles = tuple(answer.vehicle for answer in answers if answer.vehicle is not None)
    rows = {name: tuple(getattr(vehicle, name) for vehicle in vehicles) for name in _COMPARED}
    differing = {name: values for name, values in rows.items() if len(set(values)) > 1}
    return Comparison(vehicles, differing, tuple(answer for answer in answers if answer.vehicle is None))


async def search_dealers(
    urls: Iterable[str],
    filters: Mapping[str, Any] | None = None,
    *,
    sort: str | Mapping[str, Any] | None = None,
    limit: int | None = None,
    at_once: int = 8,
    seconds: float = 60.0,
    options: Mapping[str, Any] | None = None,
    **more: Any,
) -> list[Found]:
    """Ask several dealers the same, `at_once` at a time; each answers, or fails within `seconds`, for itself alone.

    `options` are those of `connect`, the same for all: a dealer gets the credentials for its own origin only, so name
    none that not every dealer may see. Raises ValueError for more than 1,000 dealers.
    """

    async def ask(url: str) -> Found:
        name = ""
        try:
            async with asyncio.timeout(seconds), connect(url, **(options or {})) as dealer:
                name = dealer.name
                return Found(url, name, await dealer.search(filters, sort=sort, limit=limit, **more))
        except (AAPError, A2AError, TransportError) as error:
            return Found(url, name, error=error)
        except TimeoutError:
            late = TransportError(FailureKind.TIMEOUT, f"the dealer did not answer within {seconds:g} seconds")
            return Found(url, name, error=late)

    return await _each(list(dict.fromkeys(urls)), ask, at_once)


async def _each(items: Sequence[S], ask: Callable[[S], Awaitable[T]], at_once: int) -> list[T]:
    if len(items) > _MOST:
        raise ValueError(f"at most {_MOST} at once")
    if at_once < 1:
        raise ValueError("at_once is at least 1")
    places = asyncio.Semaphore(at_once)

    async def one(item: S) -> T:
        async with places:
            return await ask(item)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(item)) for item in items]
    return [task.result() for task in tasks]
