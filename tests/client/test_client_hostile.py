"""A hostile dealer over real sockets: the right failure within the bound, one lead, and credentials nowhere else."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.client import hostile as acts
from tests.client.hostile import Act, Hostile, Request, hostile
from tests.client.simulated import aap, detail

from forecourt.a2a import A2AError, FailureKind
from forecourt.client import Client, ConsentGrant, RetryPolicy, TransportError, connect, load_pending, submission_of
from forecourt.errors import AAPError

T = TypeVar("T")

QUICK = RetryPolicy(tries=6, seconds=20, first_wait=0.01, longest_wait=0.02)
ONCE = RetryPolicy(tries=1)
SECRET = "Bearer never-seen-elsewhere"


def run(server: Hostile, work: Callable[[Client], Awaitable[T]], retry: RetryPolicy = QUICK, **options: Any) -> T:
    """Connect to the hostile server and do the work."""

    async def whole() -> T:
        async with connect(server.url, retry=retry, **{"timeout": 0.5, **options}) as dealer:
            return await work(dealer)

    return asyncio.run(whole())


def lead(name: str) -> Callable[[Client], Awaitable[Any]]:
    """Return the work of submitting one shopper's lead."""
    grant = ConsentGrant("Share my name and email.", ("email",), datetime.now(UTC))
    customer = {"first_name": name, "last_name": "Lee", "email": f"{name.lower()}@example.com"}
    return lambda dealer: dealer.submit_lead(customer, grant, vehicle_of_interest={"vin": "1G1FY6SW1NA000493"})


LOSSES: dict[str, list[Act]] = {
    "before": [acts.drop_before],
    "after": [acts.drop_after],
    "during": [acts.drop_during],
    "reset": [acts.reset],
    "no http": [acts.garbage],
    "silence": [acts.silence],
    "drip": [acts.drip],
    "busy with a date": [acts.work_and_say({}, "503 Service Unavailable", "application/json",
                                           "Retry-After: Sun, 01 Nov 2020 12:00:00 GMT")],
    "throttled": [acts.work_and_say({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "m",
                  "data": detail(aap("RATE_LIMITED", True, retry_after_ms=5))}})],
    "gateway": [acts.work_and_say(b"<html>", "502 Bad Gateway", "text/html")],
    "everything": [acts.drop_before, acts.drop_after, acts.drop_during, acts.reset, acts.silence],
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_a_lead_that_was_lost_on_the_way_arrives_once(demo: str, name: str) -> None:
    with hostile(demo, *LOSSES[name]) as server:
        receipt = run(server, lead(f"Once{name.title().replace(' ', '')}"))
        assert receipt.status == "received"
        posts = [json.loads(request.body)["params"]["message"]["parts"][0]["data"] for request in server.posts]
        assert len(posts) == len(LOSSES[name]) + 1
        assert all(post == posts[0] for post in posts)
        # Sent once more under its key, the dealer says the same again: it has this lead, and one of it.
        again = run(server, lambda dealer: dealer.call("lead.submit", posts[0]))
    assert again["data"] == receipt.raw


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (acts.work_and_say(b"<html>hello</html>", "200 OK", "text/html"), FailureKind.UNREADABLE),
        (acts.work_and_say(b"{}", "200 OK", "image/png"), FailureKind.UNREADABLE),
        (acts.work_and_say({"jsonrpc": "2.0", "id": 1, "result": {}}), FailureKind.UNREADABLE),
        (acts.work_and_say(b"", "500 Internal Server Error", "text/plain"), FailureKind.STATUS),
        (acts.drip, FailureKind.TIMEOUT),
        (acts.silence, FailureKind.TIMEOUT),
        (acts.drop_after, FailureKind.CONNECTION),
    ],
    ids=["html", "an image", "no message", "500", "a drip", "silence", "a lost answer"],
)
def test_a_lead_without_an_answer_is_doubtful_and_then_cleared_up(
    demo: str, act: Act, kind: FailureKind, tmp_path: Path
) -> None:
    place = tmp_path / "lead.json"
    with hostile(demo, act) as server:

        async def work(dealer: Client) -> Any:
            grant = ConsentGrant("Share my name and email.", ("email",), datetime.now(UTC))
            with pytest.raises(TransportError) as caught:
                await dealer.submit_lead(
                    {"first_name": "Doubt", "last_name": kind.value, "phone": "+14155550123"}, grant, pending=place
                )
            assert caught.value.kind is kind
            submission = submission_of(caught.value)
            assert submission is not None
            assert submission.uncertain
            assert load_pending(place).key == submission.key
            return await dealer.reconcile(submission)

        receipt = run(server, work, ONCE)
        first, second = (json.loads(request.body)["params"]["message"]["parts"][0]["data"] for request in server.posts)
    assert first == second
    # A duplicate without a key would be told as such: this is the first answer again.
    assert receipt.status == "received"
    assert not place.exists()


_BUYER = """
import sys
from datetime import UTC, datetime
import forecourt
from forecourt.client import ConsentGrant
with forecourt.connect_sync(sys.argv[1]) as dealer:
    grant = ConsentGrant("Share my name and email.", ("email",), datetime.now(UTC))
    customer = {"first_name": "Killed", "last_name": "Buyer", "email": "killed@example.com"}
    dealer.submit_lead(customer, grant, pending=sys.argv[2])
"""


