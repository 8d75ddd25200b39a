"""`python -m benchmarks.lead_rate`: how many leads a second are taken durably, next to a bare loop of the same inserts.

One server process takes leads of 32 clients over HTTP (A2A). The bare loop writes the rows of such leads with the same
statement into the same schema, every commit on the disk, with as many leads a commit as the server was seen to put into
one. Beside it, and not what the ratios are of: such a loop that writes row by row, and for PostgreSQL as many loops at
once as the server has groups under way. `submit` in this process, without HTTP, is between the two. All take turns in
rounds; the ratios are medians.

By default no lead is sent on, so that taking is what is measured; --deliver adds a server that delivers into a folder
meanwhile.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import multiprocessing
import os
import sqlite3
import statistics
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from benchmarks.a2a_search import free_port
from benchmarks.load import http_request, measure
from benchmarks.servers import envelope, temporary_folder
from forecourt.demo import DEALER_ID, profile
from forecourt.lead.seller import Seller
from forecourt.lead.submit import Stock, submit
from forecourt.model import LeadRequest
from forecourt.store import NewLead, Remembered, open_store

CLIENTS: Final = 32
_LEAST: Final = 0.6
_AT_A_TIME: Final = 2
"""How many groups the server has under way on PostgreSQL."""
_ROWS: Final = 400
"""Different leads that the bare loop draws its rows from; each row has an id, a key and persons of its own."""
_START_SECONDS: Final = 30


@dataclass(slots=True)
class Runs:
    """What one store showed, in leads a second, by who took them; and the leads in one commit."""

    rates: dict[str, list[float]] = field(default_factory=dict)
    groups: list[float] = field(default_factory=list)

    def add(self, name: str, rate: float) -> None:
        """Keep one round's figure."""
        self.rates.setdefault(name, []).append(rate)


def payload(number: str) -> dict[str, Any]:
    """Return a lead of a person of its own under a key of its own."""
    return {
        "type": "lead.submit.request",
        "customer": {"first_name": "Ida", "last_name": "Example", "email": f"ida-{number}@example.com"},
        "consent": {
            "granted_at": datetime.now(UTC).isoformat(),
            "allowed_channels": ["email"],
            "consent_text": "I agree to share my name and email address with the dealer about this enquiry.",
            "scope": ["lead_submission"],
        },
        "source_agent": {"name": "example-shopper"},
        "message": "Is the car still there, and could I see it on Saturday?",
        "idempotency_key": f"key-{number}",
    }


def lead_request(number: str) -> LeadRequest:
    """Return the same as the contract hands it on."""
    members = payload(number)
    key = members.pop("idempotency_key")
    del members["type"]
    return LeadRequest(members, key)


# The server


def configure(folder: Path, address: str, deliver: bool) -> Path:
    """Write the configuration of a dealer without stock."""
    (folder / "dealer.json").write_text(json.dumps(profile()), encoding="utf-8")
    lines = [
        f"store = {json.dumps(address)}",
        f"data = {json.dumps(str(folder / 'data'))}",
        "[dealer]",
        f'id = "{DEALER_ID}"',
        'profile = "dealer.json"',
        *([] if deliver else ["deliveries = []"]),
    ]
    file = folder / "forecourt.toml"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def _serve(config: str, port: int, commits: Any, covered: Any) -> None:
    """Serve, counting the commits of a store and the leads that they cover."""
    import uvicorn

    from forecourt.server import create_app, load
    from forecourt.server.serving import uvicorn_config
    from forecourt.store import sqlite
    from forecourt.store.postgresql import group

    writer: Any = sqlite
    commit = writer.commit_together

    def counted(connection: sqlite3.Connection, sql: dict[str, str], works: Sequence[Any], intake: Any) -> list[Any]:
        commits.value += 1
        covered.value += len(works)
        return list(commit(connection, sql, works, intake))

    writer.commit_together = counted
    groups: Any = group.LeadGroups
    take = groups._take_new

    async def taken(self: object, together: Any) -> bool:
        commits.value += 1
        covered.value += len(together.members)
        return bool(await take(self, together))

    groups._take_new = taken
    uvicorn.Server(uvicorn_config(create_app(load(config)), host="127.0.0.1", port=port)).run()


