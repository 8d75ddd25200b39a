"""Who may call what: keys and tokens, the sellers they reach, and what the card says of it, over real sockets."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from tests.server.issuer import bearer, issuer
from tests.server.running import JSON, Reply, RunningAgent, aap_error, envelope, lead, running, search

from forecourt.server import ConfigError, create_app, load
from forecourt.server.api_keys import new_key
from forecourt.store import open_store

READS: Final = ["dealer.information", "inventory.facets", "inventory.search", "inventory.vehicle"]
CARD: Final = "/.well-known/agent-card.json"


def make_key(folder: Path, **settings: Any) -> str:
    """Make a key in the database of a folder, as `forecourt keys create` does."""

    async def work() -> str:
        store = open_store(f"sqlite:{folder / 'forecourt.db'}")
        await store.open()
        text, key = new_key("test", datetime.now(UTC), **settings)
        await store.add_api_key(key)
        await store.close()
        return text

    return asyncio.run(work())


def call(agent: RunningAgent, payload: dict[str, Any], path: str = "/a2a", **headers: str) -> Reply:
    """Send one request with headers, whose names are written with underscores."""
    body = json.dumps(envelope(payload)).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return agent.post(body, path, {**JSON, **named})


def network(folder: Path) -> list[dict[str, Any]]:
    """Write the profiles of two sellers and return their tables."""
    tables = []
    for name in ("a", "b"):
        path = folder / f"{name}.json"
        path.write_text(json.dumps({"name": f"Seller {name}", "rooftops": [{"name": f"{name} Main"}]}))
        tables.append({"id": name, "profile": str(path)})
    return tables


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningAgent, str]]:
    """A demo dealer whose reading is open to all and whose leads need a key, and such a key."""
    folder = tmp_path_factory.mktemp("guarded")
    text = make_key(folder)
    with running(folder, access={"public": READS, "keys": True}) as agent:
        yield agent, text


def test_reading_stays_public_while_leads_need_a_key(guarded: tuple[RunningAgent, str]) -> None:
    agent, key = guarded
    assert "result" in call(agent, search()).json()
    refused = call(agent, lead())
    assert refused.status == 401
    assert refused.headers["www-authenticate"] == 'Bearer realm="forecourt"'
    error = refused.json()["error"]
    assert error["code"] == -32600
    assert "aap.error" not in json.dumps(error)
    for headers in ({"X_API_Key": key}, {"Authorization": f"Bearer {key}"}, {"Authorization": f"bearer  {key}"}):
        assert "result" in call(agent, lead(), **headers).json()


@pytest.mark.parametrize("path", ["/a2a", "/v1.1/a2a"])
def test_a_credential_that_is_not_good_is_refused_even_where_none_is_needed(
    guarded: tuple[RunningAgent, str], path: str
) -> None:
    agent, key = guarded
    wrong = key[:-1] + ("A" if key[-1] != "A" else "B")
    for headers in (
        {"X_API_Key": wrong},
        {"X_API_Key": ""},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {wrong}"},
        {"Authorization": f"Basic {key}"},
        {"Authorization": f"DPoP {key}"},
        {"Authorization": key},
        {"X_API_Key": key, "Authorization": f"Bearer {key}"},
        {"Authorization": "Bearer a.b.c"},
    ):
        reply = call(agent, search(), path, **headers)
        assert reply.status == 401
        assert key not in reply.body.decode()
        assert wrong not in reply.body.decode()


def test_only_a_token_that_was_shown_is_called_invalid(guarded: tuple[RunningAgent, str]) -> None:
    # RFC 6750 section 3.1: no error code where no token was shown, as where the method is another.
    agent, key = guarded
    said = {}
    for name, headers in {
        "none": {},
        "key": {"X_API_Key": f"{key}x"},
        "basic": {"Authorization": "Basic eDp5"},
        "token": {"Authorization": f"Bearer {key}x"},
    }.items():
        reply = call(agent, lead(), **headers)
        assert reply.status == 401
        said[name] = reply.headers["www-authenticate"]
    plain = 'Bearer realm="forecourt"'
    assert said == {"none": plain, "key": plain, "basic": plain, "token": f'{plain}, error="invalid_token"'}
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    headers = {**JSON, "Accept": "application/json, text/event-stream"}
    shown = agent.post(body, "/mcp", {**headers, "Authorization": "Bearer a.b.c"})
    assert (shown.status, shown.headers["www-authenticate"]) == (401, said["token"])


def test_a_key_beyond_its_limit_is_refused_unread_and_other_keys_at_its_address_are_not(tmp_path: Path) -> None:
    limited, other = make_key(tmp_path, requests=2, seconds=60), make_key(tmp_path)
    with running(tmp_path, access={"keys": True}, limits={"requests": 50, "seconds": 60}) as agent:
        for _ in range(3):
            call(agent, search(), X_API_Key=limited)
        first, second = (aap_error(call(agent, search(), X_API_Key=limited).json()) for _ in range(2))
        assert first["code"] == "RATE_LIMITED"
        assert first["error_id"] == second["error_id"]
        assert first["details"]["retry_after_ms"] >= second["details"]["retry_after_ms"] > 0
        assert aap_error(call(agent, search(), Authorization=f"Bearer {limited}").json())["code"] == "RATE_LIMITED"
        assert "result" in call(agent, search(), X_API_Key=other).json()
        assert "result" in call(agent, search()).json()


def test_a_type_that_is_no_skill_tells_nothing_more_than_others_without_a_key(
    guarded: tuple[RunningAgent, str],
) -> None:
    agent, key = guarded
    assert call(agent, {"type": "leads.list.request"}).status == 401
    known = call(agent, {"type": "leads.list.request"}, X_API_Key=key).json()
    assert aap_error(known)["code"] == "UNSUPPORTED_SKILL"


def test_the_card_says_what_each_skill_needs(guarded: tuple[RunningAgent, str]) -> None:
    agent, _ = guarded
    card = agent.get(CARD).json()
    assert card["securitySchemes"]["apiKey"]["apiKeySecurityScheme"]["name"] == "X-API-Key"
    assert "securityRequirements" not in card
    needs = {skill["id"]: skill.get("securityRequirements") for skill in card["skills"]}
    assert needs == {**dict.fromkeys(READS), "lead.submit": [{"schemes": {"apiKey": {"list": []}}}]}


def test_a_deployment_that_is_open_says_nothing_of_security(demo: RunningAgent) -> None:
    card = demo.get(CARD).json()
    assert "securitySchemes" not in card
    assert "securityRequirements" not in card
    assert all("securityRequirements" not in skill for skill in card["skills"])
    # And whatever a client sends as a credential is nobody's business.
    assert "result" in call(demo, search(), Authorization="Bearer x").json()


def test_a_key_reaches_its_sellers_and_no_argument_widens_that(tmp_path: Path) -> None:
    for_a = make_key(tmp_path, sellers=("a",))
    with running(tmp_path, access={"public": [], "keys": True}, dealers=network(tmp_path)) as agent:
        information = {"type": "dealer.information.request"}
        assert (
            call(agent, information, X_API_Key=for_a).json()["result"]["message"]["parts"][0]["data"]["data"]["name"]
            == "Seller a"
        )
        for payload in ({**information, "dealer_id": "b"}, {**information, "dealer_id": "nobody"}):
            error = aap_error(call(agent, payload, X_API_Key=for_a).json())
            assert error["code"] == "DEALER_NOT_FOUND"
        assert "result" in call(agent, information, "/dealers/a/a2a", X_API_Key=for_a).json()
        elsewhere = call(agent, information, "/dealers/b/a2a", X_API_Key=for_a)
        assert elsewhere.status == 403
        assert elsewhere.json()["error"]["code"] == -32600


def test_leads_of_two_keys_with_the_same_idempotency_key_are_two(tmp_path: Path) -> None:
    keys = [make_key(tmp_path) for _ in range(2)]
    with running(tmp_path, access={"keys": True}) as agent:
        payload = lead(idempotency_key="7d0a6b57-8a5f-4d0f-9a51-2f2b9a3d5a11")
        ids = [
            call(agent, payload, X_API_Key=key).json()["result"]["message"]["parts"][0]["data"]["data"]["lead_id"]
            for key in (*keys, *keys)
        ]
        assert ids[0] != ids[1]
        assert ids[:2] == ids[2:]


def test_a_key_has_its_own_limit_wherever_it_calls_from_and_guesses_count_too(tmp_path: Path) -> None:
    own = make_key(tmp_path, requests=3, seconds=60)
    access, limits = {"public": READS, "keys": True}, {"requests": 2, "seconds": 60}
    with running(tmp_path, access=access, limits=limits) as agent:
        for _ in range(3):
            assert "result" in call(agent, search(), X_API_Key=own).json()
        assert aap_error(call(agent, search(), X_API_Key=own).json())["code"] == "RATE_LIMITED"
        assert call(agent, lead()).status == 401
        assert call(agent, lead()).status == 401
        assert aap_error(call(agent, lead()).json())["code"] == "RATE_LIMITED"


def test_wrong_credentials_count_to_the_limit_of_where_they_come_from(tmp_path: Path) -> None:
    with running(tmp_path, access={"public": READS, "keys": True}, limits={"requests": 2, "seconds": 60}) as agent:
        for headers in ({"X_API_Key": "fck_guess"}, {"Authorization": "Bearer fck_guess"}):
            assert call(agent, search(), **headers).status == 401
        assert aap_error(call(agent, search(), X_API_Key="fck_guess").json())["code"] == "RATE_LIMITED"


# Tokens


def test_a_token_of_the_issuer_opens_what_its_scopes_say(tmp_path: Path) -> None:
    with issuer() as address:
        oauth = {"issuer": address, "audience": "dealer", "scopes": {"lead.submit": "leads"}}
        with running(tmp_path, access={"public": [], "oauth": oauth}) as agent:
            assert call(agent, search()).status == 401
            assert "result" in call(agent, search(), Authorization=bearer(address)).json()
            refused = call(agent, lead(), Authorization=bearer(address, scope="cars"))
            assert refused.status == 403
            assert "leads" in refused.json()["error"]["message"]
            assert "result" in call(agent, lead(), Authorization=bearer(address, scope="cars leads")).json()
            assert call(agent, search(), Authorization=bearer(address, aud="other")).status == 401
            card = agent.get(CARD).json()
            assert card["securitySchemes"]["oauth"]["httpAuthSecurityScheme"]["bearerFormat"] == "JWT"
            needs = {skill["id"]: skill["securityRequirements"] for skill in card["skills"]}
            assert needs["lead.submit"] == [{"schemes": {"oauth": {"list": ["leads"]}}}]
            assert needs["inventory.search"] == [{"schemes": {"oauth": {"list": []}}}]


# Mistakes


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"access": {"public": ["inventory.serach"]}}, "access.public: there is no skill 'inventory.serach'"),
        ({"access": {"public": []}}, "access.public: nobody could call the other skills"),
        (
            {"access": {"oauth": {"issuer": "https://x.example.com", "audience": "a", "scopes": {"x": "y"}}}},
            "access.oauth: there is no skill 'x'",
        ),
        (
            {"access": {"oauth": {"issuer": "https://x.example.com", "audience": "a", "scopes": {"lead.submit": '"'}}}},
            "configuration: access.oauth.scopes.lead.submit: must be a scope of RFC 6749",
        ),
        ({"limits": {"skills": {"x": {"requests": 1}}}}, "limits.skills.x: there is no such skill"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(sections: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        create_app(load(None, environment={}, **sections))
    assert str(caught.value).startswith(message)
