"""The client of one dealer, over a network that answers what it is told."""

import asyncio
import json
import pickle
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from tests.client.simulated import (
    CARD_URL,
    SITE,
    URIS,
    Scripted,
    SimulatedTiming,
    aap,
    card,
    detail,
    json_answer,
    message,
    rpc_error,
)

from forecourt.a2a import (
    A2AError,
    ErrorCode,
    FailureClass,
    FailureKind,
    error_class,
    from_a2a_error,
    to_a2a_error,
)
from forecourt.client import (
    Client,
    ConsentGrant,
    Disclosure,
    PagingError,
    PendingError,
    RetryPolicy,
    Submission,
    TransportError,
    Try,
    connect,
    load_pending,
    submission_of,
)
from forecourt.errors import AAPError

T = TypeVar("T")

PAGE = {"total": 1, "limit": 20, "vehicles": [{"vehicle_id": "v1", "vin": "1G1FY6SW1NA000493", "price": 21380.0}]}
RECEIPT = {"lead_id": "lead_1", "status": "received"}
CUSTOMER = {"first_name": "Jordan", "last_name": "Lee", "email": "jordan@example.com"}
GRANT = ConsentGrant("Share my name and email.", ("email",), datetime(2026, 11, 1, tzinfo=UTC))
LOST = httpx.ReadError("lost")
NEVER = httpx.ConnectError("refused")


def run(
    network: Scripted, work: Callable[[Client], Awaitable[T]], timing: SimulatedTiming | None = None, **options: Any
) -> T:
    """Connect over `network`, do the work, close."""

    async def whole() -> T:
        async with connect(SITE, transport=network, timing=timing or SimulatedTiming(), **options) as dealer:
            return await work(dealer)

    return asyncio.run(whole())


def lead(dealer: Client, **more: Any) -> Any:
    """Submit a lead."""
    return dealer.submit_lead(CUSTOMER, GRANT, **more)


# Requests


@pytest.mark.requirement("RPC-FIRST-PART", "RPC-OUTPUT-MODES-SENT", "RPC-WIRE-METHOD", "RPC-WIRE-ROLE")
def test_a_request_has_its_data_first_and_says_which_answer_it_takes() -> None:
    network = Scripted(message(PAGE))
    run(network, lambda dealer: dealer.search(make="Honda", price_max=30000, sort="-price", limit=5))
    request = network.posts[0]
    body = json.loads(request.content)
    assert body["method"] == "SendMessage"
    sent = body["params"]["message"]
    assert sent["role"] == "ROLE_USER"
    assert sent["messageId"]
    assert "kind" not in sent
    assert list(sent["parts"][0]) == ["data", "mediaType"]
    assert sent["parts"][0]["mediaType"] == "application/vnd.autoagent.inventory-search-request+json"
    modes = body["params"]["configuration"]["acceptedOutputModes"]
    assert modes == ["application/vnd.autoagent.inventory-search-response+json"]
    assert request.headers["a2a-version"] == "1.0"
    assert request.headers["a2a-extensions"] == URIS["3.1"]
    assert network.payloads == [
        {
            "type": "inventory.search.request",
            "filters": {"make": ["Honda"], "price_max": 30000},
            "sort": {"field": "price", "order": "desc"},
            "pagination": {"limit": 5},
        }
    ]


def test_every_try_has_a_message_id_of_its_own() -> None:
    network = Scripted(LOST, LOST, message(PAGE))
    run(network, lambda dealer: dealer.search())
    ids = [json.loads(request.content)["params"]["message"]["messageId"] for request in network.posts]
    assert len(set(ids)) == 3


def test_whole_numbers_are_integers_and_unknown_members_stay() -> None:
    listing = {"price": 26780.0, "mileage": 12345678901234567, "colour_code": "R-81", "year": "2022"}
    network = Scripted(message({"total": 1.0, "vehicles": [listing], "next": 1}))
    page = run(network, lambda dealer: dealer.search())
    car = page.vehicles[0]
    assert (car.price, type(car.price)) == (26780, int)
    assert car.mileage == 12345678901234567
    assert car.year is None
    assert car.raw["year"] == "2022"
    assert car.extra == {"colour_code": "R-81"}
    assert page.extra == {"next": 1}
    assert (page.total, type(page.total)) == (1, int)


