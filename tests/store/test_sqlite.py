"""What is SQLite's own: other writers on the file, full disks, unusable files, and what makes it durable."""

import asyncio
import contextlib
import multiprocessing
import os
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from tests.store.sample import NOW, lead, listing, take_once

from forecourt.store import LeadTransaction, Purge, Store, StoreError, open_store
from forecourt.store import sqlite as module
from forecourt.store.sqlite import SQLiteStore, migrate
from forecourt.store.statements import queries

NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "forecourt.db"


@pytest.fixture
def store(path: Path, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store that waits for other writers a tenth of a second only."""
    monkeypatch.setattr(module, "_BUSY_SECONDS", 0.1)
    found = open_store(f"sqlite:{path}")
    runner.run(found.open())
    yield found
    runner.run(found.close())


def test_every_commit_is_on_the_disk_before_it_counts(path: Path, store: Store) -> None:
    assert isinstance(store, SQLiteStore)
    with closing(store._connect()) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)


@pytest.mark.parametrize("folder", ["", "deep/er/"])
def test_the_file_and_its_folders_are_made(tmp_path: Path, runner: asyncio.Runner, folder: str) -> None:
    path = tmp_path / folder / "new.db"
    found = open_store(f"sqlite:{path}")
    runner.run(found.open())
    runner.run(found.close())
    assert path.is_file()


def test_what_it_makes_is_for_its_owner_only(tmp_path: Path, runner: asyncio.Runner) -> None:
    found = open_store(f"sqlite:{tmp_path / 'data' / 'new.db'}")
    runner.run(found.open())
    runner.run(found.check())
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "data").iterdir()}
    runner.run(found.close())
    assert modes.keys() >= {"new.db", "new.db-wal"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_migrating_again_applies_nothing(path: Path, store: Store) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        before = connection.execute("SELECT sql FROM sqlite_master").fetchall()
        assert migrate(connection) == []
        assert connection.execute("SELECT sql FROM sqlite_master").fetchall() == before
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        assert migrate(connection)[0] == "0001_inventory_and_leads"


@pytest.mark.parametrize("lock", ["DEFERRED", "IMMEDIATE", "EXCLUSIVE"])
def test_a_new_file_that_another_process_is_writing_is_waited_for(
    path: Path, runner: asyncio.Runner, lock: str
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE another (x)")
        other.execute(f"BEGIN {lock}")
        other.execute("SELECT * FROM another").fetchall()

        async def open_meanwhile() -> None:
            found = open_store(f"sqlite:{path}")
            opening = asyncio.create_task(found.open())
            await asyncio.sleep(0.1)
            assert not opening.done() or opening.exception() is None
            other.execute("ROLLBACK")
            await opening
            await found.close()

        runner.run(open_meanwhile())


def test_a_database_that_another_program_has_locked_is_a_store_error_until_it_is_free(
    path: Path, store: Store, runner: asyncio.Runner
) -> None:
    runner.run(store.replace_listings("dealer-a", None, [listing("1")], NOW))
    kept = runner.run(store.decide_lead(take_once("key-1")))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for refused in (
            store.decide_lead(take_once("key-2")),
            store.check(),
            store.replace_listings("dealer-a", None, [], NOW),
        ):
            with pytest.raises(StoreError, match="SQLITE_BUSY"):
                runner.run(refused)
        # Reading goes on.
        assert runner.run(store.recall("scope-1", "key-1", NOW)) is not None
        assert len(runner.run(store.read_listings(list))[1]) == 1
        other.execute("ROLLBACK")
    runner.run(store.check())
    assert runner.run(store.recall("scope-1", "key-2", NOW)) is None
    assert runner.run(store.decide_lead(take_once("key-1"))) == kept
    runner.run(store.decide_lead(take_once("key-2")))
    assert len(runner.run(store.leads(None, 10))) == 2


class _SmallDisk(SQLiteStore):
    """A store whose file may grow to `pages` pages: SQLite refuses the next one as it does on a full disk."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.pages = 0
        self.made: list[sqlite3.Connection] = []

    def _connect(self, statements: int = 128) -> sqlite3.Connection:
        connection = super()._connect(statements)
        if self.pages:
            connection.execute(f"PRAGMA max_page_count = {self.pages}")
            self.made.append(connection)
        return connection


def test_a_full_disk_is_a_store_error_without_half_a_lead_and_passes_when_there_is_room(
    path: Path, runner: asyncio.Runner
) -> None:
    found = _SmallDisk(f"sqlite:{path}")
    runner.run(found.open())
    found.pages = 60

    def big(number: int) -> Callable[[LeadTransaction], bytes]:
        return take_once(f"key-{number}", lead_id=f"lead_{number}", business=b"x" * 20_000)

    async def fill() -> None:
        for number in range(100):
            await found.decide_lead(big(number))

    with pytest.raises(StoreError, match="SQLITE_FULL"):
        runner.run(fill())
    number = len(runner.run(found.leads(None, 100)))
    assert number > 1
    assert runner.run(found.lead(f"lead_{number}")) is None
    assert runner.run(found.recall("scope-1", f"key-{number}", NOW)) is None
    assert [row.lead_id for row in runner.run(found.leads(None, 100))] == [
        f"lead_{each}" for each in sorted(range(number), key=str, reverse=True)
    ]
    found.pages = 0
    for connection in found.made:
        # Those that met the end of the disk are closed: the store begins afresh by itself.
        with contextlib.suppress(sqlite3.ProgrammingError):
            connection.execute("PRAGMA max_page_count = 100000")
    runner.run(found.decide_lead(big(number)))
    runner.run(found.close())
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        counts = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("lead", "consent_grant", "idempotency", "lead_person")
        ]
        assert counts == [number + 1] * 4


