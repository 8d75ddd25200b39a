"""What one commit of SQLite's writer covers: the same as if every piece of work had been committed by itself."""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.sample import NOW, booking, lead, take_once, take_slot

from forecourt.store import Foreseen, LeadTransaction, NewDelivery, NewLead, StoreError
from forecourt.store.sqlite import migrate
from forecourt.store.sqlite_group import Failure, LeadWork, Work, commit_together, insert_leads
from forecourt.store.sqlite_intake import Intake
from forecourt.store.statements import queries

SQL: Final = queries("sqlite")
HOUR: Final = timedelta(hours=1)


class RefusedError(Exception):
    """A decision against a lead."""


class Connection(sqlite3.Connection):
    """A connection that may have the quick way."""

    intake: Intake | None = None


@pytest.fixture(scope="module", params=["the long way", "the quick way"], autouse=True)
def has_intake(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have every test once on connections with the quick way for new leads, and once on others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(WAY, "quick", request.param == "the quick way")
        yield


WAY: Final = {"quick": False}


def fresh(path: Path | str = ":memory:") -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Connection)
    connection.execute("PRAGMA foreign_keys = ON")
    if path == ":memory:":
        connection.deserialize(_empty())
    else:
        migrate(connection)
    if WAY["quick"]:
        connection.intake = Intake(connection, SQL)
    return connection


@cache
def _empty() -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection)
        return connection.serialize()


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(fresh()) as found:
        yield found


def together(connection: sqlite3.Connection, *works: Work | LeadWork) -> list[Any]:
    return commit_together(connection, SQL, works, getattr(connection, "intake", None))


def keyed(key: str, **changes: Any) -> LeadWork:
    return LeadWork(take_once(key, **changes), Foreseen("scope-1", key, NOW))


def twin_or_new(new: NewLead) -> Callable[[LeadTransaction], bytes]:
    def work(transaction: LeadTransaction) -> bytes:
        first = transaction.twin(new.dealer_id, new.person_keys, new.vehicle_key, NOW - HOUR)
        if first is None:
            transaction.add(new)
        return first or new.receipt

    return work


def adding(*leads: NewLead) -> LeadWork:
    def work(transaction: LeadTransaction) -> int:
        for each in leads:
            transaction.add(each)
        return len(leads)

    return LeadWork(work)


def ids(connection: sqlite3.Connection) -> set[str]:
    return {found[0] for found in connection.execute("SELECT lead_id FROM lead")}


TABLES: Final = ("lead", "consent_grant", "lead_person", "idempotency", "appointment", "delivery")


def content(connection: sqlite3.Connection) -> dict[str, list[Any]]:
    return {table: sorted(map(repr, connection.execute(f"SELECT * FROM {table}"))) for table in TABLES}


def test_two_equal_keys_in_one_group_make_one_lead_and_get_one_answer(connection: sqlite3.Connection) -> None:
    one, other, third = together(connection, keyed("key-1"), keyed("key-2"), keyed("key-1"))
    assert one == third != other
    assert len(ids(connection)) == 2


def test_a_key_of_an_earlier_group_is_recalled_unless_it_has_expired(connection: sqlite3.Connection) -> None:
    first, old = together(connection, keyed("key-1"), keyed("key-2", expires_at=NOW))
    again, new = together(connection, keyed("key-1"), keyed("key-2"))
    assert again == first
    assert new != old


def test_two_twins_in_one_group_are_one_lead(connection: sqlite3.Connection) -> None:
    one, other = lead("lead_1", person_keys={"p-1", "p-2"}), lead("lead_2", person_keys={"p-2", "p-3"})
    assert together(connection, LeadWork(twin_or_new(one)), LeadWork(twin_or_new(other))) == [one.receipt] * 2
    assert ids(connection) == {"lead_1"}


def test_a_keyed_lead_is_the_twin_of_one_without_a_key_in_the_same_group(connection: sqlite3.Connection) -> None:
    first, second = together(connection, keyed("key-1"), LeadWork(twin_or_new(lead())))
    assert first == second


def test_the_last_slot_is_given_once_in_a_group(connection: sqlite3.Connection) -> None:
    works = [LeadWork(take_slot(NOW, 2)) for _ in range(5)]
    assert together(connection, *works) == [True, True, False, False, False]