@pytest.mark.requirement("RPC-OPTIONAL-NOT-REQUIRED")
def test_a_dealer_without_tasks_streams_push_and_extended_card_is_all_that_is_needed() -> None:
    network = Scripted(message(PAGE), pages={CARD_URL: card()})
    assert "streaming" not in network.pages[CARD_URL]["capabilities"]
    assert run(network, lambda dealer: dealer.search()).total == 1
    assert len(network.requests) == 2


def test_a_vehicle_without_a_name_is_not_asked_for() -> None:
    network = Scripted(message(PAGE))
    with pytest.raises(ValueError, match="name the vehicle"):
        run(network, lambda dealer: dealer.vehicle())
    assert network.posts == []


# Trying again


@pytest.mark.requirement("ERR-RETRY-WAIT-MINIMUM")
def test_a_throttled_call_waits_as_long_as_it_is_told_to() -> None:
    timing = SimulatedTiming()
    network = Scripted(rpc_error(-32000, detail(aap("RATE_LIMITED", True, retry_after_ms=7_000))), message(PAGE))
    run(network, lambda dealer: dealer.search(), timing)
    assert timing.waits == [7.0]


@pytest.mark.requirement("ERR-RETRY-HTTP-DATE")
def test_a_plain_429_waits_until_its_date() -> None:
    timing = SimulatedTiming()
    busy = httpx.Response(429, headers={"retry-after": "Sun, 01 Nov 2026 12:00:09 GMT"})
    run(Scripted(busy, message(PAGE)), lambda dealer: dealer.search(), timing)
    assert timing.waits == [9.0]


@pytest.mark.requirement("ERR-RETRY-CHANGE-INPUT", "ERR-RETRY-OBEY")
def test_input_that_is_wrong_is_sent_once() -> None:
    network = Scripted(rpc_error(-32602, detail(aap("SCHEMA_VALIDATION_FAILED"))))
    with pytest.raises(AAPError) as caught:
        run(network, lambda dealer: dealer.search(mkae="Honda"))
    assert caught.value.code == "SCHEMA_VALIDATION_FAILED"
    assert len(network.posts) == 1


@pytest.mark.requirement("ERR-RETRY-OBEY")
def test_a_throttling_that_says_never_is_obeyed() -> None:
    network = Scripted(rpc_error(-32000, aap("RATE_LIMITED", False, retry_after_ms=1)))
    with pytest.raises(AAPError):
        run(network, lambda dealer: dealer.search())
    assert len(network.posts) == 1


@pytest.mark.requirement("ERR-RETRY-BOUNDED-BACKOFF")
def test_tries_and_time_are_bounded_and_the_last_failure_comes_out() -> None:
    timing = SimulatedTiming(chance=0.999)
    network = Scripted(LOST)
    with pytest.raises(TransportError) as caught:
        run(network, lambda dealer: dealer.search(), timing, retry=RetryPolicy(tries=4, seconds=60))
    assert caught.value.kind is FailureKind.CONNECTION
    assert len(network.posts) == 4
    assert timing.waits == sorted(timing.waits)
    assert timing.passed < 60


def test_a_failure_can_be_pickled_with_its_envelope() -> None:
    network = Scripted(rpc_error(-32602, detail(aap("SCHEMA_VALIDATION_FAILED"))), rpc_error(-32601, status=503))
    errors: list[Exception] = []
    for _ in range(2):
        with pytest.raises((AAPError, TransportError)) as caught:
            run(network, lambda dealer: dealer.search(), retry=RetryPolicy(tries=1))
        errors.append(caught.value)
    for error in errors:
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert copy.raw == error.raw  # type: ignore[attr-defined]
        assert str(copy) == str(error)


# Activation


def activation_error(uri: str, header: str = "A2A-Extensions") -> httpx.Response:
    """Return -32008 as 3.1 writes it."""
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "EXTENSION_SUPPORT_REQUIRED",
        "domain": "a2a-protocol.org",
        "metadata": {"extensionUri": uri, "requiredHeader": header},
    }
    return rpc_error(-32008, [info])


@pytest.mark.requirement("ERR-ACTIVATION-RETRY-IF-IMPLEMENTED")
def test_an_activation_error_is_followed_once_by_the_contract_that_it_names() -> None:
    network = Scripted(activation_error(URIS["1.1"]), message(PAGE | {"skip": 0}))
    run(network, lambda dealer: dealer.search(limit=5))
    assert [request.headers["a2a-extensions"] for request in network.posts] == [URIS["3.1"], URIS["1.1"]]
    again = Scripted(activation_error(URIS["1.1"]))
    with pytest.raises(A2AError) as caught:
        run(again, lambda dealer: dealer.search())
    assert caught.value.code == ErrorCode.EXTENSION_SUPPORT_REQUIRED
    assert len(again.posts) == 2


