"""Backups, on every store: the same rows elsewhere, no Sessions, and refusals that leave everything as it was."""

import asyncio
import gzip
import shutil
import sqlite3
import stat
import subprocess
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from tests.store.conftest import DATABASES
from tests.store.database import Database
from tests.store.elsewhere import elsewhere
from tests.store.postgresql_server import POSTGRESQL, application_name, unavailable
from tests.store.sample import NOW, booking, lead, listing

from forecourt.store import (
    AccessRecord,
    APIKey,
    BackupError,
    LeadTransaction,
    Mark,
    NewDelivery,
    Secret,
    Store,
    StoreError,
    open_store,
)

TABLES: Final = (
    "listing", "departed", "inventory", "past_listing", "lead", "consent_grant", "lead_person", "idempotency",
    "appointment", "delivery", "status_change", "secret", "feed_state", "api_key", "migration",
)  # fmt: skip


def needs_programs(address: str) -> None:
    """Skip where what the store needs for it is not installed."""
    if not address.startswith("sqlite:") and shutil.which("pg_dump") is None:
        unavailable("pg_dump is not installed")


def rows(database: Database, address: str) -> Mapping[str, Sequence[Any]]:
    return {table: sorted(database.execute(address, f"SELECT * FROM {table}"), key=repr) for table in TABLES}


@pytest.fixture
def filled(store: Store, runner: asyncio.Runner) -> Store:
    """A store with something of everything."""

    def work(transaction: LeadTransaction) -> None:
        at = booking(NOW + timedelta(days=1))
        transaction.add(lead("lead_1", key="k\0ey", booking=at, deliveries=[NewDelivery("dlv_1", "a/crm", "adf")]))
        transaction.add(lead("lead_2"))

    async def fill() -> None:
        await store.replace_listings("dealer-a", None, [listing("1"), listing("2")], NOW)
        await store.replace_listings("dealer-a", None, [listing("1", price=1)], NOW)
        await store.decide_lead(work)
        await store.secrets("cursor", lambda: Secret("s", b"\0\xff"), NOW)
        await store.add_api_key(APIKey("k", b"d", "x", ("dealer-a",), 1, 2, NOW))
        await store.access.put("session", "s", AccessRecord(b"a-session", "1"))
        await store.access.admit([Mark(b"0" * 32, int(NOW.timestamp()) + 60)], NOW)
        await store.lease("work", "me", 60, NOW)

    runner.run(fill())
    return store


@pytest.fixture
def other(address: str, tmp_path: Path) -> Iterator[str]:
    with elsewhere(address, tmp_path) as found:
        yield found


@pytest.fixture
def backup(address: str, filled: Store, runner: asyncio.Runner, tmp_path: Path) -> Path:
    """A backup of it, made while it is open."""
    needs_programs(address)
    file = tmp_path / "forecourt.backup"
    runner.run(filled.back_up(file))
    return file


def refused(runner: asyncio.Runner, address: str, file: Path, words: str) -> None:
    """Hold that a file is refused in one line, and that there is still nothing at the address."""
    with pytest.raises(BackupError, match=words) as told:
        runner.run(open_store(address).restore(file))
    assert "\n" not in str(told.value)
    with pytest.raises(StoreError, match="there is no database yet"):
        runner.run(open_store(address).survey([NOW]))
    if address.startswith("sqlite:"):
        folder = Path(address.partition(":")[2]).parent
        assert not folder.exists() or list(folder.iterdir()) == []


def test_what_is_restored_elsewhere_is_the_same_in_every_table_but_for_sessions(
    backup: Path, address: str, other: str, database: Database, filled: Store, runner: asyncio.Runner, tmp_path: Path
) -> None:
    told = runner.run(open_store(other).restore(backup))
    assert (told.leads, told.listings, told.size) == (2, 1, backup.stat().st_size)
    assert rows(database, other) == rows(database, address)
    for table in ("access_record", "access_mark", "lease"):
        assert database.execute(address, f"SELECT count(*) FROM {table}") == [(1,)]
        assert database.execute(other, f"SELECT count(*) FROM {table}") == [(0,)]
    # The store works on it, and its rules are in force.
    store = open_store(other)
    runner.run(store.open())
    found = runner.run(store.lead("lead_1"))
    assert found is not None
    assert found.booking is not None
    runner.run(store.close())
    with pytest.raises(Exception, match="never altered"):
        database.execute(other, "UPDATE consent_grant SET body = receipt FROM lead")
    assert b"a-session" not in gzip.decompress(backup.read_bytes())


def test_a_backup_is_for_its_owner_alone_and_leaves_nothing_beside_it(backup: Path) -> None:
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert [each.name for each in backup.parent.iterdir() if "backup" in each.name] == ["forecourt.backup"]


def test_nothing_is_written_over(
    backup: Path, address: str, filled: Store, runner: asyncio.Runner, database: Database
) -> None:
    before, content = rows(database, address), backup.read_bytes()
    with pytest.raises(BackupError, match="is there already, and nothing is written over"):
        runner.run(filled.back_up(backup))
    assert backup.read_bytes() == content
    # The server, or a test, that works on it is in the way of a restore, and so is what it leaves.
    with pytest.raises(BackupError, match=r"a server or a command is using|there is a database in the schema"):
        runner.run(open_store(address).restore(backup))
    runner.run(filled.close())
    with pytest.raises(BackupError, match="move"):
        runner.run(open_store(address).restore(backup))
    assert rows(database, address) == before
    runner.run(filled.open())


