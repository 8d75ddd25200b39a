"""Leads that are decided as if their keys were new."""

from datetime import timedelta

import pytest
from tests.store.sample import NOW, booking, lead, take_once

from forecourt.store import Foreseen, LeadTransaction
from forecourt.store.new_lead import UnforeseenError, decide_new

FORESEEN = Foreseen("scope-1", "key-1", NOW)


def test_each_is_decided_in_turn_and_what_they_add_is_in_their_order() -> None:
    works = [(take_once(f"key-{n}", lead_id=f"lead_{n}"), Foreseen("scope-1", f"key-{n}", NOW)) for n in range(3)]
    outcomes, added = decide_new(works)
    assert outcomes == [lead(f"lead_{n}").receipt for n in range(3)]
    assert [each.lead_id for each in added] == ["lead_0", "lead_1", "lead_2"]
    assert decide_new([]) == ([], [])


def test_one_that_asks_or_adds_what_was_not_foreseen_is_none_of_them() -> None:
    def another_key(transaction: LeadTransaction) -> object:
        return transaction.recall("scope-1", "key-2", NOW)

    def another_time(transaction: LeadTransaction) -> object:
        return transaction.recall("scope-1", "key-1", NOW + timedelta(seconds=1))

    def twin(transaction: LeadTransaction) -> object:
        return transaction.twin("dealer-a", {"person-1"}, "none", NOW)

    def slot(transaction: LeadTransaction) -> object:
        return transaction.busy("dealer-a", "North", "sales", NOW, NOW)

    def appointment(transaction: LeadTransaction) -> None:
        transaction.add(lead(key="key-1", booking=booking(NOW)))

    def without_its_key(transaction: LeadTransaction) -> None:
        transaction.add(lead())

    def two(transaction: LeadTransaction) -> None:
        transaction.add(lead(key="key-1"))
        transaction.add(lead(key="key-1"))

    def asks_afterwards(transaction: LeadTransaction) -> object:
        transaction.add(lead(key="key-1"))
        return transaction.recall("scope-1", "key-1", NOW)

    for work in (another_key, another_time, twin, slot, appointment, without_its_key, two, asks_afterwards):
        with pytest.raises(UnforeseenError):
            decide_new([(take_once("key-1"), FORESEEN), (work, FORESEEN)])
