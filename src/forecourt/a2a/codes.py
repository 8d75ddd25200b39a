"""The error codes of JSON-RPC 2.0 and A2A v1.0, and what each is called elsewhere.

One table holds everything that depends on a code alone: its metric label, its standing message, its
`google.rpc.ErrorInfo` reason and its HTTP and gRPC equivalents (A2A v1.0, section 5.4; JSON-RPC 2.0,
section 5.1).
"""

import enum
from types import MappingProxyType
from typing import Final, NamedTuple

__all__ = ["ErrorCode"]

_NUMBER_LIMIT: Final = 1 << 63


class ErrorCode(enum.IntEnum):
    """A JSON-RPC error number. Open-ended: a number that is not listed is kept as it is.

    `ErrorCode(-32050)` is a member called `UNKNOWN` whose value is -32050; it compares, hashes, prints,
    copies and pickles as that number, and its properties answer with what is safe to assume of an error
    nobody has described (label "unknown", HTTP 500, gRPC UNKNOWN). Compare codes with `==`: only the listed
    ones are singletons.

    Raises ValueError for what is not an integer of 64 bits (a bool is none).
    """

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    TASK_NOT_FOUND = -32001
    TASK_NOT_CANCELABLE = -32002
    PUSH_NOTIFICATION_NOT_SUPPORTED = -32003
    UNSUPPORTED_OPERATION = -32004
    CONTENT_TYPE_NOT_SUPPORTED = -32005
    INVALID_AGENT_RESPONSE = -32006
    EXTENDED_AGENT_CARD_NOT_CONFIGURED = -32007
    EXTENSION_SUPPORT_REQUIRED = -32008
    VERSION_NOT_SUPPORTED = -32009

    @classmethod
    def _missing_(cls, value: object) -> "ErrorCode | None":
        if not isinstance(value, int) or isinstance(value, bool) or not -_NUMBER_LIMIT <= value < _NUMBER_LIMIT:
            return None
        # Deliberately not registered: numbers come from peers, and an enum that grew with them would never
        # shrink.
        unknown = int.__new__(cls, value)
        unknown._name_ = "UNKNOWN"
        unknown._value_ = value
        return unknown

    @property
    def is_known(self) -> bool:
        """Whether JSON-RPC 2.0 or A2A v1.0 defines this number."""
        return self in _TRAITS

    @property
    def metric_label(self) -> str:
        """A lower-case label for metrics, one of fifteen: unlisted numbers share "unknown"."""
        return _TRAITS.get(self, _UNKNOWN).metric_label

    @property
    def default_message(self) -> str:
        """What is said when nothing more specific is known."""
        return _TRAITS.get(self, _UNKNOWN).message

    @property
    def reason(self) -> str | None:
        """The `google.rpc.ErrorInfo` reason; None for the plain JSON-RPC codes and for unlisted numbers."""
        return _TRAITS.get(self, _UNKNOWN).reason

    @property
    def http_status(self) -> int:
        """The status of this error on a binding that says errors by HTTP status; JSON-RPC answers 200."""
        return _TRAITS.get(self, _UNKNOWN).http_status

    @property
    def grpc_status(self) -> str:
        """The name of the gRPC status, for example "FAILED_PRECONDITION"."""
        return _TRAITS.get(self, _UNKNOWN).grpc_status


class _Traits(NamedTuple):
    metric_label: str
    message: str
    reason: str | None
    http_status: int
    grpc_status: str


_UNKNOWN: Final = _Traits("unknown", "The agent answered with an error.", None, 500, "UNKNOWN")


def _plain(label: str, message: str, http_status: int, grpc_status: str) -> _Traits:
    return _Traits(label, message, None, http_status, grpc_status)


def _a2a(reason: str, message: str, http_status: int = 400, grpc_status: str = "FAILED_PRECONDITION") -> _Traits:
    return _Traits(reason.lower(), message, reason, http_status, grpc_status)


# The A2A rows are A2A's own (section 5.4). JSON-RPC says nothing of HTTP and gRPC; those rows follow the
# meaning of the statuses.
_TRAITS: Final = MappingProxyType(
    {
        ErrorCode.PARSE_ERROR: _plain("parse_error", "Parse error", 400, "INVALID_ARGUMENT"),
        ErrorCode.INVALID_REQUEST: _plain("invalid_request", "Invalid request", 400, "INVALID_ARGUMENT"),
        ErrorCode.METHOD_NOT_FOUND: _plain("method_not_found", "Method not found", 404, "UNIMPLEMENTED"),
        ErrorCode.INVALID_PARAMS: _plain("invalid_params", "Invalid params", 400, "INVALID_ARGUMENT"),
        ErrorCode.INTERNAL_ERROR: _plain("internal_error", "Internal error", 500, "INTERNAL"),
        ErrorCode.TASK_NOT_FOUND: _a2a("TASK_NOT_FOUND", "Task not found", 404, "NOT_FOUND"),
        ErrorCode.TASK_NOT_CANCELABLE: _a2a("TASK_NOT_CANCELABLE", "Task not cancelable"),
        ErrorCode.PUSH_NOTIFICATION_NOT_SUPPORTED: _a2a(
            "PUSH_NOTIFICATION_NOT_SUPPORTED", "Push notification not supported"
        ),
        ErrorCode.UNSUPPORTED_OPERATION: _a2a("UNSUPPORTED_OPERATION", "Unsupported operation"),
        ErrorCode.CONTENT_TYPE_NOT_SUPPORTED: _a2a(
            "CONTENT_TYPE_NOT_SUPPORTED", "Content type not supported", 400, "INVALID_ARGUMENT"
        ),
        ErrorCode.INVALID_AGENT_RESPONSE: _a2a("INVALID_AGENT_RESPONSE", "Invalid agent response", 500, "INTERNAL"),
        ErrorCode.EXTENDED_AGENT_CARD_NOT_CONFIGURED: _a2a(
            "EXTENDED_AGENT_CARD_NOT_CONFIGURED", "Extended agent card not configured"
        ),
        ErrorCode.EXTENSION_SUPPORT_REQUIRED: _a2a("EXTENSION_SUPPORT_REQUIRED", "Extension support required"),
        ErrorCode.VERSION_NOT_SUPPORTED: _a2a("VERSION_NOT_SUPPORTED", "Version not supported"),
    }
)
