"""What a call can fail with besides `AAPError` and `A2AError`, and what is kept of the answer that brought it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from forecourt.a2a import ClientError, FailureKind

__all__ = ["Answer", "DealerError", "PagingError", "TransportError"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a dealer answered, as it came: the raw envelope, kept before anything is read from it.

    `headers` has lower-case names (several of one name joined by ", "). `body` may hold a shopper's data: it is not
    in the representation.
    """

    url: str
    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def media_type(self) -> str:
        """The Content-Type without its parameters, in lower case; "" when there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class TransportError(ClientError):
    """No readable answer came back: neither a result nor an error of AAP or A2A.

    `kind` says what was met instead (`forecourt.a2a.FailureKind`), `status` is the HTTP status where there was one,
    `raw` the answer as far as it could be kept. `sent` is False when the request certainly never left: for
    `lead.submit` everything else is an uncertain outcome, which is cleared up by sending the same key again.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        status: int | None = None,
        error: Any = None,
        raw: Answer | None = None,
        sent: bool = True,
    ) -> None:
        super().__init__(kind, message, status=status, error=error)
        self.raw = raw
        self.sent = sent

    @property
    def challenge(self) -> str | None:
        """What the dealer asks credentials by (`WWW-Authenticate`), None where it asks for none."""
        return self.raw.headers.get("www-authenticate") if self.raw else None


class DealerError(TransportError):
    """There is no dealer agent here that this client can talk to; the message says why."""

    def __init__(self, message: str, kind: FailureKind = FailureKind.BAD_ENDPOINT, **more: Any) -> None:
        super().__init__(kind, message, sent=False, **{key: more[key] for key in more.keys() & {"status", "raw"}})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle whole."""
        return type(self), (self.message, self.kind), self.__dict__


class PagingError(TransportError):
    """The pages of a search do not end: a cursor came back, a page brought nothing new, or the cap was reached."""

    def __init__(self, message: str) -> None:
        super().__init__(FailureKind.OTHER, message)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle whole."""
        return type(self), (self.message,), self.__dict__
