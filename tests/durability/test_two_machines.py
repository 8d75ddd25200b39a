"""Two machines on one database and one Redis or Valkey are one dealer (docs/operations/many-machines.md).

Each is a `forecourt serve` with a data folder of its own. What is true at one is true at the other: at once where the
database decides, within the time that the page states where a process remembers.
"""

import dataclasses
import itertools
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.durability.balancer import balancing
from tests.durability.dealer import all_at_once, lead, submit, visit
from tests.durability.machines import (
    CARS,
    PRICES,
    Buyers,
    Machines,
    ask,
    check_leads,
    command,
    configure,
    data_of,
    get,
    kept,
    put_in_stock,
    search,
    stock_file,
    stock_of,
    until,
    wait_for_deliveries,
)
from tests.pap_agent import BASE, PAPAgent
from tests.server.redis_server import OwnRedis, own_redis
from tests.server.running import Reply, aap_error
from tests.store.postgresql_server import POSTGRESQL

import forecourt
from forecourt.client import Disclosure

LONG: Final = bool(os.environ.get("FORECOURT_LONG"))
ENDS: Final = 25 if LONG else 1
"""How often each machine ends under load and is started again, one by SIGKILL and one by SIGTERM, in turn."""
ROUNDS: Final = 40 if LONG else 6
"""How many last slots are asked for at both machines."""
CLIENTS: Final = 64
KEYS_KNOWN_WITHIN: Final = 2.0
"""Seconds after which every process knows of a key that was made or revoked (`forecourt.server.api_keys`)."""
STOCK_SERVED_WITHIN: Final = 2.0
"""Seconds after which every process serves an import (decision 0022)."""
SLACK: Final = 8.0
"""Seconds that a machine which is busy with other tests may take besides."""

INFORMATION: Final = {"type": "dealer.information.request"}
FACETS: Final = {"type": "inventory.facets.request"}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An empty schema."""
    with POSTGRESQL.fresh(tmp_path_factory.mktemp("database")) as found:
        yield found


@pytest.fixture(scope="module")
def pair(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Two machines with the dealer's stock."""
    folder = tmp_path_factory.mktemp("pair")
    config = configure(folder, address, "[access]\nkeys = true\n")
    with Machines(folder, config).running() as machines:
        put_in_stock(machines, PRICES)
        yield machines


# Keys


def test_a_key_opens_both_machines_once_it_is_made_and_neither_once_it_is_revoked(pair: Machines) -> None:
    made = json.loads(command(pair.config, "keys", "create", "Example agent", "--json").stdout)
    headers = {"X-API-Key": made["key"]}

    def statuses() -> list[int]:
        return [ask(server, INFORMATION, headers=headers).status for server in pair.servers]

    began = time.monotonic()
    until(lambda: statuses() == [200, 200])
    assert time.monotonic() - began < KEYS_KNOWN_WITHIN + SLACK
    command(pair.config, "keys", "revoke", made["id"])
    began = time.monotonic()
    until(lambda: statuses() == [401, 401])
    assert time.monotonic() - began < KEYS_KNOWN_WITHIN + SLACK
    # And stays shut, at both.
    assert statuses() == [401, 401]


# Leads


def noon_in(days: int) -> datetime:
    """Return a weekday noon in San Francisco about so many days ahead, when the dealer is open."""
    at = datetime.now(UTC) + timedelta(days=days)
    return (at - timedelta(days=at.weekday() - 2)).replace(hour=20, minute=0, second=0, microsecond=0)


def test_the_last_slot_asked_for_at_both_machines_at_the_same_moment_is_given_once(pair: Machines) -> None:
    days = [10, 17, 24, 31, 38, 45]
    hours = (0, 1, 2, -1, -2, 3, -3)
    slots = [noon_in(day) + timedelta(hours=hour) for hour in hours for day in days][:ROUNDS]
    for number, at in enumerate(slots):
        wishes = [lead(f"slot-{number}-{client}", **visit(at.isoformat())) for client in range(4)]
        answers = all_at_once([partial(submit, pair.servers[at % 2], wish) for at, wish in enumerate(wishes)])
        told = Counter(answer.data["appointment"]["status"] for answer in answers)
        assert told == {"confirmed": 1, "proposed": 3}, (number, at)


