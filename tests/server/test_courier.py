"""The courier: the outbox is sent, shared, retried and given up (docstring of `forecourt.server.courier`)."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from tests.store.conftest import DATABASES

from forecourt.demo import DEALER_ID, profile
from forecourt.lead.delivery import DeliveryError, Parcel, open_target
from forecourt.lead.outbox import Destination, Dispatch, Retry
from forecourt.lead.seller import Seller
from forecourt.lead.submit import Stock, submit
from forecourt.model import LeadRequest
from forecourt.server.courier import Courier, Pace
from forecourt.store import Delivery, Store, open_store

TRIES: Final = 2000
"""How often a test looks, every hundredth of a second, before it fails."""
SELLER: Final = Seller.from_profile(DEALER_ID, profile())
QUICK: Final = Pace(look=0.05, lease=0.6, stop=0.2)
CRM: Final = f"{DEALER_ID}/crm"


async def until(holds: Callable[[], Any]) -> None:
    """Return once something is so."""
    for _ in range(TRIES):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never comes to pass")


def business(number: int) -> dict[str, Any]:
    """Return the lead of one shopper."""
    return {
        "customer": {"first_name": "Zephyrine", "last_name": "Quartermain", "email": f"z{number}@example.com"},
        "consent": {
            "granted_at": "2026-05-04T11:59:00-07:00",
            "allowed_channels": ["email"],
            "consent_text": "Contact me.",
            "scope": ["lead_submission"],
        },
        "source_agent": {"name": "example-agent"},
    }


class Recorder:
    """A target in this process that does as it is told."""

    kind = "recorder"

    def __init__(self, work: Callable[[Parcel], Awaitable[None]] | None = None) -> None:
        self.parcels: list[Parcel] = []
        self.closed = False
        self._work = work

    async def send(self, parcel: Parcel) -> None:
        self.parcels.append(parcel)
        if self._work is not None:
            await self._work(parcel)

    async def close(self) -> None:
        self.closed = True


class Office:
    """A store with couriers over it."""

    def __init__(self, store: Store, address: str) -> None:
        self.store, self.address = store, address
        self.dispatch = Dispatch({DEALER_ID: [Destination(CRM)]})
        self.couriers: list[Courier] = []

    def courier(self, target: Any, store: Store | None = None, **options: Any) -> Courier:
        """Return a courier to the one target, which runs until the test ends."""
        options = {"retry": Retry(0.02, 3600.0, 4), "pace": QUICK, **options}
        made = Courier(store or self.store, self.dispatch, {DEALER_ID: SELLER}, {CRM: target}, **options)
        self.couriers.append(made)
        made.start()
        return made

    async def take(self, count: int = 1) -> None:
        """Take leads of as many shoppers."""
        for number in range(count):
            request = LeadRequest(business(number))
            await submit(self.store, SELLER, request, Stock(), None, datetime.now(UTC), self.dispatch)

    async def deliveries(self) -> list[Delivery]:
        """Return every delivery."""
        leads = await self.store.leads(None, 1000)
        return list(await self.store.deliveries([lead.lead_id for lead in leads]))

    async def until(self, holds: Callable[[list[Delivery]], bool]) -> list[Delivery]:
        """Return the deliveries once they are as they should become."""
        for _ in range(TRIES):
            if holds(found := await self.deliveries()):
                return found
            await asyncio.sleep(0.01)
        raise AssertionError(f"after all this time they are {found}")

    async def all_are(self, status: str) -> list[Delivery]:
        """Return the deliveries once all have a status."""
        return await self.until(lambda found: bool(found) and {each.status for each in found} == {status})


@pytest.fixture(params=DATABASES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of each kind."""
    with DATABASES[request.param].fresh(tmp_path) as found:
        yield found


@contextlib.asynccontextmanager
async def office(address: str) -> AsyncIterator[Office]:
    """Open the store, and stop what was started in the end."""
    store = open_store(address)
    await store.open()
    made = Office(store, address)
    try:
        yield made
    finally:
        for courier in made.couriers:
            await courier.stop()
        await store.close()


def test_what_waits_is_sent_once_and_recorded(address: str) -> None:
    async def run() -> None:
        async with office(address) as desk:
            await desk.take(30)
            target = Recorder()
            courier = desk.courier(target)
            found = await desk.all_are("delivered")
            assert sorted(each.delivery_id for each in target.parcels) == sorted(each.delivery_id for each in found)
            assert {each.attempts for each in found} == {1}
            await until(lambda: courier.details() == {"waiting": 0, "parked": 0})
            await courier.stop()
            await courier.stop()
            assert target.closed

    asyncio.run(run())


def test_a_new_lead_of_this_process_is_sent_without_waiting_for_the_next_look(address: str) -> None:
    async def run() -> None:
        async with office(address) as desk:
            target = Recorder()
            courier = desk.courier(target, pace=Pace(look=3600.0))
            desk.dispatch.wake = courier.wake
            await asyncio.sleep(0)
            await desk.take(1)
            await desk.all_are("delivered")

    asyncio.run(run())


