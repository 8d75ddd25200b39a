"""The company as a dealer has it: what its documents claim, and how Sessions begin and go on."""

import json
from datetime import timedelta

import httpx
import pytest
from personal_agent_protocol.models import DiscoveryDocument, OAuthServerMetadata
from tests.pap_agent import BASE, PAPAgent
from tests.server.pap.dealer import Dealer, agent

from forecourt.binding import Answer
from forecourt.store import StoreError


def test_poppy_json_claims_an_api_and_a_signed_out_session_and_nothing_else(dealer: Dealer) -> None:
    document = dealer.company.discovery_document()
    assert document == {
        "protocol_version": "0.2",
        "organization": {"name": "Example Motors", "domain": "dealer.localhost"},
        "auth": {"issuer": BASE},
        "apis": [
            {
                "type": "openapi",
                "url": f"{BASE}/api/openapi.json",
                "description": "Shop this dealership's stock and submit leads with the shopper's consent"
                " (Auto Agent Protocol).",
            }
        ],
    }
    DiscoveryDocument.model_validate(document)


def test_the_metadata_of_the_authorization_server_name_the_domain_and_es256(dealer: Dealer) -> None:
    metadata = dealer.company.oauth_metadata()
    OAuthServerMetadata.model_validate(metadata)
    assert metadata["poppy_domains"] == ["dealer.localhost"]
    assert metadata["issuer"] == BASE
    assert "ES256" in metadata["dpop_signing_alg_values_supported"]
    assert not {"authorization_endpoint", "device_authorization_endpoint"} & metadata.keys()


def test_an_agent_whose_metadata_can_be_fetched_gets_a_signed_out_session_of_an_hour(dealer: Dealer) -> None:
    caller = agent()
    dealer.network.publish(caller)
    answer = dealer.ask(caller)
    body = json.loads(answer.body)
    assert answer.status == 200
    assert (b"cache-control", b"no-store") in answer.headers
    assert body["token_type"] == "DPoP"
    assert body["signed_in"] is False
    assert body["scope"] == ""
    assert 3590 <= body["expires_in"] <= 3600
    assert dealer.network.asked == [caller.agent_id, "https://agent.example.com/jwks.json"]


def test_a_session_is_renewed_by_its_id_and_only_by_its_user(dealer: Dealer) -> None:
    caller = agent()
    dealer.network.publish(caller)
    dealer.start(caller)
    session, token = caller.session_id, caller.token
    dealer.clock.ahead = timedelta(minutes=50)
    answer = dealer.ask(caller, caller.form(session_id=session, **_moved(caller, dealer)))
    body = json.loads(answer.body)
    assert answer.status == 200
    assert body["session_id"] == session
    assert body["access_token"] != token
    caller.user = "usr_somebody_else"
    answer = dealer.ask(caller, caller.form(session_id=session, **_moved(caller, dealer)))
    assert (answer.status, json.loads(answer.body)) == (400, {"error": "invalid_session"})


def _moved(caller: PAPAgent, dealer: Dealer) -> dict[str, str]:
    """Return assertions of the moment to which the clock was moved."""
    now = int(dealer.clock.now().timestamp())
    times = {"iat": now, "exp": now + 60}
    return {
        "assertion": caller.assertion(caller.user, **times),
        "client_assertion": caller.assertion(caller.agent_id, **times),
    }


def test_what_the_database_does_not_keep_is_no_session(dealer: Dealer) -> None:
    caller = agent()
    dealer.network.publish(caller)
    dealer.runner.run(dealer.store.close())
    answer = dealer.ask(caller)
    assert (answer.status, json.loads(answer.body)) == (500, {"error": "server_error"})
    dealer.runner.run(dealer.store.open())


def test_a_database_that_fails_is_no_challenge(dealer: Dealer) -> None:
    from personal_agent_protocol.company import CompanyRequest

    dealer.runner.run(dealer.store.close())
    with pytest.raises(StoreError):
        dealer.runner.run(
            dealer.company.caller(CompanyRequest("POST", f"{BASE}/api/x", {"authorization": "DPoP sat_x", "dpop": "x"}))
        )
    dealer.runner.run(dealer.store.open())


@pytest.mark.parametrize("moment", [10**30, 2**62, -(10**15)])
def test_a_proof_of_a_time_that_no_calendar_has_is_refused(dealer: Dealer, moment: int) -> None:
    caller = agent()
    dealer.network.publish(caller)
    form, proof = caller.form(), caller.proof("POST", f"{BASE}/oauth/token", token=None, iat=moment)
    caller.proof = lambda *_, **__: proof  # type: ignore[method-assign]
    answer = dealer.ask(caller, form)
    assert (answer.status, json.loads(answer.body)) == (400, {"error": "invalid_dpop_proof"})


def test_a_challenge_is_the_packages(dealer: Dealer) -> None:
    assert dealer.company.challenge("invalid_token") == Answer(
        401,
        (
            (b"content-type", b"application/json"),
            (b"www-authenticate", b'DPoP error="invalid_token"'),
            (b"cache-control", b"no-store"),
        ),
        b'{"error":"invalid_token"}',
    )


def test_an_agent_whose_metadata_name_another_agent_is_refused(dealer: Dealer) -> None:
    caller = agent()
    dealer.network.publish(caller, client_id="https://agent.example.com/another.json")
    answer = dealer.ask(caller)
    assert (answer.status, json.loads(answer.body)) == (401, {"error": "invalid_client"})


def test_an_agent_whose_keys_lie_elsewhere_is_refused(dealer: Dealer) -> None:
    caller = agent()
    dealer.network.publish(caller, jwks_uri="https://elsewhere.example.com/jwks.json")
    assert dealer.ask(caller).status == 401
    assert dealer.network.asked == [caller.agent_id]


def test_metadata_that_are_too_long_are_not_read(dealer: Dealer) -> None:
    caller = agent()
    dealer.network.publish(caller)
    dealer.network.documents[caller.agent_id] = httpx.Response(200, json={"x": "y" * 200_000})
    assert dealer.ask(caller).status == 401