@pytest.mark.requirement("ERR-ACTIVATION-HINT-NO-SUPPORT")
@pytest.mark.parametrize(
    "answer",
    [
        activation_error("https://autoagentprotocol.org/extensions/aap/v4.0"),
        activation_error(URIS["3.1"] + "/"),
        activation_error("https://evil.example.com/v3.1"),
        activation_error(URIS["1.1"], header="X-A2A-Extensions"),
        rpc_error(-32008),
        rpc_error(-32008, {"metadata": 5}),
    ],
    ids=["unknown", "longer", "foreign", "other header", "no data", "odd data"],
)
def test_a_hint_makes_no_client_speak_what_it_does_not(answer: httpx.Response) -> None:
    network = Scripted(answer)
    with pytest.raises(A2AError) as caught:
        run(network, lambda dealer: dealer.search())
    assert caught.value.code == ErrorCode.EXTENSION_SUPPORT_REQUIRED
    assert len(network.posts) == 1


def test_a_contract_that_the_caller_insists_on_is_not_changed_by_a_hint() -> None:
    network = Scripted(activation_error(URIS["1.1"]))
    with pytest.raises(A2AError):
        run(network, lambda dealer: dealer.search(), contract="3.1")
    assert len(network.posts) == 1


# Pages


def page(*ids: str, cursor: str | None = None, total: int | None = None, **more: Any) -> Any:
    """Return a page of vehicles."""
    vehicles = [{"vehicle_id": each} for each in ids]
    data = {"vehicles": vehicles, "total": total, "next_cursor": cursor, **more}
    return message({name: value for name, value in data.items() if value is not None})


def walk(network: Scripted, **options: Any) -> list[str | None]:
    """Return the ids of a whole walk."""
    pages = options.pop("max_pages", 1000)

    async def work(dealer: Client) -> list[str | None]:
        return [car.vehicle_id async for car in dealer.search_all(make="Honda", max_pages=pages)]

    return run(network, work, **options)


def test_a_walk_follows_the_cursors_until_there_is_none() -> None:
    network = Scripted(page("a", "b", cursor="c1"), page("b", "c", cursor="c2"), page("d"))
    assert walk(network) == ["a", "b", "c", "d"]
    cursors = [payload.get("pagination", {}).get("cursor") for payload in network.payloads]
    assert cursors == [None, "c1", "c2"]
    assert all(payload["filters"] == {"make": ["Honda"]} for payload in network.payloads)


def test_a_cursor_that_comes_back_ends_the_walk() -> None:
    network = Scripted(page("a", cursor="c1"), page("b", cursor="c2"), page("c", cursor="c1"))
    with pytest.raises(PagingError, match="same cursor twice"):
        walk(network)


def test_pages_without_end_meet_the_cap() -> None:
    count = iter(range(10**6))

    def endless(request: httpx.Request) -> httpx.Response:
        number = next(count)
        made: httpx.Response = page(f"v{number}", cursor=f"c{number}")(request)
        return made

    network = Scripted(endless)
    with pytest.raises(PagingError, match="more than 25 pages"):
        walk(network, max_pages=25)
    assert len(network.posts) == 25


def test_a_walk_by_skip_counts_what_came_and_stops_at_the_total() -> None:
    network = Scripted(page("a", "b", total=3), page("c", total=3), pages={CARD_URL: card("1.1")})
    assert walk(network) == ["a", "b", "c"]
    assert [payload.get("pagination", {}).get("skip") for payload in network.payloads] == [None, 2]


def test_a_walk_by_skip_ends_when_the_dealer_gives_one_page_for_ever() -> None:
    network = Scripted(page("a", "b"), pages={CARD_URL: card("1.1")})
    with pytest.raises(PagingError, match="same page twice"):
        walk(network)


@pytest.mark.requirement("ERR-CURSOR-RESTART")
def test_after_an_invalid_cursor_the_walk_begins_again_without_a_position() -> None:
    expired = rpc_error(-32602, detail(aap("INVALID_CURSOR")))
    network = Scripted(page("a", "b", cursor="c1"), expired, page("a", "b", cursor="d1"), page("c"))
    assert walk(network) == ["a", "b", "c"]
    pagings = [payload.get("pagination", {}) for payload in network.payloads]
    assert pagings == [{}, {"cursor": "c1"}, {}, {"cursor": "d1"}]


