"""What other processes do to a store at the same time. Each function is run by its name in a process of its own."""

import asyncio
import hashlib
import itertools
import os
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from typing import Final, TypeVar

from tests.store.sample import NOW, listing, take_once, take_slot

from forecourt.identifier import sortable_id
from forecourt.store import LeadTransaction, Mark, Secret, Store, StoredListing, open_store

__all__ = [
    "PROCESSES",
    "STOCKS",
    "ask_for_slot",
    "hold_a_lead_open",
    "import_and_wait",
    "import_without_end",
    "make_secret",
    "mark_once",
    "migrate",
    "send_key",
    "submit_without_end",
]

Result = TypeVar("Result")

PROCESSES: Final = 4

STOCKS: Final = tuple([listing(f"{number:04}", price=price) for number in range(400)] for price in (1, 2))
"""Two inventories of the same listings at different prices."""


def _with_store(address: str, begin: float, work: Callable[[Store], Awaitable[Result]]) -> Result:
    """Do `work` at the moment `begin` (seconds since 1970), which all processes wait for."""

    async def run() -> Result:
        store = open_store(address)
        await store.open()
        try:
            await asyncio.sleep(max(0.0, begin - time.time()))
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


def migrate(address: str, begin: float) -> int:
    """Open the store at the moment `begin`, whatever state its schema is in, and read from it."""
    time.sleep(max(0.0, begin - time.time()))
    return _with_store(address, begin, lambda store: store.inventory_generation())


def send_key(address: str, begin: float, key: str, clients: int) -> list[bytes]:
    """Send one lead under one key from several clients at once; return all answers."""

    async def work(store: Store) -> list[bytes]:
        return await asyncio.gather(*(store.decide_lead(take_once(key)) for _ in range(clients)))

    return _with_store(address, begin, work)


def ask_for_slot(address: str, begin: float, start: datetime, capacity: int, clients: int) -> int:
    """Ask for one slot from several clients at once; return how many were given it."""

    async def work(store: Store) -> int:
        return sum(await asyncio.gather(*(store.decide_lead(take_slot(start, capacity)) for _ in range(clients))))

    return _with_store(address, begin, work)


def mark_once(address: str, begin: float, count: int) -> list[bool]:
    """Make the same marks as every other process, in an order of one's own; return which were the first."""

    async def work(store: Store) -> list[bool]:
        marks = [Mark(hashlib.sha256(b"%d" % number).digest(), int(NOW.timestamp()) + 60) for number in range(count)]
        firsts: dict[int, bool] = {}
        numbers = list(range(count))
        random.shuffle(numbers)
        for start in range(0, count, 20):
            batch = numbers[start : start + 20]
            admitted = await store.access.admit([marks[number] for number in batch], NOW)
            firsts.update((number, found.first) for number, found in zip(batch, admitted, strict=True))
        return [firsts[number] for number in range(count)]

    return _with_store(address, begin, work)


def make_secret(address: str, begin: float) -> list[Secret]:
    """Ask for the keys of a purpose that has none yet."""

    async def work(store: Store) -> list[Secret]:
        return list(await store.secrets("cursor", lambda: Secret(sortable_id(), os.urandom(32)), NOW))

    return _with_store(address, begin, work)


def submit_without_end(address: str, acknowledged: str, name: str) -> None:
    """Submit leads as eight clients until killed; write each key and receipt to a file once it is acknowledged."""
    descriptor = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def client(store: Store, number: int) -> None:
        for count in itertools.count():
            key = f"{name}-{number}-{count}"
            receipt = await store.decide_lead(take_once(key))
            # The kernel has it after this call, whatever becomes of the process.
            os.write(descriptor, key.encode() + b" " + receipt + b"\n")

    async def run() -> None:
        store = open_store(address)
        await store.open()
        await asyncio.gather(*(client(store, number) for number in range(8)))

    asyncio.run(run())


def import_without_end(address: str, begun: str) -> None:
    """Replace the inventory by one of two others in turn until killed; write a line to a file each time."""
    descriptor = os.open(begun, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def run() -> None:
        store = open_store(address)
        await store.open()
        stocks: itertools.cycle[list[StoredListing]] = itertools.cycle(STOCKS)
        for stock in stocks:
            await store.replace_listings("dealer-a", None, stock, NOW)
            os.write(descriptor, b"replaced\n")

    asyncio.run(run())


def import_and_wait(address: str, begun: str) -> None:
    """Import a stock whose feed does not end until killed; a file appears once most of it has been read."""

    def rows() -> Iterator[StoredListing]:
        yield from (listing(f"{number:04}", price=3) for number in range(2500))
        with open(begun, "x"):
            time.sleep(600)

    async def run() -> None:
        store = open_store(address)
        await store.open()
        await store.replace_listings("dealer-a", None, rows(), NOW)

    asyncio.run(run())


def hold_a_lead_open(address: str, inside: str) -> None:
    """Add a lead and stay inside its transaction until killed; a file appears once the lead is added."""

    def work(transaction: LeadTransaction) -> None:
        take_once("key-1")(transaction)
        with open(inside, "x"):
            time.sleep(600)

    async def run() -> None:
        store = open_store(address)
        await store.open()
        await store.decide_lead(work)

    asyncio.run(run())
