"""Delivery by HTTPS POST to one address: signed, bounded, to a host that was checked, and nowhere it redirects to."""

import asyncio
import logging
import re
import ssl
import time
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Annotated, Final, Literal
from urllib.parse import SplitResult, urlsplit

import httpx
import msgspec
from msgspec import Meta

from forecourt.address import AddressError, is_loopback, resolve
from forecourt.lead.delivery import DeliveryError, Parcel, TargetError
from forecourt.lead.delivery.secret import read_secret
from forecourt.lead.delivery.signature import SIGNATURE_HEADER, sign
from forecourt.lead.delivery.trust import trusting

__all__ = ["DELIVERY_HEADER", "LONGEST_WAIT", "SETTINGS", "TARGET", "HTTPSSettings", "HTTPSTarget"]

DELIVERY_HEADER: Final = "Forecourt-Delivery"
"""The header that holds the delivery's id, the same on every try."""

LONGEST_WAIT: Final = 86_400.0
"""Seconds that a Retry-After may ask for at most; more is read as this."""

_HOST: Final = re.compile(r"[a-z0-9_.-]+|[0-9a-f:.]+")
_TARGET: Final = re.compile(r"[!-~]*")
_ID: Final = re.compile(r"[!-~]{1,200}")
_SHORTEST_SECRET: Final = 16
_MOST_SECRETS: Final = 3
_PORTS: Final = {"https": 443, "http": 80}
_LATER: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
_PASSING_REDIRECTS: Final = frozenset({HTTPStatus.FOUND, HTTPStatus.SEE_OTHER, HTTPStatus.TEMPORARY_REDIRECT})
_CONNECTING: Final = 0.4
"""The part of the whole time that a connection and its TLS may each take. Less than half, so that it is httpx who gives
them up and tidies; a handshake that is cancelled from outside leaves its socket to the garbage collector."""
_DELTA: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


