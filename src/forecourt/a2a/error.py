"""The one error type of the A2A protocol, for servers and for clients, without any I/O.

Source: A2A v1.0, sections 3.3.2 (errors), 5.4 (their numbers) and 9.5 (their JSON-RPC form).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from forecourt.a2a.codes import ErrorCode

__all__ = [
    "A2A_ERROR_DOMAIN",
    "ERROR_INFO_TYPE",
    "FAILURE_CLASS_KEY",
    "PRIVATE_KEYS",
    "STREAM_LAGGED_MARKER",
    "A2AError",
    "AuthRejection",
]

ERROR_INFO_TYPE: Final = "type.googleapis.com/google.rpc.ErrorInfo"
A2A_ERROR_DOMAIN: Final = "a2a-protocol.org"

STREAM_LAGGED_MARKER: Final = "streamLagged"
"""The key of `data` that makes an error a stream-lag signal; its value is the number of dropped events."""

FAILURE_CLASS_KEY: Final = "_failureClass"
"""The key of `data` that holds a failure class within one process; see `forecourt.a2a.failure`."""

PRIVATE_KEYS: Final = frozenset({STREAM_LAGGED_MARKER, FAILURE_CLASS_KEY})
"""The keys of `data` that `A2AError.to_wire` does not write."""

_COUNT_LIMIT: Final = 1 << 64
_TASK_ID_SHOWN: Final = 128


@dataclass(frozen=True, slots=True)
class AuthRejection:
    """How bindings other than JSON-RPC refuse credentials.

    `challenge` becomes the `WWW-Authenticate` header; it is None for a caller who is known and not allowed.
    """

    http_status: int
    grpc_status: str
    challenge: str | None = None


class A2AError(Exception):
    """An A2A operation failed: a code, a message for people, and `data` (any JSON; None when there is none).

    `code` may be any number of 64 bits, listed or not (see `ErrorCode`); ValueError otherwise. Without a
    `message` the code's standing one is used. `extra` holds the members of a received error object that
    JSON-RPC does not define, so that reading and writing back lose nothing.

    Errors are equal when they say the same; they copy and pickle whole, except for their traceback and cause.
    """

    code: ErrorCode
    message: str
    data: Any
    extra: dict[str, Any]

    def __init__(
        self,
        code: int,
        message: str | None = None,
        data: Any = None,
        *,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self.code = ErrorCode(code)
        self.message = self.code.default_message if message is None else message
        self.data = data
        self.extra = dict(extra or {})
        self.raw: Any = None
        """What a client keeps of the answer that brought this error; it is not part of the error's value."""
        self._auth_rejection: AuthRejection | None = None
        # `data` stays out of args: it would appear in every repr and log line, and unpickling gets it from
        # __dict__.
        super().__init__(int(self.code), self.message)

    # -- constructors

    @classmethod
    def new(cls, code: int, message: str) -> "A2AError":
        """Return an error without data."""
        return cls(code, message)

    @classmethod
    def with_data(cls, code: int, message: str, data: Any) -> "A2AError":
        """Return an error with `data`, which is any JSON value."""
        return cls(code, message, data)

    @classmethod
    def unauthenticated(cls, message: str, challenge: str) -> "A2AError":
        """Refuse a request that carries no usable credential.

        HTTP 401 with `challenge` as its `WWW-Authenticate` header (for example `Bearer realm="a2a"`), gRPC
        UNAUTHENTICATED, JSON-RPC -32600. The caller reads `message`: it must not say why the credential
        failed. Raises ValueError for a challenge that no header can hold.
        """
        if not challenge.isascii() or not challenge.isprintable() or not challenge.strip():
            raise ValueError("a challenge is one line of printable ASCII")
        error = cls(ErrorCode.INVALID_REQUEST, message)
        error._auth_rejection = AuthRejection(401, "UNAUTHENTICATED", challenge)
        return error

    @classmethod
    def permission_denied(cls, message: str) -> "A2AError":
        """Refuse the operation to a caller who is known: HTTP 403, gRPC PERMISSION_DENIED, JSON-RPC -32600.

        `message` must not reveal whether something exists that the caller may not see (A2A v1.0, section
        3.3.2).
        """
        error = cls(ErrorCode.INVALID_REQUEST, message)
        error._auth_rejection = AuthRejection(403, "PERMISSION_DENIED")
        return error

    @classmethod
    def task_not_found(cls, task_id: object) -> "A2AError":
        """Say that there is no such task; of a long `task_id` only the beginning is shown."""
        return cls(ErrorCode.TASK_NOT_FOUND, f"Task not found: {str(task_id)[:_TASK_ID_SHOWN]}")

    @classmethod
    def task_not_cancelable(cls, task_id: object) -> "A2AError":
        """Say that the task is past canceling; of a long `task_id` only the beginning is shown."""
        return cls(ErrorCode.TASK_NOT_CANCELABLE, f"Task not cancelable: {str(task_id)[:_TASK_ID_SHOWN]}")

    @classmethod
    def parse_error(cls, message: str | None = None) -> "A2AError":
        """Return a -32700: what came was not JSON."""
        return cls(ErrorCode.PARSE_ERROR, message)

    @classmethod
    def invalid_request(cls, message: str | None = None) -> "A2AError":
        """Return a -32600: the JSON was not a request object."""
        return cls(ErrorCode.INVALID_REQUEST, message)

    @classmethod
    def method_not_found(cls, message: str | None = None) -> "A2AError":
        """Return a -32601: there is no such method."""
        return cls(ErrorCode.METHOD_NOT_FOUND, message)

    @classmethod
    def invalid_params(cls, message: str | None = None) -> "A2AError":
        """Return a -32602: the method's parameters cannot be used."""
        return cls(ErrorCode.INVALID_PARAMS, message)

    @classmethod
    def internal(cls, message: str | None = None) -> "A2AError":
        """Return a -32603: something broke on this side."""
        return cls(ErrorCode.INTERNAL_ERROR, message)

    @classmethod
    def push_not_supported(cls, message: str | None = None) -> "A2AError":
        """Return a -32003: there are no push notifications here."""
        return cls(ErrorCode.PUSH_NOTIFICATION_NOT_SUPPORTED, message)

    @classmethod
    def unsupported_operation(cls, message: str | None = None) -> "A2AError":
        """Return a -32004: A2A has this operation, this agent does not."""
        return cls(ErrorCode.UNSUPPORTED_OPERATION, message)

    @classmethod
    def content_type_not_supported(cls, message: str | None = None) -> "A2AError":
        """Return a -32005: a media type that is not read, or none offered that can be produced."""
        return cls(ErrorCode.CONTENT_TYPE_NOT_SUPPORTED, message)

    @classmethod
    def invalid_agent_response(cls, message: str | None = None) -> "A2AError":
        """Return a -32006: an agent answered with what A2A does not allow."""
        return cls(ErrorCode.INVALID_AGENT_RESPONSE, message)

    @classmethod
    def extended_card_not_configured(cls, message: str | None = None) -> "A2AError":
        """Return a -32007: there is no extended agent card."""
        return cls(ErrorCode.EXTENDED_AGENT_CARD_NOT_CONFIGURED, message)

    @classmethod
    def extension_support_required(cls, message: str | None = None) -> "A2AError":
        """Return a -32008: the caller must activate an extension."""
        return cls(ErrorCode.EXTENSION_SUPPORT_REQUIRED, message)

    @classmethod
    def version_not_supported(cls, message: str | None = None) -> "A2AError":
        """Return a -32009: this A2A version is not served here."""
        return cls(ErrorCode.VERSION_NOT_SUPPORTED, message)

    @classmethod
    def stream_lagged(cls, dropped: int) -> "A2AError":
        """Tell a slow reader of a stream that `dropped` events were left out; the stream goes on.

        Raises ValueError when `dropped` is not a count (a non-negative integer of 64 bits).
        """
        if not _is_count(dropped):
            raise ValueError("dropped is a number of events")
        message = f"The reader fell behind and {dropped} events were dropped; the stream continues"
        return cls(ErrorCode.INTERNAL_ERROR, message, {STREAM_LAGGED_MARKER: dropped})

    # -- what it says

    @property
    def auth_rejection(self) -> AuthRejection | None:
        """The refusal of credentials that this error is, if it is one.

        Only `unauthenticated` and `permission_denied` set it; nothing that comes from a peer does.
        """
        return self._auth_rejection

    @property
    def metric_label(self) -> str:
        """The code's label. Never the message, in which a caller could put anything."""
        return self.code.metric_label

    @property
    def is_stream_lagged(self) -> bool:
        """Whether this is the signal that a reader fell behind, after which the stream goes on.

        Recognised by the marker key in `data` alone: the code is a common one and the message is prose. A
        consumer that stops reading at this signal misses the end of the task.
        """
        return isinstance(self.data, dict) and STREAM_LAGGED_MARKER in self.data

    @property
    def dropped_event_count(self) -> int | None:
        """How many events a lag signal says were dropped; None without a signal or a readable count."""
        if not isinstance(self.data, dict):
            return None
        dropped = self.data.get(STREAM_LAGGED_MARKER)
        return dropped if _is_count(dropped) else None

    def error_info_data(self, metadata: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Return the `data` array that A2A requires of its own errors: one `google.rpc.ErrorInfo`.

        The plain JSON-RPC codes and unlisted numbers have no reason of A2A's. For those the entry is
        written without `reason` (a reader must go by the code), and A2A does not ask for it: leave it out
        unless there is metadata to carry. Raises TypeError for metadata that is not strings, since
        ErrorInfo holds nothing else.
        """
        info: dict[str, Any] = {"@type": ERROR_INFO_TYPE}
        if self.code.reason is not None:
            info["reason"] = self.code.reason
        info["domain"] = A2A_ERROR_DOMAIN
        if metadata:
            if not all(isinstance(key, str) and isinstance(value, str) for key, value in metadata.items()):
                raise TypeError("the metadata of an ErrorInfo is strings")
            info["metadata"] = dict(metadata)
        return [info]

    def with_error_info(self, metadata: Mapping[str, str] | None = None) -> "A2AError":
        """Set `data` to `error_info_data(metadata)` and return this same error, ready to be raised."""
        self.data = self.error_info_data(metadata)
        return self

    # -- JSON-RPC error objects

    @classmethod
    def from_payload(cls, payload: object) -> "A2AError":
        """Read a JSON-RPC error object that a peer sent. Never raises, whatever JSON it is given.

        - A well-formed object (integer `code` of 64 bits, string `message`) is kept without loss, unknown
          members and an explicit `"data": null` in `extra`. An integral float such as -32601.0 is the
          integer it equals.
        - A `message` that is missing or not a string is replaced by the code's standing one.
        - Without a readable code (missing, bool, string, fraction, beyond 64 bits) there is nothing to act
          upon: the result is an INVALID_AGENT_RESPONSE whose `data` is everything that was received.
        """
        code = _readable_code(payload.get("code")) if isinstance(payload, dict) else None
        if code is None or not isinstance(payload, dict):
            return cls(
                ErrorCode.INVALID_AGENT_RESPONSE,
                "The agent answered with an error object that has no readable code",
                payload,
            )
        message, data = payload.get("message"), payload.get("data")
        known = ("code", "message") if data is None else ("code", "message", "data")
        extra = {key: value for key, value in payload.items() if key not in known}
        return cls(code, message if isinstance(message, str) else None, data, extra=extra)

    def to_payload(self) -> dict[str, Any]:
        """Return the whole error object, private keys included: for storing and passing on inside one system.

        What leaves a server for its caller is `to_wire`.
        """
        payload: dict[str, Any] = {"code": int(self.code), "message": self.message}
        if self.data is not None:
            payload["data"] = self.data
        return payload | {key: value for key, value in self.extra.items() if key not in payload}

    def to_wire(self, *, in_stream: bool = False) -> dict[str, Any]:
        """Return the error object that a server sends to its caller: code, message and what of `data` is
        public.

        The private keys are left out of an object `data` and of the objects inside an array `data`, where
        this module puts them; what becomes empty by that is left out too. `extra` came from some other
        agent and is not passed on. Inside a stream (`in_stream`) the lag marker is no private key but the
        signal itself, and stays.
        """
        payload: dict[str, Any] = {"code": int(self.code), "message": self.message}
        data = _public(self.data, PRIVATE_KEYS - {STREAM_LAGGED_MARKER} if in_stream else PRIVATE_KEYS)
        if data is not None:
            payload["data"] = data
        return payload

    # -- being a value

    def __str__(self) -> str:
        """Return `[code] message`."""
        return f"[{int(self.code)}] {self.message}"

    def __repr__(self) -> str:
        """Return code and message; `data` may hold what no log should."""
        return f"{type(self).__name__}({int(self.code)}, {self.message!r})"

    def __eq__(self, other: object) -> bool:
        """Compare what the errors say: code, message, data, extra members and refusal of credentials."""
        if not isinstance(other, A2AError):
            return NotImplemented
        return (
            self.code == other.code
            and self.message == other.message
            and self.data == other.data
            and self.extra == other.extra
            and self._auth_rejection == other._auth_rejection
        )

    def __hash__(self) -> int:
        """Hash code and message; `data` need not be hashable."""
        return hash((int(self.code), self.message))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _COUNT_LIMIT


def _readable_code(value: object) -> ErrorCode | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    try:
        return ErrorCode(value)
    except ValueError:
        return None


def _public(data: Any, private: frozenset[str]) -> Any:
    if isinstance(data, dict):
        if private.isdisjoint(data):
            return data
        return {key: value for key, value in data.items() if key not in private} or None
    if isinstance(data, list | tuple):
        kept = [public for entry in data if (public := _public_entry(entry, private)) is not _NOTHING]
        return kept if kept or not data else None
    return data


_NOTHING: Final = object()


def _public_entry(entry: Any, private: frozenset[str]) -> Any:
    if not isinstance(entry, dict) or private.isdisjoint(entry):
        return entry
    return {key: value for key, value in entry.items() if key not in private} or _NOTHING
