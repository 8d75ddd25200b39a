"""The sixteen codes and the `aap.error` object ("Errors and retries", sections "One automotive error" and "Error code
reference")."""

import copy
import json
import pickle
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecourt.contract.validation import SchemaSet
from forecourt.errors import CODES, AAPError, Kind, Problem, timestamp

# code, retryable default ("Error code reference"), the first contract that has it (CONTRACTS.md section 4)
TABLE: Final = [
    ("UNSUPPORTED_SKILL", False, "1.1"),
    ("UNSUPPORTED_FILTER", False, "3.1"),
    ("UNSUPPORTED_SORT", False, "3.1"),
    ("INVALID_CURSOR", False, "3.1"),
    ("SCHEMA_VALIDATION_FAILED", False, "1.1"),
    ("MISSING_REQUIRED_FIELD", False, "1.1"),
    ("INVALID_CONDITION", False, "1.1"),
    ("DEALER_NOT_FOUND", False, "3.1"),
    ("VEHICLE_NOT_FOUND", False, "1.1"),
    ("VEHICLE_UNAVAILABLE", False, "1.1"),
    ("CONTACT_CONSENT_REQUIRED", False, "1.1"),
    ("INVALID_CONSENT", False, "1.1"),
    ("APPOINTMENT_TIME_UNAVAILABLE", False, "1.1"),
    ("IDEMPOTENCY_CONFLICT", False, "1.1"),
    ("RATE_LIMITED", True, "1.1"),
    ("INTERNAL_ERROR", True, "1.1"),
]
# PAP's statuses for groups of codes ("Error code reference", below the table) tell the kinds apart.
KINDS: Final = {
    Kind.UNSUPPORTED_SKILL: {"UNSUPPORTED_SKILL"},
    Kind.INVALID: {
        "UNSUPPORTED_FILTER",
        "UNSUPPORTED_SORT",
        "INVALID_CURSOR",
        "SCHEMA_VALIDATION_FAILED",
        "MISSING_REQUIRED_FIELD",
        "INVALID_CONDITION",
    },
    Kind.NOT_FOUND: {"DEALER_NOT_FOUND", "VEHICLE_NOT_FOUND"},
    Kind.CONFLICT: {"VEHICLE_UNAVAILABLE", "APPOINTMENT_TIME_UNAVAILABLE", "IDEMPOTENCY_CONFLICT"},
    Kind.CONSENT: {"CONTACT_CONSENT_REQUIRED", "INVALID_CONSENT"},
    Kind.THROTTLED: {"RATE_LIMITED"},
    Kind.INTERNAL: {"INTERNAL_ERROR"},
}
NAMES: Final = [name for name, _, _ in TABLE]
RFC_3339_UTC: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.mark.requirement("ERR-CODE-SIXTEEN", "ERR-OBJECT-CODE")
def test_there_are_exactly_the_sixteen_codes_in_the_order_of_the_table() -> None:
    assert list(CODES) == NAMES
    assert [(code.name, code.retryable, code.since) for code in CODES.values()] == TABLE
    assert {kind: {name for name in NAMES if CODES[name].kind is kind} for kind in Kind} == KINDS


@pytest.mark.requirement("ERR-OBJECT-MESSAGE")
@pytest.mark.parametrize("name", NAMES)
def test_every_code_has_a_message_for_a_person_and_a_hint(name: str) -> None:
    code = CODES[name]
    for text in (code.message, code.hint):
        assert text[0].isupper() or text.startswith("vehicle_of_interest.condition")
        assert text.endswith(".")
        assert name not in text


@pytest.mark.parametrize(("name", "since"), [(name, since) for name, _, since in TABLE])
def test_a_code_is_in_its_first_contract_and_all_later_ones(name: str, since: str) -> None:
    code = CODES[name]
    assert code.in_contract("1.1") == (since == "1.1")
    assert code.in_contract("1.3") == (since == "1.1")
    assert code.in_contract("3.1")
    assert code.in_contract("10.0")
    assert not code.in_contract("1.0")


@pytest.mark.requirement("ERR-OBJECT-EXAMPLE", "ERR-INTRO-WHAT-WHERE-RETRY")
def test_the_example_of_the_page_is_written_member_by_member() -> None:
    error = AAPError(
        "UNSUPPORTED_FILTER",
        "This deployment does not support features_all.",
        problems=[Problem("/filters/features_all", "capability", "Filter is not advertised.")],
        error_id="error_example_001",
        created_at="2026-10-24T15:00:00Z",
    )
    payload = error.to_payload()
    assert payload == {
        "type": "aap.error",
        "error_id": "error_example_001",
        "code": "UNSUPPORTED_FILTER",
        "message": "This deployment does not support features_all.",
        "retryable": False,
        "details": {
            "errors": [
                {
                    "instanceLocation": "/filters/features_all",
                    "keyword": "capability",
                    "error": "Filter is not advertised.",
                }
            ],
            "hint": "Read the published search capabilities before forming another query.",
        },
        "created_at": "2026-10-24T15:00:00Z",
    }
    assert list(payload) == ["type", "error_id", "code", "message", "retryable", "details", "created_at"]


