"""Four server processes on one store take the same thing at once as one would (CONTRACTS.md section 6)."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from tests.durability.dealer import all_at_once, configure, lead, submit, visit
from tests.server_process import ServerProcess
from tests.store.conftest import DATABASES

from forecourt.store import LeadRecord, open_store

PROCESSES: Final = 4
CLIENTS: Final = 64
TWO_AT_A_TIME: Final = "[appointments.capacity]\nsales = 2\n"


@contextlib.contextmanager
def four_servers(folder: Path, config: Path) -> Iterator[list[ServerProcess]]:
    """Run four servers side by side, on whatever store the configuration names."""
    servers: list[ServerProcess] = []
    try:
        for number in range(PROCESSES):
            (folder / str(number)).mkdir()
            servers.append(ServerProcess(folder / str(number), config))
        for server in servers:
            server.wait()
        yield servers
    finally:
        for server in servers:
            server.stop()


def leads(address: str) -> list[LeadRecord]:
    """Read what is kept, past the servers."""

    async def read() -> list[LeadRecord]:
        store = open_store(address)
        await store.open()
        found = list(await store.leads(None, 1000))
        await store.close()
        return found

    return asyncio.run(read())


@pytest.mark.parametrize("kind", DATABASES)
def test_one_key_sent_by_sixty_four_clients_to_four_servers_is_one_lead_and_one_answer(
    kind: str, tmp_path: Path
) -> None:
    database = DATABASES[kind]
    with database.fresh(tmp_path) as address, four_servers(tmp_path, configure(tmp_path, address)) as servers:
        payload = lead("the-same")
        answers = all_at_once([partial(submit, servers[at % PROCESSES], payload) for at in range(CLIENTS)])
        assert [answer.error for answer in answers] == [None] * CLIENTS
        assert len({answer.payload for answer in answers}) == 1
        (kept,) = leads(address)
        assert kept.lead_id == answers[0].data["lead_id"]
        assert answers[0].data["status"] == "received"
        # One delivery, whichever of the four sends it.
        assert database.execute(address, "SELECT lead_id FROM delivery") == [(kept.lead_id,)]


@pytest.mark.parametrize("kind", DATABASES)
def test_the_last_place_of_a_slot_asked_for_by_sixty_four_clients_at_four_servers_is_given_once(
    kind: str, tmp_path: Path
) -> None:
    # A weekday noon in San Francisco, when the demo dealer is open.
    at = datetime.now(UTC) + timedelta(days=20)
    at = (at - timedelta(days=at.weekday() - 2)).replace(hour=20, minute=0, second=0, microsecond=0)
    with DATABASES[kind].fresh(tmp_path) as address:
        with four_servers(tmp_path, configure(tmp_path, address, TWO_AT_A_TIME)) as servers:
            first = submit(servers[0], lead("the-first", **visit(at.isoformat())))
            assert first.data["appointment"]["status"] == "confirmed"
            wishes = [lead(f"shopper-{number}", **visit(at.isoformat())) for number in range(CLIENTS)]
            works = [partial(submit, servers[number % PROCESSES], wish) for number, wish in enumerate(wishes)]
            answers = all_at_once(works)
        assert [answer.error for answer in answers] == [None] * CLIENTS
        told = [answer.data["appointment"] for answer in answers]
        assert Counter(each["status"] for each in told) == {"confirmed": 1, "proposed": CLIENTS - 1}
        (given,) = (each["confirmed_at"] for each in told if each["status"] == "confirmed")
        assert datetime.fromisoformat(given) == at
        kept = leads(address)
        assert len(kept) == CLIENTS + 1
        held = [row for row in kept if row.booking is not None and row.booking.status == "confirmed"]
        assert len(held) == 2
        # What each shopper was told is what is kept.
        outcomes = {row.lead_id: json.loads(row.receipt)["data"]["appointment"]["status"] for row in kept}
        assert all(outcomes[each.data["lead_id"]] == each.data["appointment"]["status"] for each in answers)