@pytest.mark.requirement("ERR-CURSOR-RESTART")
def test_a_dealer_that_never_takes_its_own_cursors_is_given_up() -> None:
    expired = rpc_error(-32602, detail(aap("INVALID_CURSOR")))
    pages: list[Any] = [page("a", cursor="c1"), expired] * 3
    with pytest.raises(AAPError) as caught:
        walk(Scripted(*pages))
    assert caught.value.code == "INVALID_CURSOR"


@pytest.mark.parametrize(("contract", "options"), [("3.1", {"skip": 20}), ("1.1", {"cursor": "c"})])
def test_a_way_of_paging_that_the_contract_lacks_is_refused_here(contract: str, options: dict[str, Any]) -> None:
    network = Scripted(message(PAGE), pages={CARD_URL: card(contract)})
    with pytest.raises(ValueError, match="pages by"):
        run(network, lambda dealer: dealer.search(**options))
    assert network.posts == []


@pytest.mark.requirement("ERR-VEHICLE-REFRESH")
def test_a_vehicle_that_is_gone_is_told_and_its_search_can_be_refreshed() -> None:
    gone = rpc_error(-32000, detail(aap("VEHICLE_UNAVAILABLE")))
    network = Scripted(page("a", "b"), gone, page("b"))

    async def work(dealer: Client) -> list[str | None]:
        found = await dealer.search(make="Honda", sort="price", limit=5)
        with pytest.raises(AAPError) as caught:
            await dealer.vehicle(vehicle_id="a")
        assert caught.value.code == "VEHICLE_UNAVAILABLE"
        return [car.vehicle_id for car in await dealer.refresh(found)]

    assert run(network, work) == ["b"]
    assert network.payloads[0] == network.payloads[2]


# Leads


@pytest.mark.requirement("ERR-RETRY-LEAD-TIMEOUT", "ERR-RETRY-LEAD-RETRY", "ERR-KEY-NO-ROTATION")
def test_a_lead_keeps_its_payload_and_key_over_every_try() -> None:
    throttled = rpc_error(-32000, detail(aap("RATE_LIMITED", True, retry_after_ms=10)))
    broken = rpc_error(-32603, detail(aap("INTERNAL_ERROR", True)))
    network = Scripted(
        httpx.ReadTimeout("late"), throttled, broken, httpx.Response(503), message(RECEIPT, "lead.submit")
    )
    receipt = run(network, lead)
    bodies = {json.dumps(payload) for payload in network.payloads}
    assert len(network.posts) == 5
    assert len(bodies) == 1
    assert receipt.lead_id == "lead_1"
    assert receipt.key == network.payloads[0]["idempotency_key"]


def test_a_lead_is_what_the_contract_says_it_is() -> None:
    network = Scripted(message(RECEIPT, "lead.submit"))
    run(network, lambda dealer: lead(dealer, key="k-1", vehicle_of_interest={"vin": "V"}, message="Hello"),
        agent="Example Assistant")  # fmt: skip
    assert network.payloads[0] == {
        "type": "lead.submit.request",
        "customer": CUSTOMER,
        "consent": {
            "granted_at": "2026-11-01T00:00:00.000Z",
            "allowed_channels": ["email"],
            "consent_text": "Share my name and email.",
            "scope": ["lead_submission"],
        },
        "source_agent": {"name": "Example Assistant"},
        "vehicle_of_interest": {"vin": "V"},
        "message": "Hello",
        "submitted_at": "2026-11-01T12:00:00.000Z",
        "idempotency_key": "k-1",
    }


def test_contract_1_0_names_the_agent_in_its_own_way() -> None:
    network = Scripted(message(RECEIPT, "lead.submit"), pages={CARD_URL: card("1.0")})
    run(network, lead, agent={"name": "Example Assistant", "url": "https://example.com"})
    sent = network.payloads[0]
    assert sent["source_agent"] == "Example Assistant"
    assert sent["consent"]["source_agent"] == "Example Assistant"
    assert network.posts[0].headers["a2a-extensions"] == URIS["1.0"]


