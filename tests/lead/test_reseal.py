"""Leads are sealed anew in batches, beside others, over every store; killed at any moment nothing is lost."""

import asyncio
import subprocess
import sys
import time
from base64 import b64encode
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from tests.store.conftest import DATABASES
from tests.store.sample import NOW, lead

from forecourt.lead.outbox import opened, sealed_places
from forecourt.lead.reseal import Resealed, reseal
from forecourt.lead.sealing import Sealer, SealError
from forecourt.store import LeadTransaction, NewLead, Purge, Store, open_store

OLD: Final = b"1" * 32
NEW: Final = b"2" * 32
LEADS: Final = 205
GRANT: Final = b'{"consent_text":"Yes \\u00fc"}'
PLAIN: Final = b'{"customer":{"first_name":"Sam"}}'


def sealed(sealer: Sealer, number: int) -> NewLead:
    """Return a lead that is kept sealed."""
    lead_id = f"lead_{number:05}"
    at_business, at_grant = sealed_places(lead_id)
    at = NOW + timedelta(seconds=number)
    business, grant = sealer.seal(PLAIN, at_business), sealer.seal(GRANT, at_grant)
    return lead(lead_id, received_at=at, business=business, grant=grant, person_keys=())


async def fill(store: Store, sealer: Sealer, first: int, last: int) -> None:
    def work(transaction: LeadTransaction) -> None:
        for number in range(first, last):
            transaction.add(sealed(sealer, number))

    await store.decide_lead(work)


async def readable(store: Store, sealer: Sealer) -> int:
    """Return how many leads there are, each of which opens to what it was."""
    records = await store.leads(None, 10_000)
    for record in records:
        assert opened(record, sealer) == ({"customer": {"first_name": "Sam"}}, GRANT)
    return len(records)


@pytest.fixture(params=DATABASES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with DATABASES[request.param].fresh(tmp_path) as found:
        yield found


def test_everything_is_under_the_newest_key_afterwards_whatever_it_was_under(address: str) -> None:
    async def run() -> None:
        store = open_store(address)
        await store.open()
        await fill(store, Sealer([OLD]), 0, LEADS)
        await fill(store, Sealer(), LEADS, LEADS + 5)
        await fill(store, Sealer([NEW]), LEADS + 5, LEADS + 9)
        await store.purge_leads(Purge(NOW, NOW, NOW, lead_id="lead_00003"))
        told: list[int] = []
        assert await reseal(store, Sealer([NEW, OLD]), told.append) == Resealed(LEADS + 5, 0)
        assert told == [200, LEADS + 5]
        purged = await store.lead("lead_00003")
        assert purged is not None
        assert purged.business == b""
        assert opened(purged, Sealer([NEW])) == (None, GRANT)
        await store.purge_leads(Purge(NOW + timedelta(seconds=4), NOW + timedelta(seconds=4), NOW))
        assert await readable(store, Sealer([NEW])) == LEADS + 5
        assert await reseal(store, Sealer([NEW])) == Resealed(0, 0)
        await store.close()

    asyncio.run(run())


def test_what_cannot_be_opened_stays_as_it_is_and_is_told(address: str) -> None:
    lost = Sealer([b"3" * 32])

    async def run() -> None:
        store = open_store(address)
        await store.open()
        await fill(store, lost, 0, 2)
        await fill(store, Sealer([OLD]), 2, 4)
        result = await reseal(store, Sealer([NEW, OLD]))
        assert result == Resealed(2, 2, (f"the key {lost.key_ids[0]} is missing",))
        assert await reseal(store, Sealer([NEW, b"3" * 32])) == Resealed(2, 0)
        with pytest.raises(SealError, match="there is no key"):
            await reseal(store, Sealer())
        await store.close()

    asyncio.run(run())


PROGRAM: Final = """
import asyncio, sys
from forecourt.lead.reseal import reseal
from forecourt.lead.sealing import Sealer
from forecourt.store import open_store

async def run():
    store = open_store(sys.argv[1])
    await store.open()
    print("begun", flush=True)
    print(await reseal(store, Sealer.from_text(sys.argv[2])), flush=True)
    await store.close()

asyncio.run(run())
"""


def test_killed_at_any_moment_beside_a_writer_every_lead_stays_readable(address: str) -> None:
    keys = " ".join(b64encode(key).decode() for key in (NEW, OLD))
    both, count = Sealer([NEW, OLD]), 0
    with asyncio.Runner() as runner:
        store = open_store(address)
        runner.run(store.open())
        for turn in range(2):
            runner.run(fill(store, Sealer([OLD]), count, count + 401))
            command = [sys.executable, "-c", PROGRAM, address, keys]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            with process.stdout:
                assert process.stdout.readline() == "begun\n"
                # A server that does not know the new key yet.
                runner.run(fill(store, Sealer([OLD]), count + 401, count + 406))
                time.sleep(0.02 * turn)
                process.kill()
                process.wait()
            count += 406
            assert runner.run(readable(store, both)) == count
        result = runner.run(reseal(store, both))
        assert (result.left, result.reasons) == (0, ())
        assert runner.run(readable(store, Sealer([NEW]))) == count
        runner.run(store.close())
