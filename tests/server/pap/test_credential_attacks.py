"""Whatever is wrong with a credential is refused with PAP's challenge, and nothing is served.

Every attack asks for a lead, at a process that has accepted the Session before and at one that sees it for the first
time: both ways of checking a proof must refuse it. Source: RFC 9449 section 4.3; PAP section 4.3; PAP.md.
"""

import contextlib
import hashlib
import hmac
import json
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from tests.pap_agent import BASE, PAPAgent, Response, b64, fresh
from tests.server.pap.conftest import beside
from tests.server.running import lead
from tests.server_process import ServerProcess
from tests.store.conftest import DATABASES

PATH: Final = "/api/lead.submit"
URL: Final = BASE + PATH


def enquiry() -> dict[str, Any]:
    """Return a lead of a shopper's whom nobody has met before."""
    return lead(customer={"first_name": "Sam", "last_name": "Example", "email": f"{fresh()}@example.com"})


def send(agent: PAPAgent, proof: str | list[str] | None = None, **options: Any) -> Response:
    return agent.call(enquiry(), PATH, proof=proof, **options)


def unsigned(agent: PAPAgent, **changes: Any) -> str:
    _, claims, _ = agent.proof("POST", URL).split(".")
    header = {"typ": "dpop+jwt", "alg": "none", "jwk": agent.public_jwk, **changes}
    return f"{b64(json.dumps(header).encode())}.{claims}."


def with_hmac(agent: PAPAgent) -> str:
    """Sign with the public key as if it were a secret."""
    _, claims, _ = agent.proof("POST", URL).split(".")
    header = b64(json.dumps({"typ": "dpop+jwt", "alg": "HS256", "jwk": agent.public_jwk}).encode())
    secret = json.dumps(agent.public_jwk).encode()
    return f"{header}.{claims}.{b64(hmac.new(secret, f'{header}.{claims}'.encode(), hashlib.sha256).digest())}"


def with_other_key(agent: PAPAgent) -> str:
    """Sign with a key that the thief of a token has made, and say so."""
    other = ec.generate_private_key(ec.SECP256R1())
    jwk = json.loads(ECAlgorithm.to_jwk(other.public_key()))
    return agent.proof("POST", URL, key=other, headers={"jwk": jwk})


def with_rsa(agent: PAPAgent) -> str:
    other = rsa.generate_private_key(65537, 2048)
    header = {"typ": "dpop+jwt", "jwk": json.loads(RSAAlgorithm.to_jwk(other.public_key()))}
    claims = {"jti": fresh(), "htm": "POST", "htu": URL, "iat": int(time.time())}
    claims["ath"] = b64(hashlib.sha256(agent.token.encode()).digest())
    return jwt.encode(claims, other, "RS256", headers=header)


def tampered(agent: PAPAgent) -> str:
    one, other = agent.proof("POST", URL), agent.proof("POST", URL)
    return f"{one.rpartition('.')[0]}.{other.rpartition('.')[2]}"


def moved(agent: PAPAgent, seconds: float) -> str:
    return agent.proof("POST", URL, iat=int(time.time() + seconds))


