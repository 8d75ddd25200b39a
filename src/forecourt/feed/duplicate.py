"""Vehicles that occur more than once in a feed (FEEDS.md, point 9), remembered on disk, not in memory.

A private temporary database holds two short rows a vehicle; its cache is bounded, so that a feed of ten million rows
takes no more memory than one of ten thousand. Nearly every row of a feed is of a vehicle that was not seen before. A
bitmap tells most of those without asking the database, which then takes them many at a time: a key whose bit is not set
is new, one whose bit is set may be.
"""

import sqlite3
from typing import Final, NamedTuple

__all__ = ["Seen", "Verdict"]

_CACHE_KIB: Final = 12_288
_BITS: Final = 1 << 25
"""Of the bitmap, four mebibytes: of a million vehicles, three in a hundred are looked up in vain at the end."""
_WAITING: Final = 2048
_ADD: Final = "INSERT INTO seen VALUES (?, ?, ?, ?, ?)"
_KNOWN: Final = "SELECT id, updated, line, owner FROM seen WHERE key = ?"
_CLAIM: Final = "INSERT OR IGNORE INTO seen VALUES (?, ?, ?, ?, ?)"


class Verdict(NamedTuple):
    """What to do with a row.

    `vehicle_id` is the one to give it. `loser` is the line of the row that does not count: this one, an earlier one
    (which was given already and is to be replaced under the same id), or None. `elsewhere`: another rooftop has the
    same VIN. `renamed`: the id it came with is another vehicle's.
    """

    vehicle_id: str
    counts: bool = True
    loser: int | None = None
    elsewhere: bool = False
    renamed: bool = False


class Seen:
    """The vehicles of one feed so far."""

    def __init__(self) -> None:
        # An empty name is a database in a temporary file that is gone with the connection.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.executescript(
            f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -{_CACHE_KIB};"
            "PRAGMA temp_store = FILE; PRAGMA locking_mode = EXCLUSIVE;"
            "CREATE TABLE seen (key TEXT PRIMARY KEY, id TEXT, updated TEXT, line INTEGER, owner TEXT) WITHOUT ROWID;"
            "BEGIN;"
        )
        self._cursor = self._database.cursor()
        self._bits = bytearray(_BITS >> 3)
        self._waiting: list[tuple[str, str, str | None, int, str | None]] = []
        """Rows that are new for sure and not in the database yet."""

    def close(self) -> None:
        """Forget everything."""
        self._database.close()

    def judge(
        self, rooftop: str, vin: str | None, vehicle_id: str, fallback: str, updated: str | None, line: int
    ) -> Verdict | None:
        """Tell what a row is to its feed, and remember it; None if it is a vehicle of its own, under `vehicle_id`.

        `fallback` is the id to use if `vehicle_id` belongs to another VIN; `updated` is when the feed says that the
        row last changed, None if it does not.
        """
        waiting = self._waiting
        if len(waiting) >= _WAITING:
            self._write()
        # Both bits are to be set whatever the first one says.
        if vin is None:
            key = f"i{vehicle_id.lower()}"
            if self._mark(key):
                waiting.append((key, vehicle_id, updated, line, None))
                return None
        elif vehicle_id == fallback:
            key = f"v{vin}"
            if self._mark(key):
                waiting.append((key, vehicle_id, updated, line, rooftop))
                return None
        else:
            key, own_key = f"v{vin}", f"i{vehicle_id.lower()}"
            if self._mark(key) & self._mark(own_key):
                waiting.append((own_key, vehicle_id, updated, line, vin))
                waiting.append((key, vehicle_id, updated, line, rooftop))
                return None
        self._write()
        return self._look_up(rooftop, vin, vehicle_id, fallback, updated, line)

    def _mark(self, key: str) -> bool:
        """Note that a key was seen; tell whether it is certainly the first time."""
        place = hash(key) % _BITS
        byte, bit = place >> 3, 1 << (place & 7)
        known = self._bits[byte]
        self._bits[byte] = known | bit
        return not known & bit

    def _write(self) -> None:
        if self._waiting:
            # In the order of the keys, so that neighbours are written together.
            self._waiting.sort()
            self._cursor.executemany(_ADD, self._waiting)
            self._waiting.clear()

    def _look_up(
        self, rooftop: str, vin: str | None, vehicle_id: str, fallback: str, updated: str | None, line: int
    ) -> Verdict:
        if vin is None:
            return self._same(f"i{vehicle_id.lower()}", None, vehicle_id, updated, line)
        cursor = self._cursor
        renamed = False
        if vehicle_id != fallback:
            key = f"i{vehicle_id.lower()}"
            cursor.execute(_CLAIM, (key, vehicle_id, updated, line, vin))
            if not cursor.rowcount:
                cursor.execute("SELECT owner FROM seen WHERE key = ?", (key,))
                owner = cursor.fetchone()[0]
                if owner is None:
                    # The row without a VIN is the same listing: it was told apart by this id alone.
                    return self._same(key, vin, vehicle_id, updated, line)
                if owner != vin:
                    vehicle_id, renamed = fallback, True
        # The first rooftop that has a VIN stands under the VIN alone: one statement does for what is new.
        key = f"v{vin}"
        cursor.execute(_CLAIM, (key, vehicle_id, updated, line, rooftop))
        if cursor.rowcount:
            return Verdict(vehicle_id, renamed=renamed)
        cursor.execute(_KNOWN, (key,))
        found = cursor.fetchone()
        if found[3] == rooftop:
            return self._again(key, found[0], found[1], found[2], updated, line)
        key = f"v{vin}\t{rooftop}"
        cursor.execute(_CLAIM, (key, vehicle_id, updated, line, rooftop))
        if cursor.rowcount:
            return Verdict(vehicle_id, elsewhere=True, renamed=renamed)
        cursor.execute(_KNOWN, (key,))
        found = cursor.fetchone()
        return self._again(key, found[0], found[1], found[2], updated, line)

    def _same(self, key: str, vin: str | None, vehicle_id: str, updated: str | None, line: int) -> Verdict:
        self._cursor.execute(_KNOWN, (key,))
        found = self._cursor.fetchone()
        if found is not None:
            return self._again(key, found[0], found[1], found[2], updated, line)
        self._cursor.execute(_ADD, (key, vehicle_id, updated, line, vin))
        return Verdict(vehicle_id)

    def _again(
        self, key: str, known_id: str, known_updated: str | None, known_line: int, updated: str | None, line: int
    ) -> Verdict:
        """The row with the latest update counts, else the last."""
        if updated and known_updated and updated < known_updated:
            return Verdict(known_id, counts=False, loser=line)
        self._cursor.execute("UPDATE seen SET updated = ?, line = ? WHERE key = ?", (updated, line, key))
        return Verdict(known_id, loser=known_line)