def test_what_is_cut_off_damaged_or_no_backup_is_refused_in_a_line(
    backup: Path, other: str, runner: asyncio.Runner, tmp_path: Path
) -> None:
    content = backup.read_bytes()
    for length in (len(content) - 1, len(content) // 2, 30, 0):
        backup.write_bytes(content[:length])
        refused(runner, other, backup, "is cut off")
    damaged = 0
    for place in range(40, len(content) - 8, len(content) // 5):
        changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        backup.write_bytes(changed)
        if not same(changed, content):
            refused(runner, other, backup, r"is (damaged|cut off)")
            damaged += 1
    assert damaged >= 3
    for more in (content, b"x"):
        backup.write_bytes(content + more)
        refused(runner, other, backup, "something follows the backup")
    backup.write_bytes(b"not a backup at all")
    refused(runner, other, backup, "is no backup of forecourt backup")
    backup.write_bytes(gzip.compress(b"something else"))
    refused(runner, other, backup, "holds no (SQLite|PostgreSQL) database")
    refused(runner, other, tmp_path / "nowhere", "cannot be read: No such file")


def same(changed: bytes, content: bytes) -> bool:
    """Tell whether a changed file says what the other one says: a run of zeros can be told in more than one way."""
    try:
        return gzip.decompress(changed) == gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        return False


def test_another_programs_database_is_refused(runner: asyncio.Runner, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as connection:
        connection.execute("CREATE TABLE lead (lead_id)")
        connection.commit()
    file = tmp_path / "foreign"
    file.write_bytes(gzip.compress((tmp_path / "foreign.db").read_bytes()))
    refused(runner, f"sqlite:{tmp_path / 'other' / 'forecourt.db'}", file, "was not made by forecourt backup")


def test_a_newer_version_is_refused_and_an_older_one_backed_up_and_restored_as_it_is(
    other: str, address: str, database: Database, filled: Store, runner: asyncio.Runner, tmp_path: Path
) -> None:
    database.execute(address, "INSERT INTO migration VALUES (9000, 'of_tomorrow', '2030-01-01T00:00:00Z')")
    with pytest.raises(BackupError, match="of a newer version of Forecourt"):
        runner.run(filled.back_up(tmp_path / "newer"))
    assert not (tmp_path / "newer").exists()
    database.execute(address, "DELETE FROM migration WHERE number > 4")
    for table in ("access_record", "access_mark"):
        database.execute(address, f"DROP TABLE {table}")
    runner.run(filled.back_up(tmp_path / "older"))
    assert runner.run(open_store(other).restore(tmp_path / "older")).migration == "0004_outbox"


def test_a_folder_that_cannot_be_written_is_told(filled: Store, runner: asyncio.Runner, tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="cannot be written: No such file or directory"):
        runner.run(filled.back_up(tmp_path / "nowhere" / "forecourt.backup"))


def test_without_a_database_there_is_nothing_to_back_up(address: str, runner: asyncio.Runner, tmp_path: Path) -> None:
    with pytest.raises((StoreError, BackupError), match="there is no database yet"):
        runner.run(open_store(address).back_up(tmp_path / "x"))
    assert not (tmp_path / "x").exists()


# PostgreSQL's own: its programs, and schemas, whose names are part of a backup


@pytest.fixture
def schema(tmp_path: Path) -> Iterator[str]:
    """The address of an empty schema."""
    with DATABASES["postgresql"].fresh(tmp_path) as found:
        needs_programs(found)
        yield found


def dumped(address: str, folder: Path) -> Path:
    """Return what looks like a backup of whatever is in a schema."""
    subprocess.run(
        ["pg_dump", f"--dbname={address}", "-Fc", f"--schema={application_name(address)}", f"--file={folder / 'dump'}"],
        check=True, timeout=60,
    )  # fmt: skip
    (folder / "file").write_bytes(gzip.compress((folder / "dump").read_bytes()))
    return folder / "file"


def test_another_programs_dump_is_refused(schema: str, runner: asyncio.Runner, tmp_path: Path) -> None:
    POSTGRESQL.execute(schema, "CREATE TABLE lead (lead_id text)")
    refused(runner, schema, dumped(schema, tmp_path), "was not made by forecourt backup")


def test_a_backup_of_a_schema_of_another_name_is_refused(schema: str, runner: asyncio.Runner, tmp_path: Path) -> None:
    with DATABASES["postgresql"].fresh(tmp_path) as source:
        store = open_store(source)
        runner.run(store.open())
        runner.run(store.close())
        runner.run(store.back_up(tmp_path / "a.backup"))
    words = f"is of the schema {application_name(source)}, and the address leads to {application_name(schema)}"
    refused(runner, schema, tmp_path / "a.backup", words)


def test_without_the_programs_it_is_said_where_they_come_from(
    schema: str, runner: asyncio.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(schema)
    runner.run(store.open())
    runner.run(store.close())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackupError, match="pg_dump is not installed: it comes with"):
        runner.run(store.back_up(tmp_path / "a.backup"))
    assert not (tmp_path / "a.backup").exists()