@pytest.mark.requirement(
    "ERR-OBJECT-TYPE", "ERR-OBJECT-ERROR-ID", "ERR-OBJECT-CODE", "ERR-OBJECT-MESSAGE", "ERR-OBJECT-RETRYABLE",
    "ERR-OBJECT-CREATED-AT",
)  # fmt: skip
@pytest.mark.parametrize(("name", "retryable", "since"), TABLE)
def test_an_error_of_each_code_has_all_required_members_and_fits_its_contracts_schema(
    name: str, retryable: bool, since: str
) -> None:
    payload = json.loads(json.dumps(AAPError(name).to_payload()))
    assert payload["type"] == "aap.error"
    assert payload["code"] == name
    assert payload["message"] == CODES[name].message
    assert payload["retryable"] is retryable
    assert re.fullmatch(r"err_[0-9A-HJKMNP-TV-Z]{26}", payload["error_id"])
    assert re.fullmatch(RFC_3339_UTC, payload["created_at"])
    assert SchemaSet.load("3.1").problems("error.schema.json", payload) == []
    if since == "1.1":
        assert SchemaSet.load("1.1").problems("error.schema.json", payload) == []


@pytest.mark.requirement("ERR-OBJECT-ID-FOR-SUPPORT", "ERR-OBJECT-ERROR-ID")
def test_error_ids_are_different_sort_by_time_and_come_from_nothing_of_the_request() -> None:
    made = [AAPError("INVALID_CONSENT", problems=[Problem("/consent", "type", "must be an object")]) for _ in range(50)]
    ids = [error.error_id for error in made]
    assert ids == sorted(set(ids))
    assert made[0].error_id == made[0].to_payload()["error_id"] == made[0].to_payload()["error_id"]


@pytest.mark.requirement("ERR-OBJECT-DETAILS-DIAGNOSTICS", "ERR-DETAILS-EVERY-PROBLEM")
def test_details_list_every_problem_in_a_stable_order() -> None:
    problems = [
        Problem("/filters/year_min", "type", "must be an integer"),
        Problem("/filters/make", "type", "must be an array", "Write the value in a list."),
        Problem("", "required", "needs the field `type`"),
    ]
    error = AAPError("SCHEMA_VALIDATION_FAILED", problems=problems)
    assert error.to_payload()["details"]["errors"] == [
        {"instanceLocation": "", "keyword": "required", "error": "needs the field `type`"},
        {"instanceLocation": "/filters/make", "keyword": "type", "error": "must be an array"},
        {"instanceLocation": "/filters/year_min", "keyword": "type", "error": "must be an integer"},
    ]
    assert AAPError("SCHEMA_VALIDATION_FAILED", problems=problems[::-1]).problems == error.problems
    assert error.message == "the request needs the field `type` (and 2 more; see details.errors)"
    assert error.hint == "Write the value in a list."


def test_one_problem_is_the_message_and_names_its_field() -> None:
    problem = Problem("/filters/a~1b~0c/0", "type", "must be a string")
    assert problem.sentence == "filters.a/b~c.0 must be a string"
    assert AAPError("SCHEMA_VALIDATION_FAILED", problems=[problem]).message == problem.sentence


def test_hints_of_problems_come_before_the_standing_one_each_once_and_at_most_three() -> None:
    problems = [Problem(f"/{number}", "k", "is wrong", f"Do {number // 2}.") for number in range(10)]
    assert AAPError("SCHEMA_VALIDATION_FAILED", problems=problems).hint == "Do 0. Do 1. Do 2."
    assert AAPError("SCHEMA_VALIDATION_FAILED", problems=problems, hint="Do this.").hint == "Do this."
    assert AAPError("SCHEMA_VALIDATION_FAILED").hint == CODES["SCHEMA_VALIDATION_FAILED"].hint


@pytest.mark.requirement("ERR-OBJECT-DETAILS-OPTIONAL")
def test_an_error_without_details_is_written_without_them_and_read_by_the_schema() -> None:
    payload = AAPError("SOMETHING_NEW", "It is so.").to_payload()
    assert "details" not in payload
    known = {**payload, "code": "INTERNAL_ERROR"}
    for version in ("1.1", "3.1"):
        assert SchemaSet.load(version).problems("error.schema.json", known) == []


