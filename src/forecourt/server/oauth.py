"""Bearer tokens: JWTs of one issuer, for one audience, signed with a key that the issuer publishes.

RFC 6750 (bearer tokens), RFC 7519 (JWT), RFC 7517 (JWK sets), RFC 8414 (metadata), RFC 9068 (JWT access tokens).
"""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from forecourt.errors import AAPError
from forecourt.server.config import ConfigError, OAuth

if TYPE_CHECKING:
    from jwt import PyJWK

__all__ = ["Token", "TokenVerifier", "fetch_json"]

_ALGORITHMS: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
"""Signatures only: with a shared secret, whoever can check a token could make one."""
_LEEWAY_SECONDS: Final = 30
_LONGEST: Final = 16 * 1024
_KEYS_FRESH_SECONDS: Final = 300.0
_KEYS_STALE_SECONDS: Final = 24 * 3600.0
"""For how long known keys go on verifying while the issuer does not answer."""
_PAUSE_SECONDS: Final = 10.0
"""How often, at most, an unknown key makes us ask the issuer: anybody can name one."""
_MOST_KEYS: Final = 100
_MOST_BYTES: Final = 256 * 1024
_FETCH_SECONDS: Final = 5.0
_REMEMBERED: Final = 1024
_METADATA: Final = ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server")

_log = logging.getLogger("forecourt.access")


@dataclass(frozen=True, slots=True)
class Token:
    """What a good token says: who calls, with which scopes, for which sellers (None: all), until when (Unix time)."""

    subject: str
    scopes: frozenset[str]
    sellers: tuple[str, ...] | None
    expires_at: float


class TokenVerifier:
    """Verifies tokens. `fetch` gets a JSON document; `clock` is Unix time. Both are replaced in tests."""

    def __init__(
        self,
        settings: OAuth,
        fetch: Callable[[str], Awaitable[Any]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        try:
            import jwt
        except ModuleNotFoundError as error:
            raise ConfigError("needs the extra: pip install 'forecourt[oauth]'", "access", "oauth") from error
        self._jwt = jwt
        self._settings = settings
        self._fetch = fetch or fetch_json
        self._clock = clock
        self._keys: dict[str | None, PyJWK] = {}
        self._fetched_at: float | None = None
        self._asked_at: float | None = None
        self._fetching: asyncio.Task[None] | None = None
        self._verified: dict[bytes, Token] = {}

    async def verify(self, text: str) -> Token | None:
        """Return what a token says, None when it is not good.

        Raises AAPError INTERNAL_ERROR when that cannot be told, because the issuer's keys cannot be had.
        """
        if len(text) > _LONGEST or not text.isascii():
            return None
        mark = hashlib.sha256(text.encode()).digest()
        known = self._verified.get(mark)
        if known is not None and self._clock() < known.expires_at + _LEEWAY_SECONDS and not self._is_stale():
            return known
        try:
            header = self._jwt.get_unverified_header(text)
        except self._jwt.InvalidTokenError:
            return None
        key = await self._key(header.get("kid"))
        if key is None or header.get("alg") != key.algorithm_name:
            return None
        token = self._read(text, key)
        if token is not None:
            if len(self._verified) >= _REMEMBERED:
                del self._verified[next(iter(self._verified))]
            self._verified[mark] = token
        return token

    def _read(self, text: str, key: "PyJWK") -> Token | None:
        settings = self._settings
        try:
            claims: dict[str, Any] = self._jwt.decode(
                text,
                key,
                algorithms=[key.algorithm_name],
                audience=settings.audience,
                issuer=settings.issuer,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except self._jwt.InvalidTokenError:
            return None
        subject = claims["sub"]
        if not isinstance(subject, str) or not subject:
            return None
        sellers = None
        if settings.sellers_claim is not None:
            # A token without the claim reaches nobody: leaving it out must not widen what it opens.
            sellers = tuple(_words(claims.get(settings.sellers_claim)))
        scopes = frozenset([*_words(claims.get("scope")), *_words(claims.get("scp"))])
        return Token(subject, scopes, sellers, float(claims["exp"]))

    # Keys

    def _is_stale(self) -> bool:
        return self._fetched_at is None or self._clock() - self._fetched_at > _KEYS_STALE_SECONDS

    async def _key(self, key_id: Any) -> "PyJWK | None":
        """Return the issuer's key of this id; without an id, the only key."""
        if key_id is not None and not isinstance(key_id, str):
            return None
        now = self._clock()
        old = self._fetched_at is None or now - self._fetched_at > _KEYS_FRESH_SECONDS
        if old or self._known(key_id) is None:
            await self._renew(now)
        if self._is_stale():
            raise AAPError("INTERNAL_ERROR", reason="the keys of the token issuer cannot be had")
        return self._known(key_id)

    def _known(self, key_id: str | None) -> "PyJWK | None":
        if key_id is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(key_id)

    async def _renew(self, now: float) -> None:
        """Fetch the keys, once for all who wait, and not again too soon."""
        if self._fetching is None or self._fetching.done():
            if self._asked_at is not None and now - self._asked_at < _PAUSE_SECONDS:
                return
            self._asked_at = now
            self._fetching = asyncio.create_task(self._load(now), name="forecourt-jwks")
        await asyncio.shield(self._fetching)

    async def _load(self, now: float) -> None:
        try:
            async with asyncio.timeout(2 * _FETCH_SECONDS):
                document = await self._fetch(self._settings.jwks_url or await self._found())
        except (OSError, ValueError, TimeoutError) as error:
            _log.warning("the keys of the token issuer cannot be had: %s", type(error).__name__)
            return
        entries = document.get("keys") if isinstance(document, Mapping) else None
        keys: dict[str | None, PyJWK] = {}
        for entry in entries[:_MOST_KEYS] if isinstance(entries, list) else ():
            if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
                continue
            try:
                key = self._jwt.PyJWK(entry)
            except self._jwt.PyJWTError:
                continue  # a kind of key that we do not know says nothing against the others
            if key.algorithm_name in _ALGORITHMS:
                keys[key.key_id] = key
        if keys:
            if self._keys.keys() != keys.keys():
                # A key that the issuer took back opens nothing any more, nor does what it was verified with.
                self._verified.clear()
            self._keys, self._fetched_at = keys, now

    async def _found(self) -> str:
        """Return where the issuer says that its keys are."""
        issuer = self._settings.issuer
        failure: Exception = ValueError("the issuer has no metadata")
        for path in _METADATA:
            try:
                metadata = await self._fetch(issuer.rstrip("/") + path)
            except (OSError, ValueError) as error:
                failure = error
                continue
            if isinstance(metadata, Mapping) and metadata.get("issuer") == issuer:
                place = metadata.get("jwks_uri")
                if isinstance(place, str) and place.partition("://")[0] == issuer.partition("://")[0]:
                    return place
        raise failure


def _words(value: Any) -> list[str]:
    """Return the words of a claim: a text with spaces between, or a list of texts."""
    if isinstance(value, str):
        return value.split()
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []


async def fetch_json(url: str) -> Any:
    """Get a JSON document from an address of the operator's. Raises OSError or ValueError."""
    import httpx

    try:
        async with (
            httpx.AsyncClient(timeout=_FETCH_SECONDS, follow_redirects=False) as client,
            client.stream("GET", url, headers={"accept": "application/json"}) as response,
        ):
            if response.status_code != 200:
                raise ValueError(f"answered {response.status_code}")
            body = b""
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _MOST_BYTES:
                    raise ValueError("answered too much")
    except httpx.HTTPError as error:
        raise OSError(type(error).__name__) from error
    return json.loads(body)
