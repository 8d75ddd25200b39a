"""Tokens of the issuer, for us, in time, signed with a key that it publishes (RFC 7519, RFC 8414, RFC 9068)."""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any, Final

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from forecourt.errors import AAPError
from forecourt.server.config import OAuth
from forecourt.server.oauth import Token, TokenVerifier

ISSUER: Final = "https://id.example.com"
AUDIENCE: Final = "https://dealer.example.com"
NOW: Final = 1_800_000_000.0
KEYS: Final[dict[str, ec.EllipticCurvePrivateKey]] = {
    name: ec.generate_private_key(ec.SECP256R1()) for name in ("one", "two", "foreign")
}


@pytest.fixture(autouse=True)
def at_a_fixed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the library that checks times stand at NOW."""

    class Moment(jwt.api_jwt.datetime):  # type: ignore[name-defined, misc]
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls.fromtimestamp(NOW, tz)

    monkeypatch.setattr(jwt.api_jwt, "datetime", Moment)


def jwk(name: str) -> dict[str, Any]:
    """Return the public half of a key, as an issuer publishes it."""
    public = jwt.algorithms.ECAlgorithm.to_jwk(KEYS[name].public_key(), as_dict=True)
    return {**public, "kid": name, "alg": "ES256", "use": "sig"}


def claims(**changes: Any) -> dict[str, Any]:
    """Return the claims of a good token; None leaves one out."""
    said = {"iss": ISSUER, "aud": AUDIENCE, "sub": "agent-1", "exp": NOW + 300, "scope": "cars leads", **changes}
    return {name: value for name, value in said.items() if value is not None}


def token(key: str = "one", kid: str | None = "one", **changes: Any) -> str:
    """Return a signed token."""
    return jwt.encode(claims(**changes), KEYS[key], "ES256", {"kid": kid} if kid else {})


class Issuer:
    """Answers for the issuer's documents, and counts what it is asked."""

    def __init__(self, *keys: str) -> None:
        self.documents: dict[str, Any] = {
            f"{ISSUER}/.well-known/oauth-authorization-server": {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"},
            f"{ISSUER}/keys": {"keys": [jwk(key) for key in keys]},
        }
        self.asked: list[str] = []

    async def fetch(self, url: str) -> Any:
        self.asked.append(url)
        if url not in self.documents:
            raise ValueError("answered 404")
        return self.documents[url]


def verifier(issuer: Issuer, clock: Callable[[], float] = lambda: NOW, **settings: Any) -> TokenVerifier:
    """Return a verifier that asks this issuer."""
    return TokenVerifier(OAuth(issuer=ISSUER, audience=AUDIENCE, **settings), issuer.fetch, clock)


def verify(text: str, **settings: Any) -> Token | None:
    """Verify one token against an issuer with one key."""
    return asyncio.run(verifier(Issuer("one"), **settings).verify(text))


def test_a_good_token_says_who_calls_with_which_scopes() -> None:
    assert verify(token()) == Token("agent-1", frozenset({"cars", "leads"}), None, NOW + 300)
    assert verify(token(scope=None, scp=["cars"], aud=["other", AUDIENCE])) is not None


def test_the_sellers_of_a_token_are_those_of_its_claim_and_none_without_it() -> None:
    found = verify(token(dealers=["a", "b"]), sellers_claim="dealers")
    assert found is not None
    assert found.sellers == ("a", "b")
    without = verify(token(), sellers_claim="dealers")
    assert without is not None
    assert without.sellers == ()


def unsigned(algorithm: str) -> str:
    """Return a token that says it is signed so, with nothing behind it."""
    parts = [{"alg": algorithm, "kid": "one"}, claims()]
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


BAD: Final[dict[str, str]] = {
    "expired": token(exp=NOW - 31),
    "not yet": token(nbf=NOW + 31),
    "made in the future": token(iat=NOW + 31),
    "of another issuer": token(iss="https://other.example.com"),
    "of an issuer with a slash more": token(iss=ISSUER + "/"),
    "for somebody else": token(aud="https://other.example.com"),
    "without an expiry": token(exp=None),
    "without a subject": token(sub=None),
    "with an empty subject": token(sub=""),
    "without an audience": token(aud=None),
    "without an issuer": token(iss=None),
    "by a key that the issuer has not": token(key="foreign", kid="foreign"),
    "by another key under a known name": token(key="foreign", kid="one"),
    "unsigned": unsigned("none"),
    "unsigned, in capitals": unsigned("NONE"),
    "with an empty signature": unsigned("ES256"),
    "signed with the public key as a secret": jwt.encode(claims(), b"x" * 64, "HS256", {"kid": "one"}),
    "no token": "not.a.token",
    "empty": "",
    "too long": token(padding="x" * 20_000),
    "not ASCII": token() + "\xe9",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_token_that_is_not_good_is_none(text: str) -> None:
    assert verify(text) is None


def test_a_little_difference_of_clocks_is_borne() -> None:
    assert verify(token(exp=NOW - 20, nbf=NOW + 20)) is not None


def test_a_token_without_a_key_id_is_checked_against_the_only_key() -> None:
    assert verify(token(kid=None)) is not None
    assert asyncio.run(verifier(Issuer("one", "two")).verify(token(kid=None))) is None


def test_a_key_that_the_issuer_has_just_made_is_fetched_and_one_that_it_took_back_opens_nothing() -> None:
    async def story() -> None:
        now = NOW
        issuer = Issuer("one")
        tokens = verifier(issuer, lambda: now)
        assert await tokens.verify(token())
        issuer.documents[f"{ISSUER}/keys"] = {"keys": [jwk("two")]}
        now += 11
        assert await tokens.verify(token("two", "two"))
        assert await tokens.verify(token()) is None

    asyncio.run(story())


def test_unknown_keys_do_not_make_us_ask_the_issuer_again_and_again() -> None:
    async def story() -> None:
        issuer = Issuer("one")
        tokens = verifier(issuer)
        await tokens.verify(token())
        asked = len(issuer.asked)
        for number in range(50):
            assert await tokens.verify(token("foreign", f"made-up-{number}")) is None
        assert len(issuer.asked) == asked

    asyncio.run(story())


def test_known_keys_go_on_verifying_while_the_issuer_is_away_for_a_day() -> None:
    async def story() -> None:
        now = NOW
        issuer = Issuer("one")
        tokens = verifier(issuer, lambda: now)
        assert await tokens.verify(token(exp=NOW + 10**6))
        issuer.documents.clear()
        now += 23 * 3600
        assert await tokens.verify(token(exp=NOW + 10**6))
        now += 2 * 3600
        with pytest.raises(AAPError) as caught:
            await tokens.verify(token(exp=NOW + 10**6))
        assert (caught.value.code, caught.value.retryable) == ("INTERNAL_ERROR", True)

    asyncio.run(story())


def test_an_issuer_that_never_answered_is_a_failure_of_ours_that_may_pass() -> None:
    async def story() -> None:
        issuer = Issuer()
        issuer.documents.clear()
        with pytest.raises(AAPError) as caught:
            await verifier(issuer).verify(token())
        assert caught.value.code == "INTERNAL_ERROR"

    asyncio.run(story())


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://other.example.com", "jwks_uri": f"{ISSUER}/keys"},
        {"issuer": ISSUER, "jwks_uri": "http://id.example.com/keys"},
        {"issuer": ISSUER, "jwks_uri": 5},
        [],
    ],
)
def test_metadata_of_somebody_else_or_without_its_scheme_is_not_followed(metadata: Any) -> None:
    async def story() -> None:
        issuer = Issuer("one")
        issuer.documents[f"{ISSUER}/.well-known/oauth-authorization-server"] = metadata
        with pytest.raises(AAPError):
            await verifier(issuer).verify(token())
        assert f"{ISSUER}/keys" not in issuer.asked
        assert "http://id.example.com/keys" not in issuer.asked

    asyncio.run(story())


def test_keys_of_kinds_that_we_do_not_know_or_for_encryption_are_passed_over() -> None:
    issuer = Issuer()
    encryption = {**jwk("two"), "use": "enc"}
    issuer.documents[f"{ISSUER}/keys"] = {
        "keys": ["x", {"kty": "lattice"}, {"kty": "oct", "k": "eHh4", "kid": "s"}, encryption, jwk("one")]
    }
    tokens = verifier(issuer)
    assert asyncio.run(tokens.verify(token())) is not None
    assert asyncio.run(tokens.verify(token("two", "two"))) is None


def test_an_rsa_key_verifies_too() -> None:
    key = rsa.generate_private_key(65537, 2048)
    issuer = Issuer()
    public = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    issuer.documents[f"{ISSUER}/keys"] = {"keys": [{**public, "kid": "r", "alg": "RS256"}]}
    text = jwt.encode(claims(), key, "RS256", {"kid": "r"})
    assert asyncio.run(verifier(issuer).verify(text)) is not None