ATTACKS: Final[dict[str, Callable[[PAPAgent], Response]]] = {
    "a stolen token without its key": lambda agent: send(agent, with_other_key(agent)),
    "a stolen token with a key of another kind": lambda agent: send(agent, with_rsa(agent)),
    "a token without a proof": lambda agent: send(agent, ""),
    "a token sent as Bearer": lambda agent: send(agent, "", scheme="Bearer"),
    "a token sent as Bearer with a proof": lambda agent: send(agent, scheme="Bearer"),
    "a token in another case of the scheme": lambda agent: send(agent, scheme="dpop"),
    "no token": lambda agent: agent.send("POST", PATH, [("DPoP", agent.proof("POST", URL))], b"{}"),
    "a made-up token": lambda agent: PAPAgent(agent.server, key=agent.key, token="sat_" + fresh()).call(
        enquiry(), PATH
    ),
    "a proof signed with another key": lambda agent: send(
        agent, agent.proof("POST", URL, key=ec.generate_private_key(ec.SECP256R1()))
    ),
    "a proof with the signature of another": lambda agent: send(agent, tampered(agent)),
    "a proof for another address": lambda agent: send(agent, agent.proof("POST", f"{BASE}/api/inventory.search")),
    "a proof for another host": lambda agent: send(agent, agent.proof("POST", f"https://other.localhost{PATH}")),
    "a proof for the address that was dialled": lambda agent: send(
        agent, agent.proof("POST", f"{agent.server.base_url}{PATH}")
    ),
    "a proof for http": lambda agent: send(agent, agent.proof("POST", URL.replace("https", "http"))),
    "a proof for another tree": lambda agent: send(agent, agent.proof("POST", f"{BASE}/dealers/x{PATH}")),
    "a proof for another method": lambda agent: send(agent, agent.proof("GET", URL)),
    "a proof for the method in small letters": lambda agent: send(agent, agent.proof("post", URL)),
    "an expired proof": lambda agent: send(agent, moved(agent, -90)),
    "a proof of the future": lambda agent: send(agent, moved(agent, 90)),
    "a proof that says when it ends, and has": lambda agent: send(agent, agent.proof("POST", URL, exp=1)),
    "a proof without a time": lambda agent: send(agent, agent.proof("POST", URL, iat=None)),
    "a proof whose time is a text": lambda agent: send(agent, agent.proof("POST", URL, iat=str(int(time.time())))),
    "a proof whose time is a fraction": lambda agent: send(agent, agent.proof("POST", URL, iat=time.time())),
    "a proof without an identifier": lambda agent: send(agent, agent.proof("POST", URL, jti=None)),
    "a proof with a short identifier": lambda agent: send(agent, agent.proof("POST", URL, jti="1")),
    "a proof with a long identifier": lambda agent: send(agent, agent.proof("POST", URL, jti="1" * 257)),
    "a proof without the token's digest": lambda agent: send(agent, agent.proof("POST", URL, token=None)),
    "a proof with the digest of another token": lambda agent: send(agent, agent.proof("POST", URL, token="other")),
    "two DPoP headers": lambda agent: send(agent, [agent.proof("POST", URL), agent.proof("POST", URL)]),
    "two DPoP headers, one good": lambda agent: send(agent, [agent.proof("POST", URL), "x"]),
    "a proof and another in one header": lambda agent: send(
        agent, f"{agent.proof('POST', URL)}, {agent.proof('POST', URL)}"
    ),
    "alg none": lambda agent: send(agent, unsigned(agent)),
    "alg None": lambda agent: send(agent, unsigned(agent, alg="None")),
    "the public key as a secret": lambda agent: send(agent, with_hmac(agent)),
    "another typ": lambda agent: send(agent, agent.proof("POST", URL, headers={"typ": "JWT"})),
    "a proof without a key in it": lambda agent: send(agent, agent.proof("POST", URL, headers={"jwk": None})),
    "a proof with a private key in it": lambda agent: send(
        agent, agent.proof("POST", URL, headers={"jwk": json.loads(ECAlgorithm.to_jwk(agent.key))})
    ),
    "something that is no proof": lambda agent: send(agent, "a.b.c"),
    "a proof that is not ASCII": lambda agent: send(agent, agent.proof("POST", URL) + "é"),
    "a proof that never ends": lambda agent: send(agent, agent.proof("POST", URL, more="x" * 20_000)),
}


def refused(answer: Response, agent: PAPAgent) -> None:
    """Fail unless this is PAP's challenge, which says nothing of the token."""
    assert answer.status == 401, answer
    assert answer.headers["www-authenticate"].startswith('DPoP error="')
    assert answer.error in ("invalid_token", "invalid_dpop_proof")
    assert answer.headers["www-authenticate"] == f'DPoP error="{answer.error}"'
    assert "type" not in answer.json
    assert agent.token not in f"{answer.headers}{answer.body!r}"


def leads(server: ServerProcess) -> int:
    with contextlib.closing(sqlite3.connect(server.database)) as database:
        count: int = database.execute("SELECT count(*) FROM lead").fetchone()[0]
    return count


@pytest.mark.requirement("ERR-PROTOCOL-DPOP")
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_it_is_refused_with_a_challenge(attack: str, known: bool, server: ServerProcess) -> None:
    agent = PAPAgent(server).start()
    if known:
        assert agent.call({"type": "dealer.information.request"}, "/api/dealer.information").status == 200
    before = leads(server)
    refused(ATTACKS[attack](agent), agent)
    assert leads(server) == before
    assert send(agent).status == 200  # what is right is served as ever
    assert leads(server) == before + 1


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_a_replayed_proof_is_refused_by_the_same_process(known: bool, server: ServerProcess) -> None:
    agent = PAPAgent(server).start()
    if known:
        assert send(agent).status == 200
    proof = agent.proof("POST", URL)
    assert send(agent, proof).status == 200
    for _ in range(3):
        refused(send(agent, proof), agent)


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_a_replayed_proof_is_refused_by_another_process(
    known: bool, server: ServerProcess, neighbour: ServerProcess
) -> None:
    agent = PAPAgent(server).start()
    there = PAPAgent(neighbour, agent.user, agent.key, agent.token, agent.session_id)
    if known:
        assert send(there).status == 200
    proof = agent.proof("POST", URL)
    assert send(agent, proof).status == 200
    refused(send(there, proof), there)
    assert send(there).status == 200  # the Session is good at every process


