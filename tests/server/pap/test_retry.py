"""`Idempotency-Key` on a lead: a retry aid within one Session that never replaces the payload's key (PAP.md)."""

import asyncio
import contextlib
import json
import sqlite3
from datetime import timedelta
from typing import Any

import pytest
from personal_agent_protocol.company.store import IssuedSession
from tests.pap_agent import PAPAgent, agent_of, fresh
from tests.server.pap.dealer import Dealer
from tests.server.running import lead
from tests.server_process import ServerProcess

from forecourt.binding import Answer
from forecourt.binding.pap import answer
from forecourt.server.pap.retry import RetryKeys

PATH = "/api/lead.submit"


def enquiry(**changes: Any) -> dict[str, Any]:
    customer = {"first_name": "Sam", "last_name": "Example", "email": f"{fresh()}@example.com"}
    return lead(customer=customer, **changes)


def submit(agent: PAPAgent, sent: dict[str, Any], key: str) -> Any:
    return agent.call(sent, PATH, headers=[("Idempotency-Key", key)])


@pytest.fixture
def agent(server: ServerProcess) -> PAPAgent:
    """An agent with a Session."""
    return agent_of(server)


def test_the_same_request_under_the_same_key_gets_the_first_answer_byte_for_byte(agent: PAPAgent) -> None:
    sent, key = enquiry(), fresh()
    first, again = submit(agent, sent, key), submit(agent, sent, key)
    assert first.status == again.status == 200
    assert first.body == again.body
    assert first.json["data"]["status"] == "received"
    assert dict(first.headers) == dict(again.headers)


def test_another_request_under_the_same_key_is_a_conflict_in_paps_own_form(agent: PAPAgent) -> None:
    key = fresh()
    assert submit(agent, enquiry(), key).status == 200
    refused = submit(agent, enquiry(), key)
    assert (refused.status, refused.error) == (409, "idempotency_key_conflict")
    assert "type" not in refused.json


def test_a_key_is_of_its_session(agent: PAPAgent, server: ServerProcess) -> None:
    sent, key = enquiry(), fresh()
    other = PAPAgent(server).start()
    assert submit(agent, sent, key).json["data"]["status"] == "received"
    # Without a key in the payload, the other Session's is an enquiry that was received before.
    assert submit(other, sent, key).json["data"]["status"] == "duplicate"


def test_the_header_does_not_replace_the_payloads_key(agent: PAPAgent) -> None:
    sent = enquiry()
    first = submit(agent, sent, fresh())
    again = submit(agent, sent, fresh())
    assert again.json["data"]["status"] == "duplicate"
    assert again.json["data"]["lead_id"] == first.json["data"]["lead_id"]


def test_the_payloads_key_decides_though_the_header_is_another(agent: PAPAgent, server: ServerProcess) -> None:
    sent = enquiry(idempotency_key=fresh())
    first = submit(agent, sent, fresh())
    assert first.body == submit(agent, sent, fresh()).body == submit(PAPAgent(server).start(), sent, fresh()).body
    refused = submit(agent, {**sent, "message": "Another one."}, fresh())
    assert (refused.status, refused.json["code"]) == (409, "IDEMPOTENCY_CONFLICT")


def test_a_refusal_is_not_remembered(agent: PAPAgent) -> None:
    key = fresh()
    refused = submit(agent, {**enquiry(), "consent": None}, key)
    assert refused.status == 403
    assert submit(agent, enquiry(), key).status == 200


@pytest.mark.parametrize("key", ["a b", "k" * 256, "é"])
def test_a_key_that_is_none_is_refused(key: str, agent: PAPAgent) -> None:
    refused = submit(agent, enquiry(), key)
    assert (refused.status, refused.error) == (400, "invalid_request")


def test_two_keys_are_none(agent: PAPAgent) -> None:
    refused = agent.call(enquiry(), PATH, headers=[("Idempotency-Key", "a"), ("Idempotency-Key", "b")])
    assert (refused.status, refused.error) == (400, "invalid_request")


def test_a_search_passes_a_key_over(agent: PAPAgent) -> None:
    key = fresh()
    for limit in (1, 2):
        payload = {"type": "inventory.search.request", "pagination": {"limit": limit}}
        answered = agent.call(payload, headers=[("Idempotency-Key", key)])
        assert len(answered.json["data"]["vehicles"]) == limit


SESSION = IssuedSession("ses_1", "https://agent.example.com", "usr_1", "thumb", expires_at=None)  # type: ignore[arg-type]


def test_a_repeat_while_the_first_is_under_way_is_asked_to_wait(dealer: Dealer) -> None:
    keys = RetryKeys(dealer.company)

    async def work() -> tuple[Answer, Answer]:
        begun, go = asyncio.Event(), asyncio.Event()

        async def slow() -> Answer:
            begun.set()
            await go.wait()
            return answer(200, b'{"n":1}')

        first = asyncio.create_task(keys.once(SESSION, "key", "digest", slow))
        await begun.wait()
        repeated = await keys.once(SESSION, "key", "digest", _never)
        go.set()
        return await first, repeated

    first, repeated = dealer.runner.run(work())
    assert first.status == 200
    assert json.loads(repeated.body)["error"] == "temporarily_unavailable"
    assert (b"retry-after", b"1") in repeated.headers
    assert dealer.runner.run(keys.once(SESSION, "key", "digest", _never)).body == b'{"n":1}'


async def _never() -> Answer:
    """Be what must not be performed: a status that nothing else has."""
    return answer(418, b"{}")


def test_a_key_whose_first_request_failed_is_free_again(dealer: Dealer) -> None:
    keys = RetryKeys(dealer.company)

    async def fail() -> Answer:
        raise RuntimeError

    async def succeed() -> Answer:
        return answer(200, b"{}")

    with pytest.raises(RuntimeError):
        dealer.runner.run(keys.once(SESSION, "key", "digest", fail))
    assert dealer.runner.run(keys.once(SESSION, "key", "another digest", succeed)).status == 200


def test_a_key_whose_process_died_is_free_after_a_minute_and_an_answer_after_a_day(dealer: Dealer) -> None:
    keys = RetryKeys(dealer.company)

    async def succeed() -> Answer:
        return answer(200, b"{}")

    assert dealer.runner.run(keys._hold("record", "digest")) is None
    held = dealer.runner.run(keys._hold("record", "digest"))
    assert held is not None
    assert held.status == 503
    dealer.clock.ahead = timedelta(seconds=61)
    assert dealer.runner.run(keys._hold("record", "digest")) is None
    assert dealer.runner.run(keys.once(SESSION, "key", "digest", succeed)).status == 200
    dealer.clock.ahead = timedelta(days=1, seconds=120)
    assert dealer.runner.run(keys.once(SESSION, "key", "another", succeed)).status == 200


def test_what_is_kept_says_nothing_of_the_request(agent: PAPAgent, server: ServerProcess) -> None:
    sent = enquiry()
    submit(agent, sent, fresh())
    with contextlib.closing(sqlite3.connect(server.database)) as database:
        kept = database.execute("SELECT value FROM access_record WHERE kind = 'idempotency'").fetchall()
    assert kept
    assert not any(sent["customer"]["email"].encode() in value for (value,) in kept)
