"""Two machines that serve one dealer: processes with data folders of their own on one database and one Redis or Valkey.

And the buyers who use them: each knows both addresses, and asks the other one when the first gives no whole answer.
"""

import asyncio
import contextlib
import http.client
import itertools
import json
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner, Result
from tests.durability.dealer import SCOPE, lead, visit
from tests.server.running import JSON, Reply, aap_error, envelope
from tests.server_process import ServerProcess
from tests.store.postgresql_server import POSTGRESQL

from forecourt.cli import main
from forecourt.demo import DEALER_ID, profile
from forecourt.store import LeadRecord, Remembered, open_store

__all__ = [
    "CARS",
    "PRICES",
    "Buyers",
    "Machines",
    "ask",
    "check_leads",
    "command",
    "configure",
    "data_of",
    "get",
    "kept",
    "put_in_stock",
    "search",
    "some_time",
    "stock_file",
    "stock_of",
    "until",
    "wait_for_deliveries",
]

PATIENCE: Final = 60
CARS: Final = 60
PRICES: Final = {number: 20_000 + 100 * number for number in range(CARS)}
"""The stock to begin with: list prices by the number of the car."""
_VIN: Final = "2HGFE1F78NH000001"
"""The car that leads ask for; it is never sold."""
_ANSWER_SECONDS: Final = 60


def configure(folder: Path, address: str, sections: str = "") -> Path:
    """Write the configuration that both machines have: a dealer whose leads go into one folder."""
    (folder / "leads").mkdir()
    (folder / "dealer.json").write_text(json.dumps(profile()), encoding="utf-8")
    file = folder / "forecourt.toml"
    file.write_text(
        f"store = {json.dumps(address)}\n"
        f'[dealer]\nid = "{DEALER_ID}"\nprofile = "dealer.json"\n'
        '[[dealer.deliveries]]\nvia = "folder"\npath = "leads"\n'
        f"[leads]\nlease_seconds = 2\nparallel = 16\n{sections}\n",
        encoding="utf-8",
    )
    return file


def stock_file(folder: Path, prices: Mapping[int, int]) -> Path:
    """Write a feed of these cars, by number, at these prices; number 0 is the one that leads ask for."""
    rooftop = profile()["rooftops"][0]["name"]
    rows = [
        f"S{number:05},{_VIN if number == 0 else ''},Used,Honda,Civic,{price},{rooftop}\n"
        for number, price in prices.items()
    ]
    path = folder / "stock.csv"
    path.write_text("stock,vin,type,make,model,price,rooftop\n" + "".join(rows), encoding="utf-8")
    return path


def command(config: Path, *arguments: str) -> Result:
    """Run a command with a machine's configuration, as on that machine."""
    result = CliRunner().invoke(main, [*arguments, "--config", str(config)], env={"FORECOURT_CONFIG": ""})
    assert result.exit_code == 0, result.output
    return result


@dataclass
class Machines:
    """The machines, by number. One that is dead keeps its address until it is started again."""

    folder: Path
    config: Path
    pap: bool = False
    inside: Sequence[Sequence[str]] = ((), ())
    """For each machine the command that puts its process where it runs."""
    servers: list[ServerProcess] = field(default_factory=list)

    def start(self) -> None:
        """Start all of them, side by side."""
        self.servers = [self._begin(number) for number in range(len(self.inside))]
        for server in self.servers:
            server.wait()

    def restart(self, number: int) -> None:
        """Start one that has ended; it has the data folder that it had."""
        fresh = self._begin(number)
        try:
            fresh.wait()
        finally:
            self.servers[number] = fresh

    def _begin(self, number: int) -> ServerProcess:
        folder = self.folder / str(number)
        folder.mkdir(exist_ok=True)
        return ServerProcess(folder, self.config, self.pap, inside=self.inside[number])

    def share(self, source: Path) -> None:
        """Give every machine a copy of a folder, in its data."""
        for number in range(len(self.inside)):
            shutil.copytree(source, self.folder / str(number) / "data" / source.name)

    @contextlib.contextmanager
    def running(self) -> Iterator["Machines"]:
        """Run them until the block ends."""
        try:
            self.start()
            yield self
        finally:
            for server in self.servers:
                server.stop()

    @property
    def files(self) -> Counter[str]:
        """How many files of leads there are, by lead."""
        return Counter(path.name.partition("-")[0] for path in (self.config.parent / "leads").glob("*.adf.xml"))