@pytest.mark.parametrize("consent", [None, True, GRANT.to_payload(), Disclosure("Example Motors", ("email",)), "yes"])
def test_nothing_is_sent_without_a_grant(consent: Any, tmp_path: Path) -> None:
    network = Scripted(message(RECEIPT, "lead.submit"))
    with pytest.raises(TypeError, match="Disclosure"):
        run(network, lambda dealer: dealer.submit_lead(CUSTOMER, consent, pending=tmp_path / "lead.json"))
    assert network.posts == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("ERR-KEY-RECONCILE", "ERR-KEY-NO-ROTATION")
def test_an_uncertain_outcome_is_cleared_up_by_the_same_key() -> None:
    network = Scripted(LOST, LOST, message(RECEIPT, "lead.submit"))

    async def work(dealer: Client) -> Any:
        with pytest.raises(TransportError) as caught:
            await lead(dealer)
        submission = submission_of(caught.value)
        assert submission is not None
        assert submission.uncertain
        return await dealer.reconcile(submission)

    receipt = run(network, work, retry=RetryPolicy(tries=2))
    assert receipt.lead_id == "lead_1"
    assert len({json.dumps(payload) for payload in network.payloads}) == 1


PAGE_OF_HTML = httpx.Response(200, content=b"<html>", headers={"content-type": "text/html"})


@pytest.mark.requirement("ERR-KEY-RECONCILE", "ERR-KEY-NO-ROTATION")
@pytest.mark.parametrize("nothing", [PAGE_OF_HTML, httpx.Response(500)], ids=["a page", "500"])
def test_a_lead_without_a_readable_answer_is_asked_after_once_by_its_key(nothing: httpx.Response) -> None:
    network = Scripted(nothing, message(RECEIPT, "lead.submit"))
    assert run(network, lead).lead_id == "lead_1"
    assert network.payloads[0] == network.payloads[1]
    silent = Scripted(nothing)
    with pytest.raises(TransportError) as caught:
        run(silent, lead)
    submission = submission_of(caught.value)
    assert submission is not None
    assert submission.uncertain
    assert len(silent.posts) == 2
    # What only reads is not asked again: nobody is the worse for it.
    reading = Scripted(nothing)
    with pytest.raises(TransportError):
        run(reading, lambda dealer: dealer.search())
    assert len(reading.posts) == 1


UNCERTAIN: list[tuple[Any, bool]] = [
    (NEVER, False),
    (httpx.ConnectTimeout("late"), False),
    (LOST, True),
    (httpx.RemoteProtocolError("cut"), True),
    (httpx.Response(500), True),
    (httpx.Response(502), True),
    (httpx.Response(404), False),
    (httpx.Response(401), False),
    (httpx.Response(200, content=b"<html>", headers={"content-type": "text/html"}), True),
    (rpc_error(-32603), True),
    (rpc_error(-32601), False),
    (rpc_error(-32603, aap("INTERNAL_ERROR", True)), True),
    (rpc_error(-32603, aap("INTERNAL_ERROR", False)), True),
    (rpc_error(-32000, aap("IDEMPOTENCY_CONFLICT")), True),
    (rpc_error(-32000, aap("A_CODE_OF_TOMORROW")), True),
    (rpc_error(-32000, aap("VEHICLE_UNAVAILABLE")), False),
    (rpc_error(-32000, aap("RATE_LIMITED", True, retry_after_ms=1)), False),
]


@pytest.mark.parametrize(("reply", "uncertain"), UNCERTAIN)
def test_what_leaves_the_outcome_open_is_known_and_keeps_the_file(reply: Any, uncertain: bool, tmp_path: Path) -> None:
    place = tmp_path / "lead.json"
    with pytest.raises((AAPError, A2AError, TransportError)) as caught:
        run(Scripted(reply), lambda dealer: lead(dealer, pending=place), retry=RetryPolicy(tries=1))
    submission = submission_of(caught.value)
    assert submission is not None
    assert submission.uncertain is uncertain
    settled = isinstance(caught.value, AAPError) and not caught.value.retryable and not uncertain
    assert place.exists() is not settled


def test_a_refusal_after_a_doubtful_try_settles_only_what_it_can() -> None:
    final = rpc_error(-32000, detail(aap("VEHICLE_UNAVAILABLE")))
    with pytest.raises(AAPError) as caught:
        run(Scripted(LOST, final), lead)
    submission = submission_of(caught.value)
    # A dealer that had the lead would have replayed its answer before looking at the vehicle again.
    assert submission is not None
    assert submission.uncertain is False
    busy = rpc_error(-32000, detail(aap("RATE_LIMITED", True, retry_after_ms=1)))
    with pytest.raises(AAPError) as throttled:
        run(Scripted(LOST, busy), lead, retry=RetryPolicy(tries=2))
    left = submission_of(throttled.value)
    assert left is not None
    assert left.uncertain is True


