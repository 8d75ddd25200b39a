"""A2A v1.0 without I/O: the error type, the SendMessage envelopes and the agent card.

Usable by itself: this package needs the standard library and nothing else, of Forecourt or of anybody.
The envelopes are functions of the module `forecourt.a2a.envelope`.
"""

from forecourt.a2a import envelope
from forecourt.a2a.card import (
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentProvider,
    AgentSkill,
    SecurityRequirement,
    api_key_scheme,
    http_auth_scheme,
    mtls_scheme,
    oauth2_client_credentials_scheme,
    open_id_connect_scheme,
)
from forecourt.a2a.codes import ErrorCode
from forecourt.a2a.error import (
    A2A_ERROR_DOMAIN,
    ERROR_INFO_TYPE,
    FAILURE_CLASS_KEY,
    PRIVATE_KEYS,
    STREAM_LAGGED_MARKER,
    A2AError,
    AuthRejection,
)
from forecourt.a2a.failure import (
    RETRYABLE_STATUSES,
    ClientError,
    FailureClass,
    FailureKind,
    error_class,
    from_a2a_error,
    is_retryable,
    to_a2a_error,
    with_failure_class,
)

__all__ = [
    "A2A_ERROR_DOMAIN",
    "ERROR_INFO_TYPE",
    "FAILURE_CLASS_KEY",
    "PRIVATE_KEYS",
    "RETRYABLE_STATUSES",
    "STREAM_LAGGED_MARKER",
    "A2AError",
    "AgentCard",
    "AgentExtension",
    "AgentInterface",
    "AgentProvider",
    "AgentSkill",
    "AuthRejection",
    "ClientError",
    "ErrorCode",
    "FailureClass",
    "FailureKind",
    "SecurityRequirement",
    "api_key_scheme",
    "envelope",
    "error_class",
    "from_a2a_error",
    "http_auth_scheme",
    "is_retryable",
    "mtls_scheme",
    "oauth2_client_credentials_scheme",
    "open_id_connect_scheme",
    "to_a2a_error",
    "with_failure_class",
]