def test_a_replayed_proof_is_refused_after_a_restart(server: ServerProcess, tmp_path: Path) -> None:
    agent = PAPAgent(server).start()
    first = beside(server, tmp_path)
    first.wait()
    there = PAPAgent(first, agent.user, agent.key, agent.token, agent.session_id)
    proof = there.proof("POST", URL)
    assert send(there, proof).status == 200
    first.stop()
    (tmp_path / "data").unlink()
    second = beside(server, tmp_path)
    try:
        second.wait()
        again = PAPAgent(second, agent.user, agent.key, agent.token, agent.session_id)
        refused(send(again, proof), again)
        assert send(again).status == 200
    finally:
        second.stop()


def test_a_replayed_proof_is_refused_when_the_process_was_killed(server: ServerProcess, tmp_path: Path) -> None:
    agent = PAPAgent(server).start()
    first = beside(server, tmp_path)
    first.wait()
    there = PAPAgent(first, agent.user, agent.key, agent.token, agent.session_id)
    proof = there.proof("POST", URL)
    assert send(there, proof).status == 200
    first._process.kill()
    first._process.wait()
    refused(send(agent, proof), agent)


def test_a_replayed_assertion_is_refused_by_another_process(server: ServerProcess, neighbour: ServerProcess) -> None:
    agent, there = PAPAgent(server), PAPAgent(neighbour)
    form = agent.form()
    assert agent.ask(form).status == 200
    answer = there.ask({**form, "client_assertion": agent.form()["client_assertion"]})
    assert (answer.status, answer.error) == (400, "invalid_grant")
    answer = there.ask({**agent.form(), "client_assertion": form["client_assertion"]})
    assert (answer.status, answer.error) == (401, "invalid_client")


def test_of_one_proof_sent_to_two_processes_at_once_one_is_served(
    server: ServerProcess, neighbour: ServerProcess
) -> None:
    agent = PAPAgent(server).start()
    both = [PAPAgent(place, agent.user, agent.key, agent.token, agent.session_id) for place in (server, neighbour)]
    assert [each.call({"type": "inventory.search.request"}).status for each in both] == [200, 200]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(5):
            proof = agent.proof("POST", URL)
            answers = list(threads.map(lambda each, proof=proof: send(each, proof).status, both * 4))
            assert sorted(answers) == [200, *[401] * 7]


def test_a_token_that_was_replaced_is_refused_by_every_process(server: ServerProcess, neighbour: ServerProcess) -> None:
    agent = PAPAgent(server).start()
    there = PAPAgent(neighbour, agent.user, agent.key, agent.token, agent.session_id)
    assert [send(agent).status, send(there).status] == [200, 200]
    agent.start()
    assert agent.session_id == there.session_id
    refused(send(there), there)
    assert send(agent).status == 200


def test_a_token_in_the_address_is_refused(server: ServerProcess) -> None:
    agent = PAPAgent(server).start()
    proof = agent.proof("POST", URL)
    path = f"{PATH}?access_token={agent.token}"
    assert agent.send("POST", path, [("DPoP", proof)], b"{}").status == 400
    assert agent.call(lead(), path, proof=proof).status == 400


def test_two_authorization_headers_are_refused(server: ServerProcess) -> None:
    agent = PAPAgent(server).start()
    answer = send(agent, headers=[("Authorization", "DPoP other")])
    assert (answer.status, answer.error) == (400, "invalid_request")


def test_processes_that_share_a_postgresql_server_refuse_each_others_proofs(tmp_path: Path) -> None:
    with DATABASES["postgresql"].fresh(tmp_path) as address, contextlib.ExitStack() as stack:
        agents: list[PAPAgent] = []
        for name in ("first", "second"):
            folder = tmp_path / name
            folder.mkdir()
            (folder / "forecourt.toml").write_text(f"store = {json.dumps(address)}\n", encoding="utf-8")
            if agents:
                # The demonstration's agent is in the folder, the rest in the database.
                (folder / "data").symlink_to(tmp_path / "first" / "data")
            process = ServerProcess(folder, folder / "forecourt.toml", pap=True)
            stack.callback(process.stop)
            process.wait()
            agents.append(PAPAgent(process))
        here, there = agents
        here.start()
        there.key, there.user, there.token, there.session_id = here.key, here.user, here.token, here.session_id
        for _ in range(3):
            proof = here.proof("POST", URL)
            assert send(here, proof).status == 200
            refused(send(there, proof), there)
            assert send(there).status == 200
        here.start()
        refused(send(there), there)
