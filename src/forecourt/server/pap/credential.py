"""The check of a call's token and proof: the package's, and before it a lean one that can only say yes.

The package parses a token and a proof twice and rebuilds the key for every call. A key and a Session that it has
accepted are remembered here (never the token, only its digest); a later proof under the same header is then checked
claim by claim as the package does, with nothing in it that the package would look at and this does not. Whatever is
not plainly good is asked of the package, whose refusals are the ones that callers see. The mark that stops a replay
is made in the shared store in both cases, and the same transaction tells whether the Session is still as remembered.
"""

import base64
import binascii
import hashlib
import re
from collections import OrderedDict
from typing import Any, Final, NamedTuple

import jwt
import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from personal_agent_protocol.company import CompanyRequest
from personal_agent_protocol.company.store import SESSION, IssuedSession

from forecourt.binding import Answer
from forecourt.server.pap.company import DealerCompany
from forecourt.server.pap.records import replay_digest, stored_key
from forecourt.store import Mark

__all__ = ["Credentials"]

_WINDOW_SECONDS: Final = 60
"""How far a proof's `iat` may be from now, as the package has it by default."""
_REMEMBERED: Final = 16_384
"""How many Sessions and how many keys are remembered."""
_CLAIMS: Final = frozenset({"jti", "htm", "htu", "iat", "ath"})
_LONGEST_PROOF: Final = 8192
_SCHEME: Final = "DPoP "
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_LAST: Final = (_LETTERS, "", _LETTERS[::16], _LETTERS[::4])
"""The letters that base64url may end with, by its length modulo 4."""
_COMPACT: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_ES256: Final = ECDSA(SHA256())
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")

_decode = msgspec.json.Decoder().decode


class _Key(NamedTuple):
    public: EllipticCurvePublicKey
    thumbprint: str


class _Known(NamedTuple):
    session: IssuedSession
    version: str
    ends: float
    record: tuple[str, str]
    ath: str


class Credentials:
    """Tells who calls. One for all operations of a deployment."""

    def __init__(self, company: DealerCompany) -> None:
        self._company = company
        self._sessions: OrderedDict[bytes, _Known] = OrderedDict()
        self._keys: OrderedDict[str, _Key] = OrderedDict()

    async def check(self, method: str, url: str, authorization: str, proof: str) -> IssuedSession | Answer:
        """Return the Session of a call, or the challenge that refuses it. Raises StoreError.

        `url` is the public address of the operation, without a query; a header that came twice is joined by ", ".
        """
        if len(proof) > _LONGEST_PROOF:
            # The package reads proofs of any length; none that an agent needs is so long.
            return self._company.challenge("invalid_dpop_proof")
        if authorization.startswith(_SCHEME) and _COMPACT.fullmatch(proof):
            token = authorization[len(_SCHEME) :]
            digest = hashlib.sha256(token.encode()).digest()
            known = self._sessions.get(digest)
            if known is not None:
                mark = self._plainly_good(known, method, url, proof)
                if mark is not None:
                    return await self._admitted(token, digest, known, mark)
        return await self._asked(method, url, authorization, proof)

    def _plainly_good(self, known: _Known, method: str, url: str, proof: str) -> Mark | None:
        """Return the mark of a proof that the package would accept for this token, None when that is not certain."""
        signed, _, signature = proof.rpartition(".")
        header, _, payload = signed.partition(".")
        key = self._keys.get(header)
        if key is None or key.thumbprint != known.session.key_thumbprint:
            return None
        try:
            claims = _decode(_unpadded(payload))
            raw = _unpadded(signature)
        except (ValueError, msgspec.DecodeError):
            return None
        if type(claims) is not dict or claims.keys() != _CLAIMS or len(raw) != 64:
            return None
        jti, issued, now = claims["jti"], claims["iat"], self._company.now().timestamp()
        good = (
            type(issued) is int
            and now - _WINDOW_SECONDS <= issued <= now + _WINDOW_SECONDS
            and now < known.ends
            and type(jti) is str
            and 16 <= len(jti) <= 256
            and claims["htm"] == method
            and claims["htu"] == url
            and claims["ath"] == known.ath
            and self._company.policy.admits(known.session.client_id)
        )
        if not good:
            return None
        der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
        try:
            key.public.verify(der, signed.encode(), _ES256)
        except InvalidSignature:
            return None
        return Mark(replay_digest(f"{key.thumbprint}:{jti}"), issued + _WINDOW_SECONDS + 2, known.record)

    async def _admitted(self, token: str, digest: bytes, known: _Known, mark: Mark) -> IssuedSession | Answer:
        """Make the mark; the Session stands if its record is the one that is remembered, or still holds the token."""
        admission = await self._company.marks.admit(mark)
        if not admission.first:
            return self._company.challenge("invalid_dpop_proof")
        if admission.version == known.version:
            return known.session
        self._sessions.pop(digest, None)
        standing = await self._company.standing(token, known.session.session_id)
        if standing is None:
            return self._company.challenge("invalid_token")
        if standing[0].key_thumbprint != known.session.key_thumbprint:
            return self._company.challenge("invalid_dpop_proof")
        self._remember_session(digest, *standing)
        return standing[0]

    async def _asked(self, method: str, url: str, authorization: str, proof: str) -> IssuedSession | Answer:
        """Ask the package, and remember what it accepted."""
        headers = {"authorization": authorization, "dpop": proof}
        session = await self._company.caller(CompanyRequest(method, url, headers))
        if isinstance(session, Answer):
            return session
        token = authorization[len(_SCHEME) :]
        standing = await self._company.standing(token, session.session_id)
        if standing is not None:
            self._remember_session(hashlib.sha256(token.encode()).digest(), *standing)
            self._remember_key(proof, session.key_thumbprint)
        return session

    def _remember_session(self, digest: bytes, session: IssuedSession, version: str) -> None:
        record = (SESSION, stored_key(session.session_id))
        ath = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        _remember(self._sessions, digest, _Known(session, version, session.expires_at.timestamp(), record, ath))

    def _remember_key(self, proof: str, thumbprint: str) -> None:
        """Remember the key of a proof that the package has verified, by the proof's header as it was written."""
        header = jwt.get_unverified_header(proof)
        if header.get("alg") == "ES256":
            public = jwt.PyJWK.from_dict(header["jwk"], algorithm="ES256").key
            assert isinstance(public, EllipticCurvePublicKey)
            _remember(self._keys, proof.partition(".")[0], _Key(public, thumbprint))


def _unpadded(segment: str) -> bytes:
    """Decode base64url without padding, of a text that has nothing but its letters in it.

    Raises ValueError where bits are set that belong to no byte: the same bytes have one text.
    """
    if segment[-1] not in _LAST[len(segment) % 4]:
        raise ValueError
    return binascii.a2b_base64(segment.encode().translate(_URL_SAFE) + b"==")


def _remember(table: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    table[key] = value
    table.move_to_end(key)
    if len(table) > _REMEMBERED:
        table.popitem(last=False)
