"""Who may call what, and how often: asked by every binding before a skill runs.

A credential is a key of `forecourt keys`, as `X-API-Key` or as a bearer token, or a JWT of the configured issuer. One
that is shown is checked even where none is needed, and one that is not good is refused, never overlooked. Which sellers
a caller reaches comes from its credential; an argument can only narrow that.
"""

import hashlib
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import Any, Final

from forecourt.a2a import A2AError, SecurityRequirement, api_key_scheme, http_auth_scheme
from forecourt.agent import Caller
from forecourt.contract import SKILLS
from forecourt.errors import AAPError
from forecourt.server.api_keys import PREFIX, KeyRing
from forecourt.server.config import Access, ConfigError, Limits
from forecourt.server.connections import counted_as
from forecourt.server.limit import ClientLimit
from forecourt.server.oauth import TokenVerifier
from forecourt.store import Store, StoreError

__all__ = ["RESOURCE_METADATA", "Admission", "InsufficientScopeError", "InvalidTokenError"]

RESOURCE_METADATA: Final = "/.well-known/oauth-protected-resource"
"""Where a protected resource says which authorization servers serve it (RFC 9728 section 3)."""

KEY_HEADER: Final = b"x-api-key"
_KEY_SCHEME: Final = "apiKey"
_OAUTH_SCHEME: Final = "oauth"
_BESIDE_A_CALL: Final = 5
_LEAST_BESIDE: Final = 100
"""How many pages and messages a client may ask for beside each call of its limit, and how many at the least."""
_REMEMBERED: Final = 16_384
"""Of how many credentials it is remembered whose they are."""


class InsufficientScopeError(A2AError):
    """A token is good and lacks the scope of the skill."""


class InvalidTokenError(A2AError):
    """A bearer token was shown and is not good."""


@dataclass(frozen=True, slots=True)
class _Credential:
    """Who has proved to be who. `scopes` is None where the credential opens every skill."""

    identity: str
    sellers: tuple[str, ...] | None
    scopes: frozenset[str] | None
    own_limit: tuple[int, int] | None = None