@pytest.mark.requirement("ERR-RETRY-AFTER-MS", "ERR-OBJECT-DETAILS-TIMING")
def test_a_rate_limited_error_always_says_how_long_to_wait() -> None:
    assert AAPError("RATE_LIMITED", retry_after_ms=30_000).to_payload()["details"]["retry_after_ms"] == 30_000
    wait = AAPError("RATE_LIMITED").to_payload()["details"]["retry_after_ms"]
    assert type(wait) is int
    assert wait > 0
    # What came from elsewhere is kept as it came.
    assert AAPError("RATE_LIMITED", error_id="err_theirs").retry_after_ms is None
    others = [name for name in NAMES if name != "RATE_LIMITED"]
    assert all("retry_after_ms" not in AAPError(name).to_payload()["details"] for name in others)


def test_further_details_travel_beside_the_problems() -> None:
    error = AAPError(
        "APPOINTMENT_TIME_UNAVAILABLE",
        problems=[Problem("/appointment", "availability", "cannot be had")],
        details={"proposed_times": ["2026-05-05T09:00:00-07:00"]},
    )
    details = error.to_payload()["details"]
    assert list(details) == ["proposed_times", "errors", "hint"]
    assert error.details == {"proposed_times": ["2026-05-05T09:00:00-07:00"]}, "writing changes nothing"


def test_a_code_that_is_not_known_survives_as_it_came() -> None:
    error = AAPError(
        "PAYMENT_REQUIRED", "Pay first.", retryable=True, error_id="e1", created_at="2026-05-04T00:00:00+02:00"
    )
    assert error.to_payload() == {
        "type": "aap.error",
        "error_id": "e1",
        "code": "PAYMENT_REQUIRED",
        "message": "Pay first.",
        "retryable": True,
        "created_at": "2026-05-04T00:00:00+02:00",
    }
    assert error.kind is Kind.INTERNAL
    assert AAPError("PAYMENT_REQUIRED").retryable is False
    assert AAPError("PAYMENT_REQUIRED").message


@pytest.mark.requirement("ERR-OBJECT-RETRYABLE")
@pytest.mark.parametrize("retryable", [True, False])
def test_what_an_error_says_of_retrying_counts_more_than_the_table(retryable: bool) -> None:
    for name in (*NAMES, "SOMETHING_NEW"):
        assert AAPError(name, retryable=retryable).to_payload()["retryable"] is retryable


@given(st.text(max_size=40))
@settings(deadline=None)
def test_the_metric_label_is_one_of_seventeen(code: str) -> None:
    assert AAPError(code).metric_label == (code.lower() if code in CODES else "other")
    assert {AAPError(name).metric_label for name in NAMES} == {name.lower() for name in NAMES}


@pytest.mark.requirement("ERR-OBJECT-ID-FOR-SUPPORT")
def test_as_text_an_error_is_its_code_and_message_and_nothing_else() -> None:
    error = AAPError(
        "INVALID_CONSENT",
        problems=[Problem("/consent/scope", "const", "must be right", "Ask again.")],
        details={"note": "DETAIL"},
        reason="REASON",
    )
    assert str(error) == "INVALID_CONSENT: consent.scope must be right"
    assert "REASON" not in json.dumps(error.to_payload())
    assert "DETAIL" not in f"{error!r} {error}"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_can_be_copied_and_sent_between_processes(again: Any) -> None:
    error = AAPError("RATE_LIMITED", "Slow down.", retry_after_ms=5, problems=[Problem("/a", "b", "c")], reason="x")
    found = again(error)
    assert found.to_payload() == error.to_payload()
    assert (found.reason, str(found)) == (error.reason, str(error))


@pytest.mark.requirement("ERR-OBJECT-CREATED-AT")
def test_times_are_rfc_3339_in_utc_with_milliseconds() -> None:
    west = datetime(2026, 10, 24, 8, 0, 0, 123_999, tzinfo=timezone(timedelta(hours=-7)))
    assert timestamp(west) == "2026-10-24T15:00:00.123Z"
    assert timestamp(datetime(2026, 10, 24, 15, tzinfo=UTC)) == "2026-10-24T15:00:00.000Z"
    before, now = datetime.now(UTC), timestamp()
    assert re.fullmatch(RFC_3339_UTC, now)
    assert abs(datetime.fromisoformat(now) - before) < timedelta(minutes=1)
