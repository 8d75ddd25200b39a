"""One file, any number of processes on one machine: SQLite in WAL mode, every commit on the disk before it counts.

All writing goes through one thread, which takes what has queued up and commits it together: one piece of work failing
leaves the others whole (`sqlite_group`), and the answers are given only after the one commit that covers them all.
Reading has connections of its own and never waits for writing.
"""

import asyncio
import contextlib
import json
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import starmap
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
from forecourt.store.comparable import digest, identifiers, retired, time_of, time_text
from forecourt.store.sqlite_access import SQLiteAccess
from forecourt.store.sqlite_backup import back_up, restore
from forecourt.store.sqlite_exchange import exchange
from forecourt.store.sqlite_group import Failure, LeadWork, Work, commit_together, store_error
from forecourt.store.sqlite_intake import Intake
from forecourt.store.sqlite_lead import SQLiteLeads
from forecourt.store.sqlite_look import survey
from forecourt.store.statements import migrations, queries

Result = TypeVar("Result")

_BUSY_SECONDS: Final = 5.0
"""How long to wait for another process that writes."""
_GROUP: Final = 64
"""How many pieces of work one commit covers at the most."""
_QUEUE: Final = 4096
"""How many pieces of work may wait; more are refused, so that memory stays bounded."""
_STATEMENTS: Final = 512
"""How many statements the writer keeps ready: those that write leads are there once for every number of leads."""
_READERS: Final = 4
_WAL_PAUSE_SECONDS: Final = 0.02