def test_one_key_at_both_machines_at_once_is_one_lead_and_one_answer_byte_for_byte(
    pair: Machines, address: str
) -> None:
    payload = lead("both-at-once")
    answers = all_at_once([partial(submit, pair.servers[at % 2], payload) for at in range(CLIENTS)])
    assert [answer.error for answer in answers] == [None] * CLIENTS
    assert len({answer.payload for answer in answers}) == 1
    # Either machine repeats it later, whichever took it.
    assert {submit(server, payload).payload for server in pair.servers} == {answers[0].payload}
    leads, _ = kept(address, [])
    assert [row.lead_id for row in leads if json.loads(row.business)["message"] == payload["message"]] == [
        answers[0].data["lead_id"]
    ]
    conflict = submit(pair.servers[1], {**payload, "message": "Something else."}).error
    assert conflict is not None
    assert conflict["code"] == "IDEMPOTENCY_CONFLICT"


def test_a_lead_without_a_key_is_recognised_as_a_duplicate_by_the_other_machine(pair: Machines) -> None:
    payload = lead("without-a-key")
    del payload["idempotency_key"]
    answers = all_at_once([partial(submit, pair.servers[at % 2], payload) for at in range(8)])
    told = Counter(answer.data["status"] for answer in answers)
    assert told == {"received": 1, "duplicate": 7}
    assert len({answer.data["lead_id"] for answer in answers}) == 1


def test_each_delivery_is_made_once_by_either_of_the_two_couriers(pair: Machines, address: str) -> None:
    payloads = [lead(f"to-deliver-{number}") for number in range(24)]
    answers = all_at_once([partial(submit, pair.servers[at % 2], payload) for at, payload in enumerate(payloads)])
    wait_for_deliveries(address)
    rows = POSTGRESQL.execute(address, "SELECT lead_id, attempts FROM delivery")
    assert dict(rows).keys() >= {answer.data["lead_id"] for answer in answers}
    assert {attempts for _, attempts in rows} == {1}
    assert pair.files == Counter(dict(rows).keys())


# The stock


def test_an_import_on_one_machine_is_served_by_both_and_what_is_sold_is_gone_from_both(pair: Machines) -> None:
    prices = {number: 30_000 + number for number in range(CARS) if number != 7}
    command(pair.config, "import", str(stock_file(pair.config.parent, prices)))
    began = time.monotonic()
    until(lambda: all(stock_of(pair, number) == prices for number in (0, 1)))
    assert time.monotonic() - began < STOCK_SERVED_WITHIN + SLACK
    sold = {"type": "inventory.vehicle.request", "stock": "S00007"}
    assert [aap_error(ask(server, sold).json())["code"] for server in pair.servers] == ["VEHICLE_UNAVAILABLE"] * 2
    one, other = (data_of(ask(server, FACETS)) for server in pair.servers)
    assert one == other
    cards = [
        get(server, "/.well-known/agent-card.json").replace(server.base_url, "https://dealer.example.com")
        for server in pair.servers
    ]
    assert cards[0] == cards[1]


@pytest.mark.parametrize("first", [0, 1])
def test_a_walk_goes_on_at_the_other_machine_page_by_page_while_imports_change_the_stock(
    pair: Machines, first: int
) -> None:
    """Walks see the stock they began with (decision 0017), at whichever machine: each car that stays comes once."""
    chance = random.Random(first)
    prices = dict(PRICES)
    put_in_stock(pair, prices)
    staying = set(prices)
    seen: list[int] = []
    cursor: str | None = None
    for page in itertools.count():
        pagination = {"limit": 7} if cursor is None else {"limit": 7, "cursor": cursor}
        found = data_of(ask(pair.servers[(first + page) % 2], search(pagination=pagination)))
        seen += [int(vehicle["stock"][1:]) for vehicle in found["vehicles"]]
        cursor = found.get("next_cursor")
        if cursor is None:
            break
        if page % 3 == 0:
            # Most prices change places, one car is sold, one comes. The next page is asked for at once, before the
            # other machine can have followed, or when only the other one has.
            sold = chance.choice(sorted(staying - {0}))
            staying.discard(sold)
            prices = {number: 20_000 + chance.randrange(9000) for number in staying} | {1000 + page: 25_000}
            command(pair.config, "import", str(stock_file(pair.config.parent, prices)))
    times = Counter(seen)
    assert [number for number in staying if times[number] != 1] == []
    assert max(times.values()) == 1
    # Newcomers are no part of a walk that began before them.
    assert max(times) < CARS


