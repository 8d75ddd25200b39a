"""How an import replaces a seller's stock in SQLite, so that leads wait for the write lock a moment only.

What a listing says is written once, as an edition, in small transactions of their own; nobody sees an edition before
a listing points at it. A listing that has not changed, which a digest tells, is not written at all. What differs is
then worked out from a snapshot, without a lock, and the one transaction that counts only moves pointers. It is done
over when another import came between the snapshot and the lock.

Editions are deleted only while no import runs, on any process, so that an import may rely on those that it has met.
Whoever imports shares a lock on a file of its own beside the database, an empty one, which the system releases when
the process dies; who gets that lock alone sweeps up what imports that died have left, and the past that is over.
"""

import contextlib
import json
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from forecourt.store import InventoryChange, StoredListing
from forecourt.store.comparable import digest, normal
from forecourt.store.staging import ROWS, batches
from forecourt.store.statements import queries

__all__ = ["exchange"]

_TRIES: Final = 3
"""How often what differs is worked out without the lock; after that many other imports, it is done under the lock."""
_TURN_SECONDS: Final = 60.0
"""How long to wait for another process that sweeps up."""
_SWEPT: Final = 500
"""How many editions are deleted in one transaction."""
_TABLES: Final = ("begin", "begin_newest", "begin_differing", "begin_leaving", "begin_departing", "begin_unused")
_DIFFERENCE: Final = (
    "forget_differing", "forget_leaving", "forget_departing", "find_differing", "find_leaving", "find_departing",
)  # fmt: skip
_EXCHANGE: Final = (
    "depart", "keep_changing", "keep_leaving", "remove_leaving", "take_differing", "own_editions", "leave_unused",
    "shorten_history",
)  # fmt: skip
"""The statements that make the new stock the stock, in their order."""


def exchange(
    connect: Callable[[], sqlite3.Connection],
    path: Path,
    scope: dict[str, str | int | None],
    listings: Iterable[StoredListing],
    check: Callable[[InventoryChange], None] | None,
) -> InventoryChange:
    """Make `listings` the stock of `scope` (dealer_id, rooftop, now, kept_since); see `Store.replace_listings`.

    `connect` opens the database at `path`. Raises the driver's errors, and what `listings` or `check` raise.
    """
    with contextlib.closing(_turns(path)) as turns:
        _sweep_if_alone(turns, connect)
        # Reading takes the shared lock, which is held until the end of the transaction.
        turns.execute("BEGIN")
        turns.execute("SELECT count(*) FROM sqlite_master").fetchone()
        try:
            # Closing the connection undoes what was not committed, and takes the temporary tables with it.
            with contextlib.closing(connect()) as connection:
                return _Exchange(connection, scope).run(listings, check)
        finally:
            turns.execute("ROLLBACK")
            _sweep_if_alone(turns, connect)


