"""What kind of failure an A2A error is, and how a failed call to another agent becomes an A2A error.

An agent that delegates raises `to_a2a_error(failure)`; whoever looks at the result with `error_class`
learns whether it is worth trying again, by the same judgement (`is_retryable`) that the client's retry
policy uses.
"""

import copy
import enum
from collections.abc import Iterator
from typing import Any, Final

from forecourt.a2a.codes import ErrorCode
from forecourt.a2a.error import FAILURE_CLASS_KEY, A2AError

__all__ = [
    "RETRYABLE_STATUSES",
    "ClientError",
    "FailureClass",
    "FailureKind",
    "error_class",
    "from_a2a_error",
    "is_retryable",
    "to_a2a_error",
    "with_failure_class",
]

RETRYABLE_STATUSES: Final = frozenset({429, 502, 503, 504})
"""The HTTP statuses after which the same request may succeed."""

_CAUSES_SHOWN: Final = 8
_CAUSE_LENGTH: Final = 300


class FailureClass(enum.StrEnum):
    """What a caller can do about a failure. Open-ended: a class that is not listed reads as INTERNAL."""

    INVALID_REQUEST = "invalid_request"
    """Wrong now and later: the request has to change."""
    TRANSIENT = "transient"
    """The same request may succeed later."""
    POLICY_REFUSAL = "policy_refusal"
    """Declined on purpose."""
    BUDGET_EXHAUSTED = "budget_exhausted"
    """A bound was hit: time, tokens, money, depth."""
    INTERNAL = "internal"
    """Something broke, or nobody said what it was."""

    @classmethod
    def _missing_(cls, value: object) -> "FailureClass":  # noqa: ARG003 - whatever it is, it is unknown
        return cls.INTERNAL


_CLASS_OF_CODE: Final = {
    ErrorCode.PARSE_ERROR: FailureClass.INVALID_REQUEST,
    ErrorCode.INVALID_REQUEST: FailureClass.INVALID_REQUEST,
    ErrorCode.METHOD_NOT_FOUND: FailureClass.INVALID_REQUEST,
    ErrorCode.INVALID_PARAMS: FailureClass.INVALID_REQUEST,
    ErrorCode.INTERNAL_ERROR: FailureClass.INTERNAL,
    ErrorCode.TASK_NOT_FOUND: FailureClass.INVALID_REQUEST,
    ErrorCode.TASK_NOT_CANCELABLE: FailureClass.INVALID_REQUEST,
    ErrorCode.PUSH_NOTIFICATION_NOT_SUPPORTED: FailureClass.INVALID_REQUEST,
    ErrorCode.UNSUPPORTED_OPERATION: FailureClass.INVALID_REQUEST,
    ErrorCode.CONTENT_TYPE_NOT_SUPPORTED: FailureClass.INVALID_REQUEST,
    ErrorCode.INVALID_AGENT_RESPONSE: FailureClass.INTERNAL,
    ErrorCode.EXTENDED_AGENT_CARD_NOT_CONFIGURED: FailureClass.INVALID_REQUEST,
    ErrorCode.EXTENSION_SUPPORT_REQUIRED: FailureClass.INVALID_REQUEST,
    ErrorCode.VERSION_NOT_SUPPORTED: FailureClass.INVALID_REQUEST,
}


def error_class(error: A2AError) -> FailureClass:
    """Classify any A2A error: by the class it was marked with, else by its code (unlisted: INTERNAL)."""
    entries = error.data if isinstance(error.data, list | tuple) else (error.data,)
    for entry in entries:
        if isinstance(entry, dict) and FAILURE_CLASS_KEY in entry:
            marked = entry[FAILURE_CLASS_KEY]
            return FailureClass(marked) if isinstance(marked, str) else FailureClass.INTERNAL
    return _CLASS_OF_CODE.get(error.code, FailureClass.INTERNAL)


def with_failure_class(error: A2AError, failure_class: FailureClass) -> A2AError:
    """Return an error that says the same and is marked with `failure_class`, whatever its code would suggest.

    The mark rides in `data` under a private key that `A2AError.to_wire` removes again. Raises ValueError
    when `data` is neither an object nor an array, which have no place for it.
    """
    data: Any = error.data
    if data is None:
        marked: Any = {FAILURE_CLASS_KEY: failure_class.value}
    elif isinstance(data, dict):
        marked = data | {FAILURE_CLASS_KEY: failure_class.value}
    elif isinstance(data, list | tuple):
        # First, since the first mark is the one that is read.
        marked = [{FAILURE_CLASS_KEY: failure_class.value}, *data]
    else:
        raise ValueError("only an object or an array can be marked with a failure class")
    result = copy.copy(error)
    result.data = marked
    return result


