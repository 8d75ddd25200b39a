"""A feed behind an http or https address: fetched into a file, bounded in size, time and redirects, conditionally.

Compressed feeds stay compressed: what a file is, `forecourt.feed` tells by its content.
"""

import base64
import http.client
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO, Final
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from forecourt import __version__

__all__ = ["FetchBounds", "FetchError", "Fetched", "fetch", "is_address", "shown"]

_SCHEMES: Final = ("http", "https")
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_CHUNK: Final = 1 << 16
_LONGEST_TAG: Final = 1024


class FetchError(Exception):
    """The address did not give a feed. The message holds nothing of the address but its host."""


@dataclass(frozen=True, slots=True)
class FetchBounds:
    """How much a fetch may take: bytes, seconds without a byte, seconds in all, redirects."""

    size: int = 2 << 30
    silence: float = 30.0
    seconds: float = 1800.0
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came: whether anything new did, and what the server says of it, for the next conditional request."""

    modified: bool
    size: int = 0
    etag: str | None = None
    last_modified: str | None = None


def is_address(source: str) -> bool:
    """Tell whether a source is fetched and not opened."""
    return source.split("://", 1)[0].lower() in _SCHEMES and "://" in source


def shown(source: str) -> str:
    """Return a source as others may read it: an address without credentials and query, a file by its name."""
    if not is_address(source):
        return source.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    try:
        parts = urlsplit(source)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{parts.path}{'?…' if parts.query else ''}"


def fetch(
    address: str,
    into: IO[bytes],
    *,
    etag: str | None = None,
    last_modified: str | None = None,
    bounds: FetchBounds | None = None,
    tell: Callable[[int], None] | None = None,
) -> Fetched:
    """Write what is at `address` into a file; blocks, so it is called in a thread.

    With `etag` or `last_modified` of an earlier answer the server may say that nothing changed. A user and password
    in the address go to its own origin alone. Redirects lead to http or https, and never from https to http. `tell`
    is called with the bytes so far and may stop the fetch by raising. Raises FetchError.
    """
    limits = bounds or FetchBounds()
    until = time.monotonic() + limits.seconds
    current = _parts(address)
    credentials, origin = _credentials(current), _origin(current)
    for _ in range(limits.redirects + 1):
        connection = _connection(current, min(limits.silence, limits.seconds))
        try:
            headers = {
                "User-Agent": f"forecourt/{__version__}",
                "Accept": "*/*",
                "Accept-Encoding": "identity",
                "Connection": "close",
            }
            if credentials and _origin(current) == origin:
                headers["Authorization"] = credentials
            if etag:
                headers["If-None-Match"] = etag
            if last_modified:
                headers["If-Modified-Since"] = last_modified
            connection.request("GET", _target(current), headers=headers)
            with connection.getresponse() as answer:
                if answer.status in _REDIRECTS:
                    current = _followed(current, answer.headers.get("Location"))
                    continue
                if answer.status == HTTPStatus.NOT_MODIFIED and (etag or last_modified):
                    return Fetched(modified=False, etag=etag, last_modified=last_modified)
                if answer.status != HTTPStatus.OK:
                    raise FetchError(f"{current.hostname} answered with status {answer.status}")
                size = _copy(answer, into, limits, until, tell)
                return Fetched(True, size, _kept(answer, "ETag"), _kept(answer, "Last-Modified"))
        except FetchError:
            raise
        except TimeoutError as error:
            raise FetchError(f"{current.hostname} did not answer in time") from error
        except ssl.SSLCertVerificationError as error:
            raise FetchError(f"the certificate of {current.hostname} cannot be trusted") from error
        except socket.gaierror as error:
            raise FetchError(f"there is no host {current.hostname}") from error
        except http.client.IncompleteRead as error:
            raise FetchError(f"{current.hostname} broke off in the middle of the file") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise FetchError(f"{current.hostname} cannot be reached, or does not speak HTTP") from error
        finally:
            connection.close()
    raise FetchError(f"more than {limits.redirects} redirects")


def _parts(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError as error:
        raise FetchError("the address cannot be read") from error
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise FetchError("only http and https addresses are fetched")
    return parts


def _credentials(parts: SplitResult) -> str | None:
    if parts.username is None:
        return None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def _origin(parts: SplitResult) -> tuple[str, str | None, int]:
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def _connection(parts: SplitResult, seconds: float) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "https":
        return http.client.HTTPSConnection(host, parts.port, timeout=seconds, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, parts.port, timeout=seconds)


def _target(parts: SplitResult) -> str:
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?")
    return f"{path}?{query}" if query else path


def _followed(current: SplitResult, location: str | None) -> SplitResult:
    if not location:
        raise FetchError(f"{current.hostname} redirects to nowhere")
    target = _parts(urljoin(current.geturl(), location))
    if current.scheme == "https" and target.scheme != "https":
        raise FetchError(f"{current.hostname} redirects from https to http")
    return target


def _copy(
    answer: http.client.HTTPResponse,
    into: IO[bytes],
    limits: FetchBounds,
    until: float,
    tell: Callable[[int], None] | None,
) -> int:
    expected = answer.length
    if expected is not None and expected > limits.size:
        raise FetchError("the file is larger than it may be")
    taken = 0
    while chunk := answer.read1(_CHUNK):
        taken += len(chunk)
        if taken > limits.size:
            raise FetchError("the file is larger than it may be")
        if time.monotonic() > until:
            raise FetchError("the file did not arrive in time")
        into.write(chunk)
        if tell is not None:
            tell(taken)
    if expected is not None and taken != expected:
        raise http.client.IncompleteRead(b"", expected - taken)
    return taken


def _kept(answer: http.client.HTTPResponse, name: str) -> str | None:
    """Return a header that is sent back as it came, if it is of a sane length."""
    value = answer.headers.get(name)
    return value if value and len(value) <= _LONGEST_TAG and value.isprintable() and value.isascii() else None
