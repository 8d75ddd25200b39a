"""Operations over a real socket: credentials first, then the request, then the skill."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pap_agent import BASE, PAPAgent, agent_of, fresh
from tests.server.running import aap_error, envelope, lead
from tests.server_process import ServerProcess

INFORMATION = {"type": "dealer.information.request"}
SEARCH = {"type": "inventory.search.request", "pagination": {"limit": 1}}
DEALER = "/dealers/demo-auto-group"


@pytest.fixture
def agent(server: ServerProcess) -> PAPAgent:
    """An agent with a Session."""
    return agent_of(server)


def over_a2a(agent: PAPAgent, payload: object) -> object:
    body = json.dumps(envelope(payload)).encode()
    answer = agent.send("POST", "/v3.1/a2a", [("Content-Type", "application/json")], body).json
    return answer["result"]["message"]["parts"][0]["data"] if "result" in answer else aap_error(answer)


@pytest.mark.parametrize("skill", ["dealer.information", "inventory.facets", "inventory.search"])
def test_a_skill_answers_as_it_does_over_a2a(skill: str, agent: PAPAgent) -> None:
    payload = {"type": f"{skill}.request"}
    answer = agent.call(payload, f"/api/{skill}")
    assert answer.status == 200
    found = over_a2a(agent, payload)
    assert isinstance(found, dict)
    for each in (answer.json, found):
        each["data"].pop("next_cursor", None)  # a cursor holds the moment at which it was made
    assert answer.json.keys() == found.keys()
    assert found["data"] == {name: value for name, value in answer.json["data"].items() if name != "next_cursor"}


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
def test_another_method_is_not_allowed_to_whoever_may_call(method: str, agent: PAPAgent) -> None:
    answer = agent.call(b"", method=method)
    assert answer.status == 405
    assert answer.headers["allow"] == "POST"
    assert agent.send(method, "/api/inventory.search", []).status == 401


@pytest.mark.parametrize("path", ["/api/vehicle.reserve", "/api/", "/api/a/b", "/api/inventory.search/"])
def test_a_skill_that_is_not_here_is_unsupported_for_whoever_may_call(path: str, agent: PAPAgent) -> None:
    answer = agent.call({}, path)
    assert (answer.status, answer.json["code"]) == (404, "UNSUPPORTED_SKILL")
    assert "reserve" not in answer.body.decode()
    assert agent.send("POST", path, []).status == 401


@pytest.mark.requirement("ERR-INTRO-PROTOCOL-OWN-FORM")
@pytest.mark.parametrize(
    ("body", "headers", "status", "error"),
    [
        (b"{", [], 400, "invalid_request"),
        (b"", [], 400, "invalid_request"),
        (b"{}", [("Content-Type", "text/plain")], 415, "unsupported_media_type"),
        (b" " * 1_048_577, [], 413, "request_too_large"),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_in_paps_own_form(
    body: bytes, headers: list[tuple[str, str]], status: int, error: str, agent: PAPAgent
) -> None:
    answer = agent.call(body, headers=headers)
    assert (answer.status, answer.error) == (status, error)
    assert "type" not in answer.json


def test_a_seller_has_operations_in_its_own_tree(agent: PAPAgent) -> None:
    path = f"{DEALER}/api/inventory.search"
    assert agent.call(SEARCH, path).status == 200
    # A proof is for one address: that of the root's operation is none for the seller's.
    refused = agent.call(SEARCH, path, proof=agent.proof("POST", f"{BASE}/api/inventory.search"))
    assert (refused.status, refused.error) == (401, "invalid_dpop_proof")
    answer = agent.call({**SEARCH, "dealer_id": "another"}, path)
    assert (answer.status, answer.json["code"]) == (404, "DEALER_NOT_FOUND")


def test_a_lead_is_the_same_whatever_binding_session_or_agent_repeats_its_key(server: ServerProcess) -> None:
    sent = lead(idempotency_key=f"key-{fresh()}")
    agents = [PAPAgent(server).start() for _ in range(2)]
    answers = [each.call(sent, "/api/lead.submit") for each in (*agents, agents[0])]
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert len({answer.body for answer in answers}) == 1
    assert over_a2a(agents[0], sent) == answers[0].json
    changed = agents[0].call({**sent, "message": "Another one."}, "/api/lead.submit")
    assert (changed.status, changed.json["code"]) == (409, "IDEMPOTENCY_CONFLICT")


def test_a_lead_that_came_over_a2a_is_known_over_pap(agent: PAPAgent) -> None:
    sent = lead(idempotency_key=f"key-{fresh()}")
    assert agent.call(sent, "/api/lead.submit").json == over_a2a(agent, sent)


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[ServerProcess]:
    """A dealer that takes three requests a minute of anybody."""
    config = tmp_path / "forecourt.toml"
    config.write_text("[limits]\nrequests = 3\nseconds = 60\n", encoding="utf-8")
    process = ServerProcess(tmp_path, config, pap=True)
    try:
        process.wait()
        yield process
    finally:
        process.stop()


@pytest.mark.requirement("ERR-PAP-429", "ERR-RETRY-AFTER-HEADER")
def test_an_agent_is_counted_by_who_it_is_whatever_session_it_has(limited: ServerProcess) -> None:
    first, second = PAPAgent(limited).start(), PAPAgent(limited).start()
    answers = [each.call(SEARCH) for each in (first, second, first, second, first)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429, 429]
    refused = answers[-1]
    assert (refused.json["type"], refused.json["code"]) == ("aap.error", "RATE_LIMITED")
    wait = int(refused.headers["retry-after"])
    assert wait - 1 < refused.json["details"]["retry_after_ms"] / 1000 <= wait
    # Tokens are counted by address: two were asked for, and a third may be.
    assert first.ask(first.form()).status == 200
    throttled = first.ask(first.form())
    assert (throttled.status, throttled.json) == (429, {"error": "rate_limited"})
    assert 0 < int(throttled.headers["retry-after"]) <= 60


def test_what_nobody_foresaw_is_an_internal_error_that_says_nothing(tmp_path: Path) -> None:
    process = ServerProcess(tmp_path, pap=True)
    try:
        process.wait()
        agent = PAPAgent(process).start()
        assert agent.call(SEARCH).status == 200
        with contextlib.closing(sqlite3.connect(process.database)) as database:
            database.executescript("DROP TABLE access_mark; DROP TABLE access_record;")
        answer = agent.call(SEARCH)
        assert (answer.status, answer.json["code"]) == (500, "INTERNAL_ERROR")
        assert "access" not in answer.body.decode()
        assert answer.json["error_id"] in process.log
        token = agent.ask(agent.form())
        assert (token.status, token.json) == (500, {"error": "server_error"})
        assert agent.send("POST", "/v3.1/a2a", [("Content-Type", "application/json")], b"{}").status == 200
    finally:
        process.stop()
    assert agent.token not in process.log
