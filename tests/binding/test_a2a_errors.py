"""How skill errors and refused credentials leave by the A2A binding.

Sources: "Errors and retries", sections "A2A detail encoding" and "Error code reference"; "JSON-RPC 2.0 binding",
section "Error mapping"; CONTRACTS.md section 4.
"""

import json
from typing import Any, Final

import pytest
from tests.binding.exchange import BINDINGS, both, checked

from forecourt.a2a import A2AError
from forecourt.binding.a2a import _NUMBERS, _PLAIN_NUMBERS
from forecourt.errors import CODES, AAPError, Kind, Problem

NUMBERS: Final = {
    "UNSUPPORTED_SKILL": (-32601, -32602),
    "UNSUPPORTED_FILTER": (-32602, -32602),
    "UNSUPPORTED_SORT": (-32602, -32602),
    "INVALID_CURSOR": (-32602, -32602),
    "SCHEMA_VALIDATION_FAILED": (-32602, -32602),
    "MISSING_REQUIRED_FIELD": (-32602, -32602),
    "INVALID_CONDITION": (-32602, -32602),
    "DEALER_NOT_FOUND": (-32603, -32000),
    "VEHICLE_NOT_FOUND": (-32000, -32000),
    "VEHICLE_UNAVAILABLE": (-32000, -32000),
    "CONTACT_CONSENT_REQUIRED": (-32000, -32000),
    "INVALID_CONSENT": (-32000, -32000),
    "APPOINTMENT_TIME_UNAVAILABLE": (-32000, -32000),
    "IDEMPOTENCY_CONFLICT": (-32000, -32000),
    "RATE_LIMITED": (-32002, -32000),
    "INTERNAL_ERROR": (-32603, -32603),
}
"""Code -> its number in 1.1 and in 3.1 (CONTRACTS.md section 4; what 1.1 lacks is told by another code)."""

NOT_IN_1_1: Final = {"UNSUPPORTED_FILTER", "UNSUPPORTED_SORT", "INVALID_CURSOR", "DEALER_NOT_FOUND"}
RETRYABLE: Final = {"RATE_LIMITED", "INTERNAL_ERROR"}


def failed(version: str, error: AAPError, id: Any = "req-1") -> dict[str, Any]:  # noqa: A002 - the member's name
    """Return the JSON-RPC error object that carries an AAP error."""
    answer = BINDINGS[version].fail(id, error)
    assert answer.status == 200
    found = checked(answer)
    assert found["id"] == id
    wire: dict[str, Any] = found["error"]
    return wire


def test_the_table_of_these_tests_has_all_sixteen_codes() -> None:
    assert NUMBERS.keys() == CODES.keys()
    assert len(NUMBERS) == 16


def test_every_kind_of_failure_has_a_number_in_both_tables() -> None:
    assert _NUMBERS.keys() == _PLAIN_NUMBERS.keys() == set(Kind)
    for code in CODES.values():
        assert _NUMBERS[code.kind] == NUMBERS[code.name][1]
        if code.name not in NOT_IN_1_1:
            assert _PLAIN_NUMBERS[code.kind] == NUMBERS[code.name][0]


@pytest.mark.parametrize("code", NUMBERS)
@pytest.mark.requirement(
    "ERR-ENVELOPE-A2A", "ERR-A2A-INFO-FIRST", "ERR-A2A-INFO-REASON", "ERR-A2A-INFO-DOMAIN", "ERR-A2A-INFO-METADATA",
    "ERR-A2A-INFO-STRINGS", "ERR-A2A-INFO-CODE-TWICE", "ERR-A2A-INFO-AGREES", "ERR-A2A-STRUCT-TYPE",
    "ERR-A2A-STRUCT-VALUE", "ERR-A2A-OTHER-DETAILS", "ERR-THROTTLE-MESSAGE-SAME", "ERR-CODE-UNSUPPORTED-SKILL",
    "ERR-CODE-UNSUPPORTED-FILTER", "ERR-CODE-UNSUPPORTED-SORT", "ERR-CODE-INVALID-CURSOR",
    "ERR-CODE-SCHEMA-VALIDATION-FAILED", "ERR-CODE-MISSING-REQUIRED-FIELD", "ERR-CODE-INVALID-CONDITION",
    "ERR-CODE-DEALER-NOT-FOUND", "ERR-CODE-VEHICLE-NOT-FOUND", "ERR-CODE-VEHICLE-UNAVAILABLE",
    "ERR-CODE-CONTACT-CONSENT-REQUIRED", "ERR-CODE-INVALID-CONSENT", "ERR-CODE-APPOINTMENT-TIME-UNAVAILABLE",
    "ERR-CODE-IDEMPOTENCY-CONFLICT", "ERR-CODE-RATE-LIMITED", "ERR-CODE-INTERNAL-ERROR",
)  # fmt: skip
def test_a_3_1_error_is_an_error_info_and_the_object_in_a_struct(code: str) -> None:
    error = AAPError(code, problems=[Problem("/a", "type", "must be an integer")])
    assert failed("3.1", error) == {
        "code": NUMBERS[code][1],
        "message": error.message,
        "data": [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": code,
                "domain": "autoagentprotocol.org",
                "metadata": {
                    "code": code,
                    "error_id": error.error_id,
                    "retryable": "true" if code in RETRYABLE else "false",
                    "created_at": error.created_at,
                },
            },
            {"@type": "type.googleapis.com/google.protobuf.Struct", "value": error.to_payload()},
        ],
    }
    assert error.to_payload()["retryable"] is (code in RETRYABLE)