def write_beyond_a_limit(path: str) -> None:
    """Meet real write errors: the system refuses to let any file of this process grow beyond 300 kB, then allows it."""
    import resource

    async def run() -> None:
        store = open_store(f"sqlite:{path}")
        await store.open()
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, unlimited[1]))
        kept, refused = [], 0
        for number in range(60):
            try:
                kept.append(await store.decide_lead(take_once(f"key-{number}", business=b"x" * 20_000)))
            except StoreError:
                refused += 1
        assert kept
        assert refused
        assert {row.receipt for row in await store.leads(None, 100)} == set(kept)
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        kept = [await store.decide_lead(take_once(f"key-{number}", business=b"x")) for number in range(60)]
        assert {row.receipt for row in await store.leads(None, 100)} == set(kept)
        await store.close()

    asyncio.run(run())


def refuse_writing(path: str) -> None:
    """Meet a database that the process may read and not write, then may write again."""
    file, folder = path, os.path.dirname(path)

    async def run() -> None:
        store = open_store(f"sqlite:{path}")
        await store.open()
        os.chmod(file, 0o444)
        os.chmod(folder, 0o555)
        if os.geteuid() == 0:  # to whom no file is read-only
            os.seteuid(NOBODY)
        for _ in range(2):
            for refused in (store.decide_lead(take_once("key-1")), store.check()):
                try:
                    await refused
                except StoreError:
                    continue
                raise AssertionError("a read-only database was written")
        if os.getuid() == 0:
            os.seteuid(0)
        os.chmod(folder, 0o755)
        os.chmod(file, 0o644)
        await store.check()
        receipt = await store.decide_lead(take_once("key-1"))
        assert [row.receipt for row in await store.leads(None, 10)] == [receipt]
        await store.close()

    asyncio.run(run())


def _in_a_process_of_its_own(work: Callable[[str], None], path: Path) -> int | None:
    process = multiprocessing.get_context("spawn").Process(target=work, args=(str(path),))
    process.start()
    process.join(60)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
    process.close()
    return code


def test_the_systems_write_errors_keep_no_half_lead_and_pass_without_a_restart(path: Path) -> None:
    assert _in_a_process_of_its_own(write_beyond_a_limit, path) == 0


def test_a_read_only_database_is_a_store_error_until_it_can_be_written() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, stat.S_IRWXU | stat.S_IXGRP | stat.S_IXOTH)
        inner = Path(folder) / "data"
        inner.mkdir(mode=0o755)
        assert _in_a_process_of_its_own(refuse_writing, inner / "forecourt.db") == 0


