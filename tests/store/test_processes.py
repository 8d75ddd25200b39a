"""Several processes on one store: what one decides, the others see (docstrings of `Store` and `LeadTransaction`)."""

import asyncio
import json
import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.store import worker
from tests.store.database import Database
from tests.store.sample import NOW, take_once
from tests.store.worker import PROCESSES, STOCKS

from forecourt.store import Store, open_store

Result = TypeVar("Result")

KILLS = 50 if os.environ.get("FORECOURT_LONG") else 5
PATIENCE = 60


def at_once(processes: ProcessPoolExecutor, work: Callable[..., Result], *arguments: Any) -> list[Result]:
    """Run `work` in every process, all of them beginning at one moment soon."""
    address, *rest = arguments
    begin = time.time() + 0.4
    running = [processes.submit(work, address, begin, *rest) for _ in range(PROCESSES)]
    return [each.result(timeout=PATIENCE) for each in running]


@contextmanager
def process(work: Callable[..., None], *arguments: Any) -> Iterator[BaseProcess]:
    """Run `work` in a process of its own, which is killed (SIGKILL) at the end at the latest."""
    started = multiprocessing.get_context("spawn").Process(target=work, args=arguments, daemon=True)
    started.start()
    try:
        yield started
    finally:
        started.kill()
        started.join()
        started.close()


def wait_for_lines(file: Path, started: BaseProcess, count: int) -> None:
    """Return once the process has written so many lines."""
    until = time.monotonic() + PATIENCE
    while not file.exists() or file.read_bytes().count(b"\n") < count:
        assert started.is_alive()
        assert time.monotonic() < until
        time.sleep(0.005)


def test_any_number_of_processes_may_open_an_empty_database_at_once(
    processes: ProcessPoolExecutor, address: str, database: Database, runner: asyncio.Runner
) -> None:
    assert at_once(processes, worker.migrate, address) == [0] * PROCESSES
    applied = database.execute(address, "SELECT number FROM migration ORDER BY number")
    assert at_once(processes, worker.migrate, address) == [0] * PROCESSES
    assert database.execute(address, "SELECT number FROM migration ORDER BY number") == applied
    assert len(set(applied)) == len(applied) > 0


def test_one_key_sent_by_sixty_four_clients_of_four_processes_is_one_lead_and_one_answer(
    processes: ProcessPoolExecutor, address: str, store: Store, runner: asyncio.Runner
) -> None:
    answers = [answer for part in at_once(processes, worker.send_key, address, "key-1", 16) for answer in part]
    assert len(answers) == 64
    assert len(set(answers)) == 1
    assert [row.receipt for row in runner.run(store.leads(None, 100))] == answers[:1]


@pytest.mark.parametrize("capacity", [1, 3])
def test_a_slot_asked_for_by_sixty_four_clients_of_four_processes_is_given_to_its_capacity(
    processes: ProcessPoolExecutor, address: str, store: Store, runner: asyncio.Runner, capacity: int
) -> None:
    start = NOW + timedelta(hours=3)
    assert sum(at_once(processes, worker.ask_for_slot, address, start, capacity, 16)) == capacity
    assert len(runner.run(store.leads(None, 100))) == 64
    busy = runner.run(
        store.decide_lead(lambda t: t.busy("dealer-a", "North", "sales", start, start + timedelta(minutes=45)))
    )
    assert busy == capacity


def test_all_processes_get_the_secret_that_the_first_one_made(
    processes: ProcessPoolExecutor, address: str, store: Store
) -> None:
    answers = at_once(processes, worker.make_secret, address)
    assert len(answers[0]) == 1
    assert answers == [answers[0]] * PROCESSES


def test_killing_a_process_at_any_moment_loses_no_acknowledged_lead_and_doubles_none(
    address: str, tmp_path: Path, runner: asyncio.Runner
) -> None:
    acknowledged = tmp_path / "acknowledged"
    for kill in range(KILLS):
        before = acknowledged.read_bytes().count(b"\n") if acknowledged.exists() else 0
        with process(worker.submit_without_end, address, str(acknowledged), str(kill)) as started:
            wait_for_lines(acknowledged, started, before + 1)
            time.sleep(random.uniform(0, 0.1))
    receipts = dict(line.split(b" ", 1) for line in acknowledged.read_bytes().splitlines())
    assert len(receipts) >= KILLS

    async def check() -> None:
        store = open_store(address)
        await store.open()
        kept = {row.lead_id: row for row in await store.leads(None, 1_000_000)}
        for key, receipt in receipts.items():
            known = await store.recall("scope-1", key.decode(), NOW)
            assert known is not None
            assert known.receipt == receipt
            row = kept[json.loads(receipt)["data"]["lead_id"]]
            assert (row.receipt, row.grant) == (receipt, b'{"consent_text":"Yes \\u00fc"}')
        # At most the eight that were under way at each kill are kept without having been acknowledged.
        assert len(receipts) <= len(kept) <= len(receipts) + 8 * KILLS
        # Clients that did not hear back ask again under the same key: no lead more than there are keys.
        unheard = [f"{kill}-{client}-{number}" for kill in range(KILLS) for client in range(8) for number in range(2)]
        for again in unheard:
            answer = await store.decide_lead(take_once(again))
            assert answer == receipts.get(again.encode(), answer)
            assert answer == await store.decide_lead(take_once(again))
        await store.close()

    runner.run(check())


def test_killing_a_process_at_any_moment_of_an_import_leaves_the_old_stock_or_the_new_one(
    address: str, tmp_path: Path, runner: asyncio.Runner
) -> None:
    wholes = [[each.body for each in stock] for stock in STOCKS]
    begun = tmp_path / "begun"
    for _ in range(KILLS):
        begun.unlink(missing_ok=True)
        with process(worker.import_without_end, address, str(begun)) as started:
            wait_for_lines(begun, started, 1)
            time.sleep(random.uniform(0, 0.05))
        store = open_store(address)
        runner.run(store.open())
        _, bodies = runner.run(store.read_listings(lambda rows: [row.body for row in rows]))
        runner.run(store.close())
        assert bodies in wholes