@pytest.mark.requirement("ERR-RETRY-FINAL")
def test_a_final_answer_is_final() -> None:
    network = Scripted(rpc_error(-32000, detail(aap("INVALID_CONSENT"))), message(RECEIPT, "lead.submit"))
    with pytest.raises(AAPError):
        run(network, lead)
    assert len(network.posts) == 1


def test_the_lead_is_on_the_disk_before_the_first_try_and_gone_after_the_answer(tmp_path: Path) -> None:
    place = tmp_path / "lead.json"
    seen: list[Submission] = []

    def look(request: httpx.Request) -> httpx.Response:
        seen.append(load_pending(place))
        made: httpx.Response = message(RECEIPT, "lead.submit")(request)
        return made

    network = Scripted(look)
    run(network, lambda dealer: lead(dealer, pending=place))
    assert seen[0].payload == network.payloads[0]
    assert not place.exists()


@pytest.mark.requirement("ERR-RETRY-LEAD-SESSION")
def test_a_buyer_that_crashed_sends_the_same_again_from_its_file(tmp_path: Path) -> None:
    place = tmp_path / "lead.json"

    class Crash(BaseException):
        pass

    def crash(request: httpx.Request) -> httpx.Response:
        raise Crash

    before = Scripted(crash)
    with pytest.raises(Crash):
        run(before, lambda dealer: lead(dealer, pending=place))
    after = Scripted(message(RECEIPT, "lead.submit"))
    receipt = run(after, lambda dealer: dealer.resume_lead(place))
    assert after.payloads == before.payloads
    assert receipt.key == before.payloads[0]["idempotency_key"]
    assert not place.exists()


def test_the_same_program_run_again_takes_the_key_of_its_file(tmp_path: Path) -> None:
    place = tmp_path / "lead.json"
    first, second = Scripted(LOST), Scripted(message(RECEIPT, "lead.submit"))
    with pytest.raises(TransportError):
        run(first, lambda dealer: lead(dealer, pending=place), retry=RetryPolicy(tries=1))
    run(second, lambda dealer: lead(dealer, pending=place))
    assert first.payloads == second.payloads


def test_a_file_with_another_lead_is_not_written_over(tmp_path: Path) -> None:
    place = tmp_path / "lead.json"
    with pytest.raises(TransportError):
        run(Scripted(LOST), lambda dealer: lead(dealer, pending=place), retry=RetryPolicy(tries=1))
    kept = place.read_bytes()
    network = Scripted(message(RECEIPT, "lead.submit"))
    with pytest.raises(PendingError, match="resume it first"):
        run(network, lambda dealer: lead(dealer, message="another", pending=place))
    assert network.posts == []
    assert place.read_bytes() == kept


def test_a_lead_never_goes_to_another_dealer_or_into_another_contract(tmp_path: Path) -> None:
    place = tmp_path / "lead.json"
    with pytest.raises(TransportError):
        run(Scripted(LOST), lambda dealer: lead(dealer, pending=place), retry=RetryPolicy(tries=1))
    network = Scripted(message(RECEIPT, "lead.submit"), pages={CARD_URL: card("1.1")})
    with pytest.raises(PendingError, match=r"contract 3\.1; connect to that"):
        run(network, lambda dealer: dealer.resume_lead(place))
    assert network.posts == []


def test_a_raw_lead_gets_its_key_before_the_first_try() -> None:
    network = Scripted(LOST, message(RECEIPT, "lead.submit"))
    run(network, lambda dealer: dealer.call("lead.submit", {"customer": CUSTOMER}))
    assert network.payloads[0] == network.payloads[1]
    assert network.payloads[0]["idempotency_key"]
    assert network.payloads[0]["type"] == "lead.submit.request"


# Credentials


