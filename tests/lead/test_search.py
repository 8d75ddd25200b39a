"""A shopper's leads are found by opening every lead."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.store.sample import lead

from forecourt.lead.outbox import sealed_places
from forecourt.lead.sealing import Sealer
from forecourt.lead.search import Found, leads_of
from forecourt.store import LeadTransaction, open_store


def test_every_lead_is_compared_and_those_that_cannot_be_opened_are_counted(tmp_path: Path) -> None:
    sealer, lost = Sealer([b"1" * 32]), Sealer([b"2" * 32])

    def work(transaction: LeadTransaction) -> None:
        for number in range(1200):
            key = lost if number % 400 == 7 else sealer
            customer = {"email": f"{number % 500}@example.com"}
            lead_id = f"lead_{number:04}"
            body = key.seal(json.dumps({"customer": customer}).encode(), sealed_places(lead_id)[0])
            transaction.add(lead(lead_id, business=body, person_keys=()))

    async def run() -> Found:
        store = open_store(f"sqlite:{tmp_path / 'forecourt.db'}")
        await store.open()
        await store.decide_lead(work)
        found = await leads_of(store, sealer, "100@EXAMPLE.com", None)
        await store.close()
        return found

    found = asyncio.run(run())
    assert found.lead_ids == ("lead_0100", "lead_0600", "lead_1100")
    assert (found.closed, found.reason) == (3, f"the key {lost.key_ids[0]} is missing")


@pytest.mark.parametrize(
    ("given", "asked", "is_found"),
    [
        ("+44 (0)20 7946 0123", "+442079460123", True),
        ("+442079460123", "+44 ( 0 ) 20 7946 0123", True),
        ("020 7946 0123", "+44 (0)20 7946 0123", True),
        ("(0)20 7946 0123", "+442079460123", True),
        ("+39 (0)6 5550123", "+3906 5550123", True),
        ("+44 (0)20 7946 0123", "+44 (0)20 7946 0124", False),
    ],
)
def test_a_zero_in_brackets_is_dialled_or_not(tmp_path: Path, given: str, asked: str, is_found: bool) -> None:
    def work(transaction: LeadTransaction) -> None:
        body = json.dumps({"customer": {"phone": given}}).encode()
        transaction.add(lead("lead_1", business=body, person_keys=()))

    async def run() -> Found:
        store = open_store(f"sqlite:{tmp_path / 'forecourt.db'}")
        await store.open()
        await store.decide_lead(work)
        found = await leads_of(store, Sealer(), None, asked)
        await store.close()
        return found

    assert asyncio.run(run()).lead_ids == (("lead_1",) if is_found else ())
