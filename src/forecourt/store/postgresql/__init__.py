"""PostgreSQL 15 or later: any number of processes on any number of machines, every commit on the server's disk.

`address` is what PostgreSQL's own tools take, `postgresql://user@host:5432/name?sslmode=…`. A process holds at most
fourteen connections, made when they are needed.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import astuple
from datetime import datetime, timedelta
from itertools import count, starmap
from pathlib import Path
from typing import Any, Final, TypeVar

from forecourt.model import VehicleReference
from forecourt.store import (
    PAST_KEPT,
    RETIRED_KEPT,
    APIKey,
    Backup,
    FeedState,
    InventoryChange,
    PastListing,
    Secret,
    StoredListing,
    StoreError,
    Survey,
)
from forecourt.store.comparable import digest, identifiers, retired, row
from forecourt.store.staging import batches
from forecourt.store.statements import migrations, queries

try:
    from forecourt.store.postgresql.access import PostgreSQLAccess
    from forecourt.store.postgresql.backup import back_up, restore
    from forecourt.store.postgresql.group import LeadGroups
    from forecourt.store.postgresql.intake import Intake
    from forecourt.store.postgresql.look import survey
    from forecourt.store.postgresql.outbox import PostgreSQLLeads
    from forecourt.store.postgresql.session import Connection, Lane, asked, connector, conninfo_of, lock_id
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
_WITHOUT_COMPILING: Final = "SET jit = off"
"""Compiling the statements of an import takes longer than it saves."""
_IN_TURN: Final = "SET LOCAL lock_timeout = '10min'"
"""The import that is waited for may be a large one."""
_EXCHANGE: Final = (
    "depart", "keep_departing", "keep_changing", "remove_departed", "take_staged", "forget_past",
)  # fmt: skip
"""The statements that make the staged stock the stock, in their order."""
_STAGED: Final = ("int8", "int8", "text", "text", "text", "text", "text", "text", "bytea", "bytea")
_MIGRATIONS: Final = lock_id("migrations")


class PostgreSQLStore(PostgreSQLLeads):
    """The store of many machines."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._connect = connector(address)
        self._sql = queries("postgresql")
        self._lanes: dict[str, Lane] = {}
        intake = Intake(conninfo_of(address), self._sql["add_new"])
        intake = Intake(conninfo_of(address), self._sql["add_new"])
        self._groups = LeadGroups(intake, self._write, self._decide_alone, self._sql)
        self.access = PostgreSQLAccess(self._write, self._read)

    # Opening and closing

    async def open(self) -> None:
        """Connect once to bring the schema up to date; the other connections are made when they are needed."""
        await asyncio.to_thread(asked, self._migrate)
        self._lanes = {
            name: Lane(name, threads, patience, self._connect) for name, threads, patience in (_LEADS, _READS, _IMPORTS)
        }

    async def close(self) -> None:
        """Finish the work that waits, then close every connection."""
        await self._groups.close()
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

    async def survey(self, starts: Collection[datetime]) -> Survey:
        """Look at the schema, on a connection of its own."""
        return await asyncio.to_thread(asked, lambda: survey(self._connect, starts))

    async def back_up(self, file: Path) -> Backup:
        """Let pg_dump copy the schema."""
        return await asyncio.to_thread(asked, lambda: back_up(self._connect, self._address, file))

    async def restore(self, file: Path) -> Backup:
        """Let pg_restore make the schema's tables."""
        return await asyncio.to_thread(asked, lambda: restore(self._connect, self._address, file))

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
        scope = {"dealer_id": dealer_id, "rooftop": rooftop, "now": now, "kept_since": now - PAST_KEPT}

        def work() -> InventoryChange:
            # On a connection of its own, which takes the temporary table with it when it is closed.
            with contextlib.closing(self._connect()) as connection:
                connection.execute(_LONG)
                connection.execute(_WITHOUT_COMPILING)
                connection.execute(self._sql["stage_begin"])
                self._stage(connection, listings)
                connection.execute(self._sql["stage_last"])
                connection.execute(self._sql["stage_end"])
                with connection.transaction():
                    return self._exchange(connection, scope, check)

        return await self._lane(_IMPORTS).run(work)

    def _stage(self, connection: Connection, listings: Iterable[StoredListing]) -> None:
        """Copy the listings, without the bodies of those that have not changed."""
        empty = bool(_only(connection, self._sql["is_empty"])[0])
        positions = count()
        for batch in batches(listings):
            known: dict[str, tuple[bytes, int]] = {}
            if not empty:
                found = connection.cursor(binary=True).execute(self._sql["known"], ([*batch],))
                known = {listing_id: (stored, generation) for listing_id, stored, generation in found}
            rows = []
            for listing in batch.values():
                *identified, body = row(listing)
                now = digest(listing.rooftop, listing.body)
                stored, generation = known.get(listing.listing_id, (None, None))
                same = stored == now
                rows.append((next(positions), generation if same else None, *identified, None if same else body, now))
            _copy(connection, self._sql["stage"], rows)

    def _exchange(
        self, connection: Connection, scope: dict[str, Any], check: Callable[[InventoryChange], None] | None
    ) -> InventoryChange:
        connection.execute(self._sql["lock"], (_stock_lock(scope["dealer_id"]),))
        change = InventoryChange(*_only(connection, self._sql["compare"], scope))
        if check is not None:
            check(change)
        if change.removed or change.unchanged < change.imported:
            # Other sellers' imports wait for this row from here to the commit, so that whoever sees a generation sees
            # everything that was written at it and before.
            connection.execute(_IN_TURN)
            scope["generation"] = _only(connection, self._sql["next_generation"])[0]
            for step in _EXCHANGE:
                connection.execute(self._sql[step], scope)
        return change

    async def remember_departed(self, dealer_id: str, references: Iterable[VehicleReference], now: datetime) -> None:
        """Remember identifiers as once in stock."""
        rows = [(dealer_id, *named, now) for reference in references for named in identifiers(reference)]

        def work(connection: Connection) -> None:
            connection.execute(self._sql["lock"], (_stock_lock(dealer_id),))
            connection.cursor().executemany(self._sql["remember_departed"], rows)

        await self._write(work)

    async def read_listings(
        self, take: Callable[[Iterable[StoredListing]], Result], dealer_id: str | None = None
    ) -> tuple[int, Result]:
        """Read generation and listings from one snapshot, so that they belong together."""
        listings = self._sql["listings" if dealer_id is None else "listings_of_dealer"]
        values = None if dealer_id is None else {"dealer_id": dealer_id}

        def work(connection: Connection) -> tuple[int, Result]:
            # Between two batches and after the last one it is `take` that works, for as long as it needs.
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = '10min'")
            generation = self._generation(connection)
            with connection.cursor("listings", binary=True) as cursor:
                cursor.itersize = _BATCH
                cursor.execute(listings, values)
                return generation, take(starmap(StoredListing, cursor))

        return await self._read(work, _SNAPSHOT)

    async def changed_listings(
        self, since: int, take: Callable[[Iterable[StoredListing]], Result]
    ) -> tuple[int, Result, Sequence[str]] | None:
        """Read what was written and what was removed, and whether that is all, from one snapshot."""

        def work(connection: Connection) -> tuple[int, Result, Sequence[str]] | None:
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = '10min'")
            generation, history_from = _only(connection, self._sql["generations"])
            if not history_from <= since <= generation:
                return None
            removed = [found[0] for found in connection.execute(self._sql["removed_since"], (since, since))]
            with connection.cursor("written_since", binary=True) as cursor:
                cursor.itersize = _BATCH
                cursor.execute(self._sql["written_since"], (since,))
                return generation, take(starmap(StoredListing, cursor)), removed

        return await self._read(work, _SNAPSHOT)

    async def past_listings(
        self, generation: int, until: int, limit: int, take: Callable[[Iterable[PastListing]], Result]
    ) -> Result | None:
        """Read what has changed, and whether that is all, from one snapshot."""
        values = {"generation": generation, "until": until, "limit": limit}

        def work(connection: Connection) -> Result | None:
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = '10min'")
            if _only(connection, self._sql["history_from"])[0] > generation:
                return None
            with connection.cursor("past_listings", binary=True) as cursor:
                cursor.itersize = _BATCH
                cursor.execute(self._sql["past_listings"], values)
                return take(PastListing(*found) for found in cursor)

        return await self._read(work, _SNAPSHOT)

    async def stock(self, dealer_id: str | None, limit: int) -> Sequence[StoredListing]:
        """Read the first listings."""
        sql = self._sql["stock" if dealer_id is None else "stock_of_dealer"]
        values = {"dealer_id": dealer_id, "limit": limit}
        return await self._read(lambda connection: [StoredListing(*each) for each in connection.execute(sql, values)])

    async def has_departed(self, dealer_ids: Collection[str], reference: VehicleReference) -> bool:
        """Look all the identifiers up at once."""
        named = identifiers(reference)
        values = ([kind for kind, _ in named], [value for _, value in named], list(dealer_ids))
        return await self._read(lambda connection: bool(_only(connection, self._sql["has_departed"], values)[0]))

    # The deployment

    async def check(self) -> None:
        """Take a lock on a row, which is written, and give it back."""
        await self._write(lambda connection: connection.execute(self._sql["check"]))

    async def secrets(
        self, purpose: str, make: Callable[[], Secret], now: datetime, rotate_after: timedelta | None = None
    ) -> Sequence[Secret]:
        """Read the keys, making one when it is time and deleting those that nothing is signed with any more."""

        def work(connection: Connection) -> list[Secret]:
            connection.execute(self._sql["lock"], (lock_id("secrets", purpose),))
            keys = connection.execute(self._sql["secrets"], (purpose,)).fetchall()
            if not keys or (rotate_after is not None and keys[0][2] <= now - rotate_after):
                secret = make()
                keys.insert(0, (secret.key_id, secret.value, now))
                connection.execute(self._sql["add_secret"], (purpose, *keys[0]))
            if rotate_after is not None:
                for key in retired(keys, now - RETIRED_KEPT):
                    connection.execute(self._sql["drop_secret"], (purpose, key[0]))
                    keys.remove(key)
            return [Secret(*key[:2]) for key in keys]

        return await self._write(work)

    async def add_api_key(self, key: APIKey) -> None:
        """Write one row."""
        sellers = None if key.sellers is None else json.dumps(key.sellers)
        values = (key.key_id, key.digest, key.name, sellers, key.requests, key.seconds, key.made_at)
        await self._write(lambda connection: connection.execute(self._sql["add_api_key"], values) and None)

    async def api_keys(self) -> Sequence[APIKey]:
        """Read every row."""
        return await self._read(
            lambda connection: [_api_key(found) for found in connection.execute(self._sql["api_keys"])]
        )

    async def revoke_api_key(self, key_id: str, now: datetime) -> bool:
        """Mark one row."""
        return await self._write(
            lambda connection: connection.execute(self._sql["revoke_api_key"], (now, key_id)).rowcount == 1
        )

    async def lease(self, name: str, holder: str, seconds: float, now: datetime) -> bool:
        """Write the lease unless it is another's and still runs."""
        values = {"name": name, "holder": holder, "until": now + timedelta(seconds=seconds), "now": now}
        return await self._write(lambda connection: connection.execute(self._sql["lease"], values).rowcount == 1)

    async def release(self, name: str, holder: str) -> None:
        """Delete the lease."""
        await self._write(lambda connection: connection.execute(self._sql["release"], (name, holder)) and None)

    async def feed_state(self, source: str) -> FeedState | None:
        """Read one source's row."""

        def work(connection: Connection) -> FeedState | None:
            found = connection.execute(self._sql["feed_state"], (source,)).fetchone()
            return FeedState(*found) if found else None

        return await self._read(work)

    async def feed_states(self) -> Sequence[FeedState]:
        """Read every source's row."""
        return await self._read(
            lambda connection: [FeedState(*found) for found in connection.execute(self._sql["feed_states"])]
        )

    async def keep_feed_state(self, state: FeedState) -> None:
        """Write one row."""
        await self._write(lambda connection: connection.execute(self._sql["keep_feed_state"], astuple(state)) and None)


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


def _copy(connection: Connection, statement: str, rows: Iterable[Sequence[Any]]) -> None:
    failure: BaseException | None = None
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(_STAGED)
        try:
            for each in rows:
                copy.write_row(each)
        except BaseException as error:
            # Not out of the copy: the driver would send its text to the server, which would log it.
            failure = error
    if failure is not None:
        raise failure


def _api_key(found: tuple[Any, ...]) -> APIKey:
    key_id, digest, name, sellers, *rest = found
    return APIKey(key_id, digest, name, None if sellers is None else tuple(json.loads(sellers)), *rest)


STORE: Final = PostgreSQLStore