@pytest.mark.requirement("ERR-RETRY-NEW-PROOFS")
def test_new_credentials_are_made_for_the_same_request() -> None:
    challenges: list[str | None] = []

    async def credentials(challenge: str | None) -> dict[str, str]:
        challenges.append(challenge)
        return {"Authorization": f"Bearer {len(challenges)}"}

    refused = httpx.Response(401, headers={"www-authenticate": 'Bearer realm="a2a"'})
    network = Scripted(refused, message(RECEIPT, "lead.submit"))
    run(network, lead, credentials=credentials)
    assert challenges == [None, 'Bearer realm="a2a"']
    assert [request.headers["authorization"] for request in network.posts] == ["Bearer 1", "Bearer 2"]
    assert network.payloads[0] == network.payloads[1]


def test_credentials_that_are_refused_twice_are_refused() -> None:
    network = Scripted(httpx.Response(401))
    with pytest.raises(TransportError) as caught:
        run(network, lambda dealer: dealer.search(), credentials=lambda _: {"Authorization": "x"})
    assert caught.value.kind is FailureKind.AUTH_REQUIRED
    assert len(network.posts) == 2


def test_credentials_go_to_the_origin_that_they_are_for_and_to_no_other() -> None:
    elsewhere = "https://api.example.com/a2a"
    secret = {"Authorization": "Bearer secret"}
    for trust, expected in (((), False), (("https://api.example.com",), True)):
        network = Scripted(message(PAGE), pages={CARD_URL: card(endpoint=elsewhere)})
        run(network, lambda dealer: dealer.search(), credentials=secret, trust=trust)
        assert str(network.posts[0].url) == elsewhere
        assert ("authorization" in network.posts[0].headers) is expected
    network = Scripted(message(PAGE))
    run(network, lambda dealer: dealer.search(), credentials=secret)
    assert [request.headers.get("authorization") for request in network.requests] == ["Bearer secret"] * 2


def test_cookies_are_not_kept() -> None:
    def cookie(request: httpx.Request) -> httpx.Response:
        answer: httpx.Response = message(PAGE)(request)
        answer.headers["set-cookie"] = "session=1; Path=/"
        return answer

    async def work(dealer: Client) -> None:
        await dealer.search()
        await dealer.search()

    network = Scripted(cookie)
    run(network, work)
    assert all("cookie" not in request.headers for request in network.requests)


# The hook


def test_the_hook_sees_every_try_and_nothing_of_the_shopper() -> None:
    tries: list[Try] = []
    throttled = rpc_error(-32000, detail(aap("RATE_LIMITED", True, retry_after_ms=2_000)), x_request="r")
    network = Scripted(throttled, message(RECEIPT, "lead.submit"))
    run(network, lambda dealer: lead(dealer, message="call Jordan"), hook=tries.append)
    assert [(each.attempt, each.outcome, each.wait, each.error_id) for each in tries] == [
        (1, "rate_limited", 2.0, "err_1"),
        (2, "ok", None, None),
    ]
    assert tries[0].skill == "lead.submit"
    assert (tries[0].status, tries[0].url, tries[0].binding, tries[0].contract) == (200, f"{SITE}/a2a", "a2a", "3.1")
    assert "Jordan" not in repr(tries)
    assert tries[0].request is None
    assert tries[0].answer is None


def test_a_hook_that_fails_changes_no_outcome(caplog: pytest.LogCaptureFixture) -> None:
    def broken(seen: Try) -> None:
        raise RuntimeError(f"disk full while writing {seen}")

    network = Scripted(LOST, message(RECEIPT, "lead.submit"))
    assert run(network, lead, hook=broken).lead_id == "lead_1"
    assert [record.getMessage() for record in caplog.records] == ["the hook of a client failed: RuntimeError"] * 2


def test_the_hook_sees_bodies_when_it_was_asked_for() -> None:
    tries: list[Try] = []
    network = Scripted(message(RECEIPT, "lead.submit"))
    run(network, lead, hook=tries.append, hook_sees_bodies=True)
    assert tries[0].request == network.payloads[0]
    assert tries[0].answer is not None
    assert "jordan@example.com" not in repr(tries)


def test_what_may_be_logged_of_results_and_failures_holds_no_shopper() -> None:
    network = Scripted(LOST)
    with pytest.raises(TransportError) as caught:
        run(network, lead, retry=RetryPolicy(tries=1))
    shown = repr(caught.value) + str(caught.value) + repr(submission_of(caught.value)) + repr(GRANT)
    assert "jordan" not in shown.lower()
    assert "Share my name" not in shown


# Answers that are none