def test_a_lead_that_cannot_be_written_leaves_the_others_whole(connection: sqlite3.Connection) -> None:
    together(connection, adding(lead("lead_0")))
    outcomes = together(
        connection,
        keyed("key-1", lead_id="lead_1"),
        adding(lead("lead_2"), lead("lead_0")),
        lambda inner: inner.execute("DELETE FROM inventory").rowcount,
        adding(lead("lead_3", business="\ud800")),
        keyed("key-4", lead_id="lead_4"),
        adding(lead("lead_5", rooftop=2**70)),
    )
    assert [isinstance(outcome, Failure) for outcome in outcomes] == [False, True, False, True, False, True]
    assert outcomes[2] == 1
    assert isinstance(outcomes[1].error, StoreError)
    assert "lead_" not in repr(outcomes[1].error)
    assert ids(connection) == {"lead_0", "lead_1", "lead_4"}
    assert {len(rows) for table, rows in content(connection).items() if table in ("consent_grant", "lead")} == {3}


def test_one_that_follows_a_lead_that_cannot_be_written_is_decided_without_it(connection: sqlite3.Connection) -> None:
    together(connection, adding(lead("lead_0", person_keys={"somebody"})))
    first, second = together(connection, keyed("key-1", lead_id="lead_0"), keyed("key-1", lead_id="lead_1"))
    assert isinstance(first, Failure)
    assert second == lead("lead_1").receipt
    assert ids(connection) == {"lead_0", "lead_1"}


def test_what_a_work_has_added_before_it_was_refused_is_undone(connection: sqlite3.Connection) -> None:
    def refuse(transaction: LeadTransaction) -> None:
        transaction.add(lead("lead_1", key="key-1"))
        assert transaction.recall("scope-1", "key-1", NOW)
        transaction.add(lead("lead_2", booking=booking(NOW)))
        assert transaction.busy("dealer-a", "North", "sales", NOW, NOW + HOUR) == 1
        raise RefusedError

    before, outcome, after = together(connection, adding(lead("lead_0")), LeadWork(refuse), keyed("key-1"))
    assert before == 1
    assert isinstance(outcome.error, RefusedError)
    assert len(ids(connection)) == 2
    assert after in {row[0] for row in connection.execute("SELECT receipt FROM lead")}


def test_other_work_sees_the_leads_before_it_and_not_those_behind_it(connection: sqlite3.Connection) -> None:
    def count(inner: sqlite3.Connection) -> int:
        found: int = inner.execute("SELECT count(*) FROM lead").fetchone()[0]
        return found

    works = (count, keyed("key-1"), count, keyed("key-2"), keyed("key-3"), count)
    before, _, between, _, _, after = together(connection, *works)
    assert (before, between, after) == (0, 1, 3)


def test_more_rows_than_one_statement_writes_are_all_written(connection: sqlite3.Connection) -> None:
    deliveries = [[NewDelivery(f"dlv_{n}_{m}", f"target-{m}", "adf", None) for m in range(3)] for n in range(70)]
    leads = [
        lead(f"lead_{n}", key=f"key-{n}", person_keys={f"a{n}", f"b{n}"}, booking=booking(NOW), deliveries=each)
        for n, each in enumerate(deliveries)
    ]
    together(connection, *map(adding, leads))
    found = {table: len(rows) for table, rows in content(connection).items()}
    assert found == {
        "lead": 70, "consent_grant": 70, "lead_person": 140, "idempotency": 70, "appointment": 70, "delivery": 210,
    }  # fmt: skip
    asked = [keyed(f"key-{number}") for number in range(70)]
    assert together(connection, *asked) == [each.receipt for each in leads]


def test_a_group_that_had_to_wait_sees_the_key_that_another_process_has_committed(tmp_path: Path) -> None:
    with closing(fresh(tmp_path / "x.db")) as here, closing(fresh(tmp_path / "x.db")) as there:
        there.execute("BEGIN IMMEDIATE")
        theirs = lead(key="key-1")
        insert_leads(there, SQL, [theirs])
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.extend(together(here, keyed("key-0"), keyed("key-1"))))
        thread.start()
        thread.join(0.1)
        assert not answers
        there.execute("COMMIT")
        thread.join(10)
        assert answers[1] == theirs.receipt
        assert len(ids(here)) == 2