def test_a_folder_that_is_a_file_cannot_be_used(tmp_path: Path, runner: asyncio.Runner) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as raised:
        runner.run(open_store(f"sqlite:{tmp_path / 'file' / 'forecourt.db'}").open())
    assert str(tmp_path) not in str(raised.value)


def test_a_folder_in_the_files_place_cannot_be_opened(tmp_path: Path, runner: asyncio.Runner) -> None:
    with pytest.raises(StoreError, match="SQLITE_CANTOPEN"):
        runner.run(open_store(f"sqlite:{tmp_path}").open())


def test_a_file_that_is_no_database_is_a_store_error_and_stays_as_it_is(path: Path, runner: asyncio.Runner) -> None:
    path.write_bytes(b"a letter, not a database" * 100)
    with pytest.raises(StoreError, match="SQLITE_NOTADB"):
        runner.run(open_store(f"sqlite:{path}").open())
    assert path.read_bytes() == b"a letter, not a database" * 100


def test_more_work_than_may_wait_is_refused_and_the_rest_is_done(
    store: Store, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_QUEUE", 8)

    async def flood() -> list[object]:
        small = open_store(f"sqlite:{store._path}")  # type: ignore[attr-defined]
        await small.open()
        work = [small.decide_lead(take_once(f"key-{number}")) for number in range(500)]
        answers = await asyncio.gather(*work, return_exceptions=True)
        await small.close()
        return list(answers)

    answers = runner.run(flood())
    done = {answer for answer in answers if isinstance(answer, bytes)}
    assert all(isinstance(answer, bytes | StoreError) for answer in answers)
    assert 8 <= len(done) < 500
    assert {row.receipt for row in runner.run(store.leads(None, 1000))} == done


def test_a_broken_database_does_not_pile_up_open_files(path: Path, store: Store, runner: asyncio.Runner) -> None:
    runner.run(store.inventory_generation())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("ALTER TABLE inventory RENAME TO away")
    for _ in range(40):
        with pytest.raises(StoreError):
            runner.run(store.inventory_generation())
    descriptors = Path("/proc/self/fd")
    if descriptors.exists():
        assert sum(os.path.realpath(each) == str(path) for each in descriptors.iterdir()) < 10
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("ALTER TABLE away RENAME TO inventory")
    assert runner.run(store.inventory_generation()) == 0


def test_a_lead_for_no_rooftop_keeps_no_appointment(store: Store, runner: asyncio.Runner) -> None:
    new = lead("lead_1", rooftop=None)
    runner.run(store.decide_lead(lambda transaction: transaction.add(new)))
    found = runner.run(store.lead("lead_1"))
    assert found is not None
    assert found.rooftop is None


def test_what_is_purged_is_in_no_file_of_the_database_any_more(
    path: Path, store: Store, runner: asyncio.Runner
) -> None:
    marked = [lead(business=b'{"customer":"Zephyrine Quartermain"}' * 40) for _ in range(50)]

    def work(transaction: LeadTransaction) -> None:
        for each in marked:
            transaction.add(each)

    runner.run(store.decide_lead(work))

    def holds_it() -> bool:
        return any(b"Zephyrine" in file.read_bytes() for file in path.parent.glob(f"{path.name}*"))

    assert holds_it()
    day = timedelta(days=1)
    assert runner.run(store.purge_leads(Purge(NOW + day, NOW - day, NOW))).leads == 50
    assert not holds_it()


def test_one_sellers_stock_is_found_without_a_look_at_that_of_others(path: Path, store: Store) -> None:
    sql = queries("sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TEMP TABLE leaving (listing_id TEXT PRIMARY KEY)")
        connection.execute("CREATE TEMP TABLE newest (listing_id TEXT PRIMARY KEY)")
        values = {"dealer_id": "dealer-a", "rooftop": None, "limit": 5}
        for name in ("listings_of_dealer", "stock_of_dealer", "find_leaving"):
            plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql[name]}", values))
            assert "SEARCH listing USING COVERING INDEX listing_by_seller" in plan or (
                "SEARCH listing USING INDEX listing_by_seller" in plan
            ), plan
