"""A database in trouble refuses a lead as a whole, tells the shopper to try again, and needs no restart of the server.

The answer is INTERNAL_ERROR with `retryable` true ("Errors and retries"). The trouble is the real one each time: a
disk without room, a lock of another process, a database that may not be written, a database server that is gone.
"""

import asyncio
import contextlib
import os
import resource
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.durability.dealer import SCOPE, TABLES, Answer, all_at_once, configure, lead, serving, submit, visit
from tests.server_process import ServerProcess
from tests.store.conftest import DATABASES
from tests.store.database import Database
from tests.store.postgresql_server import OwnServer, own_server, unavailable

from forecourt.store import open_store

PATIENCE: Final = 30
MOST_LEADS: Final = 3000
"""Leads that a small disk surely has no room for."""
DISK_BYTES: Final = 12 * 1024 * 1024
_AFTERNOON: Final = "T22:00:00Z"


def counts(database: Database, address: str) -> dict[str, int]:
    """Count the rows of every table that has to do with leads."""
    return {table: database.execute(address, f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}


def refused(answer: Answer) -> None:
    """Check the answer of a database in trouble."""
    assert answer.error is not None
    assert answer.error["code"] == "INTERNAL_ERROR"
    assert answer.error["retryable"] is True


def recovered(server: ServerProcess, payload: dict[str, Any]) -> Answer:
    """Repeat a submission until it is taken, as its shopper does."""
    end = time.monotonic() + PATIENCE
    while (answer := submit(server, payload)).error is not None:
        refused(answer)
        assert time.monotonic() < end
        time.sleep(0.1)
    return answer


def check_one_lead(database: Database, address: str, server: ServerProcess, key: str, payload: dict[str, Any]) -> None:
    """Submit again what was refused: one lead, complete, and the same receipt from then on."""
    before = counts(database, address)
    first = recovered(server, payload)
    assert submit(server, payload).payload == first.payload
    after = counts(database, address)
    added = {table: after[table] - before[table] for table in TABLES}
    booked = int("appointment" in payload)
    assert added == {
        "lead": 1, "consent_grant": 1, "lead_person": 1, "idempotency": 1, "appointment": booked, "delivery": 1,
    }  # fmt: skip

    async def look() -> None:
        store = open_store(address)
        await store.open()
        known = await store.recall(SCOPE, key, datetime.now(UTC))
        row = await store.lead(first.data["lead_id"])
        await store.close()
        assert row is not None
        assert known is not None
        assert known.receipt == row.receipt

    asyncio.run(look())


def trouble(
    database: Database, address: str, server: ServerProcess, begin: Callable[[], object], end: Callable[[], object]
) -> None:
    """Submit before, in and after the trouble that `begin` makes and `end` takes away."""
    assert submit(server, lead("before")).error is None
    kept = counts(database, address)
    payload = lead("meanwhile", **visit(f"{datetime.now(UTC).year + 1}-01-05{_AFTERNOON}"))
    begin()
    try:
        for answer in all_at_once([partial(submit, server, payload)] * 2):
            refused(answer)
    finally:
        end()
    assert counts(database, address) == kept
    check_one_lead(database, address, server, "meanwhile", payload)


# SQLite


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a file system with room for little; skip where that is not allowed."""
    place = folder / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    if subprocess.run([mount, "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", place], check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield place
    finally:
        # Lazily: a database server keeps files open for a while.
        subprocess.run(["umount", "--lazy", place], check=True)


def fill_and_free(database: Database, address: str, disk: Path, server: ServerProcess) -> None:
    """Take leads until the disk has no room for one more, make room, and take that one."""
    acknowledged = [submit(server, lead("before")).data["lead_id"]]
    filler = disk / "filler"
    # Whatever else there was on the disk has taken all the room.
    with filler.open("wb") as file, contextlib.suppress(OSError):
        while True:
            os.write(file.fileno(), bytes(4096))
    last = ""
    for number in range(MOST_LEADS):
        last = f"shopper-{number}"
        answer = submit(server, lead(last))
        if answer.error is not None:
            refused(answer)
            break
        acknowledged.append(answer.data["lead_id"])
    else:
        pytest.fail("the disk is never full")
    filler.unlink()
    found = database.execute(address, "SELECT lead_id FROM lead")
    assert sorted(lead_id for (lead_id,) in found) == sorted(acknowledged)
    assert set(counts(database, address).values()) == {0, len(acknowledged)}
    check_one_lead(database, address, server, last, lead(last))


def test_a_disk_that_is_full_takes_leads_again_once_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path) as disk:
        address = f"sqlite:{disk / 'forecourt.db'}"
        with serving(tmp_path / "server", configure(tmp_path, address)) as server:
            fill_and_free(DATABASES["sqlite"], address, disk, server)


def test_a_process_that_may_write_no_more_takes_leads_again_once_it_may(tmp_path: Path) -> None:
    database = DATABASES["sqlite"]
    with (
        database.fresh(tmp_path) as address,
        serving(tmp_path / "server", configure(tmp_path, address)) as server,
    ):
        _, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        # Every file is as long as it may be; the log too, which is taken as it is.
        trouble(
            database,
            address,
            server,
            lambda: resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, hard)),
            lambda: resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (hard, hard)),
        )


def test_a_database_locked_by_another_process_is_waited_for_and_then_refused(tmp_path: Path) -> None:
    database = DATABASES["sqlite"]
    with (
        database.fresh(tmp_path) as address,
        serving(tmp_path / "server", configure(tmp_path, address)) as server,
        closing(sqlite3.connect(address.removeprefix("sqlite:"), isolation_level=None)) as other,
    ):
        trouble(
            database, address, server,
            lambda: other.execute("BEGIN EXCLUSIVE"), lambda: other.execute("ROLLBACK"),
        )  # fmt: skip


def test_a_database_that_may_only_be_read_takes_leads_again_once_it_may_be_written(tmp_path: Path) -> None:
    database = DATABASES["sqlite"]
    with (
        database.fresh(tmp_path) as address,
        serving(tmp_path / "server", configure(tmp_path, address)) as server,
    ):
        file = address.removeprefix("sqlite:")

        def let_write(allowed: bool) -> None:
            # A mode would not do: what is open for writing stays so. This attribute holds for open files too.
            command = ["chattr", "-i" if allowed else "+i", file, f"{file}-wal"]
            if shutil.which("chattr") is None or subprocess.run(command, check=False, capture_output=True).returncode:
                pytest.skip("making a file immutable needs chattr, root, and a file system that can")

        try:
            trouble(database, address, server, lambda: let_write(False), lambda: let_write(True))
        finally:
            let_write(True)


# PostgreSQL


@pytest.fixture(scope="module")
def postgresql() -> Iterator[OwnServer]:
    """A database server of our own, which the tests of this module may maltreat."""
    server = own_server()
    if server is None:
        unavailable("PostgreSQL is not installed, or its programs are not to be found")
    server.start()
    yield server
    server.remove()


@contextlib.contextmanager
def empty_schema(server: OwnServer, name: str) -> Iterator[str]:
    """Give the address of a schema with nothing in it."""
    DATABASES["postgresql"].execute(server.address, f"CREATE SCHEMA {name}")
    yield f"{server.address}&options=-csearch_path%3D{name}"


def test_a_database_server_whose_disk_is_full_takes_leads_again_once_there_is_room(
    postgresql: OwnServer, tmp_path: Path
) -> None:
    database = DATABASES["postgresql"]
    with small_disk(postgresql.folder) as disk:
        os.chown(disk, postgresql.folder.stat().st_uid, -1)
        database.execute(postgresql.address, f"CREATE TABLESPACE small LOCATION '{disk}'")
        with empty_schema(postgresql, "full_disk") as schema:
            address = f"{schema}%20-cdefault_tablespace%3Dsmall"
            try:
                with serving(tmp_path / "server", configure(tmp_path, address)) as server:
                    fill_and_free(database, address, disk, server)
            finally:
                database.execute(postgresql.address, "DROP SCHEMA full_disk CASCADE")
                database.execute(postgresql.address, "DROP TABLESPACE small")


def test_a_table_locked_by_another_session_is_waited_for_and_then_refused(
    postgresql: OwnServer, tmp_path: Path
) -> None:
    psycopg = pytest.importorskip("psycopg")
    with (
        empty_schema(postgresql, "locked") as address,
        serving(tmp_path / "server", configure(tmp_path, address)) as server,
        psycopg.connect(address, autocommit=True) as other,
    ):

        def begin() -> None:
            other.execute("BEGIN")
            other.execute("LOCK TABLE lead IN ACCESS EXCLUSIVE MODE")

        trouble(DATABASES["postgresql"], address, server, begin, lambda: other.execute("ROLLBACK"))


def test_a_database_server_that_only_lets_read_takes_leads_again_once_it_lets_write(
    postgresql: OwnServer, tmp_path: Path
) -> None:
    database = DATABASES["postgresql"]

    def let_write(allowed: bool) -> None:
        read_only = "off" if allowed else "on"
        database.execute(postgresql.address, f"ALTER SYSTEM SET default_transaction_read_only = {read_only}")
        database.execute(postgresql.address, "SELECT pg_reload_conf()")

    with (
        empty_schema(postgresql, "read_only") as address,
        serving(tmp_path / "server", configure(tmp_path, address)) as server,
    ):

        def begin() -> None:
            let_write(False)
            # The sessions hear of it soon, not at once.
            end = time.monotonic() + PATIENCE
            while (answer := submit(server, lead("not-yet"))).error is None:
                assert time.monotonic() < end
                time.sleep(0.05)
            refused(answer)

        trouble(database, address, server, begin, lambda: let_write(True))


def test_a_database_server_that_went_away_takes_leads_again_once_it_is_back(
    postgresql: OwnServer, tmp_path: Path
) -> None:
    with (
        empty_schema(postgresql, "away") as address,
        serving(tmp_path / "server", configure(tmp_path, address)) as server,
    ):
        trouble(DATABASES["postgresql"], address, server, postgresql.stop, postgresql.start)
