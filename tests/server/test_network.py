"""Several sellers in one deployment: each in its own tree and at its own host name, and seen nowhere else."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from tests.server.running import JSON, RunningAgent, aap_error, envelope, lead, running, search

from forecourt.model import listing_id
from forecourt.server import ConfigError, create_app, load
from forecourt.store import StoredListing

NORTH, SOUTH = "north-cars", "south.cars"
STOCK: Final = {
    NORTH: [("N1", "Honda", 20_000), ("N2", "Ford", 30_000), ("N3", "HONDA", 25_000)],
    SOUTH: [("S1", "Toyota", 22_000), ("S2", "Honda", 21_000)],
}


def profile(folder: Path, dealer_id: str) -> dict[str, Any]:
    """Write a seller's profile and return its table of the configuration."""
    name = f"{dealer_id.capitalize()} Group"
    rooftop = {"name": f"{name} Downtown", "timezone": "America/Denver", "phones": [{"value": "+13035550100"}]}
    path = folder / f"{dealer_id}.json"
    path.write_text(json.dumps({"name": name, "rooftops": [rooftop]}))
    return {"id": dealer_id, "profile": str(path), "hosts": [f"{dealer_id}.example.com"]}


def rows(dealer_id: str) -> list[StoredListing]:
    """Return a seller's stock as it is held."""
    return [
        StoredListing(
            listing_id(dealer_id, number), dealer_id, f"{dealer_id.capitalize()} Group Downtown", None, number, number,
            json.dumps(
                {
                    "dealer_id": dealer_id, "vehicle_id": number, "stock": number, "make": make, "price": price,
                    "status": "available", "updated_at": "2026-11-30T00:00:00Z",
                }
            ).encode(),
        )
        for number, make, price in STOCK[dealer_id]
    ]  # fmt: skip


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAgent]:
    """A network of two sellers with stock."""
    folder = tmp_path_factory.mktemp("network")
    dealers = [profile(folder, dealer_id) for dealer_id in STOCK]
    with running(folder / "data", dealers=dealers, server={"name": "Demo Network"}) as agent:
        for dealer_id in STOCK:
            store = agent.app.deployment.store
            agent.run(store.replace_listings(dealer_id, None, rows(dealer_id), datetime.now(UTC)))
        end = time.monotonic() + 10
        while data(agent.call(search()))["total"] != 5:
            assert time.monotonic() < end
            time.sleep(0.05)
        yield agent