def test_a_group_that_cannot_begin_fails_as_a_whole(tmp_path: Path) -> None:
    with closing(fresh(tmp_path / "x.db")) as here, closing(fresh(tmp_path / "x.db")) as there:
        here.execute("PRAGMA busy_timeout = 50")
        there.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError):
            together(here, keyed("key-1"))
        there.execute("ROLLBACK")
        together(here, keyed("key-1"))
        assert len(ids(here)) == 1


def test_a_disk_that_is_full_in_the_middle_of_a_group_leaves_whole_leads_only(tmp_path: Path) -> None:
    with closing(fresh(tmp_path / "x.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 12}")
        big = [keyed(f"key-{number}", lead_id=f"lead_{number}", business=b"x" * 9000) for number in range(8)]
        outcomes: Sequence[Any]
        try:
            outcomes = together(connection, *big)
        except sqlite3.OperationalError as error:
            outcomes = [Failure(error)] * 8
        kept = {f"lead_{number}" for number, outcome in enumerate(outcomes) if not isinstance(outcome, Failure)}
        assert len(kept) < 8
        assert ids(connection) == kept
        assert len(content(connection)["idempotency"]) == len(content(connection)["consent_grant"]) == len(kept)
        connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
        assert not any(isinstance(outcome, Failure) for outcome in together(connection, *big))
        assert len(ids(connection)) == 8


def _work(kind: str, number: int, choice: int) -> Work | LeadWork:
    """Return one of the things that leads do, about one of a few keys, persons and slots."""
    person = {f"person-{choice}", "person-9"} if choice == 3 else {f"person-{choice}"}
    changes: dict[str, Any] = {"lead_id": f"lead_{number}", "person_keys": person}
    match kind:
        case "key":
            return keyed(f"key-{choice}", **changes)
        case "unforeseen":
            return LeadWork(take_once(f"key-{choice}", **changes))
        case "expired":
            return keyed(f"key-{choice}", expires_at=NOW, **changes)
        case "twin":
            return LeadWork(twin_or_new(lead(**changes)))
        case "slot":
            return LeadWork(_take_numbered_slot(number, choice))
        case "same id":
            return adding(lead("lead_0", person_keys=person))
        case "unwritable":
            return adding(lead(f"lead_{number}"), lead(f"lead_{number}b", business="\ud800"))
        case "refused":
            return LeadWork(_refuse(lead(key=f"key-{choice}", **changes)))
        case _:
            return lambda connection: connection.execute("SELECT count(*) FROM lead_person").fetchone()[0]


def _take_numbered_slot(number: int, choice: int) -> Callable[[LeadTransaction], bool]:
    def work(transaction: LeadTransaction) -> bool:
        start = NOW + choice * HOUR
        free = transaction.busy("dealer-a", "North", "sales", start, start + HOUR) < 2
        place = booking(start) if free else booking(None, status="proposed")
        values = {name: getattr(place, name) for name in ("department", "kind", "status", "start", "end")}
        transaction.add(lead(f"lead_{number}", booking=type(place)(f"appt_{number}", **values)))
        return free

    return work


def _refuse(new: NewLead) -> Callable[[LeadTransaction], None]:
    def work(transaction: LeadTransaction) -> None:
        transaction.add(new)
        if len(new.person_keys) > 1:
            transaction.twin(new.dealer_id, new.person_keys, new.vehicle_key, NOW)
        raise RefusedError

    return work


KINDS: Final = ("key", "unforeseen", "expired", "twin", "slot", "same id", "unwritable", "refused", "count")


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 3)), min_size=1, max_size=24))
def test_a_group_does_what_its_works_do_one_by_one(plan: list[tuple[str, int]]) -> None:
    works = [_work(kind, number, choice) for number, (kind, choice) in enumerate(plan)]
    with closing(fresh()) as grouped, closing(fresh()) as single:
        outcomes = [repr(getattr(each, "error", each)) for each in together(grouped, *works)]
        one_by_one = [repr(getattr(each, "error", each)) for work in works for each in together(single, work)]
        assert outcomes == one_by_one
        assert content(grouped) == content(single)