@pytest.mark.requirement("ERR-KEY-RECONCILE", "ERR-RETRY-LEAD-TIMEOUT")
def test_a_buyer_that_is_killed_while_it_waits_resumes_its_one_lead(demo: str, tmp_path: Path) -> None:
    place = tmp_path / "lead.json"
    with hostile(demo, acts.silence) as server:
        buyer = subprocess.Popen([sys.executable, "-c", _BUYER, server.url, str(place)])
        try:
            end = time.monotonic() + 30
            while not server.posts:
                assert buyer.poll() is None
                assert time.monotonic() < end
                time.sleep(0.01)
        finally:
            buyer.kill()
            buyer.wait(30)
        # The dealer has the lead and the buyer is gone; what is left is the file.
        receipt = run(server, lambda dealer: dealer.resume_lead(place))
        first, second = (json.loads(request.body)["params"]["message"]["parts"][0]["data"] for request in server.posts)
    assert first == second
    assert receipt.status == "received"
    assert receipt.key == first["idempotency_key"]
    assert not place.exists()


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (acts.garbage, FailureKind.CONNECTION),
        (acts.say(b"not json"), FailureKind.UNREADABLE),
        (acts.say(b"\xff\xfe{\x00"), FailureKind.UNREADABLE),
        (acts.say(b"[" * 500_000), FailureKind.UNREADABLE),
        (acts.huge, FailureKind.UNREADABLE),
        (acts.bomb, FailureKind.UNREADABLE),
        (acts.drip, FailureKind.TIMEOUT),
        (acts.silence, FailureKind.TIMEOUT),
        (acts.drop_before, FailureKind.CONNECTION),
        (acts.drop_during, FailureKind.CONNECTION),
        (acts.say(b"", "429 Too Many Requests", "text/plain", "Retry-After: 5"), FailureKind.STATUS),
        (acts.say(b"", "401 Unauthorized", "text/plain", "WWW-Authenticate: Bearer"), FailureKind.AUTH_REQUIRED),
        (acts.say(b"", "307 Temporary Redirect", "text/plain", "Location: /a2a"), FailureKind.BAD_ENDPOINT),
        (acts.say(b"", "200 OK\r\nX: " + "x" * 200_000, "text/plain"), FailureKind.CONNECTION),
    ],
    ids=["no http", "no json", "utf-16", "deep", "endless", "bomb", "drip", "silence", "dropped", "cut", "429", "401",
         "redirect", "endless headers"],
)  # fmt: skip
def test_a_call_ends_in_the_right_failure_within_its_bound(demo: str, act: Act, kind: FailureKind) -> None:
    with hostile(demo, act) as server:
        began = time.monotonic()
        with pytest.raises(TransportError) as caught:
            # A bound on bytes that the endless body meets long before the bound on time.
            run(server, lambda dealer: dealer.search(limit=1), ONCE, timeout=2.0, max_bytes=4 << 20)
        # Two bounds of two seconds each: finding the card, and the call; the rest is the machine's.
        assert time.monotonic() - began < 2 * 2 + 3
    assert caught.value.kind is kind


def test_all_of_a_call_has_one_bound_however_often_it_is_tried(demo: str) -> None:
    with hostile(demo, *[acts.silence] * 50) as server:
        began = time.monotonic()
        policy = RetryPolicy(tries=50, seconds=1.5, first_wait=0.01, longest_wait=0.01)
        with pytest.raises(TransportError):
            run(server, lambda dealer: dealer.search(), policy, timeout=0.4)
        assert time.monotonic() - began < 1.5 + 3
        assert 2 <= len(server.posts) <= 4


@pytest.mark.parametrize("error", [aap("SCHEMA_VALIDATION_FAILED"), aap("VEHICLE_NOT_FOUND"), aap("NEW_ONE")])
@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request", "500 Internal Server Error", "503 Unavailable"])
def test_a_skill_error_is_one_whatever_the_status(demo: str, error: dict[str, Any], status: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "m", "data": detail(error)}}
    with hostile(demo, acts.say(body, status)) as server, pytest.raises(AAPError) as caught:
        run(server, lambda dealer: dealer.search())
    assert caught.value.received == error
    assert caught.value.raw.status == int(status[:3])


def test_a_protocol_error_comes_out_as_it_is(demo: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32005, "message": "m", "data": [{"a": 1}]}}
    with hostile(demo, acts.say(body)) as server, pytest.raises(A2AError) as caught:
        run(server, lambda dealer: dealer.search())
    assert caught.value.to_payload() == body["error"]
    assert json.loads(caught.value.raw.body) == body


def test_credentials_do_not_follow_a_redirect_of_a_call_or_of_a_card(demo: str) -> None:
    with hostile(demo) as other:
        moved = acts.say(b"", "307 Temporary Redirect", "text/plain", f"Location: {other.url}/a2a")
        with hostile(demo, moved) as server:
            with pytest.raises(TransportError) as caught:
                run(server, lambda dealer: dealer.search(), credentials={"Authorization": SECRET})
            assert caught.value.kind is FailureKind.BAD_ENDPOINT
            assert all(SECRET.encode() in request.head for request in server.requests)
        assert other.requests == []


def test_credentials_do_not_go_where_a_card_points(demo: str) -> None:
    with hostile(demo) as other:

        async def lying(server: Hostile, request: Request, writer: asyncio.StreamWriter) -> None:
            card = json.loads((await server.fetch(request)).partition(b"\r\n\r\n")[2])
            card["supportedInterfaces"][0]["url"] = f"{other.url}/a2a"
            writer.write(acts.answer(json.dumps(card).encode()))
            await writer.drain()

        with hostile(demo, card=lying) as server:
            page = run(server, lambda dealer: dealer.search(limit=1), credentials={"Authorization": SECRET})
        assert len(page) == 1
        assert SECRET.encode() in server.requests[0].head
        assert len(other.posts) == 1
        assert all(SECRET.encode() not in request.everything for request in other.requests)