def ask(
    server: ServerProcess,
    payload: Mapping[str, Any],
    path: str = "/v3.1/a2a",
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Send an AAP request over A2A on a connection of its own."""
    with contextlib.closing(server.connect(_ANSWER_SECONDS)) as connection:
        connection.request("POST", path, json.dumps(envelope(payload)), {**JSON, **(headers or {})})
        return Reply.of(connection.getresponse())


def get(server: ServerProcess, path: str) -> str:
    """GET a path."""
    with contextlib.closing(server.connect(_ANSWER_SECONDS)) as connection:
        connection.request("GET", path)
        return connection.getresponse().read().decode()


def data_of(reply: Reply) -> dict[str, Any]:
    """Return the data of a success."""
    answer = reply.json()
    assert "result" in answer, answer
    found: dict[str, Any] = answer["result"]["message"]["parts"][0]["data"]["data"]
    return found


def some_time(chance: random.Random) -> str:
    """Return an hour at which the dealer is open on most days; buyers meet in some of them."""
    at = datetime.now(UTC) + timedelta(days=chance.randint(3, 40))
    return at.replace(hour=chance.randint(17, 23), minute=0, second=0, microsecond=0).isoformat()


def until(holds: Callable[[], Any], seconds: float = PATIENCE) -> None:
    """Return once something is so."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never comes to pass"
        time.sleep(0.02)


def search(**members: Any) -> dict[str, Any]:
    """Return a search of the whole stock, the cheapest first."""
    return {"type": "inventory.search.request", "sort": {"field": "price", "order": "asc"}, **members}


def put_in_stock(machines: Machines, prices: dict[int, int]) -> None:
    """Import a stock with the configuration of the first machine, and return once it is served by both."""
    command(machines.config, "import", str(stock_file(machines.config.parent, prices)), "--allow-shrink")
    until(lambda: all(stock_of(machines, number) == prices for number in (0, 1)))


def stock_of(machines: Machines, number: int) -> dict[int, int]:
    """Return the list prices that a machine shows, by the number of the car."""
    found = data_of(ask(machines.servers[number], search(pagination={"limit": 100})))["vehicles"]
    return {int(vehicle["stock"][1:]): vehicle["list_price"] for vehicle in found}


def kept(address: str, keys: list[str]) -> tuple[list[LeadRecord], dict[str, Remembered | None]]:
    """Read the leads and what is remembered of keys, past the machines."""

    async def read() -> tuple[list[LeadRecord], dict[str, Remembered | None]]:
        store = open_store(address)
        await store.open()
        found = list(await store.leads(None, 1_000_000))
        known = {key: await store.recall(SCOPE, key, datetime.now(UTC)) for key in keys}
        await store.close()
        return found, known

    return asyncio.run(read())


def wait_for_deliveries(address: str) -> None:
    """Return once nothing waits to be sent."""
    waiting = "SELECT count(*) FROM delivery WHERE status <> 'delivered'"
    until(lambda: POSTGRESQL.execute(address, waiting)[0][0] == 0)


_SEARCH: Final = {"type": "inventory.search.request", "filters": {"make": ["Honda"]}, "pagination": {"limit": 5}}
_VEHICLE: Final = {"type": "inventory.vehicle.request", "vin": _VIN}
_FACETS: Final = {"type": "inventory.facets.request"}
_READS: Final = (_SEARCH, _VEHICLE, _FACETS)


@dataclass
class Buyers:
    """Buyers in threads, each with one request after the other on connections that it keeps."""

    machines: Machines
    seed: int
    count: int = 6
    seconds: float = 10.0
    """How long a buyer waits for an answer before it asks the other machine."""
    vanishing: bool = False
    """Whether a machine may be gone without a word."""
    payloads: dict[str, dict[str, Any]] = field(default_factory=dict)
    receipts: dict[str, dict[str, Any]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[Any] = field(default_factory=list)
    """What no buyer should have met."""
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _ending: bool = False
    _threads: list[threading.Thread] = field(default_factory=list)

    @contextlib.contextmanager
    def shopping(self) -> Iterator["Buyers"]:
        """Shop until the block ends, and until every lead that was begun is acknowledged."""
        self._threads = [
            threading.Thread(target=self._shop, args=(number,), daemon=True) for number in range(self.count)
        ]
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._ending = True
            for thread in self._threads:
                thread.join(2 * PATIENCE)
        assert not any(thread.is_alive() for thread in self._threads)
        assert self.wrong == [], self.wrong

    def more(self, reads: int, leads: int) -> None:
        """Return once so many more requests were answered."""
        with self._changed:
            wanted = (self.counts["reads"] + reads, len(self.receipts) + leads)
            assert self._changed.wait_for(
                lambda: self.wrong or (self.counts["reads"] >= wanted[0] and len(self.receipts) >= wanted[1]), PATIENCE
            ), (wanted, self.counts, len(self.receipts))
        assert self.wrong == [], self.wrong

    def _shop(self, number: int) -> None:
        chance = random.Random(self.seed + number)
        kept: dict[int, http.client.HTTPConnection] = {}
        try:
            for at in itertools.count(number):
                if self._ending:
                    return
                # The buyers are on the machines' processors here.
                time.sleep(0.01)
                if chance.random() < 0.6:
                    self._read(kept, at, chance.choice(_READS))
                else:
                    self._submit(kept, at, f"buyer-{self.seed}-{number}-{at}", chance)
        except Exception as error:
            with self._changed:
                self.wrong.append(error)
                self._changed.notify_all()
        finally:
            for connection in kept.values():
                connection.close()

    def _read(self, kept: dict[int, http.client.HTTPConnection], at: int, payload: Mapping[str, Any]) -> None:
        answer = self._either(kept, at, payload)
        with self._changed:
            if "result" not in answer:
                self.wrong.append(answer)
            self.counts["reads"] += 1
            self._changed.notify_all()

    def _submit(self, kept: dict[int, http.client.HTTPConnection], at: int, key: str, chance: random.Random) -> None:
        members = visit(some_time(chance)) if chance.random() < 0.25 else {}
        self.payloads[key] = payload = lead(key, **members)
        end = time.monotonic() + PATIENCE
        while "result" not in (answer := self._either(kept, at, payload)):
            error = aap_error(answer)
            assert error["retryable"], error
            assert time.monotonic() < end, error
            self.counts["leads tried again"] += 1
            time.sleep(0.05)
        with self._changed:
            self.receipts[key] = answer["result"]["message"]["parts"][0]["data"]
            self._changed.notify_all()

    def _either(
        self, kept: dict[int, http.client.HTTPConnection], at: int, payload: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Ask one machine and, where no whole answer comes, the other one at once: that one must answer.

        Where machines vanish, it takes time to tell one that is gone from one that is slow. Then both are asked in
        turn, each time for longer.
        """
        number = at % len(self.machines.servers)
        for attempt in itertools.count():
            last = not self.vanishing and attempt == 1
            patience = _ANSWER_SECONDS if last else self.seconds * 2 ** (attempt // 2)
            try:
                return self._one(kept, number, payload, patience)
            except (OSError, http.client.HTTPException):
                if last or patience > _ANSWER_SECONDS:
                    raise
                self.counts["asked the other"] += 1
            number = 1 - number
        raise AssertionError

    def _one(
        self, kept: dict[int, http.client.HTTPConnection], number: int, payload: Mapping[str, Any], seconds: float
    ) -> dict[str, Any]:
        """Ask one machine; a kept connection that has been closed meanwhile is opened once more (RFC 9112, 9.3.1)."""
        server = self.machines.servers[number]
        connection = kept.pop(number, None)
        try:
            if connection is not None and connection.port == server.port and connection.sock is not None:
                connection.sock.settimeout(seconds)
                try:
                    return self._exchange(connection, payload)
                except (ConnectionError, http.client.RemoteDisconnected):
                    connection.close()
                    self.counts["connections opened again"] += 1
            connection = server.connect(seconds)
            return self._exchange(connection, payload)
        except BaseException:
            if connection is not None:
                connection.close()
            connection = None
            raise
        finally:
            if connection is not None:
                kept[number] = connection

    def _exchange(self, connection: http.client.HTTPConnection, payload: Mapping[str, Any]) -> dict[str, Any]:
        connection.request("POST", "/v3.1/a2a", json.dumps(envelope(payload)), JSON)
        response = connection.getresponse()
        body = response.read()
        assert response.status == http.HTTPStatus.OK, (response.status, body)
        answer: dict[str, Any] = json.loads(body)
        return answer


def check_leads(address: str, machines: Machines, buyers: Buyers, others: Sequence[str] = ()) -> None:
    """Every acknowledged lead is kept once with its grant, answered as it is kept, and sent; `others` names more."""
    wait_for_deliveries(address)
    leads, known = kept(address, list(buyers.payloads))
    assert buyers.receipts.keys() == buyers.payloads.keys()
    messages = Counter(json.loads(row.business)["message"] for row in leads)
    lost = [key for key in buyers.receipts if messages[buyers.payloads[key]["message"]] == 0]
    doubled = [message for message, count in messages.items() if count > 1]
    assert (lost, doubled) == ([], [])
    assert len(leads) == len(buyers.receipts) + len(set(others))
    by_id = {row.lead_id: row for row in leads}
    assert by_id.keys() >= set(others)
    for key, told in buyers.receipts.items():
        row, remembered = by_id[told["data"]["lead_id"]], known[key]
        assert remembered is not None
        assert remembered.receipt == row.receipt
        assert {"type": told["type"], **json.loads(row.receipt)} == told
        assert json.loads(row.grant) == buyers.payloads[key]["consent"]
    slots = Counter(
        (row.rooftop, row.booking.department, row.booking.start)
        for row in leads
        if row.booking is not None and row.booking.status == "confirmed"
    )
    assert slots
    assert set(slots.values()) == {1}
    assert machines.files == Counter(by_id.keys())