class _Exchange:
    """One import, on a connection of its own."""

    def __init__(self, connection: sqlite3.Connection, scope: dict[str, str | int | None]) -> None:
        self._connection = connection
        self._run = connection.execute
        self._sql = queries("sqlite")
        self._scope = scope
        self._import = secrets.randbits(62)
        self._written = 0

    def run(
        self, listings: Iterable[StoredListing], check: Callable[[InventoryChange], None] | None
    ) -> InventoryChange:
        for pragma in ("PRAGMA temp_store = FILE", "PRAGMA temp.journal_mode = OFF"):
            self._run(pragma).fetchall()
        for table in _TABLES:
            self._run(self._sql[table])
        # An edition needs to be on the disk only once a listing points at it: that commit syncs all before it.
        self._run("PRAGMA synchronous = NORMAL")
        empty = bool(self._run(self._sql["is_empty"]).fetchone()[0])
        for batch in batches(listings):
            self._stage(batch, empty)
        self._run(self._sql["take_newest"])
        self._run("PRAGMA synchronous = FULL")
        self._begin_exchange()
        return self._finish(check)

    def _generation(self) -> int:
        generation: int = self._run("SELECT generation FROM inventory").fetchone()[0]
        return generation

    def _stage(self, batch: dict[str, StoredListing], empty: bool) -> None:
        known: dict[str, tuple[bytes, int]] = {}
        if not empty:
            for listing_id, stored, edition in self._run(self._sql["known"], (json.dumps([*batch]),)):
                known[listing_id] = stored, edition
        staged: list[tuple[Any, ...]] = []
        fresh: list[tuple[StoredListing, bytes]] = []
        for listing in batch.values():
            found = digest(listing.rooftop, listing.body)
            stored, edition = known.get(listing.listing_id, (None, 0))
            if stored == found:
                staged.append((listing.listing_id, listing.dealer_id, listing.rooftop, found, edition, 0))
            else:
                fresh.append((listing, found))
        if fresh:
            self._run("BEGIN IMMEDIATE")
            first = self._begin_editions(len(fresh))
            editions = enumerate(fresh, first)
            self._connection.executemany(
                self._sql["write_edition"],
                [
                    (edition, normal(new.vin), normal(new.vehicle_id), normal(new.stock), new.body)
                    for edition, (new, _) in editions
                ],
            )
            self._run("COMMIT")
            staged += [
                (new.listing_id, new.dealer_id, new.rooftop, found, edition, 1)
                for edition, (new, found) in enumerate(fresh, first)
            ]
        self._run("BEGIN")
        self._connection.executemany(self._sql["stage"], staged)
        self._run("COMMIT")

    def _begin_editions(self, count: int) -> int:
        """Return the number of the first of so many editions, which are to be written in the same transaction."""
        first: int = self._run(self._sql["last_edition"]).fetchone()[0] + 1
        self._run(self._sql["write_loose"], (first, first + count - 1, self._import))
        self._written += count
        return first

    def _begin_exchange(self) -> None:
        """Begin the transaction that counts, with what differs worked out for the inventory as it is then."""
        for left in reversed(range(_TRIES)):
            self._run("BEGIN")
            known = self._generation()
            self._find_difference()
            self._run("COMMIT")
            while borrowed := self._borrowed():
                self._run("BEGIN IMMEDIATE")
                self._copy(borrowed)
                self._run("COMMIT")
            self._find_unused()
            self._run("BEGIN IMMEDIATE")
            if self._generation() == known:
                return
            if left:
                self._run("ROLLBACK")
        self._find_difference()
        while borrowed := self._borrowed():
            self._copy(borrowed)
        self._find_unused()

    def _find_difference(self) -> None:
        for step in _DIFFERENCE:
            self._run(self._sql[step], self._scope)

    def _find_unused(self) -> None:
        self._run(self._sql["forget_unused"])
        if self._run(self._sql["count_differing"]).fetchone()[0] < self._written:
            self._run(self._sql["find_unused"])

    def _borrowed(self) -> list[tuple[str, int]]:
        return self._run(self._sql["borrowed"], (ROWS,)).fetchall()

    def _copy(self, borrowed: list[tuple[str, int]]) -> None:
        """Give listings editions of their own for those that belong to the past by now."""
        first = self._begin_editions(len(borrowed))
        for edition, (listing_id, borrowed_edition) in enumerate(borrowed, first):
            self._run(self._sql["copy_edition"], (edition, borrowed_edition))
            self._run(self._sql["lend"], (edition, listing_id))
            self._run(self._sql["lend_newest"], (edition, listing_id))

    def _finish(self, check: Callable[[InventoryChange], None] | None) -> InventoryChange:
        """Exchange the stock, in the transaction that has begun."""
        change = InventoryChange(*self._run(self._sql["count"]).fetchone())
        if check is not None:
            check(change)
        if change.removed or change.unchanged < change.imported:
            self._run("UPDATE inventory SET generation = generation + 1")
            values = self._scope | {"generation": self._generation(), "import": self._import}
            for step in _EXCHANGE:
                self._run(self._sql[step], values)
        self._run("COMMIT")
        return change


def _turns(path: Path) -> sqlite3.Connection:
    """Open the file whose lock tells who imports; it gets the database's mode, and nothing is written into it."""
    path = path.absolute()
    file = f"{path.with_name(f'{path.name}-imports').as_uri()}?modeof={quote(str(path))}"
    return sqlite3.connect(file, uri=True, timeout=_TURN_SECONDS, isolation_level=None, check_same_thread=False)


def _sweep_if_alone(turns: sqlite3.Connection, connect: Callable[[], sqlite3.Connection]) -> None:
    """Delete what nothing will ever point at, unless an import runs; what cannot be deleted now, the next one finds."""
    with contextlib.suppress(sqlite3.Error):
        turns.execute("PRAGMA busy_timeout = 0")
        turns.execute("BEGIN EXCLUSIVE")
        try:
            with contextlib.closing(connect()) as connection:
                _sweep(connection)
        finally:
            turns.execute("ROLLBACK")
    turns.execute(f"PRAGMA busy_timeout = {int(_TURN_SECONDS * 1000)}")


def _sweep(connection: sqlite3.Connection) -> None:
    sql = queries("sqlite")
    # What a loss of power brings back is swept up another time.
    connection.execute("PRAGMA synchronous = NORMAL")
    found = True
    while found:
        with _transaction(connection):
            past = connection.execute(sql["dead_past"], (_SWEPT,)).fetchall()
            connection.executemany(sql["drop_edition"], [(edition,) for _, _, edition in past])
            connection.executemany(sql["drop_past"], [row[:2] for row in past])
            loose = connection.execute(sql["loose"]).fetchall() if not past else []
            for first, last in loose:
                connection.execute(sql["drop_editions"], (first, last))
                connection.execute(sql["drop_loose"], (first,))
        found = bool(past or loose)


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