class Admission:
    """Lets callers in or raises why not."""

    def __init__(self, access: Access, limits: Limits, store: Store, tokens: TokenVerifier | None = None) -> None:
        _check(access, limits)
        self._access = access
        self._public = frozenset(access.public)
        self._keys = KeyRing(store) if access.keys else None
        self._tokens = tokens or (TokenVerifier(access.oauth) if access.oauth else None)
        self._open = self._keys is None and self._tokens is None
        self.limit = ClientLimit(limits)
        self._beside: tuple[int, int] | None = None
        if limits.requests is not None:
            self._beside = (max(_BESIDE_A_CALL * limits.requests, _LEAST_BESIDE), limits.seconds)
        self.is_needed = not self._open or self.limit.is_set
        # Digests of credentials that were good, and whose they were: they open nothing, requests are counted by them.
        self._known: dict[bytes, tuple[str, tuple[int, int] | None]] = {}

    async def close(self) -> None:
        """Let go of what counts calls."""
        await self.limit.close()

    # Before a request is looked at

    def client_of(self, headers: Iterable[tuple[bytes, bytes]], address: str) -> str:
        """Return whose a request is counted as: its credential's where that was good before, else its address's."""
        if self._known:
            found = self._shown(headers)[1]
            if found is not None:
                return found[0]
        return counted_as(address)

    def remember(self, credential: bytes, client: str, own: tuple[int, int] | None = None) -> None:
        """Know whose a credential is that was found to be good, as it stands in its header."""
        digest = hashlib.sha256(credential).digest()
        if digest not in self._known and len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[digest] = (client, own)

    def refusal(self, scope: MutableMapping[str, Any], *, known_only: bool = False) -> AAPError | None:
        """Return the error for a client that is known to be beyond its limit, None for others.

        A credential that was not seen before is looked at first: its owner is not held to what others at the same
        address did; `known_only` where there is nothing without one.
        """
        if not self.limit.may_refuse:
            return None
        shown, found = self._shown(scope["headers"])
        if found is None and (known_only or (shown and not self._open)):
            return None
        client = scope.get("client")
        return self.limit.refusal(found[0] if found else counted_as(client[0] if client else ""))

    async def count(self, headers: Iterable[tuple[bytes, bytes]], address: str) -> None:
        """Count what cannot be read to whose it is. Raises AAPError RATE_LIMITED."""
        if self.is_needed:
            found = self._shown(headers)[1] or (counted_as(address), None)
            await self.limit.check(found[0], own=found[1])

    async def count_beside(self, headers: Iterable[tuple[bytes, bytes]], address: str) -> None:
        """Count a page, or a message that is no call, beside the calls of whose it is. Raises AAPError RATE_LIMITED.

        Cards, schemas and handshakes are what a client needs before it can call at all, some of them with every call:
        there are more of them than of calls, and each costs less.
        """
        if self._beside is not None:
            await self.limit.check(f"{self.client_of(headers, address)}|beside", own=self._beside)

    def _shown(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[bool, tuple[str, tuple[int, int] | None] | None]:
        """Return whether there is a credential, and what is known of it."""
        shown = False
        for name, value in headers:
            if name in (b"authorization", KEY_HEADER):
                shown = True
                found = self._known.get(hashlib.sha256(value).digest())
                if found is not None:
                    return True, found
        return shown, None

    # When it is

    async def admit(
        self, headers: Iterable[tuple[bytes, bytes]], address: str, caller: Caller, skill: str | None
    ) -> Caller:
        """Return `caller` as the one who its credential proves it to be.

        `address` is where it calls from, `skill` what it asks for, None for what names no skill. Raises A2AError
        `unauthenticated` or `permission_denied`, AAPError RATE_LIMITED, and INTERNAL_ERROR where a credential cannot
        be checked.
        """
        address = counted_as(address)
        if self._open:
            await self.limit.check(address, skill)
            return caller
        credential = await self._checked(headers, address, skill)
        if credential is None:
            # Counted whether it is let in or not, so that nobody asks in vain as often as they like.
            await self.limit.check(address, skill)
            if skill not in self._public and not (skill is None and self._public.issuperset(SKILLS)):
                raise self._unauthenticated()
            return caller
        await self.limit.check(credential.identity, skill, credential.own_limit)
        scope = self.scope(skill)
        if scope is not None and credential.scopes is not None and scope not in credential.scopes:
            raise InsufficientScopeError.permission_denied(f"The token lacks the scope {scope}")
        return replace(caller, identity=credential.identity, sellers=_reached(caller.sellers, credential.sellers))

    async def identify(self, headers: Iterable[tuple[bytes, bytes]], address: str, caller: Caller) -> Caller:
        """Return `caller` as `admit` does, for what is no call of a skill; without a credential where any is public.

        Raises like `admit`. Of the limits it counts guesses only.
        """
        if self._open:
            return caller
        address = counted_as(address)
        credential = await self._checked(headers, address, None)
        if credential is None:
            if self._public:
                return caller
            await self.limit.check(address)
            raise self._unauthenticated()
        return replace(caller, identity=credential.identity, sellers=_reached(caller.sellers, credential.sellers))

    async def _checked(
        self, headers: Iterable[tuple[bytes, bytes]], address: str, skill: str | None
    ) -> _Credential | None:
        """Return who the request's credential proves, and count one that is not good to where it comes from."""
        try:
            return await self._credential(headers)
        except A2AError:
            await self.limit.check(address, skill)
            raise

    async def _credential(self, headers: Iterable[tuple[bytes, bytes]]) -> _Credential | None:
        """Return who the request's credential proves, None when it shows none. Raises for one that is not good."""
        shown = [(name, value) for name, value in headers if name in (KEY_HEADER, b"authorization")]
        if not shown:
            return None
        if len(shown) > 1:
            # Of two one could be checked and the other counted.
            raise self._unauthenticated()
        name, value = shown[0]
        token = False
        text = value.decode("latin-1").strip()
        if name == b"authorization":
            scheme, _, text = text.partition(" ")
            text = text.strip()
            if scheme.lower() != "bearer":
                raise self._unauthenticated()
            token = True
        found = await (self._by_key(text) if text.startswith(PREFIX) else self._by_token(text, name))
        if found is None:
            raise self._unauthenticated("invalid_token" if token else None)
        self.remember(value, found.identity, found.own_limit)
        return found

    async def _by_key(self, text: str) -> _Credential | None:
        if self._keys is None:
            return None
        try:
            key = await self._keys.find(text)
        except StoreError as error:
            raise AAPError("INTERNAL_ERROR", reason="keys cannot be looked up") from error
        if key is None:
            return None
        own = (key.requests, key.seconds or 60) if key.requests else None
        return _Credential(f"key:{key.key_id}", key.sellers, None, own)

    async def _by_token(self, text: str, header: bytes) -> _Credential | None:
        if self._tokens is None or header == KEY_HEADER:
            return None
        token = await self._tokens.verify(text)
        return None if token is None else _Credential(f"token:{token.subject}", token.sellers, token.scopes)

    def _unauthenticated(self, error: str | None = None) -> A2AError:
        """Return the refusal; `error` only where a token was shown (RFC 6750 section 3.1)."""
        kind = InvalidTokenError if error else A2AError
        return kind.unauthenticated("This needs a credential of this dealer agent's", self.challenge(error=error))

    def scope(self, skill: str | None) -> str | None:
        """Return the scope that a token needs for a skill, None when it needs none."""
        return self._access.oauth.scopes.get(skill or "") if self._access.oauth else None

    def challenge(
        self, resource_metadata: str | None = None, scope: str | None = None, error: str | None = None
    ) -> str:
        """Return the `WWW-Authenticate` of a refusal (RFC 6750 section 3, RFC 9728 section 5.1)."""
        told = {"realm": "forecourt", "error": error, "scope": scope, "resource_metadata": resource_metadata}
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in told.items() if value)

    # What is published

    def security_schemes(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the schemes as an agent card declares them (A2A v1.0 section 4.5)."""
        schemes: dict[str, Mapping[str, Any]] = {}
        if self._keys is not None:
            schemes[_KEY_SCHEME] = api_key_scheme("X-API-Key", description="A key from the dealer")
        if self._access.oauth is not None:
            schemes[_OAUTH_SCHEME] = http_auth_scheme(
                bearer_format="JWT", description=f"A token of {self._access.oauth.issuer}"
            )
        return schemes

    def security_requirements(self, skill: str) -> tuple[SecurityRequirement, ...]:
        """Return the alternatives of which a caller of `skill` must meet one; none when anybody may call it."""
        if self._open or skill in self._public:
            return ()
        alternatives: list[SecurityRequirement] = []
        if self._keys is not None:
            alternatives.append({_KEY_SCHEME: []})
        if self._access.oauth is not None:
            scope = self._access.oauth.scopes.get(skill)
            alternatives.append({_OAUTH_SCHEME: [scope] if scope else []})
        return tuple(alternatives)

    @property
    def is_closed(self) -> bool:
        """Whether nothing is open to anybody."""
        return not self._open and not self._public

    @property
    def has_issuer(self) -> bool:
        """Whether tokens of an authorization server are accepted."""
        return self._access.oauth is not None

    def resource_metadata(self, resource: str, name: str) -> dict[str, Any] | None:
        """Return what RFC 9728 asks of the resource at this address, None where no issuer's tokens are accepted."""
        oauth = self._access.oauth
        if oauth is None:
            return None
        metadata: dict[str, Any] = {
            "resource": resource,
            "resource_name": name,
            "authorization_servers": [oauth.issuer],
            "bearer_methods_supported": ["header"],
        }
        if oauth.scopes:
            # RFC 9728 section 3.2: what has no elements is left out.
            metadata["scopes_supported"] = sorted(set(oauth.scopes.values()))
        return metadata


def _reached(endpoint: tuple[str, ...] | None, credential: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the sellers that both the endpoint and the credential reach."""
    if credential is None:
        return endpoint
    reached = credential if endpoint is None else tuple(each for each in endpoint if each in credential)
    if not reached:
        raise A2AError.permission_denied("The credential does not reach this address")
    return reached


def _check(access: Access, limits: Limits) -> None:
    """Raise ConfigError for names that are none, and for skills that nobody could call."""
    for key, names in (("public", access.public), ("oauth", access.oauth.scopes if access.oauth else ())):
        for name in names:
            if name not in SKILLS:
                raise ConfigError(f"there is no skill {name!r}; there are {', '.join(SKILLS)}", "access", key)
    for name in limits.skills:
        if name not in SKILLS:
            raise ConfigError(f"there is no such skill; there are {', '.join(SKILLS)}", "limits", "skills", name)
    if not access.keys and access.oauth is None and not set(access.public).issuperset(SKILLS):
        raise ConfigError("nobody could call the other skills; set access.keys or [access.oauth]", "access", "public")