def test_a_lead_of_another_process_is_found_at_the_next_look(address: str) -> None:
    async def run() -> None:
        async with office(address) as desk:
            desk.courier(Recorder())
            await asyncio.sleep(0.1)
            await desk.take(1)
            await desk.all_are("delivered")

    asyncio.run(run())


def test_several_couriers_share_the_work_and_send_nothing_twice(address: str) -> None:
    async def slowly(_: Parcel) -> None:
        await asyncio.sleep(0.01)

    async def run() -> None:
        async with office(address) as desk:
            await desk.take(60)
            targets = [Recorder(slowly) for _ in range(4)]
            stores = [open_store(address) for _ in targets]
            for store, target in zip(stores, targets, strict=True):
                await store.open()
                desk.courier(target, store)
            await desk.all_are("delivered")
            for courier in desk.couriers:
                await courier.stop()
            for store in stores:
                await store.close()
            sent = [parcel.delivery_id for target in targets for parcel in target.parcels]
            assert len(sent) == len(set(sent)) == 60

    asyncio.run(run())


def test_a_delivery_that_takes_longer_than_its_lease_is_nobody_elses_meanwhile(address: str) -> None:
    async def run() -> None:
        async with office(address) as desk:
            await desk.take(1)
            go_on = asyncio.Event()
            slow, other = Recorder(lambda _: go_on.wait()), Recorder()  # type: ignore[arg-type, return-value]
            desk.courier(slow)
            await desk.until(lambda found: found[0].holder is not None)
            desk.courier(other)
            await asyncio.sleep(QUICK.lease * 2)
            go_on.set()
            (found,) = await desk.all_are("delivered")
            assert (len(slow.parcels), len(other.parcels), found.attempts) == (1, 0, 1)

    asyncio.run(run())


def test_a_delivery_whose_lease_cannot_be_renewed_is_let_go_before_another_process_sends_it(address: str) -> None:
    async def run() -> None:
        async with office(address) as desk:
            await desk.take(1)
            cut_off = open_store(address)
            await cut_off.open()
            ended: list[int] = []

            async def lose_the_store_and_hang(_: Parcel) -> None:
                await cut_off.close()
                try:
                    await asyncio.sleep(3600)
                finally:
                    ended.append(len(other.parcels))

            other = Recorder()
            desk.courier(Recorder(lose_the_store_and_hang), cut_off)
            await desk.until(lambda found: found[0].holder is not None)
            desk.courier(other)
            (found,) = await desk.all_are("delivered")
            assert (ended, len(other.parcels), found.attempts) == ([0], 1, 2)

    asyncio.run(run())


def test_what_a_dead_process_held_is_sent_by_another_under_the_same_id(address: str) -> None:
    async def run() -> None:
        async with office(address) as desk:
            await desk.take(1)
            now = datetime.now(UTC)
            (held,) = await desk.store.claim_deliveries("dead", now, now + timedelta(seconds=0.3), 1)
            target = Recorder()
            desk.courier(target)
            (found,) = await desk.all_are("delivered")
            assert [each.delivery_id for each in target.parcels] == [held.delivery_id]
            assert found.attempts == 2

    asyncio.run(run())


