"""One test body over every store: each test that asks for `store` or `address` runs once per entry of `DATABASES`.

A further store adds one entry, and nothing else here changes.
"""

import asyncio
import multiprocessing
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from tests.store.database import Database
from tests.store.postgresql_server import POSTGRESQL
from tests.store.worker import PROCESSES

from forecourt.store import Store, open_store


@contextmanager
def _sqlite_fresh(folder: Path) -> Iterator[str]:
    yield f"sqlite:{folder / 'forecourt.db'}"


def _sqlite_execute(address: str, statement: str) -> Sequence[tuple[Any, ...]]:
    with closing(sqlite3.connect(address.removeprefix("sqlite:"), isolation_level=None)) as connection:
        return connection.execute(statement).fetchall()


DATABASES: Final[Mapping[str, Database]] = {
    "sqlite": Database(_sqlite_fresh, _sqlite_execute),
    "postgresql": POSTGRESQL,
}


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest) -> Database:
    """Every kind of database in turn."""
    return DATABASES[request.param]


@pytest.fixture
def address(database: Database, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database."""
    with database.fresh(tmp_path) as found:
        yield found


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """The one event loop of a test: a store belongs to the loop that it was opened in."""
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def store(address: str, runner: asyncio.Runner) -> Iterator[Store]:
    """An empty store, open."""
    found = open_store(address)
    runner.run(found.open())
    yield found
    runner.run(found.close())


@pytest.fixture(scope="session")
def processes() -> Iterator[ProcessPoolExecutor]:
    """Four processes that have started and wait for work."""
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        # Each is given something to wait for, so that none takes the place of another.
        for ready in [pool.submit(time.sleep, 0.5) for _ in range(PROCESSES)]:
            ready.result()
        yield pool
