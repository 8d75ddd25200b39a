"""The lean check says yes only where the package does; refusals are the package's own."""

import asyncio
import base64
import hashlib
import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm
from personal_agent_protocol.company import CompanyRequest
from personal_agent_protocol.company.store import SESSION, SESSION_TOKEN, IssuedSession, SessionPointer, StoredSession
from tests.pap_agent import BASE, PAPAgent, b64, fresh
from tests.server.pap.dealer import Dealer, agent, open_dealer

from forecourt.binding import Answer
from forecourt.server.pap.credential import _COMPACT, Credentials

PATH = "/api/inventory.search"
URL = BASE + PATH


def put_session(dealer: Dealer, holder: PAPAgent, **changes: Any) -> None:
    """Put a Session where the package would have put it."""
    jwk = {name: holder.public_jwk[name] for name in ("crv", "kty", "x", "y")}
    thumbprint = b64(hashlib.sha256(json.dumps(jwk, separators=(",", ":"), sort_keys=True).encode()).digest())
    issued = {
        "session_id": holder.session_id,
        "client_id": holder.agent_id,
        "pairwise_user_id": holder.user,
        "key_thumbprint": thumbprint,
        "expires_at": dealer.clock.now() + timedelta(hours=1),
        **changes,
    }
    session = IssuedSession(**issued)
    digest = hashlib.sha256(holder.token.encode()).hexdigest()
    stored = StoredSession(holder.session_id, holder.agent_id, holder.user, {digest: session}, digest)
    store = dealer.company.store
    later = dealer.clock.now() + timedelta(days=1)
    dealer.runner.run(store.put(SESSION, holder.session_id, stored.to_json(), expires_at=later))
    pointer = SessionPointer(holder.session_id).to_json()
    dealer.runner.run(store.put(SESSION_TOKEN, digest, pointer, expires_at=session.expires_at))


def holder_of_a_session() -> PAPAgent:
    made = agent()
    made.token, made.session_id = "sat_" + fresh(), "ses_" + fresh()
    return made


def check(dealer: Dealer, credentials: Credentials, holder: PAPAgent, proof: str) -> Any:
    return dealer.runner.run(credentials.check("POST", URL, f"DPoP {holder.token}", proof))


class Pair:
    """The lean check, warm, and the package alone, each with its own memory of proofs, for one and the same token."""

    def __init__(self, folder: Path, runner: asyncio.Runner) -> None:
        self.holder = holder_of_a_session()
        for name in ("lean", "alone"):
            (folder / name).mkdir()
        self.lean, self.alone = (open_dealer(folder / name, runner) for name in ("lean", "alone"))
        for dealer in (self.lean, self.alone):
            put_session(dealer, self.holder)
        self.credentials = Credentials(self.lean.company)
        assert isinstance(
            check(self.lean, self.credentials, self.holder, self.holder.proof("POST", URL)), IssuedSession
        )
        self.quick = 0

    def both(self, proof: str) -> tuple[Any, Any]:
        """Return what each says of a proof; a Session by its id, a refusal as it travels."""
        known = self.credentials._sessions[hashlib.sha256(self.holder.token.encode()).digest()]
        if _COMPACT.fullmatch(proof) and self.credentials._plainly_good(known, "POST", URL, proof) is not None:
            self.quick += 1
        request = CompanyRequest("POST", URL, {"authorization": f"DPoP {self.holder.token}", "dpop": proof})
        ours = check(self.lean, self.credentials, self.holder, proof)
        theirs = self.alone.runner.run(self.alone.company.caller(request))
        return tuple(said if isinstance(said, Answer) else said.session_id for said in (ours, theirs))  # type: ignore[return-value]

    def close(self) -> None:
        for dealer in (self.lean, self.alone):
            dealer.close()