@pytest.mark.parametrize("code", NUMBERS)
@pytest.mark.requirement(
    "RPC-ERROR-ENVELOPE", "RPC-ERROR-DATA-OBJECT", "RPC-ERROR-NUMBERS", "RPC-MAP-SCHEMA-VALIDATION-FAILED",
    "RPC-MAP-MISSING-REQUIRED-FIELD", "RPC-MAP-UNSUPPORTED-SKILL", "RPC-MAP-VEHICLE-NOT-FOUND",
    "RPC-MAP-VEHICLE-UNAVAILABLE", "RPC-MAP-CONTACT-CONSENT-REQUIRED", "RPC-MAP-INVALID-CONSENT",
    "RPC-MAP-APPOINTMENT-TIME-UNAVAILABLE", "RPC-MAP-RATE-LIMITED", "RPC-MAP-INTERNAL-ERROR",
    "RPC-MAP-FULL-VOCABULARY",
)  # fmt: skip
def test_a_1_1_error_carries_the_bare_object(code: str) -> None:
    error = AAPError(code)
    wire = failed("1.1", error)
    assert wire["code"] == NUMBERS[code][0]
    prefixes = {-32601: "Method not found: ", -32602: "Invalid params: ", -32603: "Internal error: "}
    assert wire["message"] == prefixes.get(wire["code"], "") + error.message
    assert wire.keys() == {"code", "message", "data"}
    assert wire["data"]["type"] == "aap.error"
    assert wire["data"]["error_id"] == error.error_id
    assert wire["data"]["code"] not in NOT_IN_1_1
    if code not in NOT_IN_1_1:
        assert wire["data"] == error.to_payload()


@pytest.mark.requirement("ERR-THROTTLE-EXAMPLE", "ERR-THROTTLE-ID-ECHO")
def test_a_throttled_call_is_answered_like_the_example() -> None:
    error = AAPError(
        "RATE_LIMITED",
        "Per-key rate limit exceeded.",
        retry_after_ms=30_000,
        error_id="err_01HZ9RATE01",
        created_at="2026-04-30T10:16:00Z",
    )
    found = checked(BINDINGS["3.1"].fail("req-rate-limited", error))
    # The hint is ours and comes on top of the example (CONTRACTS.md section 4).
    assert found["error"]["data"][1]["value"]["details"].pop("hint")
    assert found == {
        "jsonrpc": "2.0",
        "id": "req-rate-limited",
        "error": {
            "code": -32000,
            "message": "Per-key rate limit exceeded.",
            "data": [
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "RATE_LIMITED",
                    "domain": "autoagentprotocol.org",
                    "metadata": {
                        "code": "RATE_LIMITED",
                        "error_id": "err_01HZ9RATE01",
                        "retryable": "true",
                        "created_at": "2026-04-30T10:16:00Z",
                    },
                },
                {
                    "@type": "type.googleapis.com/google.protobuf.Struct",
                    "value": {
                        "type": "aap.error",
                        "error_id": "err_01HZ9RATE01",
                        "code": "RATE_LIMITED",
                        "message": "Per-key rate limit exceeded.",
                        "retryable": True,
                        "details": {"retry_after_ms": 30000},
                        "created_at": "2026-04-30T10:16:00Z",
                    },
                },
            ],
        },
    }


@pytest.mark.parametrize("retryable", [True, False])
def test_the_metadata_follows_the_object_and_not_the_table(retryable: bool) -> None:
    wire = failed("3.1", AAPError("VEHICLE_NOT_FOUND", retryable=retryable))
    assert wire["data"][0]["metadata"]["retryable"] == json.dumps(retryable)
    assert wire["data"][1]["value"]["retryable"] is retryable


# Refused credentials


@both
@pytest.mark.requirement(
    "A2A-UNAUTHENTICATED-HTTP", "A2A-UNAUTHENTICATED-HOOK", "ERR-PROTOCOL-MISSING-TOKEN", "A2A-UNAUTHENTICATED-SILENT",
    "ERR-DETAILS-NO-CREDENTIAL",
)  # fmt: skip
def test_a_refusal_of_credentials_is_http_401_with_its_challenge_over_a_json_rpc_body(version: str) -> None:
    error = A2AError.unauthenticated("Credentials are needed", 'Bearer realm="a2a"')
    answer = BINDINGS[version].fail(3, error)
    assert answer.status == 401
    assert dict(answer.headers)[b"www-authenticate"] == b'Bearer realm="a2a"'
    assert b"a2a-extensions" not in dict(answer.headers)
    assert checked(answer) == {
        "jsonrpc": "2.0",
        "id": 3,
        "error": {"code": -32600, "message": "Credentials are needed"},
    }


@both
@pytest.mark.requirement("A2A-PERMISSION-DENIED-HTTP", "A2A-PERMISSION-DENIED-NO-ORACLE")
def test_a_denied_permission_is_http_403_without_a_challenge(version: str) -> None:
    answer = BINDINGS[version].fail(None, A2AError.permission_denied("This is not allowed"))
    assert answer.status == 403
    assert b"www-authenticate" not in dict(answer.headers)
    assert checked(answer)["error"] == {"code": -32600, "message": "This is not allowed"}
