"""Outgoing HTTP, the one place that opens connections: every body, wait and redirect has a bound.

httpx carries the requests and is loaded with the first of them. Bodies are decompressed here, since a few kilobytes of
gzip can be gigabytes of text.
"""

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from forecourt import __version__
from forecourt.a2a import FailureKind
from forecourt.client.address import origin
from forecourt.client.failure import Answer, TransportError

if TYPE_CHECKING:
    import httpx

__all__ = ["Http", "HttpOptions"]

_REDIRECTS: Final = (301, 302, 303, 307, 308)
_HOPS: Final = 3
_USER_AGENT: Final = f"forecourt/{__version__}"


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How a client reaches out.

    `max_connections` bounds the requests under way at once; what waits for a place waits within its own time.
    `max_bytes` bounds a body after decompression. `proxy` is an address ("http://proxy.example.com:3128"); without one
    the environment's are used (HTTPS_PROXY, NO_PROXY). `verify` is True, False, or an `ssl.SSLContext` with a private
    authority or a client certificate. `transport` takes the place of the network, for tests and for other networks.
    """

    max_connections: int = 10
    max_bytes: int = 16 * 1024 * 1024
    proxy: str | None = None
    verify: bool | ssl.SSLContext = True
    transport: Any = None


class _Progress:
    """How far a request came, as httpcore's trace tells: what was never sent has certainly changed nothing."""

    def __init__(self) -> None:
        self.connecting = False
        self.sending = False

    async def __call__(self, event: str, details: Any) -> None:
        del details
        self.connecting = self.connecting or event.startswith("connection.")
        self.sending = self.sending or event.endswith(".send_request_headers.started")


class Http:
    """A pool of connections. It follows no redirect, keeps no cookie, and knows no credential of its own."""

    def __init__(self, options: HttpOptions) -> None:
        self._options = options
        self._client: httpx.AsyncClient | None = None

    @property
    def max_bytes(self) -> int:
        """How long a body may be."""
        return self._options.max_bytes

    def client(self) -> "httpx.AsyncClient":
        """Return the client of httpx underneath; whoever uses it bounds what it does."""
        if self._client is None:
            import http.cookiejar

            import httpx

            options = self._options
            self._client = httpx.AsyncClient(
                verify=options.verify,
                proxy=options.proxy,
                transport=options.transport,
                limits=httpx.Limits(
                    max_connections=options.max_connections, max_keepalive_connections=options.max_connections
                ),
                follow_redirects=False,
                cookies=http.cookiejar.CookieJar(http.cookiejar.DefaultCookiePolicy(allowed_domains=[])),
                timeout=None,  # noqa: S113 - every call has a bound on all of it, by asyncio.timeout
            )
        return self._client

    async def close(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def get(self, url: str, headers: Mapping[str, str], seconds: float, max_bytes: int) -> Answer:
        """GET a document. A redirect is followed within the same origin, three times at most.

        Raises TransportError.
        """
        progress = _Progress()
        try:
            async with asyncio.timeout(seconds):
                for _ in range(_HOPS + 1):
                    answer = await self._send("GET", url, headers, None, max_bytes, progress)
                    target = urljoin(url, answer.headers.get("location", ""))
                    if answer.status not in _REDIRECTS or origin(target) != origin(url):
                        return answer
                    url = target
        except TimeoutError:
            raise self._too_late(seconds, progress) from None
        raise TransportError(FailureKind.BAD_ENDPOINT, "the dealer's redirects do not end", raw=answer)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, seconds: float) -> Answer:
        """POST a body and return what is answered, whatever its status; `seconds` bound all of it.

        Raises TransportError.
        """
        return await self.send("POST", url, headers, body, seconds)

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, seconds: float
    ) -> Answer:
        """Send one request, without following anything; `seconds` bound all of it. Raises TransportError."""
        progress = _Progress()
        try:
            async with asyncio.timeout(seconds):
                return await self._send(method, url, headers, body, self._options.max_bytes, progress)
        except TimeoutError:
            raise self._too_late(seconds, progress) from None

    def _too_late(self, seconds: float, progress: "_Progress") -> TransportError:
        """Return what a call is that ran out of time: waiting for its turn, for a connection, or for the answer."""
        if self._options.transport is None and not progress.connecting and not progress.sending:
            message = "too many requests of this client are under way"
            return TransportError(FailureKind.TOO_MANY_PENDING, message, sent=False)
        message = f"the dealer did not answer within {seconds:g} seconds"
        # A transport of the caller's own may not tell how far it came.
        sent = progress.sending or self._options.transport is not None
        return TransportError(FailureKind.TIMEOUT, message, sent=sent)

    async def _send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        max_bytes: int,
        progress: "_Progress",
    ) -> Answer:
        import httpx

        sent = {"User-Agent": _USER_AGENT, "Accept-Encoding": "gzip", **headers}
        client = self.client()
        try:
            extensions = {"trace": progress}
            async with client.stream(method, url, headers=sent, content=body, extensions=extensions) as response:
                found = {name: ", ".join(response.headers.get_list(name)) for name in response.headers}
                bare = Answer(url, response.status_code, found, b"")
                if response.is_stream_consumed:
                    # A transport of the caller's own, whose answers are there as a whole.
                    body_read = response.content
                else:
                    body_read = await _read(response.aiter_raw(), found.get("content-encoding", ""), max_bytes, bare)
                return Answer(url, response.status_code, found, body_read)
        except httpx.PoolTimeout as error:
            message = "too many requests of this client are under way"
            raise TransportError(FailureKind.TOO_MANY_PENDING, message, sent=False) from error
        except httpx.TimeoutException as error:
            sent_off = not isinstance(error, httpx.ConnectTimeout)
            raise TransportError(FailureKind.TIMEOUT, "the dealer did not answer in time", sent=sent_off) from error
        except (httpx.ConnectError, httpx.ProxyError) as error:
            raise TransportError(FailureKind.CONNECTION, "the dealer cannot be reached", sent=False) from error
        except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
            message = "the connection to the dealer broke before the answer was there"
            raise TransportError(FailureKind.CONNECTION, message) from error
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError) as error:
            raise TransportError(FailureKind.BAD_ENDPOINT, "the request cannot be sent there", sent=False) from error
        except httpx.HTTPError as error:
            raise TransportError(FailureKind.OTHER, "the request failed") from error


async def _read(chunks: AsyncIterator[bytes], encoding: str, max_bytes: int, bare: Answer) -> bytes:
    """Return a body, decompressed, that is at most `max_bytes` long."""
    coding = encoding.strip().lower()
    if coding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise TransportError(FailureKind.UNREADABLE, "the answer is compressed in a way not asked for", raw=bare)
    # 47 reads the headers of both gzip and zlib.
    inflate = zlib.decompressobj(47) if coding not in ("", "identity") else None
    parts, length = [], 0
    async for chunk in chunks:
        if inflate is not None:
            try:
                chunk = inflate.decompress(chunk, max_bytes + 1 - length)
            except zlib.error as error:
                message = "the compression of the answer is broken"
                raise TransportError(FailureKind.UNREADABLE, message, raw=bare) from error
        parts.append(chunk)
        length += len(chunk)
        if length > max_bytes:
            message = f"the answer is longer than {max_bytes} bytes"
            raise TransportError(FailureKind.UNREADABLE, message, raw=bare)
    return b"".join(parts)