_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.lists(st.integers(), max_size=2)
)
_CLAIMS = st.fixed_dictionaries(
    {},
    optional={
        "jti": st.one_of(_VALUES, st.text(min_size=14, max_size=18), st.just("\ud800" * 20), st.just("x" * 257)),
        "htm": st.one_of(_VALUES, st.sampled_from(["POST", "GET", "post", "POST "])),
        "htu": st.one_of(
            _VALUES, st.sampled_from([URL, URL + "/", URL + "?a=1", URL + "#f", URL.upper(), "http" + URL[5:]])
        ),
        "iat": st.one_of(
            _VALUES, st.integers(-70, 70).map(lambda by: int(time.time()) + by), st.just(float(int(time.time())))
        ),
        "ath": st.one_of(_VALUES, st.sampled_from(["", "\x80", "\ud800"])),
        "exp": st.one_of(_VALUES, st.sampled_from([1, 4102444800])),
        "nbf": st.one_of(_VALUES, st.sampled_from([1, 4102444800])),
        "nonce": _VALUES,
        "sub": _VALUES,
        "iss": _VALUES,
        "aud": _VALUES,
    },
)
_HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "typ": st.sampled_from(["dpop+jwt", "DPOP+JWT", "JWT", None]),
        "kid": st.one_of(st.just("k"), st.just(5)),
        "crit": st.sampled_from([["b64"], ["x"], []]),
        "b64": st.booleans(),
        "jku": st.just("https://agent.example.com/keys"),
    },
)


@pytest.fixture
def pair(tmp_path: Path) -> Any:
    with asyncio.Runner() as runner:
        made = Pair(tmp_path, runner)
        yield made
        made.close()


def test_the_lean_check_and_the_package_agree_on_every_proof(pair: Pair) -> None:
    @given(
        _CLAIMS, _HEADERS, st.sampled_from(["", "", "", "=", "==", "\n", "!", "."]), st.integers(0, 3), st.booleans()
    )
    @settings(max_examples=settings().max_examples * 5)
    def agree(claims: dict[str, Any], headers: dict[str, Any], noise: str, part: int, own: bool) -> None:
        whole = {"jti": fresh(), "htm": "POST", "htu": URL, "iat": int(time.time())}
        whole["ath"] = b64(hashlib.sha256(pair.holder.token.encode()).digest())
        whole |= claims
        signer = pair.holder.key if own else ec.generate_private_key(ec.SECP256R1())
        header = {"typ": "dpop+jwt", "jwk": pair.holder.public_jwk, "alg": "ES256", **headers}
        pieces = [b64(json.dumps(header).encode()), b64(json.dumps(whole).encode())]
        pieces.append(b64(jwt.get_algorithm_by_name("ES256").sign(".".join(pieces).encode(), signer)))
        if part < 3:
            pieces[part] += noise
        ours, theirs = pair.both(".".join(pieces))
        assert ours == theirs, (whole, headers)

    agree()
    for moment in (10**30, 2**62, -(10**15)):
        ours, theirs = pair.both(pair.holder.proof("POST", URL, iat=moment))
        assert isinstance(ours, Answer)
        assert ours == theirs


def test_the_lean_check_is_what_answers_a_plain_proof(pair: Pair) -> None:
    for _ in range(5):
        assert pair.both(pair.holder.proof("POST", URL)) == (pair.holder.session_id, pair.holder.session_id)
    assert pair.quick == 5


def test_a_claim_given_twice_is_read_alike(pair: Pair) -> None:
    header, payload, _ = pair.holder.proof("POST", URL).split(".")
    claims = base64.urlsafe_b64decode(payload + "==").decode()
    for twice in ('"htm":"GET",', '"iat":1,', '"jti":"0123456789abcdef",'):
        for text in (claims[0] + twice + claims[1:], claims[:-1] + "," + twice[:-1] + claims[-1]):
            signed = f"{header}.{b64(text.encode())}"
            signature = b64(jwt.get_algorithm_by_name("ES256").sign(signed.encode(), pair.holder.key))
            ours, theirs = pair.both(f"{signed}.{signature}")
            assert ours == theirs


@pytest.mark.parametrize("noise", ["\n", "=", "==", "!", " ", "A", "é"])
@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_proof_with_more_in_it_than_belongs_there_is_judged_alike(pair: Pair, noise: str, part: int) -> None:
    pieces = pair.holder.proof("POST", URL).split(".")
    for text in (pieces[part] + noise, noise + pieces[part], pieces[part][:9] + noise + pieces[part][9:]):
        ours, theirs = pair.both(".".join([*pieces[:part], text, *pieces[part + 1 :]]))
        assert ours == theirs