class Served:
    """A server in a process of its own."""

    def __init__(self, config: Path, count: Callable[[], int]) -> None:
        self._count = count
        context = multiprocessing.get_context("spawn")
        self.port = free_port()
        self._commits, self._works = context.Value("q", 0), context.Value("q", 0)
        self._process = context.Process(target=_serve, args=(str(config), self.port, self._commits, self._works))
        self._process.start()

    def wait(self) -> None:
        """Return once it takes leads."""
        end = time.monotonic() + _START_SECONDS
        while True:
            with contextlib.suppress(OSError):
                if not measure(self.port, self._requests(1), connections=1, seconds=0.05).failures:
                    return
            if time.monotonic() > end or not self._process.is_alive():
                raise SystemExit("the server did not start")
            time.sleep(0.1)

    def _requests(self, count: int) -> list[bytes]:
        name = uuid.uuid4().hex
        return [http_request("/v3.1/a2a", envelope(payload(f"{name}-{number}"))) for number in range(count)]

    def measure(self, seconds: float) -> tuple[float, float]:
        """Return leads a second and leads in one commit."""
        requests = self._requests(int(20_000 * seconds))
        kept, commits, works = self._count(), self._commits.value, self._works.value
        seen = measure(self.port, requests, connections=CLIENTS, seconds=seconds)
        kept = self._count() - kept
        if seen.failures or seen.requests != kept:
            # A refusal is an answer too, and so is a repeated receipt; neither is a lead.
            raise SystemExit(f"of {seen.requests} leads {seen.failures} failed and {kept} were kept")
        commits, works = self._commits.value - commits, self._works.value - works
        return seen.rate, works / commits if commits else 1.0

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.join()


# Without HTTP


async def submitting(address: str, seconds: float) -> float:
    """Take leads in this process as 32 callers, and return how many a second."""
    store = open_store(address)
    await store.open()
    seller = Seller.from_profile(DEALER_ID, profile())
    name = uuid.uuid4().hex
    requests = iter([lead_request(f"{name}-{number}") for number in range(int(30_000 * seconds))])
    taken = 0
    begun = time.perf_counter()

    async def caller() -> None:
        nonlocal taken
        while time.perf_counter() < begun + seconds:
            await submit(store, seller, next(requests), Stock(), None, datetime.now(UTC))
            taken += 1

    await asyncio.gather(*(caller() for _ in range(CLIENTS)))
    rate = taken / (time.perf_counter() - begun)
    await store.close()
    return rate


# The bare loop


class _Collector:
    """Takes a lead as a store does and keeps what would be written."""

    def __init__(self) -> None:
        self.leads: list[NewLead] = []

    def recall(self, scope: str, key: str, now: datetime) -> Remembered | None:  # noqa: ARG002 - the protocol's
        return None

    def add(self, lead: NewLead) -> None:
        self.leads.append(lead)

    async def decide_lead(self, work: Callable[[Any], Any], foreseen: object) -> Any:  # noqa: ARG002
        return work(self)


def rows() -> Iterator[NewLead]:
    """Yield leads as they are written, without end and each with identities of its own."""
    collector: Any = _Collector()
    seller = Seller.from_profile(DEALER_ID, profile())
    for number in range(_ROWS):
        asyncio.run(submit(collector, seller, lead_request(f"bare-{number}"), Stock(), None, datetime.now(UTC)))
    name = uuid.uuid4().hex[:8]
    for number, lead in enumerate(itertools.cycle(collector.leads)):
        mark = f"{name}{number:08}"
        persons = [f"{person[:-16]}{mark}" for person in lead.person_keys]
        yield structs.replace(lead, lead_id=f"lead_{mark}", key=f"key-{mark}", person_keys=persons)


def bare_sqlite(address: str, seconds: float, group: float, by_row: bool = False) -> float:
    """Insert in one loop, committing after so many leads on average: those of a commit together, or row `by_row`."""
    from forecourt.store.sqlite import _STATEMENTS, SQLiteStore
    from forecourt.store.sqlite_group import insert_leads
    from forecourt.store.sqlite_intake import Intake, lead_rows
    from forecourt.store.statements import queries

    connection = SQLiteStore(address)._connect(_STATEMENTS)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    sql = queries("sqlite")
    intake = Intake(connection, sql)
    leads = list(itertools.islice(rows(), int(60_000 * seconds)))
    written = 0
    begun = time.perf_counter()
    for commit in itertools.count(1):
        until = round(commit * group)
        if time.perf_counter() >= begun + seconds or until > len(leads):
            break
        if by_row:
            connection.execute("BEGIN IMMEDIATE")
            for lead in leads[written:until]:
                insert_leads(connection, sql, [lead])
            connection.execute("COMMIT")
        else:
            intake._write(lead_rows(leads[written:until]))
        written = until
    rate = written / (time.perf_counter() - begun)
    connection.close()
    return rate