def test_a_walk_that_begins_at_the_machine_that_is_ahead_goes_on_at_the_one_that_lags(pair: Machines) -> None:
    for turn in range(3):
        prices = {number: 40_000 + 10 * turn + number for number in range(CARS)}
        command(pair.config, "import", str(stock_file(pair.config.parent, prices)))
        ahead = turn % 2
        until(lambda ahead=ahead, prices=prices: stock_of(pair, ahead) == prices)  # type: ignore[misc]
        begun = data_of(ask(pair.servers[ahead], search(pagination={"limit": 40})))
        rest = search(pagination={"limit": 40, "cursor": begun["next_cursor"]})
        found = begun["vehicles"] + data_of(ask(pair.servers[1 - ahead], rest))["vehicles"]
        assert [vehicle["list_price"] for vehicle in found] == list(prices.values())


def test_a_cursor_that_was_tampered_with_is_the_same_typed_refusal_at_both(pair: Machines) -> None:
    cursor = data_of(ask(pair.servers[0], search(pagination={"limit": 7})))["next_cursor"]
    other = search(filters={"make": ["Ford"]}, pagination={"limit": 7, "cursor": cursor})
    for server in pair.servers:
        assert aap_error(ask(server, other).json())["code"] == "INVALID_CURSOR"


# MCP


