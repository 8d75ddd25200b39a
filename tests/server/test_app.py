"""The application as a whole: its addresses, its start, and its end."""

import asyncio
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.server.running import JSON, Reply, RunningAgent, aap_error, envelope, search
from tests.server_process import ServerProcess

from forecourt.contract import SKILLS
from forecourt.server import Application, create_app, load

ENDPOINTS = ["/a2a", "/v1.1/a2a", "/v3.1/a2a"]


@pytest.mark.parametrize("prefix", ["", "/dealers/demo-auto-group"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_every_contract_answers_at_its_own_address(demo: RunningAgent, prefix: str, endpoint: str) -> None:
    answer = demo.call(search(), prefix + endpoint)
    data = answer["result"]["message"]["parts"][0]["data"]["data"]
    assert ("skip" in data) is ("1.1" in endpoint)
    assert data["total"] > 500


def test_both_contracts_give_the_same_vehicles_in_the_same_order(demo: RunningAgent) -> None:
    wanted = search(pagination={"limit": 100}, filters={"price_max": 30000}, sort={"field": "price", "order": "desc"})
    pages = [demo.call(wanted, path)["result"]["message"]["parts"][0]["data"]["data"]["vehicles"] for path in ENDPOINTS]
    assert [[vehicle["vehicle_id"] for vehicle in page] for page in pages] == [
        [vehicle["vehicle_id"] for vehicle in pages[0]]
    ] * 3
    assert len(pages[0]) > 20


def test_an_endpoint_of_a_seller_serves_that_seller_alone(demo: RunningAgent) -> None:
    for path in ("/v3.1/a2a", "/dealers/demo-auto-group/v3.1/a2a"):
        assert "result" in demo.call(search(dealer_id="demo-auto-group"), path)
        assert aap_error(demo.call(search(dealer_id="another"), path))["code"] == "DEALER_NOT_FOUND"


@pytest.mark.parametrize("path", ["/", "/v9.9/a2a", "/dealers/nobody/a2a", "/v3.1/a2a/", "/A2A", "//a2a", "/v3.1"])
def test_nothing_else_takes_a_call(demo: RunningAgent, path: str) -> None:
    reply = demo.request("POST", path, json.dumps(envelope(search())), JSON)
    assert reply.status in (307, 404, 405)
    assert b"result" not in reply.body


@pytest.mark.parametrize("version", ["1.1", "3.1"])
def test_every_answer_of_the_demo_fits_the_schema_of_its_contract(demo: RunningAgent, version: str) -> None:
    schemas = demo.app.deployment.contracts[version].schemas
    path = f"/v{version}/a2a"

    def payload(request: dict[str, Any]) -> Any:
        found = demo.call(request, path)["result"]["message"]["parts"][0]["data"]
        skill = SKILLS[request["type"].removesuffix(".request")]
        assert schemas.problems(skill.response_schema, found) == []
        return found["data"]

    vehicles = payload(search(pagination={"limit": 100}))["vehicles"]
    assert payload({"type": "inventory.vehicle.request", "vin": vehicles[0]["vin"]}) == vehicles[0]
    facets = payload({"type": "inventory.facets.request"})
    assert sum(entry["count"] for entry in facets["makes"]) > 500
    assert payload({"type": "dealer.information.request"})["rooftops"]


# Starting


def talk(app: Application) -> list[dict[str, Any]]:
    """Live through a lifespan with an application and return what it said."""
    said: list[dict[str, Any]] = []
    heard = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

    async def receive() -> dict[str, Any]:
        return heard.pop(0)

    async def send(message: Any) -> None:
        said.append(message)

    asyncio.run(app({"type": "lifespan"}, receive, send))
    return said


def test_an_application_opens_and_closes_with_its_server(tmp_path: Path) -> None:
    app = create_app(load(None, data=str(tmp_path)))
    assert [message["type"] for message in talk(app)] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert tmp_path.joinpath("forecourt.db").is_file()


def test_a_store_that_cannot_be_opened_fails_the_start_and_not_the_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.joinpath("forecourt.db").write_bytes(b"no database at all, but long enough to be looked at" * 20)
    app = create_app(load(None, data=str(tmp_path)))
    assert talk(app) == [{"type": "lifespan.startup.failed", "message": ""}]
    assert "cannot start" in caplog.text
    assert "Traceback" not in caplog.text


# Stopping


def test_a_request_that_is_under_way_is_finished_when_the_server_is_told_to_stop(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    server.wait()
    body = json.dumps(envelope(search(), "last")).encode()
    statuses: list[int] = []
    stopping = threading.Thread(target=lambda: statuses.append(server.stop()))
    with socket.create_connection((server.host, server.port), timeout=20) as connection:
        head = (
            f"POST /v3.1/a2a HTTP/1.1\r\nHost: agent\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        )
        connection.sendall(head.encode() + b"\r\n\r\n" + body[:10])
        # The server has taken the request up once it answers another one that came later.
        with socket.create_connection((server.host, server.port), timeout=20) as other:
            other.sendall(b"GET /healthz HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n")
            assert Reply.read(other).status == 200
        stopping.start()
        end = time.monotonic() + 20
        while _listens(server):
            assert time.monotonic() < end
            time.sleep(0.02)
        connection.sendall(body[10:])
        answer = Reply.read(connection)
    stopping.join()
    assert answer.status == 200
    assert answer.json()["id"] == "last"
    assert "result" in answer.json()
    assert statuses == [0]
    assert server.log == ""


def _listens(server: ServerProcess) -> bool:
    try:
        socket.create_connection((server.host, server.port), timeout=20).close()
    except OSError:
        return False
    return True
