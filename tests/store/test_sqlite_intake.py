"""The quick way of new leads into SQLite: one statement that is their commit, or nothing done."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from tests.store.sample import NOW, lead, take_once

from forecourt.store import Foreseen, LeadTransaction, NewDelivery
from forecourt.store.sqlite import migrate
from forecourt.store.sqlite_intake import Intake
from forecourt.store.statements import queries

SQL: Final = queries("sqlite")
TABLES: Final = ("lead", "consent_grant", "lead_person", "idempotency", "delivery")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(opened(tmp_path)) as found:
        migrate(found)
        yield found


def opened(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "x.db", isolation_level=None, timeout=0.05)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def new(key: str, **changes: Any) -> tuple[Any, Foreseen]:
    return take_once(key, **changes), Foreseen("scope-1", key, NOW)


def counts(connection: sqlite3.Connection) -> Sequence[int]:
    return [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES]


def test_new_leads_are_written_with_all_that_belongs_to_them_by_one_statement(connection: sqlite3.Connection) -> None:
    intake = Intake(connection, SQL)
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    deliveries = [NewDelivery("dlv_1", "crm", "adf", None), NewDelivery("dlv_2", "hook", "event", b"{}")]
    outcomes = intake.take(
        [new("key-1", lead_id="lead_1", deliveries=deliveries), new("key-2", lead_id="lead_2", person_keys={"a", "b"})]
    )
    assert outcomes == [lead("lead_1").receipt, lead("lead_2").receipt]
    # It is shown again for every trigger, whose own statements begin with a dash.
    assert {each.partition(" VALUES")[0] for each in statements if each[0] != "-"} == {"INSERT OR ABORT INTO intake"}
    assert not connection.in_transaction
    assert counts(connection) == [2, 2, 3, 2, 2]
    assert intake.take([]) == []


def test_a_known_key_leaves_everything_as_it_was_even_one_that_has_expired(connection: sqlite3.Connection) -> None:
    intake = Intake(connection, SQL)
    assert intake.take([new("key-1"), new("key-2", expires_at=NOW)])
    for known in ("key-1", "key-2"):
        assert intake.take([new("key-3"), new(known)]) is None
        assert not connection.in_transaction
        assert counts(connection) == [2, 2, 2, 2, 0]
    assert intake.take([new("key-4"), new("key-4")]) is None
    assert counts(connection)[0] == 2


def test_one_that_cannot_be_decided_or_written_so_leaves_everything_as_it_was(connection: sqlite3.Connection) -> None:
    def refuse(transaction: LeadTransaction) -> None:
        transaction.add(lead(key="key-5"))
        raise LookupError

    intake = Intake(connection, SQL)
    assert intake.take([new("key-0", lead_id="lead_0")])
    many = [NewDelivery(f"dlv_{number}", "crm", "adf", None) for number in range(1024)]
    for bad in (
        new("key-1", lead_id="lead_0"),
        new("key-2", business="\ud800"),
        new("key-3", rooftop=2**70),
        new("key-4", deliveries=many),
        (refuse, Foreseen("scope-1", "key-5", NOW)),
    ):
        assert intake.take([new("key-9"), bad]) is None
        assert counts(connection) == [1, 1, 1, 1, 0]


def test_it_keeps_to_the_values_that_one_statement_may_have(connection: sqlite3.Connection) -> None:
    # SQLite before 3.32 takes 999.
    connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)
    intake = Intake(connection, SQL)
    assert intake.take([new(f"key-{number}") for number in range(16)])
    assert intake.take([new(f"next-{number}") for number in range(17)]) is None
    assert counts(connection)[0] == 16


def test_a_database_that_is_locked_is_at_fault_itself(connection: sqlite3.Connection, tmp_path: Path) -> None:
    intake = Intake(connection, SQL)
    with closing(opened(tmp_path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError):
            intake.take([new("key-1")])
        other.execute("COMMIT")
    assert intake.take([new("key-1")])
    assert counts(connection)[0] == 1