def data(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a response."""
    found: dict[str, Any] = answer["result"]["message"]["parts"][0]["data"]["data"]
    return found


def at_host(agent: RunningAgent, host: str, payload: dict[str, Any], path: str = "/a2a") -> dict[str, Any]:
    """Call an endpoint by a host name."""
    reply = agent.post(json.dumps(envelope(payload)).encode(), path, {**JSON, "Host": host})
    answer: dict[str, Any] = reply.json()
    return answer


def test_the_whole_network_is_searched_where_no_seller_is_named(network: RunningAgent) -> None:
    for path in ("/v1.1/a2a", "/v3.1/a2a"):
        page = data(network.call(search(pagination={"limit": 10}), path))
        assert [vehicle["vehicle_id"] for vehicle in page["vehicles"]] == ["N1", "N2", "N3", "S1", "S2"]


def test_a_named_seller_is_searched_alone(network: RunningAgent) -> None:
    page = data(network.call(search(dealer_id=SOUTH, pagination={"limit": 10})))
    assert (page["total"], [vehicle["dealer_id"] for vehicle in page["vehicles"]]) == (2, [SOUTH, SOUTH])


@pytest.mark.parametrize("contract", ["v1.1", "v3.1"])
def test_a_sellers_own_tree_and_its_own_host_show_nothing_of_another(network: RunningAgent, contract: str) -> None:
    facets = {"type": "inventory.facets.request"}
    for answer in (
        network.call(facets, f"/dealers/{SOUTH}/{contract}/a2a"),
        at_host(network, f"{SOUTH.upper()}.example.com:8443", facets, f"/{contract}/a2a"),
    ):
        assert data(answer)["makes"] == [{"value": "Honda", "count": 1}, {"value": "Toyota", "count": 1}]
        assert data(answer)["price_range"] == {"min": 21_000, "max": 22_000}
        assert "north" not in json.dumps(answer).lower()
    for answer in (
        network.call({"type": "inventory.vehicle.request", "stock": "N1"}, f"/dealers/{SOUTH}/{contract}/a2a"),
        network.call({"type": "inventory.vehicle.request", "stock": "X9"}, f"/dealers/{SOUTH}/{contract}/a2a"),
    ):
        assert aap_error(answer)["code"] == "VEHICLE_NOT_FOUND"


def test_another_seller_and_one_that_does_not_exist_look_the_same(network: RunningAgent) -> None:
    answers = [network.call(search(dealer_id=name), f"/dealers/{SOUTH}/a2a") for name in (NORTH, "nobody")]
    shown = [{**aap_error(answer), "error_id": "", "created_at": ""} for answer in answers]
    assert shown[0] == shown[1]
    assert shown[0]["code"] == "DEALER_NOT_FOUND"
    host = {"Host": f"{SOUTH}.example.com"}
    for name in (NORTH, "nobody"):
        for method, place in (("GET", "a2a"), ("POST", "a2a"), ("GET", ".well-known/agent-card.json")):
            body = b"{}" if method == "POST" else None
            assert network.request(method, f"/dealers/{name}/{place}", body, {**JSON, **host}).status == 404
    assert network.get("/dealers/nobody/.well-known/agent-card.json").status == 404


def test_cursors_of_one_seller_are_none_of_another(network: RunningAgent) -> None:
    cursor = data(network.call(search(), f"/dealers/{NORTH}/a2a"))["next_cursor"]
    following = search(pagination={"limit": 1, "cursor": cursor})
    assert data(network.call(following, f"/dealers/{NORTH}/a2a"))["vehicles"][0]["vehicle_id"] == "N2"
    for path in (f"/dealers/{SOUTH}/a2a", "/a2a"):
        assert aap_error(network.call(following, path))["code"] == "INVALID_CURSOR"


def test_information_and_leads_need_a_seller_unless_a_vehicle_settles_it(network: RunningAgent) -> None:
    assert aap_error(network.call({"type": "dealer.information.request"}))["code"] == "MISSING_REQUIRED_FIELD"
    named = data(network.call({"type": "dealer.information.request", "dealer_id": NORTH}))
    assert (named["dealer_id"], named["name"]) == (NORTH, "North-cars Group")
    assert aap_error(network.call(lead()))["code"] == "MISSING_REQUIRED_FIELD"
    receipt = data(network.call(lead(vehicle_of_interest={"stock": "S2"})))
    assert receipt["dealer"]["name"] == "South.cars Group Downtown"


def test_each_place_has_a_card_of_its_own(network: RunningAgent) -> None:
    whole = network.get("/.well-known/agent-card.json").json()
    assert (whole["name"], whole["supportedInterfaces"][0]["url"]) == ("Demo Network", f"{network.base_url}/a2a")
    own = network.get(f"/dealers/{NORTH}/v1.1/.well-known/agent-card.json").json()
    assert own["name"] == "North-cars Group"
    assert own["supportedInterfaces"][0]["url"] == f"{network.base_url}/dealers/{NORTH}/v1.1/a2a"
    hosted = network.get("/.well-known/agent-card.json", Host=f"{SOUTH}.example.com").json()
    assert hosted["supportedInterfaces"][0]["url"] == f"http://{SOUTH}.example.com/a2a"
    assert "North" not in json.dumps(hosted)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([{}, {}], "dealers[2].id: a is used twice"),
        ([{"id": "a/b"}], "dealers[1].id: use letters"),
        (
            [{"hosts": ["x.example.com"]}, {"id": "b", "hosts": ["X.example.com"]}],
            "dealers[2].hosts: X.example.com is named",
        ),
        ([{"hosts": ["x.example.com:80"]}], "configuration: "),
    ],
)
def test_sellers_that_clash_are_told(tmp_path: Path, changes: list[dict[str, Any]], message: str) -> None:
    dealers = [{**profile(tmp_path, "a"), "hosts": [], **change} for change in changes]
    with pytest.raises(ConfigError) as caught:
        create_app(load(None, dealers=dealers))
    assert str(caught.value).startswith(message)


def test_one_dealer_and_several_exclude_each_other(tmp_path: Path) -> None:
    table = profile(tmp_path, "a")
    with pytest.raises(ConfigError, match="not both"):
        create_app(load(None, dealer=table, dealers=[profile(tmp_path, "b")]))


def test_more_sellers_than_are_kept_at_hand_answer_each_for_itself(tmp_path: Path) -> None:
    names = [f"seller-{number:03}" for number in range(300)]
    dealers = [profile(tmp_path, name) for name in names]
    with running(tmp_path / "data", dealers=dealers) as agent:
        for name in [*names, names[0]]:
            reply = agent.call({"type": "dealer.information.request"}, f"/dealers/{name}/a2a")
            assert data(reply)["dealer_id"] == name
        assert agent.app._of_seller.cache_info().currsize == 256
        kept = agent.app._of_seller.cache_info().misses
        for stranger in ("seller-300", "nobody", ""):
            assert agent.post(b"{}", f"/dealers/{stranger}/a2a").status == 404
        assert agent.get("/dealers/seller-007/.well-known/agent-card.json").status == 200
        assert agent.app._of_seller.cache_info().misses == kept, "a stranger's or a card's address made endpoints"