class FailureKind(enum.StrEnum):
    """What a client met instead of an answer."""

    PROTOCOL = "protocol"
    """The agent answered with an A2A error."""
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    STATUS = "status"
    """An HTTP status that is no answer."""
    TOO_MANY_PENDING = "too_many_pending"
    """The client's own bound on requests under way."""
    UNREADABLE = "unreadable"
    """The agent answered with something that cannot be read."""
    BAD_ENDPOINT = "bad_endpoint"
    BINDING_MISMATCH = "binding_mismatch"
    """The agent does not speak the binding that was asked for."""
    AUTH_REQUIRED = "auth_required"
    OTHER = "other"


_RETRYABLE_KINDS: Final = frozenset({FailureKind.TIMEOUT, FailureKind.CONNECTION, FailureKind.TOO_MANY_PENDING})


class ClientError(Exception):
    """A call to another agent failed. What it was caused by is its `__cause__` chain (`raise … from …`).

    `status` is the HTTP status, where one came; `error` the A2A error of kind PROTOCOL. Raises ValueError
    when the kind lacks what it is about.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        status: int | None = None,
        error: A2AError | None = None,
    ) -> None:
        if (kind is FailureKind.PROTOCOL) != (error is not None):
            raise ValueError("a protocol failure carries its A2AError, and no other kind does")
        if kind is FailureKind.STATUS and status is None:
            raise ValueError("a status failure carries its HTTP status")
        self.kind = kind
        self.message = message
        self.status = status
        self.error = error
        super().__init__(kind, message)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle whole; the plain form of exceptions would call `__init__` without the keywords."""
        return _rebuild, (type(self), self.kind, self.message, self.status, self.error), self.__dict__

    def __str__(self) -> str:
        """Return the message."""
        return self.message


def _rebuild(
    cls: type[ClientError], kind: FailureKind, message: str, status: int | None, error: A2AError | None
) -> ClientError:
    return cls(kind, message, status=status, error=error)


def is_retryable(error: ClientError) -> bool:
    """Tell whether the same request may succeed later: the one judgement of retry policy and conversion.

    A protocol error never is by itself: what may be repeated then is for its payload to say.
    """
    if error.kind is FailureKind.STATUS:
        return error.status in RETRYABLE_STATUSES
    return error.kind in _RETRYABLE_KINDS


def to_a2a_error(failure: ClientError) -> A2AError:
    """Return the A2A error by which an agent that delegates passes `failure` on, with `failure` as its cause.

    ==========================  ======================  ==================
    the client met              code                    class
    ==========================  ======================  ==================
    a protocol error            its own, all unchanged  from the code
    what it would retry         InternalError           TRANSIENT
    something unreadable        InvalidAgentResponse    INTERNAL
    everything else             InternalError           INTERNAL
    ==========================  ======================  ==================

    The message holds the texts of the failure and of its causes, bounded in number and length. A protocol
    error's refusal of credentials is not passed on: it was this agent that was refused, not its caller.
    """
    if failure.error is not None:
        source = failure.error
        converted = A2AError(source.code, source.message, source.data, extra=source.extra)
    else:
        unreadable = failure.kind is FailureKind.UNREADABLE
        code = ErrorCode.INVALID_AGENT_RESPONSE if unreadable else ErrorCode.INTERNAL_ERROR
        failure_class = FailureClass.TRANSIENT if is_retryable(failure) else FailureClass.INTERNAL
        message = "downstream A2A call failed: " + ": ".join(_texts(failure))
        converted = A2AError(code, message, {FAILURE_CLASS_KEY: failure_class.value})
    converted.__cause__ = failure
    return converted


def from_a2a_error(error: A2AError) -> ClientError:
    """Return the protocol failure that `error` is to a client, with `error` as its cause."""
    failure = ClientError(FailureKind.PROTOCOL, str(error), error=error)
    failure.__cause__ = error
    return failure


def _texts(failure: BaseException) -> Iterator[str]:
    # A chain may be a ring (a cause can be set by hand), and its texts may be bodies: both are bounded.
    cause: BaseException | None = failure
    for _ in range(_CAUSES_SHOWN):
        if cause is None:
            return
        yield " ".join(str(cause)[:_CAUSE_LENGTH].split()) or type(cause).__name__
        cause = cause.__cause__