def test_a_proof_that_is_written_otherwise_for_the_same_bytes_is_judged_alike(pair: Pair) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    served = 0
    for last in letters:
        proof = pair.holder.proof("POST", URL)
        ours, theirs = pair.both(proof[:-1] + last)
        assert ours == theirs
        served += isinstance(ours, str)
        # A payload is signed as it is written, so it is signed anew.
        header, payload, _ = pair.holder.proof("POST", URL, more="x" * (served % 3)).split(".")
        signed = f"{header}.{payload[:-1]}{last}"
        signature = b64(jwt.get_algorithm_by_name("ES256").sign(signed.encode(), pair.holder.key))
        ours, theirs = pair.both(f"{signed}.{signature}")
        assert ours == theirs
    assert served < 16


def test_a_proof_at_the_edge_of_its_time_is_judged_alike(pair: Pair) -> None:
    for ahead in (-61, -60, -59, 59, 60, 61):
        ours, theirs = pair.both(pair.holder.proof("POST", URL, iat=int(time.time()) + ahead))
        assert ours == theirs


def test_the_same_identifier_with_another_time_is_a_replay(pair: Pair) -> None:
    jti = fresh()
    pair.both(pair.holder.proof("POST", URL, jti=jti))
    ours, theirs = pair.both(pair.holder.proof("POST", URL, jti=jti, iat=int(time.time()) - 5))
    assert isinstance(ours, Answer)
    assert ours == theirs


def test_a_session_that_ends_is_refused_though_it_was_known(dealer: Dealer) -> None:
    holder = holder_of_a_session()
    put_session(dealer, holder)
    credentials = Credentials(dealer.company)
    assert isinstance(check(dealer, credentials, holder, holder.proof("POST", URL)), IssuedSession)
    dealer.clock.ahead = timedelta(hours=1, seconds=1)
    later = int(dealer.clock.now().timestamp())
    answer = check(dealer, credentials, holder, holder.proof("POST", URL, iat=later))
    assert isinstance(answer, Answer)
    assert (b"www-authenticate", b'DPoP error="invalid_token"') in answer.headers


def test_a_session_whose_record_changed_is_looked_at_again(dealer: Dealer) -> None:
    holder = holder_of_a_session()
    put_session(dealer, holder)
    credentials = Credentials(dealer.company)
    assert isinstance(check(dealer, credentials, holder, holder.proof("POST", URL)), IssuedSession)
    put_session(dealer, holder)  # written again, the same
    assert isinstance(check(dealer, credentials, holder, holder.proof("POST", URL)), IssuedSession)
    put_session(dealer, holder, key_thumbprint="another")
    answer = check(dealer, credentials, holder, holder.proof("POST", URL))
    assert isinstance(answer, Answer)
    assert json.loads(answer.body) == {"error": "invalid_dpop_proof"}
    put_session(dealer, holder, expires_at=dealer.clock.now() - timedelta(seconds=1))
    answer = check(dealer, credentials, holder, holder.proof("POST", URL))
    assert isinstance(answer, Answer)
    assert json.loads(answer.body) == {"error": "invalid_token"}


def test_a_token_for_another_resource_or_of_another_type_is_the_packages_to_judge(dealer: Dealer) -> None:
    for changes, served in (({"token_type": "Bearer"}, False), ({"resource": f"{BASE}/elsewhere"}, True)):
        holder = holder_of_a_session()
        put_session(dealer, holder, **changes)
        credentials = Credentials(dealer.company)
        for _ in range(2):
            said = check(dealer, credentials, holder, holder.proof("POST", URL))
            assert isinstance(said, IssuedSession) is served
        assert credentials._sessions == {}


def test_what_is_remembered_is_bounded_and_holds_no_token(dealer: Dealer) -> None:
    credentials = Credentials(dealer.company)
    for _ in range(3):
        holder = holder_of_a_session()
        put_session(dealer, holder)
        check(dealer, credentials, holder, holder.proof("POST", URL))
        assert holder.token not in repr(credentials._sessions)
    assert len(credentials._sessions) == len(credentials._keys) == 3


def test_a_key_that_is_no_p_256_key_is_never_remembered(dealer: Dealer) -> None:
    holder = holder_of_a_session()
    put_session(dealer, holder)
    credentials = Credentials(dealer.company)
    other = ec.generate_private_key(ec.SECP256R1())
    jwk = json.loads(ECAlgorithm.to_jwk(other.public_key()))
    check(dealer, credentials, holder, holder.proof("POST", URL, key=other, headers={"jwk": jwk}))
    assert credentials._keys == {}