def bare_postgresql(address: str, seconds: float, group: float, by_row: bool = False, loops: int = 1) -> float:
    """Insert in one loop, or in several with a connection each, committing after so many leads on average.

    Those of a commit are written together, or by a statement each (`by_row`).
    """
    from forecourt.store.postgresql.group import insert_leads
    from forecourt.store.postgresql.intake import values_of
    from forecourt.store.postgresql.session import connector
    from forecourt.store.statements import queries

    connect, sql = connector(address), queries("postgresql")
    leads = list(itertools.islice(rows(), int(40_000 * seconds)))
    commits = iter([leads[round(n * group) : round((n + 1) * group)] for n in range(int(len(leads) / group))])
    written: list[int] = []

    def loop() -> None:
        count = 0
        with contextlib.closing(connect()) as connection:
            while time.perf_counter() < begun + seconds and (some := next(commits, None)) is not None:
                if by_row:
                    connection.execute("BEGIN")
                    for lead in some:
                        insert_leads(connection, sql, [lead])
                    connection.commit()
                else:
                    connection.execute(sql["add_new"], values_of(some))
                count += len(some)
        written.append(count)

    threads = [threading.Thread(target=loop) for _ in range(loops)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(written) / (time.perf_counter() - begun)


# All of it


@contextlib.contextmanager
def postgresql(server: str) -> Iterator[str]:
    """Give the address of an empty schema."""
    import psycopg

    name = f"benchmark_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
        try:
            yield f"{server}?options=-csearch_path%3D{name}"
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


def count_leads(address: str) -> int:
    """Count the leads in a database, past the store."""
    question = "SELECT count(*) FROM lead"
    if address.startswith("sqlite:"):
        with contextlib.closing(sqlite3.connect(address.removeprefix("sqlite:"))) as file:
            return int(file.execute(question).fetchone()[0])
    import psycopg

    with psycopg.connect(address) as connection:
        found = connection.execute(question).fetchone()
        assert found is not None
        return int(found[0])


def compare(address: str, folder: Path, bare: Callable[..., float], chosen: argparse.Namespace) -> Runs:
    """Let all take turns on one store."""
    runs = Runs()
    folder.mkdir()
    count = partial(count_leads, address)
    served = {"over HTTP": Served(configure(folder, address, deliver=False), count)}
    try:
        served["over HTTP"].wait()
        _, group = served["over HTTP"].measure(0.5)
        for _ in range(chosen.rounds):
            rate, group = served["over HTTP"].measure(chosen.seconds)
            runs.add("over HTTP", rate)
            runs.groups.append(group)
            runs.add("bare loop", bare(address, chosen.seconds, group))
            runs.add("bare loop, row by row", bare(address, chosen.seconds, group, True))
            if bare is bare_postgresql:
                runs.add(f"{_AT_A_TIME} bare loops", bare(address, chosen.seconds, group, loops=_AT_A_TIME))
            runs.add("submit, no HTTP", asyncio.run(submitting(address, chosen.seconds)))
        if chosen.deliver:
            served.pop("over HTTP").stop()
            served["delivering"] = Served(configure(folder, address, deliver=True), count)
            served["delivering"].wait()
            for _ in range(chosen.rounds):
                runs.add("over HTTP, delivering", served["delivering"].measure(chosen.seconds)[0])
    finally:
        for server in served.values():
            server.stop()
    return runs


def report(store: str, runs: Runs) -> None:
    """Print a line each, and the ratios."""
    print(f"\n{store}: {statistics.median(runs.groups):.1f} leads a commit")
    bare = runs.rates["bare loop"]
    for name, rates in runs.rates.items():
        ratios = [rate / least for rate, least in zip(rates, bare, strict=True)]
        line = f"  {name:24} {statistics.median(rates):8.0f} leads/s   / bare loop: {statistics.median(ratios):.2f}"
        line += f" (rounds {min(ratios):.2f} to {max(ratios):.2f})"
        if name == "over HTTP":
            line += f"; at least {_LEAST}: {'yes' if statistics.median(ratios) >= _LEAST else 'NO'}"
        print(line)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="per turn")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--deliver", action="store_true", help="also measure a server that delivers meanwhile")
    parser.add_argument("--stores", nargs="*", default=["sqlite", "postgresql"], choices=["sqlite", "postgresql"])
    local = os.environ.get("FORECOURT_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/")
    parser.add_argument("--postgresql", default=local, help="address of a PostgreSQL server")
    chosen = parser.parse_args()
    with temporary_folder() as name:
        folder = Path(name)
        print(f"lead.submit, {CLIENTS} clients, one server process, every commit on the disk")
        if "sqlite" in chosen.stores:
            report("SQLite", compare(f"sqlite:{folder / 'leads.db'}", folder / "sqlite", bare_sqlite, chosen))
        if "postgresql" in chosen.stores:
            with postgresql(chosen.postgresql) as address:
                report("PostgreSQL", compare(address, folder / "postgresql", bare_postgresql, chosen))


if __name__ == "__main__":
    main()
