"""What is read with GET: schemas, health, the page for people; and methods that an address does not take."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.server.running import RunningAgent, running

from forecourt.contract.validation import SchemaSet
from forecourt.demo import profile

CARD = "/.well-known/agent-card.json"
SCHEMAS = [(version, file) for version in ("1.1", "3.1") for file in SchemaSet.load(version).files()]


@pytest.mark.parametrize(("version", "file"), SCHEMAS)
def test_every_schema_is_served_byte_for_byte(demo: RunningAgent, version: str, file: str) -> None:
    reply = demo.get(f"/schemas/{version}/{file}")
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/schema+json"
    assert reply.body == SchemaSet.load(version).text(file)


@pytest.mark.parametrize(
    "path",
    ["/schemas/9.9/vehicle.schema.json", "/schemas/3.1/", "/schemas/3.1/nothing.json", "/schemas/3.1/../1.1/x",
     "/schemas/3.1/%2e%2e/%2e%2e/v3_1.py", "/schemas/3.1//etc/passwd", "/nothing", "/v9.9/a2a", "/dealers/nobody/a2a"],
)  # fmt: skip
def test_nothing_else_is_there_and_the_card_is_pointed_to(demo: RunningAgent, path: str) -> None:
    reply = demo.get(path)
    assert reply.status == 404
    assert CARD in reply.body.decode()


@pytest.mark.parametrize("path", [CARD, f"/v1.1{CARD}", "/schemas/3.1/vehicle.schema.json"])
def test_what_a_caller_has_already_is_not_sent_again(demo: RunningAgent, path: str) -> None:
    first = demo.get(path)
    assert "max-age" in first.headers["cache-control"]
    again = demo.get(path, If_None_Match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert demo.get(path, If_None_Match='"another"').status == 200


def test_different_cards_have_different_tags(demo: RunningAgent) -> None:
    tags = {demo.get(path).headers["etag"] for path in (CARD, f"/v1.1{CARD}", f"/v3.1{CARD}")}
    assert len(tags) == 3


def test_the_card_of_older_agents_is_retired_and_says_where_the_new_one_is(demo: RunningAgent) -> None:
    for prefix in ("", "/dealers/demo-auto-group"):
        reply = demo.get(f"{prefix}/.well-known/agent.json")
        assert reply.status == 404
        assert CARD in reply.body.decode()


# Health


def test_a_process_that_answers_is_healthy(demo: RunningAgent) -> None:
    reply = demo.get("/healthz")
    assert (reply.status, reply.json()) == (200, {"status": "ok"})


def test_an_agent_is_ready_once_its_stock_is_there(demo: RunningAgent) -> None:
    reply = demo.get("/readyz")
    assert reply.status == 200
    assert reply.json()["status"] == "ok"
    assert reply.json()["listings"] >= 500


def test_readiness_tells_of_thousands_of_feeds_by_their_number_and_of_the_worst_one_by_one(tmp_path: Path) -> None:
    own = tmp_path / "dealer.json"
    own.write_text(json.dumps(profile()))
    names = [f"seller-{number:02}" for number in range(60)]
    dealers = [{"id": name, "profile": str(own)} for name in names]
    feeds = [{"source": str(tmp_path / f"{name}.csv"), "dealer": name} for name in names]
    with running(tmp_path / "data", dealers=dealers, feeds=feeds) as agent:
        end = time.monotonic() + 20
        while (ready := agent.get("/readyz").json())["feeds_by_outcome"].get("waiting", 0):
            assert time.monotonic() < end
            time.sleep(0.1)
        assert ready["feeds_by_outcome"] == {"unreachable": 60}
        assert len(ready["feeds"]) == 50
        assert {feed["outcome"] for feed in ready["feeds"]} == {"unreachable"}


def test_an_agent_without_its_store_is_alive_but_not_ready(tmp_path: Path) -> None:
    with running(tmp_path) as agent:
        assert agent.get("/readyz").status == 200
        agent.run(agent.app.deployment.store.close())
        reply = agent.get("/readyz")
        assert (reply.status, reply.json()) == (
            503,
            {"status": "unavailable", "reasons": ["the database does not answer"]},
        )
        assert agent.get("/healthz").status == 200
        assert agent.serves()


# People


@pytest.mark.parametrize("path", ["/", "/a2a", "/v1.1/a2a", "/v3.1/a2a", "/dealers/demo-auto-group/v3.1/a2a"])
def test_somebody_with_a_browser_is_told_what_this_is(demo: RunningAgent, path: str) -> None:
    page = demo.get(path, Accept="text/html,application/xhtml+xml")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    text = demo.get(path)
    assert text.headers["content-type"].startswith("text/plain")
    version = "1.1" if "1.1" in path else "3.1"
    for body in (page.body.decode(), text.body.decode()):
        assert "Demo Auto Group" in body
        assert f"Auto Agent Protocol {version}" in body
        assert "curl " in body


def test_the_request_on_the_page_is_answered(demo: RunningAgent) -> None:
    line = next(line for line in demo.get("/").body.decode().splitlines() if line.startswith("curl "))
    address, _, body = line.removeprefix("curl ").partition(" -H 'Content-Type: application/json' -d ")
    assert address == f"{demo.base_url}/a2a"
    assert "result" in demo.post(body.strip("'").encode(), "/a2a").json()


def test_the_page_names_a_card_and_a_schema_that_are_there(demo: RunningAgent) -> None:
    for path in ("/", "/v1.1/a2a", "/dealers/demo-auto-group/v1.1/a2a"):
        for line in demo.get(path).body.decode().splitlines():
            if line.startswith(("Agent card", "Schemas")):
                address = line.split()[-1]
                assert demo.get(address.removeprefix(demo.base_url)).status == 200


def test_names_are_escaped_on_the_page(tmp_path: Path) -> None:
    named: dict[str, Any] = {**profile(), "name": "<script>alert('&')</script>"}
    for rooftop in named["rooftops"]:
        rooftop.pop("fees")
    tmp_path.joinpath("profile.json").write_text(json.dumps(named))
    dealer = {"id": "own", "profile": str(tmp_path / "profile.json")}
    with running(tmp_path / "data", dealer=dealer) as agent:
        assert agent.get("/", Accept="text/html", Host="<img>.example.com").status == 400
        page = agent.get("/", Accept="text/html").body
        assert page.count(b"&lt;script&gt;") == 2
        assert b"<script" not in page
        assert agent.get("/dealers/own/v3.1/a2a").status == 200
        assert agent.get(CARD).json()["name"] == named["name"]


# Methods


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/v3.1/a2a", "/v1.1/a2a", CARD, "/healthz", "/"])
def test_other_methods_are_not_allowed_and_break_nothing(demo: RunningAgent, method: str, path: str) -> None:
    reply = demo.request(method, path, b"{}")
    assert reply.status == 405
    assert "GET" in reply.headers["allow"]
    assert b"Traceback" not in reply.body


@pytest.mark.parametrize("path", [CARD, "/healthz", "/readyz", "/", "/schemas/3.1/vehicle.schema.json"])
def test_a_page_is_not_posted_to(demo: RunningAgent, path: str) -> None:
    assert demo.request("POST", path, b"{}").status == 405


def test_an_endpoint_says_that_it_takes_posts(demo: RunningAgent) -> None:
    allowed = demo.request("PUT", "/v3.1/a2a", b"{}").headers["allow"]
    assert {"GET", "HEAD", "POST"} == set(allowed.replace(" ", "").split(","))


def test_a_head_request_has_the_headers_alone(demo: RunningAgent) -> None:
    reply = demo.request("HEAD", CARD)
    assert (reply.status, reply.body) == (200, b"")
    assert reply.headers["etag"] == demo.get(CARD).headers["etag"]