class SQLiteStore(SQLiteLeads):
    """The default store; `address` is "sqlite:PATH"."""

    def __init__(self, address: str) -> None:
        self._path = Path(address.split(":", 1)[1])
        self._sql = queries("sqlite")
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._local = threading.local()
        self._open_connections: list[sqlite3.Connection] = []
        self.access = SQLiteAccess(self._write, self._read)

    # Opening and closing

    async def open(self) -> None:
        """Make the file if there is none, migrate it, and start the writer."""
        await asyncio.to_thread(self._migrate)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="forecourt-read")
        self._writer = threading.Thread(target=self._write_jobs, name="forecourt-write", daemon=True)
        self._writer.start()

    async def close(self) -> None:
        """Finish the work that waits, then close every connection."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            self._jobs.put(None)
            await asyncio.to_thread(writer.join)
        if self._readers is not None:
            readers, self._readers = self._readers, None
            await asyncio.to_thread(readers.shutdown)
        while self._open_connections:
            self._open_connections.pop().close()

    def _connect(self, statements: int = 128) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=statements,
        )
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            _enter_wal_mode(connection)
            # FULL: a commit that was reported survives a loss of power, not only a crash of the process.
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _migrate(self) -> None:
        with _wrapped():
            # Shoppers' data is for the one who runs the agent; SQLite gives its other files the mode of this one.
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._path.exists():
                self._path.touch(mode=0o600)
            with contextlib.closing(self._connect()) as connection:
                migrate(connection)

    # Writing

    def _write_jobs(self) -> None:
        connection: sqlite3.Connection | None = None
        intake: Intake | None = None
        running = True
        while running:
            group = self._group()
            running = None not in group
            jobs = [job for job in group if job is not None]
            if not jobs:
                continue
            try:
                if connection is None:
                    connection = self._connect(_STATEMENTS)
                    # What undoes a savepoint is kept in memory; else it is a file of its own for every commit.
                    connection.execute("PRAGMA temp_store = MEMORY")
                    intake = Intake(connection, self._sql)
                outcomes = commit_together(connection, self._sql, [work for work, _ in jobs], intake)
            except sqlite3.Error as error:
                outcomes = [Failure(store_error(error))] * len(jobs)
                # The next group starts afresh: a database that went away may be back by then.
                if connection is not None:
                    connection.close()
                connection = None
            _answer([(future, outcome) for (_, future), outcome in zip(jobs, outcomes, strict=True)])
        if connection is not None:
            connection.close()

    def _group(self) -> "list[_Job | None]":
        """Return the work that is committed together: what waits by the time the commit before it is done."""
        group = [self._jobs.get()]
        with contextlib.suppress(queue.Empty):
            while len(group) < _GROUP:
                group.append(self._jobs.get_nowait())
        return group

    async def _write(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        result: Result = await self._queue(work)
        return result

    async def _queue(self, work: Work | LeadWork) -> Any:
        if self._writer is None:
            raise StoreError("the store is not open")
        if self._jobs.qsize() >= _QUEUE:
            raise StoreError("too much work is waiting for the database")
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # Once queued, the work is done whether or not the caller is still there: it cannot be half cancelled.
        self._jobs.put((work, future))
        return await future

    async def _write_out_log(self) -> None:
        """Copy the log into the file and begin it anew; where others read or write, some of it stays until they end."""

        def work() -> None:
            with _driver_errors_wrapped(), contextlib.closing(self._connect()) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

        await asyncio.to_thread(work)

    async def replace_listings(
        self,
        dealer_id: str,
        rooftop: str | None,
        listings: Iterable[StoredListing],
        now: datetime,
        check: Callable[[InventoryChange], None] | None = None,
    ) -> InventoryChange:
        """Write what is new in small transactions, then exchange what differs in one (`sqlite_exchange`)."""
        if self._writer is None:
            raise StoreError("the store is not open")

        def work() -> InventoryChange:
            with _driver_errors_wrapped():
                return exchange(
                    self._connect,
                    self._path,
                    {
                        "dealer_id": dealer_id,
                        "rooftop": rooftop,
                        "now": time_text(now),
                        "kept_since": time_text(now - PAST_KEPT),
                    },
                    listings,
                    check,
                )

        return await asyncio.to_thread(work)

    async def remember_departed(self, dealer_id: str, references: Iterable[VehicleReference], now: datetime) -> None:
        """Remember identifiers as once in stock."""
        rows = [
            (dealer_id, kind, value, time_text(now))
            for reference in references
            for kind, value in identifiers(reference)
        ]
        await self._write(lambda connection: connection.executemany(self._sql["remember_departed"], rows) and None)

    async def secrets(
        self, purpose: str, make: Callable[[], Secret], now: datetime, rotate_after: timedelta | None = None
    ) -> Sequence[Secret]:
        """Read the keys, making one when it is time and deleting those that nothing is signed with any more."""

        def work(connection: sqlite3.Connection) -> list[Secret]:
            keys = connection.execute(self._sql["secrets"], (purpose,)).fetchall()
            if not keys or (rotate_after is not None and keys[0][2] <= time_text(now - rotate_after)):
                secret = make()
                keys.insert(0, (secret.key_id, secret.value, time_text(now)))
                connection.execute(self._sql["add_secret"], (purpose, *keys[0]))
            if rotate_after is not None:
                for key in retired(keys, time_text(now - RETIRED_KEPT)):
                    connection.execute(self._sql["drop_secret"], (purpose, key[0]))
                    keys.remove(key)
            return [Secret(*key[:2]) for key in keys]

        return await self._write(work)

    async def add_api_key(self, key: APIKey) -> None:
        """Write one row."""
        sellers = None if key.sellers is None else json.dumps(key.sellers)
        values = (key.key_id, key.digest, key.name, sellers, key.requests, key.seconds, time_text(key.made_at))
        await self._write(lambda connection: connection.execute(self._sql["add_api_key"], values) and None)

    async def api_keys(self) -> Sequence[APIKey]:
        """Read every row."""
        return await self._read(lambda connection: [*map(_api_key, connection.execute(self._sql["api_keys"]))])

    async def revoke_api_key(self, key_id: str, now: datetime) -> bool:
        """Mark one row."""
        values = (time_text(now), key_id)
        return await self._write(
            lambda connection: connection.execute(self._sql["revoke_api_key"], values).rowcount == 1
        )

    async def lease(self, name: str, holder: str, seconds: float, now: datetime) -> bool:
        """Write the lease unless it is another's and still runs."""
        until = time_text(now + timedelta(seconds=seconds))
        values = {"name": name, "holder": holder, "until": until, "now": time_text(now)}
        return await self._write(lambda connection: connection.execute(self._sql["lease"], values).rowcount == 1)

    async def release(self, name: str, holder: str) -> None:
        """Delete the lease."""
        await self._write(lambda connection: connection.execute(self._sql["release"], (name, holder)) and None)

    async def keep_feed_state(self, state: FeedState) -> None:
        """Write one row."""
        imported_at = None if state.imported_at is None else time_text(state.imported_at)
        values = (
            state.source, time_text(state.checked_at), imported_at, state.etag, state.last_modified,
            state.outcome, state.report,
        )  # fmt: skip
        await self._write(lambda connection: connection.execute(self._sql["keep_feed_state"], values) and None)

    # Reading

    async def _read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        if self._readers is None:
            raise StoreError("the store is not open")

        def on_own_connection() -> Result:
            with _wrapped():
                connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
                if connection is None:
                    connection = self._local.connection = self._connect()
                    self._open_connections.append(connection)
                try:
                    return work(connection)
                except sqlite3.Error:
                    # The next read starts afresh, and a database that stays broken piles nothing up.
                    self._local.connection = None
                    self._open_connections.remove(connection)
                    connection.close()
                    raise

        return await asyncio.get_running_loop().run_in_executor(self._readers, on_own_connection)

    async def check(self) -> None:
        """Take the write lock and give it back."""
        await self._write(lambda connection: connection.execute(self._sql["generation"]).fetchone())

    async def survey(self, starts: Collection[datetime]) -> Survey:
        """Look at the file, on a connection of its own."""
        return await asyncio.to_thread(_asked, lambda: survey(self._path, starts, _feed_state))

    async def back_up(self, file: Path) -> Backup:
        """Copy the file as of one moment."""
        return await asyncio.to_thread(_asked, lambda: back_up(self._path, file))

    async def restore(self, file: Path) -> Backup:
        """Write the file of a copy."""
        return await asyncio.to_thread(_asked, lambda: restore(file, self._path))

    async def inventory_generation(self) -> int:
        """Read the number that every change of the inventory counts up."""

        def work(connection: sqlite3.Connection) -> int:
            generation: int = connection.execute(self._sql["generation"]).fetchone()[0]
            return generation

        return await self._read(work)

    async def read_listings(
        self, take: Callable[[Iterable[StoredListing]], Result], dealer_id: str | None = None
    ) -> tuple[int, Result]:
        """Read generation and listings in one read transaction, so that they belong together."""
        listings = self._sql["listings" if dealer_id is None else "listings_of_dealer"]
        values = {} if dealer_id is None else {"dealer_id": dealer_id}

        def work(connection: sqlite3.Connection) -> tuple[int, Result]:
            connection.execute("BEGIN")
            try:
                generation: int = connection.execute(self._sql["generation"]).fetchone()[0]
                return generation, take(starmap(StoredListing, connection.execute(listings, values)))
            finally:
                connection.execute("ROLLBACK")

        return await self._read(work)

    async def changed_listings(
        self, since: int, take: Callable[[Iterable[StoredListing]], Result]
    ) -> tuple[int, Result, Sequence[str]] | None:
        """Read what was written and what was removed, and whether that is all, in one read transaction."""

        def work(connection: sqlite3.Connection) -> tuple[int, Result, Sequence[str]] | None:
            connection.execute("BEGIN")
            try:
                generation, history_from = connection.execute(self._sql["generations"]).fetchone()
                if not history_from <= since <= generation:
                    return None
                removed = [found[0] for found in connection.execute(self._sql["removed_since"], (since, since))]
                rows = connection.execute(self._sql["written_since"], (since,))
                return generation, take(starmap(StoredListing, rows)), removed
            finally:
                connection.execute("ROLLBACK")

        return await self._read(work)

    async def past_listings(
        self, generation: int, until: int, limit: int, take: Callable[[Iterable[PastListing]], Result]
    ) -> Result | None:
        """Read what has changed, and whether that is all, in one read transaction."""
        values = {"generation": generation, "until": until, "limit": limit}

        def work(connection: sqlite3.Connection) -> Result | None:
            connection.execute("BEGIN")
            try:
                if connection.execute(self._sql["history_from"]).fetchone()[0] > generation:
                    return None
                return take(PastListing(*row) for row in connection.execute(self._sql["past_listings"], values))
            finally:
                connection.execute("ROLLBACK")

        return await self._read(work)

    async def stock(self, dealer_id: str | None, limit: int) -> Sequence[StoredListing]:
        """Read the first listings."""
        sql = self._sql["stock" if dealer_id is None else "stock_of_dealer"]
        values = {"dealer_id": dealer_id, "limit": limit}
        return await self._read(lambda connection: [StoredListing(*row) for row in connection.execute(sql, values)])

    async def feed_state(self, source: str) -> FeedState | None:
        """Read one source's row."""

        def work(connection: sqlite3.Connection) -> FeedState | None:
            row = connection.execute(self._sql["feed_state"], (source,)).fetchone()
            return _feed_state(row) if row else None

        return await self._read(work)

    async def feed_states(self) -> Sequence[FeedState]:
        """Read every source's row."""
        return await self._read(lambda connection: [*map(_feed_state, connection.execute(self._sql["feed_states"]))])

    async def has_departed(self, dealer_ids: Collection[str], reference: VehicleReference) -> bool:
        """Look the identifiers up one by one, the most specific first; each for all sellers at once."""
        sellers = json.dumps(list(dealer_ids))

        def work(connection: sqlite3.Connection) -> bool:
            return any(
                connection.execute(self._sql["has_departed"], (sellers, kind, value)).fetchone()
                for kind, value in identifiers(reference)
            )

        return await self._read(work)