def test_what_fails_is_tried_again_and_given_up_with_the_reason_in_sight(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(_: Parcel) -> None:
        raise DeliveryError("the mail server cannot be reached")

    async def run() -> None:
        async with office(address) as desk:
            await desk.take(1)
            target = Recorder(refuse)
            courier = desk.courier(target)
            (found,) = await desk.all_are("parked")
            assert (found.attempts, found.reason) == (4, "the mail server cannot be reached")
            assert len(target.parcels) == 4
            assert len({each.delivery_id for each in target.parcels}) == 1
            await until(lambda: courier.details()["parked"] == 1)
            # Somebody mends it and asks for it again.
            target._work = None
            assert await desk.store.resend_deliveries(found.lead_id, datetime.now(UTC)) == 1
            courier.wake()
            await desk.all_are("delivered")
            assert b'<prospect status="resend">' in target.parcels[-1].content
            assert target.parcels[-1].delivery_id == found.delivery_id

    with caplog.at_level(logging.DEBUG):
        asyncio.run(run())
    assert "parked (the mail server cannot be reached)" in caplog.text
    assert "Zephyrine" not in caplog.text


def test_a_target_that_breaks_in_an_unforeseen_way_is_a_failure_whose_words_are_not_repeated(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def break_down(parcel: Parcel) -> None:
        raise LookupError(parcel.content)

    async def run() -> None:
        async with office(address) as desk:
            await desk.take(1)
            desk.courier(Recorder(break_down))
            (found,) = await desk.all_are("parked")
            assert found.reason == "it failed unexpectedly: LookupError"

    with caplog.at_level(logging.DEBUG):
        asyncio.run(run())
    assert "Zephyrine" not in caplog.text


def test_a_target_that_is_not_configured_any_more_is_waited_for_and_then_given_up(address: str) -> None:
    async def run() -> None:
        async with office(address) as desk:
            await desk.take(1)
            courier = Courier(desk.store, desk.dispatch, {DEALER_ID: SELLER}, {}, Retry(0.01, 3600.0, 2), QUICK)
            desk.couriers.append(courier)
            courier.start()
            (found,) = await desk.all_are("parked")
            assert (found.reason, found.attempts) == ("no target of this name is configured", 2)

    asyncio.run(run())


def test_a_slow_target_does_not_hold_the_others_up(address: str) -> None:
    async def run() -> None:
        async with office(address) as desk:
            slow_key, never = f"{DEALER_ID}/slow", asyncio.Event()
            desk.dispatch.destinations = {DEALER_ID: [Destination(slow_key)]}
            await desk.take(40)
            desk.dispatch.destinations = {DEALER_ID: [Destination(slow_key), Destination(CRM)]}
            request = LeadRequest(business(99))
            await submit(desk.store, SELLER, request, Stock(), None, datetime.now(UTC), desk.dispatch)
            slow, quick = Recorder(lambda _: never.wait()), Recorder()  # type: ignore[arg-type, return-value]
            targets = {slow_key: slow, CRM: quick}
            courier = Courier(desk.store, desk.dispatch, {DEALER_ID: SELLER}, targets, pace=QUICK)
            desk.couriers.append(courier)
            courier.start()
            await until(lambda: quick.parcels)
            assert 1 <= len(slow.parcels) < 8

    asyncio.run(run())


def test_stopping_gives_back_at_once_what_is_not_finished_in_time(address: str) -> None:
    async def run() -> None:
        async with office(address) as desk:
            await desk.take(1)
            hanging = Recorder(lambda _: asyncio.Event().wait())  # type: ignore[arg-type, return-value]
            courier = desk.courier(hanging, pace=Pace(look=0.05, lease=600.0, stop=0.05))
            await desk.until(lambda found: found[0].holder is not None)
            await courier.stop()
            (found,) = await desk.deliveries()
            assert (found.status, found.holder, found.reason) == ("waiting", None, "the server stopped")
            assert found.next_at <= datetime.now(UTC)
            desk.courier(Recorder())
            await desk.all_are("delivered")

    asyncio.run(run())


def test_a_delivery_that_ends_in_no_time_is_ended(address: str) -> None:
    async def run() -> None:
        async with office(address) as desk:
            await desk.take(1)
            hanging = Recorder(lambda _: asyncio.Event().wait())  # type: ignore[arg-type, return-value]
            desk.courier(hanging, pace=Pace(look=0.05, lease=0.1, longest=0.1), retry=Retry(0.01, 3600.0, 1))
            (found,) = await desk.all_are("parked")
            assert found.reason == "it took too long"

    asyncio.run(run())


def test_the_courier_outlives_a_store_that_goes_away(address: str, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with office(address) as desk:
            target = Recorder()
            other = open_store(address)
            await other.open()
            desk.courier(target, other)
            await asyncio.sleep(0.1)
            await other.close()
            await asyncio.sleep(0.2)
            await desk.take(3)
            await other.open()
            await desk.all_are("delivered")
            assert len(target.parcels) == 3
            await desk.couriers[0].stop()
            await other.close()

    asyncio.run(run())
    assert "the store does not answer; deliveries wait" in caplog.text


def test_a_success_whose_record_fails_at_first_is_recorded_later_and_not_sent_twice(address: str) -> None:
    async def run() -> None:
        async with office(address) as desk:
            await desk.take(1)
            other = open_store(address)
            await other.open()

            async def lose_the_store(_: Parcel) -> None:
                await other.close()

            target = Recorder(lose_the_store)
            desk.courier(target, other, pace=Pace(look=0.05, lease=60.0))
            await until(lambda: target.parcels)
            await asyncio.sleep(0.1)
            await other.open()
            (found,) = await desk.all_are("delivered")
            assert (found.attempts, len(target.parcels)) == (1, 1)
            await desk.couriers[0].stop()
            await other.close()

    asyncio.run(run())


def test_a_real_folder_gets_one_file_a_lead(address: str, tmp_path: Path) -> None:
    folder = tmp_path / "crm"
    folder.mkdir()

    async def run() -> None:
        async with office(address) as desk:
            await desk.take(3)
            desk.courier(open_target({"via": "folder", "path": str(folder)}))
            await desk.all_are("delivered")

    asyncio.run(run())
    files = sorted(folder.iterdir())
    assert len(files) == 3
    assert all(b"<adf>" in file.read_bytes() for file in files)


def test_expired_keys_and_hashes_of_persons_are_swept_when_it_starts(address: str) -> None:
    async def run() -> None:
        async with office(address) as desk:
            old = datetime.now(UTC) - timedelta(days=31)
            request = LeadRequest(business(1), "key-1")
            await submit(desk.store, SELLER, request, Stock(), None, old, desk.dispatch)
            assert json.loads((await desk.store.leads(None, 1))[0].business)
            desk.courier(Recorder())
            for _ in range(TRIES):
                if await desk.store.recall(json.dumps([DEALER_ID, None]), "key-1", old) is None:
                    return
                await asyncio.sleep(0.01)
            raise AssertionError("the key is still there")

    asyncio.run(run())
