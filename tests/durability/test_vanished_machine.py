"""A machine whose cable is pulled is gone without a word, and the other goes on (docs/operations/many-machines.md).

Two hosts with addresses of their own reach one PostgreSQL and one Redis over a bridge. Nobody is told of the end: no
connection is closed or reset, so it is timeouts alone that bound what the vanished machine held.
"""

import contextlib
import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.durability.dealer import SCOPE, lead, submit
from tests.durability.hosts import HUB, Hosts, hosts
from tests.durability.machines import (
    CARS,
    PRICES,
    Buyers,
    Machines,
    ask,
    check_leads,
    configure,
    data_of,
    get,
    put_in_stock,
    search,
    until,
    wait_for_deliveries,
)
from tests.server.redis_server import own_redis
from tests.server_process import ServerProcess
from tests.store.postgresql_server import POSTGRESQL, OwnServer, own_server, unavailable

HOLDER: Final = Path(__file__).with_name("holder.py")
LET_GO_WITHIN: Final = 4.0
"""Seconds after which PostgreSQL ends a transaction that says nothing (`forecourt.store.postgresql.session`)."""
NOTICED_WITHIN: Final = 11.0
"""Seconds after which it ends a connection at whose other end nobody is."""
SLACK: Final = 10.0
"""Seconds that a machine which is busy with other tests may take besides."""
READY_WITHIN: Final = 2.0
"""Seconds after which /readyz gives up on the database (`forecourt.server.pages`)."""
BUYERS_PATIENCE: Final = 2.0
"""Seconds after which a buyer asks the other machine."""


@dataclass(frozen=True)
class Site:
    """Two hosts, and the database in the middle."""

    hosts: Hosts
    postgresql: OwnServer
    address: str
    config: Path

    def machines(self, folder: Path) -> Machines:
        """Return the machines, not yet started."""
        return Machines(folder, self.config, inside=(self.inside(0), self.inside(1)))

    def inside(self, number: int) -> tuple[str, ...]:
        """Return the command that runs a server on a host, where it listens at the host's address."""
        return (*self.hosts.inside(number), "env", f"FORECOURT_SERVER__HOST={self.hosts.address(number)}")

    def connections(self, number: int) -> int:
        """Count the connections of a host's that the database believes in."""
        where = f"client_addr = '{self.hosts.address(number)}'"
        found = POSTGRESQL.execute(self.postgresql.address, f"SELECT count(*) FROM pg_stat_activity WHERE {where}")
        return int(found[0][0])


def on_site(folder: Path, story: Callable[[Site], None]) -> None:
    """Run a story in the middle of two hosts, where the database is."""

    def work() -> None:
        postgresql.start(HUB)
        with own_redis(HUB) as redis:
            address = f"postgresql://postgres@{HUB}:5432/postgres"
            limits = f'[limits]\nrequests = 1000000\nstore = "{redis.address}"\n'
            story(Site(found, postgresql, address, configure(folder, address, limits)))

    with hosts() as found:
        made = own_server()
        if made is None:
            unavailable("PostgreSQL's binaries are not installed")
        postgresql = made
        try:
            postgresql.trust("10.77.0.0/24")
            found.run(work)
        finally:
            postgresql.remove()


@contextlib.contextmanager
def holding(site: Site, number: int, key: str, where: str) -> Iterator[None]:
    """Hold the lock of a lead's key on a host until the block ends."""
    command = [*site.hosts.inside(number), sys.executable, str(HOLDER), site.address, SCOPE, key, where]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            yield
        finally:
            process.kill()


def taken_after(server: ServerProcess, key: str) -> float:
    """Submit a lead until it is taken, and return the seconds that it took; refusals must say to try again."""
    began = time.monotonic()
    while (answer := submit(server, lead(key))).error is not None:
        assert answer.error["retryable"] is True, answer.error
        assert time.monotonic() - began < 60
    return time.monotonic() - began


def ready(server: ServerProcess) -> bool:
    """Tell whether a machine says so."""
    try:
        return bool(json.loads(get(server, "/readyz"))["status"] == "ok")
    except (OSError, http.client.HTTPException):
        return False


def alone(server: ServerProcess) -> None:
    """Ask a machine that is cut off from everything, on the machine."""
    began = time.monotonic()
    assert json.loads(get(server, "/readyz"))["reasons"] == ["the database does not answer"]
    assert time.monotonic() - began < READY_WITHIN + SLACK
    assert data_of(ask(server, search()))["total"] == CARS


def test_a_machine_that_vanishes_under_load_costs_no_lead_and_no_read_and_comes_back_by_itself(tmp_path: Path) -> None:
    def story(site: Site) -> None:
        machines = site.machines(tmp_path)
        buyers = Buyers(machines, seed=11, seconds=BUYERS_PATIENCE, vanishing=True)
        with machines.running():
            put_in_stock(machines, PRICES)
            with buyers.shopping():
                buyers.more(reads=10, leads=5)
                site.hosts.cut(0)
                gone = time.monotonic()
                buyers.more(reads=20, leads=10)
            # What it was about to send is sent by the other, and the database does not keep its connections.
            wait_for_deliveries(site.postgresql.address)
            until(lambda: site.connections(0) == 0)
            assert time.monotonic() - gone < NOTICED_WITHIN + SLACK
            assert site.connections(1) > 0
            # The machine itself says soon that it is of no use for leads, and goes on to show the stock that it knows.
            site.hosts.run(lambda: alone(machines.servers[0]), 0)
            site.hosts.mend(0)
            until(lambda: ready(machines.servers[0]))
            again = Buyers(machines, seed=12, payloads=buyers.payloads, receipts=buyers.receipts)
            with again.shopping():
                again.more(reads=10, leads=5)
            check_leads(site.postgresql.address, machines, again)
        print(  # noqa: T201 - the figures, shown by -s or with a failure
            f"{buyers.counts['reads']} reads, none failed; {len(buyers.receipts)} leads acknowledged, none lost, none"
            f" doubled; {dict(buyers.counts)}"
        )

    on_site(tmp_path, story)


def test_what_a_vanished_machine_has_locked_is_free_for_the_other_within_seconds(tmp_path: Path) -> None:
    def story(site: Site) -> None:
        machines = Machines(tmp_path, site.config, inside=(site.inside(1),))
        with machines.running():
            with holding(site, 0, "between", "between"):
                site.hosts.cut(0)
                assert taken_after(machines.servers[0], "between") < LET_GO_WITHIN + SLACK
            site.hosts.mend(0)
            with holding(site, 0, "within", "within"):
                site.hosts.cut(0)
                assert taken_after(machines.servers[0], "within") < NOTICED_WITHIN + SLACK
            until(lambda: site.connections(0) == 0)

    on_site(tmp_path, story)