def _enter_wal_mode(connection: sqlite3.Connection) -> None:
    """Switch a new file to WAL mode; an older one is in it already.

    While another process writes, SQLite refuses the switch at once, however long it may wait for everything else. So
    processes that open a new file together would fail.
    """
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(_WAL_PAUSE_SECONDS)
        else:
            return


_Job = tuple[Work | LeadWork, "asyncio.Future[Any]"]


def _answer(outcomes: Sequence[tuple["asyncio.Future[Any]", Any]]) -> None:
    """Give every caller its outcome, waking each event loop once."""
    for loop in {future.get_loop() for future, _ in outcomes}:
        # A loop that has ended has nobody left who waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, [each for each in outcomes if each[0].get_loop() is loop])


def _settle(outcomes: Sequence[tuple["asyncio.Future[Any]", Any]]) -> None:
    for future, outcome in outcomes:
        if future.done():
            continue  # its caller has gone; the work is done all the same
        if isinstance(outcome, Failure):
            future.set_exception(outcome.error)
        else:
            future.set_result(outcome)


def migrate(connection: sqlite3.Connection) -> list[str]:
    """Apply the migrations that the database does not have yet, one transaction each; return their names.

    Safe to run from several processes at once: each migration is looked for again under the write lock.
    """
    connection.execute(
        "CREATE TABLE IF NOT EXISTS migration"
        " (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)"
    )
    connection.create_function("content_digest", 2, digest, deterministic=True)
    applied = []
    for number, name, script in migrations("sqlite"):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not connection.execute("SELECT 1 FROM migration WHERE number = ?", (number,)).fetchone():
                for statement in _statements(script):
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO migration VALUES (?, ?, ?)", (number, name, time_text(datetime.now(UTC)))
                )
                applied.append(f"{number:04}_{name}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return applied


def _statements(script: str) -> Iterator[str]:
    """Split a script into statements; executescript would commit the transaction around them."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _api_key(row: tuple[Any, ...]) -> APIKey:
    key_id, digest, name, sellers, requests, seconds, made_at, revoked_at = row
    reach = None if sellers is None else tuple(json.loads(sellers))
    ended = None if revoked_at is None else time_of(revoked_at)
    return APIKey(key_id, digest, name, reach, requests, seconds, time_of(made_at), ended)


def _feed_state(row: tuple[Any, ...]) -> FeedState:
    source, checked_at, imported_at, *said = row
    return FeedState(source, time_of(checked_at), None if imported_at is None else time_of(imported_at), *said)


def _asked(work: Callable[[], Result]) -> Result:
    with _wrapped():
        return work()


@contextlib.contextmanager
def _driver_errors_wrapped() -> Iterator[None]:
    """Turn the driver's errors into ours, once."""
    try:
        yield
    except sqlite3.Error as error:
        raise store_error(error) from error


@contextlib.contextmanager
def _wrapped() -> Iterator[None]:
    """Turn the driver's and the file system's errors into ours."""
    try:
        with _driver_errors_wrapped():
            yield
    except OSError as error:
        raise StoreError("the database's folder cannot be used") from error


STORE: Final = SQLiteStore