@pytest.mark.parametrize(
    "reply",
    [
        json_answer([]),
        json_answer({"jsonrpc": "2.0", "id": "another", "result": {"message": {"parts": [{"data": {}}]}}}),
        message({"x": 1}, "inventory.vehicle"),
        lambda request: message([])(request),  # type: ignore[arg-type]
        httpx.Response(200, content=b"", headers={"content-type": "application/json"}),
        httpx.Response(204),
        httpx.Response(200, content=b"\xff", headers={"content-type": "application/json"}),
        httpx.Response(200, content=b"[" * 200_000, headers={"content-type": "application/json"}),
        httpx.Response(200, content=b'{"a": ' + b"9" * 10_000 + b"}", headers={"content-type": "application/json"}),
        httpx.Response(200, content=b"{}", headers={"content-type": "application/json", "content-encoding": "br"}),
        httpx.Response(200, stream=httpx.ByteStream(b"no gzip"), headers={"content-encoding": "gzip"}),
    ],
    ids=["a list", "another id", "another type", "data is a list", "empty", "204", "no utf-8", "deep", "long number",
         "brotli", "broken gzip"],
)  # fmt: skip
def test_an_answer_that_cannot_be_read_is_told_as_that_and_not_tried_again(reply: Any) -> None:
    network = Scripted(reply)
    with pytest.raises(TransportError) as caught:
        run(network, lambda dealer: dealer.search())
    assert caught.value.kind is FailureKind.UNREADABLE
    assert caught.value.raw is not None
    assert len(network.posts) == 1


# What an agent that delegates raises (the conversion table of the A2A error type)

CONVERSIONS: list[tuple[Any, ErrorCode | int, FailureClass]] = [
    (httpx.ReadTimeout("late"), ErrorCode.INTERNAL_ERROR, FailureClass.TRANSIENT),
    (NEVER, ErrorCode.INTERNAL_ERROR, FailureClass.TRANSIENT),
    (LOST, ErrorCode.INTERNAL_ERROR, FailureClass.TRANSIENT),
    (httpx.PoolTimeout("full"), ErrorCode.INTERNAL_ERROR, FailureClass.TRANSIENT),
    *[(httpx.Response(each), ErrorCode.INTERNAL_ERROR, FailureClass.TRANSIENT) for each in (429, 502, 503, 504)],
    (json_answer([]), ErrorCode.INVALID_AGENT_RESPONSE, FailureClass.INTERNAL),
    (httpx.Response(307), ErrorCode.INTERNAL_ERROR, FailureClass.INTERNAL),
    (httpx.Response(401), ErrorCode.INTERNAL_ERROR, FailureClass.INTERNAL),
    (httpx.Response(500), ErrorCode.INTERNAL_ERROR, FailureClass.INTERNAL),
    (httpx.Response(418), ErrorCode.INTERNAL_ERROR, FailureClass.INTERNAL),
    (httpx.UnsupportedProtocol("x"), ErrorCode.INTERNAL_ERROR, FailureClass.INTERNAL),
]


@pytest.mark.requirement("A2A-FROM-RETRYABLE", "A2A-FROM-UNREADABLE", "A2A-FROM-OTHER", "A2A-FROM-SAME-JUDGEMENT")
@pytest.mark.parametrize(("reply", "code", "kind"), CONVERSIONS)
def test_what_the_client_met_becomes_the_a2a_error_of_the_table(reply: Any, code: int, kind: FailureClass) -> None:
    network = Scripted(reply)
    with pytest.raises(TransportError) as caught:
        run(network, lambda dealer: dealer.search(), retry=RetryPolicy(tries=3))
    converted = to_a2a_error(caught.value)
    assert converted.code == code
    assert error_class(converted) is kind
    assert converted.message.startswith("downstream A2A call failed: ")
    assert converted.__cause__ is caught.value
    # Transient exactly when the client did try again.
    assert len(network.posts) == (3 if kind is FailureClass.TRANSIENT else 1)
    assert "data" not in converted.to_wire()


@pytest.mark.requirement("A2A-FROM-PROTOCOL", "A2A-TO-CLIENT-ERROR")
def test_an_error_of_the_protocol_is_passed_on_unchanged() -> None:
    with pytest.raises(A2AError) as caught:
        run(Scripted(rpc_error(-32004, [{"a": 1}])), lambda dealer: dealer.search())
    passed = to_a2a_error(from_a2a_error(caught.value))
    assert passed == caught.value
    assert error_class(passed) is FailureClass.INVALID_REQUEST
