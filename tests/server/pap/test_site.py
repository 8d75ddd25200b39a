"""What PAP adds to a deployment's addresses, and where it adds nothing."""

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.pap_agent import BASE, PAPAgent, agent_of
from tests.server.running import running
from tests.server_process import ServerProcess

FORM = ("Content-Type", "application/x-www-form-urlencoded")
DOCUMENTS = ("/.well-known/poppy.json", "/.well-known/oauth-authorization-server", "/api/openapi.json")
PROFILE = {"name": "Example Motors", "rooftops": [{"name": "North", "phones": [], "timezone": "America/Chicago"}]}


@pytest.fixture
def agent(server: ServerProcess) -> PAPAgent:
    """An agent with a Session."""
    return agent_of(server)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_a_document_is_there_for_everybody_and_may_be_cached(path: str, agent: PAPAgent) -> None:
    got, head = agent.send("GET", path, []), agent.send("HEAD", path, [])
    assert (got.status, head.status) == (200, 200)
    assert got.headers["content-type"] == "application/json"
    assert got.headers["cache-control"] == "public, max-age=300"
    assert head.body == b""
    assert head.headers["content-length"] == str(len(got.body))
    refused = agent.send("POST", path, [])
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")


def test_the_address_that_documents_name_is_the_public_one_whatever_host_was_asked_for(agent: PAPAgent) -> None:
    document = agent.send("GET", "/.well-known/poppy.json", [("Host", "evil.example.com")]).json
    assert document["auth"]["issuer"] == BASE
    assert agent.send("GET", "/api/openapi.json", []).json["servers"] == [{"url": BASE}]
    tree = agent.send("GET", "/dealers/demo-auto-group/api/openapi.json", []).json
    assert tree["servers"] == [{"url": f"{BASE}/dealers/demo-auto-group"}]


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([], b"grant_type=x"),
        ([("Content-Type", "application/json")], b"{}"),
        ([FORM], b"\xff=1"),
        ([FORM], b"grant_type=a&grant_type=b"),
        ([FORM], "&".join(f"f{number}=1" for number in range(100)).encode()),
        ([FORM, ("Authorization", "Basic a"), ("Authorization", "Basic b")], b"grant_type=x"),
    ],
)
def test_what_is_no_form_is_an_invalid_request(headers: list[Any], body: bytes, agent: PAPAgent) -> None:
    for path in ("/oauth/token", "/oauth/revoke"):
        answer = agent.send("POST", path, headers, body)
        assert (answer.status, answer.error) == (400, "invalid_request")


def test_a_form_that_is_too_long_is_not_read(agent: PAPAgent) -> None:
    answer = agent.send("POST", "/oauth/token", [FORM], b"a=" + b"x" * 70_000)
    assert (answer.status, answer.error) == (413, "request_too_large")


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke"])
def test_a_form_is_posted(path: str, agent: PAPAgent) -> None:
    answer = agent.send("GET", path, [])
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("changes", "status", "error"),
    [
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": "refresh_token", "refresh_token": "x"}, 400, "invalid_grant"),
        ({"client_assertion": "x"}, 401, "invalid_client"),
        ({"client_id": "https://other.localhost/agent.json"}, 401, "invalid_client"),
        ({"assertion": "x"}, 400, "invalid_grant"),
        ({"session_id": "ses_unknown"}, 400, "invalid_session"),
        ({"session_id": "\x00"}, 400, "invalid_session"),
    ],
)
def test_a_token_request_that_is_wrong_is_refused_as_oauth_has_it(
    changes: dict[str, str], status: int, error: str, agent: PAPAgent
) -> None:
    answer = agent.ask(agent.form(**changes))
    assert (answer.status, answer.error) == (status, error)
    assert answer.headers["cache-control"] == "no-store"


def test_revoking_nothing_is_nothing_wrong(agent: PAPAgent) -> None:
    form = {
        key: value for key, value in agent.form(token="acct_unknown").items() if key not in ("grant_type", "assertion")
    }
    answer = agent.send("POST", "/oauth/revoke", [FORM], urlencode(form).encode())
    assert answer.status == 200


@pytest.mark.parametrize("path", ["/poppy/conversations", "/poppy/operations/x", "/poppy/feedback", "/oauth/authorize",
                                  "/oauth/device", "/poppy/sign-in"])  # fmt: skip
def test_what_is_not_offered_is_not_there(path: str, agent: PAPAgent) -> None:
    assert agent.send("POST", path, [FORM], b"a=1").status == 404


def test_without_a_configuration_there_is_nothing_of_pap(tmp_path: Path) -> None:
    with running(tmp_path) as agent:
        for path in (*DOCUMENTS, "/oauth/token", "/api/inventory.search"):
            assert agent.get(path).status == 404
        assert agent.serves()


def write_network(folder: Path) -> Path:
    (folder / "dealer.json").write_text(json.dumps(PROFILE), encoding="utf-8")
    config = folder / "forecourt.toml"
    config.write_text(
        '[pap]\nenabled = true\ndomain = "network.example.com"\n'
        '[[dealers]]\nid = "north"\nprofile = "dealer.json"\nhosts = ["north.example.com"]\n'
        '[[dealers]]\nid = "south"\nprofile = "dealer.json"\n',
        encoding="utf-8",
    )
    return config


def test_a_network_has_operations_for_all_and_for_each_but_none_at_a_sellers_own_host(tmp_path: Path) -> None:
    with running(tmp_path, write_network(tmp_path)) as agent:
        for path, status in (
            ("/.well-known/poppy.json", 200),
            ("/dealers/north/api/openapi.json", 200),
            ("/dealers/west/api/openapi.json", 404),
        ):
            assert agent.get(path).status == status
        assert agent.post(b"{}", "/dealers/south/api/inventory.search").status == 401
        assert agent.post(b"{}", "/dealers/west/api/inventory.search").status == 404
        for path in ("/.well-known/poppy.json", "/api/openapi.json", "/api/inventory.search", "/oauth/token"):
            assert agent.get(path, Host="north.example.com").status == 404
        assert agent.serves()


def test_a_domain_that_is_a_sellers_own_host_shows_that_seller_alone(tmp_path: Path) -> None:
    config = write_network(tmp_path)
    text = config.read_text(encoding="utf-8").replace("network.example.com", "north.example.com")
    config.write_text(text, encoding="utf-8")
    with running(tmp_path, config) as agent:
        assert agent.get("/.well-known/poppy.json", Host="north.example.com").status == 200
        assert agent.get("/api/openapi.json", Host="north.example.com").status == 200
        assert agent.get("/dealers/south/api/openapi.json", Host="north.example.com").status == 404
        found = agent.app._pap
        assert found is not None
        handler = found.find("/api/inventory.search", b"north.example.com")
        assert handler is not None
        assert handler._caller.sellers == ("north",)  # type: ignore[attr-defined]


def test_a_site_that_is_closed_has_finished_what_waited(tmp_path: Path) -> None:
    with running(tmp_path, pap={"enabled": True, "domain": "dealer.example.com"}) as agent:
        site = agent.app._pap
        assert site is not None
    assert site._http.is_closed
    asyncio.run(site.company.marks.close())
