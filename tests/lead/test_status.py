"""What a dealer says of a lead (AAP 1.1, event.schema.json has the words)."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from tests.lead.test_submit import IN_STOCK, NOW, OPEN, SELLER, request

from forecourt.lead.moment import parse_time
from forecourt.lead.outbox import Destination, Dispatch
from forecourt.lead.sealing import Sealer
from forecourt.lead.status import APPOINTMENT_STATUSES, LEAD_STATUSES, StatusError, change_status
from forecourt.lead.submit import submit
from forecourt.store import LeadRecord, Store, open_store

LATER: Final = NOW + timedelta(hours=1)


class Desk:
    """One store with one lead in it, and whom its events are told."""

    def __init__(self, store: Store, runner: asyncio.Runner) -> None:
        self.store, self.runner = store, runner
        self.woken = 0
        destinations = {"dealer-a": [Destination("dealer-a/hook", "event")]}
        self.dispatch = Dispatch(destinations, Sealer([bytes(32)]), self._wake)

    def _wake(self) -> None:
        self.woken += 1

    def take(self, **parts: Any) -> LeadRecord:
        self.runner.run(submit(self.store, SELLER, request(None, **parts), IN_STOCK, None, NOW, self.dispatch))
        self.woken = 0
        return self.record()

    def record(self) -> LeadRecord:
        (found,) = self.runner.run(self.store.leads(None, 2))
        return found

    def change(self, **wanted: Any) -> list[tuple[str, str]]:
        changes = self.runner.run(change_status(self.store, self.dispatch, SELLER, self.record(), now=LATER, **wanted))
        return [(each.previous, each.status) for each in changes]

    def events(self) -> list[dict[str, Any]]:
        deliveries = self.runner.run(self.store.deliveries([self.record().lead_id]))
        return [json.loads(each.content or b"") for each in deliveries]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with asyncio.Runner() as runner:
        store = open_store(f"sqlite:{tmp_path / 'forecourt.db'}")
        runner.run(store.open())
        yield Desk(store, runner)
        runner.run(store.close())


def test_the_words_are_those_of_aap_and_cancelled() -> None:
    assert LEAD_STATUSES == ("received", "duplicate", "rejected", "working", "sold_to", "lost")
    assert APPOINTMENT_STATUSES == (
        "requested", "proposed", "confirmed", "rejected", "completed", "no_show", "cancelled",
    )  # fmt: skip


def test_a_change_is_recorded_and_told_once(desk: Desk) -> None:
    desk.take()
    assert desk.change(lead="working") == [("received", "working")]
    assert desk.woken == 1
    assert desk.change(lead="working") == []
    assert desk.woken == 1
    assert desk.record().status == "working"
    arrival, change = desk.events()
    assert (arrival["status"], change["status"]) == ("received", "working")
    assert change["occurred_at"] == "2026-05-04T20:00:00+00:00"


def test_a_cancelled_appointment_frees_its_slot_for_the_next(desk: Desk) -> None:
    lead = desk.take(appointment={"appointment_type": "sales", "appointment_at": OPEN})
    assert lead.booking is not None
    assert lead.booking.status == "confirmed"
    assert desk.change(appointment="cancelled") == [("confirmed", "cancelled")]
    other = request(
        "key-2", customer={"first_name": "A", "last_name": "B", "email": "a@example.com"},
        appointment={"appointment_type": "sales", "appointment_at": OPEN},
    )  # fmt: skip
    answer = desk.runner.run(submit(desk.store, SELLER, other, IN_STOCK, None, NOW, desk.dispatch))
    assert json.loads(answer)["data"]["appointment"]["status"] == "confirmed"


def test_a_requested_appointment_that_is_confirmed_holds_the_time_that_the_shopper_asked_for(desk: Desk) -> None:
    lead = desk.take(appointment={"appointment_type": "sales", "appointment_at": "2026-05-10T11:00:00-07:00"})
    assert lead.booking is not None
    assert (lead.booking.status, lead.booking.start) == ("proposed", None)
    assert desk.change(appointment="confirmed") == [("proposed", "confirmed")]
    booking = desk.record().booking
    assert booking is not None
    assert booking.start == parse_time("2026-05-10T11:00:00-07:00")
    assert booking.end == booking.start + timedelta(minutes=60)
    assert desk.events()[-1]["payload"]["confirmed_at"] == "2026-05-10T18:00:00+00:00"


def test_a_time_of_the_dealers_own_is_taken_instead_and_needed_where_none_was_named(desk: Desk) -> None:
    desk.take(appointment={"appointment_type": "sales", "duration_minutes": 30})
    with pytest.raises(StatusError, match="named no time"):
        desk.change(appointment="confirmed")
    assert desk.change(appointment="confirmed", at=parse_time(OPEN)) == [("requested", "confirmed")]
    booking = desk.record().booking
    assert booking is not None
    assert (booking.start, booking.end) == (parse_time(OPEN), parse_time(OPEN) + timedelta(minutes=30))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"lead": "sold"}, "a lead is one of received"),
        ({"appointment": "done"}, "an appointment is one of requested"),
        ({"appointment": "completed"}, "asks for no appointment"),
    ],
)
def test_what_cannot_be_said_is_refused_and_changes_nothing(desk: Desk, wanted: dict[str, str], message: str) -> None:
    desk.take()
    with pytest.raises(StatusError, match=message):
        desk.change(**wanted)
    assert desk.record().status == "received"
    assert len(desk.events()) == 1
