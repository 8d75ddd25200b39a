"""PostgreSQL 15 or later: any number of processes on any number of machines, every commit on the server's disk.

`address` is what PostgreSQL's own tools take, `postgresql://user@host:5432/name?sslmode=…`. A process holds at most
fourteen connections, made when they are needed.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from forecourt.model import VehicleReference
from forecourt.store import (
    InventoryChange,
    LeadRecord,
    LeadTransaction,
    Remembered,
    Secret,
    StoredListing,
    StoreError,
)
from forecourt.store.comparable import identifiers, row, time_text
from forecourt.store.statements import migrations, queries

try:
    from forecourt.store.postgresql.lead import PostgreSQLLeadTransaction, recall
    from forecourt.store.postgresql.session import Connection, Lane, asked, connector, lock_id
except ModuleNotFoundError as error:
    if error.name != "psycopg":
        raise
    raise ValueError("a PostgreSQL store needs the extra: pip install 'forecourt[postgres]'") from error

__all__ = ["STORE", "PostgreSQLStore", "migrate"]

Result = TypeVar("Result")

_OLDEST: Final = 150000
_LEADS: Final = ("leads", 8, 10.0)
_READS: Final = ("reads", 4, 10.0)
_IMPORTS: Final = ("imports", 2, 60.0)
"""Each: name, threads and so connections, seconds that work may wait for a thread."""

_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BATCH: Final = 1000
"""How many listings are in memory at once while they are read."""

_LONG: Final = "SET statement_timeout = '10min'; SET lock_timeout = '60s'"
"""Changing a schema and exchanging a large stock take longer than answering does."""
_AT_THE_FEEDS_PACE: Final = "SET statement_timeout = 0"
_MIGRATIONS: Final = lock_id("migrations")


class PostgreSQLStore:
    """The store of many machines."""

    def __init__(self, address: str) -> None:
        self._connect = connector(address)
        self._sql = queries("postgresql")
        self._lanes: dict[str, Lane] = {}

    # Opening and closing

    async def open(self) -> None:
        """Connect once to bring the schema up to date; the other connections are made when they are needed."""
        await asyncio.to_thread(asked, self._migrate)
        self._lanes = {
            name: Lane(name, threads, patience, self._connect) for name, threads, patience in (_LEADS, _READS, _IMPORTS)
        }

    async def close(self) -> None:
        """Finish the work that waits, then close every connection."""
        lanes, self._lanes = self._lanes, {}
        for lane in lanes.values():
            await lane.close()

    def _migrate(self) -> None:
        with contextlib.closing(self._connect()) as connection:
            migrate(connection)

    def _lane(self, kind: tuple[str, int, float]) -> Lane:
        if kind[0] not in self._lanes:
            raise StoreError("the store is not open")
        return self._lanes[kind[0]]

    async def _write(self, work: Callable[[Connection], Result]) -> Result:
        return await self._lane(_LEADS).transact(work)

    async def _read(self, work: Callable[[Connection], Result], begin: str = "BEGIN READ ONLY") -> Result:
        return await self._lane(_READS).transact(work, begin)

    # Inventory

    async def inventory_generation(self) -> int:
        """Read the number that every change of the inventory counts up."""
        return await self._read(self._generation)

    def _generation(self, connection: Connection) -> int:
        generation: int = _only(connection, self._sql["generation"])[0]
        return generation

    async def replace_listings(
        self,
        dealer_id: str,
        rooftop: str | None,
        listings: Iterable[StoredListing],
        now: datetime,
        check: Callable[[InventoryChange], None] | None = None,
    ) -> InventoryChange:
        """Copy the new stock into a temporary table, then write what differs in one transaction."""
        scope = {"dealer_id": dealer_id, "rooftop": rooftop, "now": now}

        def work() -> InventoryChange:
            # On a connection of its own, which takes the temporary table with it when it is closed.
            with contextlib.closing(self._connect()) as connection:
                connection.execute(_AT_THE_FEEDS_PACE)
                connection.execute(self._sql["stage_begin"])
                _copy(connection, self._sql["stage"], listings)
                connection.execute(_LONG)
                connection.execute(self._sql["stage_last"])
                connection.execute(self._sql["stage_end"])
                with connection.transaction():
                    return self._exchange(connection, scope, check)

        return await self._lane(_IMPORTS).run(work)

    def _exchange(
        self, connection: Connection, scope: dict[str, Any], check: Callable[[InventoryChange], None] | None
    ) -> InventoryChange:
        connection.execute(self._sql["lock"], (_stock_lock(scope["dealer_id"]),))
        change = InventoryChange(*_only(connection, self._sql["compare"], scope))
        if check is not None:
            check(change)
        if change.removed or change.unchanged < change.imported:
            connection.execute(self._sql["depart"], scope)
            connection.execute(self._sql["remove_departed"], scope)
            connection.execute(self._sql["take_staged"])
            # Last: other sellers' imports wait for this row from here to the commit.
            connection.execute(self._sql["next_generation"])
        return change

    async def remember_departed(self, dealer_id: str, references: Iterable[VehicleReference], now: datetime) -> None:
        """Remember identifiers as once in stock."""
        rows = [(dealer_id, *named, now) for reference in references for named in identifiers(reference)]

        def work(connection: Connection) -> None:
            connection.execute(self._sql["lock"], (_stock_lock(dealer_id),))
            connection.cursor().executemany(self._sql["remember_departed"], rows)

        await self._write(work)

    async def read_listings(self, take: Callable[[Iterable[StoredListing]], Result]) -> tuple[int, Result]:
        """Read generation and listings from one snapshot, so that they belong together."""

        def work(connection: Connection) -> tuple[int, Result]:
            # Between two batches and after the last one it is `take` that works, for as long as it needs.
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = '10min'")
            generation = self._generation(connection)
            with connection.cursor("listings", binary=True) as cursor:
                cursor.itersize = _BATCH
                cursor.execute(self._sql["listings"])
                return generation, take(StoredListing(*found) for found in cursor)

        return await self._read(work, _SNAPSHOT)

    async def has_departed(self, dealer_ids: Collection[str], reference: VehicleReference) -> bool:
        """Look all the identifiers up at once."""
        named = identifiers(reference)
        values = ([kind for kind, _ in named], [value for _, value in named], list(dealer_ids))
        return await self._read(lambda connection: bool(_only(connection, self._sql["has_departed"], values)[0]))

    # Leads

    async def decide_lead(self, work: Callable[[LeadTransaction], Result]) -> Result:
        """Run `work` in a transaction; it waits for those of other leads that it meets, and for no more.

        When the server is lost during the commit, nobody can tell whether the lead is kept: this is a StoreError
        too, and asking again finds the lead by its key or as its twin.
        """
        return await self._write(lambda connection: work(PostgreSQLLeadTransaction(connection, self._sql)))

    async def recall(self, scope: str, key: str, now: datetime) -> Remembered | None:
        """Look a key up, without a lock."""
        return await self._read(lambda connection: recall(connection, self._sql, scope, key, now))

    async def leads(self, dealer_id: str | None, limit: int) -> Sequence[LeadRecord]:
        """Read the newest leads."""
        values = {"dealer_id": dealer_id, "limit": limit}
        return await self._read(
            lambda connection: [_lead(found) for found in connection.execute(self._sql["leads"], values)]
        )

    async def lead(self, lead_id: str) -> LeadRecord | None:
        """Read one lead."""

        def work(connection: Connection) -> LeadRecord | None:
            found = connection.execute(self._sql["lead"], (lead_id,)).fetchone()
            return _lead(found) if found else None

        return await self._read(work)

    # The deployment

    async def check(self) -> None:
        """Take a lock on a row, which is written, and give it back."""
        await self._write(lambda connection: connection.execute(self._sql["check"]))

    async def secrets(self, purpose: str, make: Callable[[], Secret], now: datetime) -> Sequence[Secret]:
        """Read the keys, making the first one if there is none."""

        def work(connection: Connection) -> list[Secret]:
            connection.execute(self._sql["lock"], (lock_id("secrets", purpose),))
            found = connection.execute(self._sql["secrets"], (purpose,)).fetchall()
            if found:
                return [Secret(*each) for each in found]
            secret = make()
            connection.execute(self._sql["add_secret"], (purpose, secret.key_id, secret.value, now))
            return [secret]

        return await self._write(work)


def migrate(connection: Connection) -> list[str]:
    """Apply the migrations that the database does not have yet, one transaction each; return their names.

    `connection` commits by itself (autocommit). Safe to run from any number of processes at once: each migration is
    looked for again under a lock. StoreError when the server is too old or the database is not in UTF-8.
    """
    if connection.info.server_version < _OLDEST:
        raise StoreError("the database must be PostgreSQL 15 or later")
    if connection.info.parameter_status("server_encoding") != "UTF8":
        raise StoreError("the database's encoding must be UTF8")
    sql = queries("postgresql")
    connection.execute(_LONG)
    with connection.transaction():
        connection.execute(sql["lock"], (_MIGRATIONS,))
        connection.execute(sql["make_migrations"])
    applied = []
    for number, name, script in migrations("postgresql"):
        with connection.transaction():
            connection.execute(sql["lock"], (_MIGRATIONS,))
            if connection.execute(sql["migration"], (number,)).fetchone() is None:
                connection.execute(script.encode())
                connection.execute(sql["add_migration"], (number, name))
                applied.append(f"{number:04}_{name}")
    return applied


def _stock_lock(dealer_id: str) -> int:
    return lock_id("stock", dealer_id)


def _only(connection: Connection, statement: str, values: Any = None) -> tuple[Any, ...]:
    """Return the one row of an answer that has always one."""
    found = connection.execute(statement, values).fetchone()
    assert found is not None
    return found


def _copy(connection: Connection, statement: str, listings: Iterable[StoredListing]) -> None:
    failure: BaseException | None = None
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(("int8", "text", "text", "text", "text", "text", "text", "bytea"))
        try:
            for position, listing in enumerate(listings):
                copy.write_row((position, *row(listing)))
        except BaseException as error:
            # Not out of the copy: the driver would send its text to the server, which would log it.
            failure = error
    if failure is not None:
        raise failure


def _lead(found: tuple[Any, ...]) -> LeadRecord:
    """Return a lead, its time as text like every store gives it."""
    values = list(found)
    values[5] = time_text(values[5])
    return LeadRecord(*values)


STORE: Final = PostgreSQLStore