def test_mcp_keeps_nothing_of_a_session_so_that_calls_may_alternate(pair: Machines) -> None:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def send(number: int, method: str, params: dict[str, Any]) -> Reply:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        with closing(pair.servers[number].connect(30)) as connection:
            connection.request("POST", "/mcp", body, headers)
            return Reply.of(connection.getresponse())

    client = {"name": "example", "version": "1"}
    begun = send(0, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
    assert begun.json()["result"]["protocolVersion"] == "2025-06-18"
    assert "mcp-session-id" not in begun.headers
    headers["MCP-Protocol-Version"] = "2025-06-18"
    for number in (1, 0, 1, 0):
        called = send(number, "tools/call", {"name": "aap_inventory_search", "arguments": {"pagination": {"limit": 1}}})
        assert called.json()["result"]["structuredContent"]["data"]["total"] == CARS
    listed = [send(number, "tools/list", {}).json()["result"] for number in (0, 1)]
    assert listed[0] == listed[1]


# Limits


GENERAL: Final = 100
"""Calls that a client has; more than a test of PAP makes."""


@dataclasses.dataclass(frozen=True)
class Counted:
    """Machines that count in a Redis which a test may take away, and callers' keys that nobody has used yet."""

    machines: Machines
    redis: OwnRedis
    plain: dict[str, str]
    own: dict[str, str]
    """Its limit is 12 calls."""
    other: dict[str, str]
    """Its limit is 6 calls."""


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    """Two machines with limits, and with PAP over TLS at loopback; both know the demonstration's agent."""
    pytest.importorskip("personal_agent_protocol")
    from forecourt.server.pap.demonstration import prepare

    folder = tmp_path_factory.mktemp("counted")
    with own_redis() as redis, POSTGRESQL.fresh(folder) as address:
        sections = (
            f'[limits]\nrequests = {GENERAL}\nseconds = 3600\nstore = "{redis.address}"\n'
            'skills = { "inventory.facets" = { requests = 8, seconds = 3600 } }\n'
            "[access]\nkeys = true\n[pap]\nprivate_networks = true\n"
        )
        machines = Machines(folder, configure(folder, address, sections), pap=True)
        machines.share(prepare(folder / "made").folder)
        with machines.running():
            options = ((), ("--requests", "12", "--seconds", "1800"), ("--requests", "6", "--seconds", "3600"))
            made = [command(machines.config, "keys", "create", "Example", "--json", *each).stdout for each in options]
            yield Counted(machines, redis, *({"X-API-Key": json.loads(each)["key"]} for each in made))


def outcomes(machines: Machines, payload: dict[str, Any], headers: dict[str, str], calls: int) -> list[dict[str, Any]]:
    """Ask at both machines alternately, eight at a time, and return the answers."""
    answers: list[Reply] = []
    while len(answers) < calls:
        some = range(len(answers), min(len(answers) + 8, calls))
        answers += all_at_once([partial(ask, machines.servers[at % 2], payload, headers=headers) for at in some])
    return [answer.json() for answer in answers]


def waits(answers: list[dict[str, Any]]) -> list[int]:
    """Return the waits of those that were refused."""
    errors = [aap_error(answer) for answer in answers if "error" in answer]
    assert {error["code"] for error in errors} <= {"RATE_LIMITED"}
    return [error["details"]["retry_after_ms"] for error in errors]


def test_a_limit_is_what_it_says_over_both_machines_together(counted: Counted) -> None:
    machines = counted.machines
    for payload, key, calls, allowed, seconds in (
        (FACETS, counted.plain, 16, 8, 3600),
        (INFORMATION, counted.plain, GENERAL + 8, GENERAL - 8, 3600),
        (INFORMATION, counted.own, 20, 12, 1800),
    ):
        answers = outcomes(machines, payload, key, calls)
        refused = waits(answers)
        assert (len(answers) - len(refused), len(refused)) == (allowed, calls - allowed)
        # Both machines tell of the same end of the window.
        assert all(0 < wait <= seconds * 1000 for wait in refused)
        told = [waits([ask(server, payload, headers=key).json()])[0] for server in machines.servers]
        assert abs(told[0] - told[1]) < 1000 * SLACK


def test_machines_go_on_while_the_count_is_away_and_count_together_again_once_it_is_back(counted: Counted) -> None:
    machines = counted.machines
    counted.redis.stop()
    # Each counts for itself now: six here and six there.
    assert len(waits(outcomes(machines, INFORMATION, counted.other, 16))) == 4
    for server in machines.servers:
        ready = json.loads(get(server, "/readyz"))
        assert ready["status"] == "ok"
        assert "cannot be reached" in ready["limits"]
    counted.redis.start()
    # A failed count is left alone for a second; the one that came back has forgotten what it had.
    time.sleep(1.2)
    assert len(waits(outcomes(machines, INFORMATION, counted.other, 16))) == 10


# PAP


PAP_SEARCH: Final = {"type": "inventory.search.request", "pagination": {"limit": 1}}


def both(machines: Machines) -> tuple[PAPAgent, PAPAgent]:
    """Return one agent with one Session, started at the first machine, at each of them."""
    here = PAPAgent(machines.servers[0]).start()
    return here, dataclasses.replace(here, server=machines.servers[1])


def test_a_session_that_was_started_at_one_machine_is_one_at_the_other(counted: Counted) -> None:
    here, there = both(counted.machines)
    for _ in range(3):
        assert there.call(PAP_SEARCH).status == 200
        assert here.call(PAP_SEARCH).status == 200


def test_a_proof_that_was_used_at_one_machine_is_a_replay_at_the_other(counted: Counted) -> None:
    here, there = both(counted.machines)
    for one, other in ((here, there), (there, here)):
        proof = one.proof("POST", f"{BASE}/api/inventory.search")
        assert one.call(PAP_SEARCH, proof=proof).status == 200
        again = other.call(PAP_SEARCH, proof=proof)
        assert (again.status, again.error) == (401, "invalid_dpop_proof")
    for _ in range(6):
        proof = here.proof("POST", f"{BASE}/api/inventory.search")
        used = all_at_once([partial(agent.call, PAP_SEARCH, proof=proof) for agent in (here, there) * 2])
        assert sorted(answer.status for answer in used) == [200, 401, 401, 401]


def test_an_assertion_that_was_used_at_one_machine_starts_no_session_at_the_other(counted: Counted) -> None:
    here, there = both(counted.machines)
    form = here.form()
    assert here.ask(form).status == 200
    again = there.ask(form)
    assert again.status in (400, 401)
    assert again.error in ("invalid_grant", "invalid_client")


def test_a_token_that_ended_at_one_machine_ends_at_the_other(counted: Counted) -> None:
    here, there = both(counted.machines)
    assert there.call(PAP_SEARCH).status == 200
    # A Session that is renewed has another token; the one before opens nothing any more.
    here.start()
    ended = there.call(PAP_SEARCH)
    assert (ended.status, ended.error) == (401, "invalid_token")
    there.token = here.token
    assert [agent.call(PAP_SEARCH).status for agent in (here, there)] == [200, 200]


def test_a_lead_repeated_at_the_other_machine_under_the_header_of_pap_is_the_same_answer(counted: Counted) -> None:
    here, there = both(counted.machines)
    payload = lead("over-pap")
    headers = [("Idempotency-Key", "example-1")]
    answers = [agent.call(payload, "/api/lead.submit", headers=headers) for agent in (here, there, here)]
    assert [answer.status for answer in answers] == [200] * 3
    assert len({answer.body for answer in answers}) == 1


# One of the two ends


class Customers:
    """Somebody's program that calls through a balancer with `forecourt.connect_sync`, and knows of no machines."""

    def __init__(self) -> None:
        self.leads: list[str] = []
        self.reads = 0
        self._ending = False

    @contextmanager
    def shopping(self, url: str) -> Iterator[None]:
        """Search and hand in leads until the block ends; whatever is raised comes out."""
        with ThreadPoolExecutor(1) as thread:
            future = thread.submit(self._shop, url)
            try:
                yield
            finally:
                self._ending = True
            future.result()

    def _shop(self, url: str) -> None:
        disclosure = Disclosure(seller="Demo Auto Group", channels=("email",), vehicle="the car", agent="Example")
        with forecourt.connect_sync(url) as dealer:
            while not self._ending:
                assert dealer.search(make="Honda", limit=5).total == CARS
                self.reads += 1
                customer = {
                    "first_name": "Jordan",
                    "last_name": "Lee",
                    "email": f"jordan-{len(self.leads)}@example.com",
                }
                number = f"client {len(self.leads)}"
                self.leads.append(dealer.submit_lead(customer, disclosure.granted(), message=number).lead_id or "")


def test_a_machine_that_ends_under_load_loses_no_lead_and_fails_no_read_that_the_other_serves(tmp_path: Path) -> None:
    """Killed or asked to end; a client that keeps connections finds one closed and opens another, and no more."""
    chance = random.Random(9)
    kills = 0
    began = time.monotonic()
    with POSTGRESQL.fresh(tmp_path) as address:
        machines = Machines(tmp_path, configure(tmp_path, address))
        buyers, customers = Buyers(machines, seed=9), Customers()
        with machines.running():
            put_in_stock(machines, PRICES)
            with balancing(machines) as url, customers.shopping(url), buyers.shopping():
                for turn in range(2 * ENDS):
                    number = turn % 2
                    buyers.more(reads=10, leads=5)
                    time.sleep(chance.uniform(0, 0.5))
                    if (turn + turn // 2) % 2:
                        assert machines.servers[number].stop() == 0
                    else:
                        machines.servers[number].kill()
                        kills += 1
                    buyers.more(reads=20, leads=10)
                    machines.restart(number)
                # The last one that is killed stays so: what it held is the other's to send.
                buyers.more(reads=10, leads=5)
                machines.servers[0].kill()
                kills += 1
                buyers.more(reads=10, leads=5)
            check_leads(address, machines, buyers, customers.leads)
    print(  # noqa: T201 - the figures, shown by -s or with a failure
        f"{kills} kills and {ENDS} orderly ends in {time.monotonic() - began:.0f} s: {buyers.counts['reads']} reads,"
        f" none failed; {len(buyers.receipts)} leads acknowledged, none lost, none doubled; {dict(buyers.counts)};"
        f" by the client through a balancer {customers.reads} reads and {len(customers.leads)} leads, none failed"
    )
    assert buyers.counts["asked the other"] > 0
    assert customers.leads