class HTTPSSettings(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What a target of `via = "https"` says."""

    url: Annotated[str, Meta(min_length=1, max_length=2048)]
    """Where to post. May hold a path and a query, no credentials."""
    content_type: Literal["application/x-adf+xml", "text/xml"] = "application/x-adf+xml"
    """What ADF is called; events are always application/json."""
    secret_env: str | None = None
    """The environment variable that holds the secret of the signature; without a secret nothing is signed. Several
    lines are several secrets, all of which sign."""
    secret_file: str | None = None
    """The file that holds the secret of the signature."""
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that `url` may name, `.example.com` for any host below it; empty for every host."""
    allow_private: bool = False
    """Whether the host may be at an address that is not public: a CRM in the same network."""
    allow_http: bool = False
    """Whether `url` may begin with http, to this machine alone."""
    ca_file: str | None = None
    """Certificates (PEM) that vouch for the host, in the place of the system's."""
    connect_timeout: Annotated[float, Meta(gt=0, le=60)] = 10.0
    """Seconds to connect to one address, and as many for its TLS; at most two fifths of `timeout`."""
    timeout: Annotated[float, Meta(gt=0, le=300)] = 30.0
    """Seconds for the whole of one delivery."""


class HTTPSTarget:
    """A CRM's or a dealer's address that takes leads and events."""

    kind = "https"

    def __init__(self, settings: HTTPSSettings) -> None:
        """Check the settings and read the secret. Raises TargetError."""
        self._settings = settings
        self._parts = _read(settings)
        self._host = self._parts.hostname or ""
        self._port = self._parts.port or _PORTS[self._parts.scheme]
        secrets = read_secret("secret", settings.secret_env, settings.secret_file) or ""
        self._secrets = [line for line in secrets.replace("\r\n", "\n").split("\n") if line]
        if any(len(secret) < _SHORTEST_SECRET for secret in self._secrets):
            raise TargetError(f"secret: must be at least {_SHORTEST_SECRET} characters long")
        if len(self._secrets) > _MOST_SECRETS:
            raise TargetError(f"secret: at most {_MOST_SECRETS} lines, one for each secret that is still in use")
        self._context = trusting(self.kind, settings.ca_file)
        self._client: httpx.AsyncClient | None = None

    async def send(self, parcel: Parcel) -> None:
        """Post the parcel; any 2xx says that the other side has it. The answer's body is not read."""
        if parcel.kind == "notice":
            raise DeliveryError("an https target carries no notices", permanent=True)
        try:
            async with asyncio.timeout(self._settings.timeout):
                status, wait = await self._post(parcel)
        except TimeoutError:
            raise DeliveryError("the host did not answer in time") from None
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise _judged(status, wait)

    async def close(self) -> None:
        """Close what is still open."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _post(self, parcel: Parcel) -> tuple[int, str | None]:
        """Return the status and the Retry-After of the first address that can be connected to."""
        headers = self._headers(parcel)
        failure = "the host cannot be reached"
        for address in await self._addresses():
            request = self._open().build_request(
                "POST",
                self._address_at(address),
                headers=headers,
                content=parcel.content,
                # The connection goes to the address that was checked; the certificate must be the host's.
                extensions={"sni_hostname": self._host},
            )
            try:
                response = await self._open().send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                # Nothing was sent yet: the next address may be tried.
                if _is_distrust(error):
                    failure = "the host's certificate cannot be trusted"
                continue
            except httpx.TimeoutException:
                raise DeliveryError("the host did not answer in time") from None
            except httpx.HTTPError:
                raise DeliveryError("the host broke off the connection, or does not speak HTTP") from None
            with suppress(httpx.HTTPError):
                await response.aclose()
            return response.status_code, response.headers.get("Retry-After")
        raise DeliveryError(failure)

    def _headers(self, parcel: Parcel) -> dict[str, str]:
        if not _ID.fullmatch(parcel.delivery_id):
            raise DeliveryError("the delivery's id cannot stand in a header", permanent=True)
        headers = {
            "Host": self._parts.netloc,
            "User-Agent": "forecourt",
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            "Content-Type": self._settings.content_type if parcel.kind == "adf" else "application/json",
            DELIVERY_HEADER: parcel.delivery_id,
        }
        if self._secrets:
            first, *others = self._secrets
            headers[SIGNATURE_HEADER] = sign(first, parcel.content, int(time.time()), *others)
        return headers

    async def _addresses(self) -> tuple[str, ...]:
        local = self._parts.scheme == "http"
        try:
            found = await resolve(self._host, self._port, private=self._settings.allow_private or local)
        except AddressError as error:
            raise DeliveryError(
                "the host is at no public address; allow_private permits others"
                if error.refused
                else "the host's name cannot be found"
            ) from None
        if local and not all(map(is_loopback, found)):
            raise DeliveryError("the host is not this machine, and http goes nowhere else")
        return found

    def _address_at(self, address: str) -> str:
        place = f"[{address}]" if ":" in address else address
        query = f"?{self._parts.query}" if self._parts.query else ""
        return f"{self._parts.scheme}://{place}:{self._port}{self._parts.path or '/'}{query}"

    def _open(self) -> httpx.AsyncClient:
        if self._client is None:
            _hush()
            settings = self._settings
            self._client = httpx.AsyncClient(
                verify=self._context,
                follow_redirects=False,
                # Neither proxies nor credentials come from the environment.
                trust_env=False,
                timeout=httpx.Timeout(
                    settings.timeout, connect=min(settings.connect_timeout, settings.timeout * _CONNECTING)
                ),
                # A kept connection may be dead, and a request on it is then lost or doubled without a way to tell.
                limits=httpx.Limits(max_keepalive_connections=0),
            )
        return self._client


def _hush() -> None:
    """Keep httpx from logging the address of every post, unless somebody has set what it logs.

    Its query may hold a token, and ours is the place to log deliveries, by their ids.
    """
    for name in ("httpx", "httpcore"):
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.WARNING)


def _read(settings: HTTPSSettings) -> SplitResult:
    try:
        parts = urlsplit(settings.url)
        _ = parts.port
    except ValueError:
        raise TargetError("url: cannot be read") from None
    host = parts.hostname or ""
    if parts.scheme not in _PORTS or not host:
        raise TargetError("url: must begin with https:// and a host")
    if not _HOST.fullmatch(host) or not _TARGET.fullmatch(settings.url):
        raise TargetError("url: must be ASCII without blanks; write other letters of a host in punycode")
    if "@" in parts.netloc or "#" in settings.url:
        raise TargetError("url: must hold neither credentials nor a fragment")
    if parts.scheme == "http" and not (settings.allow_http and (host == "localhost" or is_loopback(host))):
        raise TargetError("url: must begin with https://; http needs allow_http and goes to this machine only")
    if settings.allowed_hosts and not any(_fits(host, allowed.lower()) for allowed in settings.allowed_hosts):
        raise TargetError("url: its host is not one of allowed_hosts")
    return parts


def _fits(host: str, allowed: str) -> bool:
    return host.endswith(allowed) if allowed.startswith(".") else host == allowed


def _judged(status: int, wait: str | None) -> DeliveryError:
    """Return what an answer other than 2xx means.

    To be tried again: 408, 425, 429, 5xx and redirects that say they are for now, which a page for the time of
    maintenance sends. All others say that this request will not do as it is.
    """
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return DeliveryError(
            f"the host redirects ({status}), which is not followed", permanent=status not in _PASSING_REDIRECTS
        )
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _LATER:
        return DeliveryError(f"the host cannot take it now ({status})", retry_after=_seconds(wait))
    return DeliveryError(f"the host refused it ({status})", permanent=True)


def _seconds(wait: str | None) -> float | None:
    """Return a Retry-After (RFC 9110 section 10.2.3) in seconds, bounded; None for one that cannot be read."""
    if wait is None:
        return None
    wait = wait.strip()
    if _DELTA.fullmatch(wait):
        return min(float(wait), LONGEST_WAIT)
    try:
        until = parsedate_to_datetime(wait)
        ahead = (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    except (ValueError, OverflowError, TypeError):
        return None
    return min(max(ahead, 0.0), LONGEST_WAIT)


def _is_distrust(error: BaseException | None) -> bool:
    """Tell whether a certificate is what an error comes from."""
    for _ in range(8):
        if error is None:
            return False
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


SETTINGS: Final = HTTPSSettings
TARGET: Final = HTTPSTarget
