"""Consent grants (CONTRACTS.md section 6, "Consent")."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forecourt.errors import AAPError
from forecourt.lead.consent import CLOCK_SKEW, check_consent

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
GRANT: Mapping[str, Any] = {
    "granted_at": "2026-04-30T11:05:00Z",
    "allowed_channels": ["email", "phone"],
    "consent_text": "I agree to share my email with Demo Toyota.",
    "scope": ["lead_submission"],
}
SHOPPER: Mapping[str, Any] = {
    "first_name": "Ada",
    "last_name": "Lovelace",
    "email": "ada@example.com",
    "preferred_contact": "email",
}


def refusal(consent: Mapping[str, Any], customer: Mapping[str, Any] = SHOPPER) -> AAPError:
    with pytest.raises(AAPError) as caught:
        check_consent(consent, customer, NOW)
    assert caught.value.code == "INVALID_CONSENT"
    return caught.value


def wrong(error: AAPError) -> set[tuple[str, str]]:
    return {(problem.location, problem.keyword) for problem in error.problems}


def without(member: str) -> dict[str, Any]:
    return {name: value for name, value in GRANT.items() if name != member}


def test_a_current_grant_passes() -> None:
    check_consent(GRANT, SHOPPER, NOW)
    check_consent({**GRANT, "expires_at": "2027-04-30T11:05:00Z"}, SHOPPER, NOW)


@pytest.mark.requirement("ERR-CONSENT-FUTURE", "ERR-CONSENT-UNUSABLE")
def test_a_grant_from_the_future_is_refused_beyond_the_clock_skew() -> None:
    assert timedelta(seconds=60) == CLOCK_SKEW
    check_consent({**GRANT, "granted_at": "2026-04-30T12:01:00Z"}, SHOPPER, NOW)
    error = refusal({**GRANT, "granted_at": "2026-04-30T12:01:00.001Z"})
    assert wrong(error) == {("/consent/granted_at", "future")}
    assert error.message == "consent.granted_at must not lie in the future"
    assert error.reason is None


def test_the_offset_of_a_grant_counts() -> None:
    check_consent({**GRANT, "granted_at": "2026-04-30T21:00:00+09:00"}, SHOPPER, NOW)
    assert wrong(refusal({**GRANT, "granted_at": "2026-04-30T12:00:00-07:00"})) == {("/consent/granted_at", "future")}


@pytest.mark.requirement("ERR-CONSENT-EXPIRED", "ERR-CONSENT-UNUSABLE")
def test_a_grant_is_expired_once_its_expiry_has_passed() -> None:
    check_consent({**GRANT, "expires_at": "2026-04-30T12:00:00Z"}, SHOPPER, NOW)
    error = refusal({**GRANT, "expires_at": "2026-04-30T11:59:59Z"})
    assert wrong(error) == {("/consent/expires_at", "expired")}


def test_an_expiry_before_the_grant_is_refused_although_it_has_not_passed() -> None:
    grant = {**GRANT, "granted_at": "2026-04-30T12:00:50Z", "expires_at": "2026-04-30T12:00:40Z"}
    assert wrong(refusal(grant)) == {("/consent/expires_at", "order")}


@pytest.mark.parametrize(
    ("granted_at", "expires_at", "problems"),
    [
        ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", set()),
        ("9999-12-31T23:59:60-14:00", "9999-12-31T23:59:59Z", {("/consent/granted_at", "future")}),
        ("0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", {("/consent/expires_at", "expired")}),
    ],
)
def test_times_at_the_edges_of_the_calendar_are_compared(
    granted_at: str, expires_at: str, problems: set[tuple[str, str]]
) -> None:
    grant = {**GRANT, "granted_at": granted_at, "expires_at": expires_at}
    if problems:
        assert wrong(refusal(grant)) == problems
    else:
        check_consent(grant, SHOPPER, NOW)


@pytest.mark.parametrize("member", ["granted_at", "expires_at"])
@pytest.mark.parametrize("value", ["yesterday", "2026-04-30T11:05:00", 1777546800, None])
def test_a_time_that_is_none_is_a_problem_of_its_format(member: str, value: object) -> None:
    assert wrong(refusal({**GRANT, member: value})) == {(f"/consent/{member}", "format")}


@pytest.mark.parametrize(
    "text",
    ["", " \t\n", "\u00a0\u2003\u3000", "\u200b\u200d\ufeff\u2060", "\u00ad\u180e", "\u3164\u2800", "\u0301"],
)
def test_a_text_with_nothing_to_see_is_blank(text: str) -> None:
    assert wrong(refusal({**GRANT, "consent_text": text})) == {("/consent/consent_text", "minLength")}


@pytest.mark.parametrize("text", ["OK", "同意します", "\u200b\u0645\u0648\u200b", "1"])
def test_a_text_in_any_script_is_not_blank(text: str) -> None:
    check_consent({**GRANT, "consent_text": text}, SHOPPER, NOW)


@pytest.mark.requirement("ERR-CONSENT-SCOPE", "ERR-CONSENT-UNUSABLE")
@pytest.mark.parametrize(
    "scope", [[], ["marketing"], ["lead_submission", "marketing"], ["lead_submission"] * 2, "lead_submission"]
)
def test_the_scope_is_exactly_lead_submission(scope: object) -> None:
    assert wrong(refusal({**GRANT, "scope": scope})) == {("/consent/scope", "const")}


@pytest.mark.parametrize("member", ["granted_at", "consent_text", "scope"])
def test_a_missing_member_is_a_problem(member: str) -> None:
    assert {location for location, _ in wrong(refusal(without(member)))} == {f"/consent/{member}"}


@pytest.mark.requirement("ERR-CONSENT-CHANNEL", "ERR-CONSENT-UNUSABLE")
@pytest.mark.parametrize("preferred", ["email", "phone", "sms"])
def test_the_preferred_channel_must_be_allowed(preferred: str) -> None:
    customer = {**SHOPPER, "preferred_contact": preferred}
    check_consent({**GRANT, "allowed_channels": ["email", "phone", "sms"]}, customer, NOW)
    others = [channel for channel in ("email", "phone", "sms") if channel != preferred]
    error = refusal({**GRANT, "allowed_channels": others}, customer)
    assert wrong(error) == {("/consent/allowed_channels", "channel")}
    assert error.reason == "channel"


@pytest.mark.parametrize("customer", [{**SHOPPER, "preferred_contact": "any"}, {"email": "ada@example.com"}])
def test_any_channel_or_none_preferred_asks_for_no_channel(customer: Mapping[str, Any]) -> None:
    check_consent({**GRANT, "allowed_channels": ["sms"]}, customer, NOW)


def test_a_channel_without_contact_data_for_it_is_not_refused() -> None:
    check_consent({**GRANT, "allowed_channels": ["email"]}, {"phone": "+14155550123"}, NOW)


def test_all_problems_come_at_once_and_the_channel_is_then_one_of_them() -> None:
    error = refusal(
        {
            "granted_at": "2026-05-01T00:00:00Z",
            "expires_at": "2026-04-01T00:00:00Z",
            "allowed_channels": ["phone"],
            "consent_text": " ",
            "scope": ["marketing"],
        }
    )
    assert wrong(error) == {
        ("/consent/granted_at", "future"),
        ("/consent/expires_at", "expired"),
        ("/consent/expires_at", "order"),
        ("/consent/allowed_channels", "channel"),
        ("/consent/consent_text", "minLength"),
        ("/consent/scope", "const"),
    }
    assert error.reason is None


@pytest.mark.requirement("ERR-DETAILS-NO-CUSTOMER-VALUE")
def test_no_value_of_the_request_is_echoed() -> None:
    error = refusal(
        {
            "granted_at": "marked-1",
            "expires_at": "marked-2",
            "allowed_channels": ["marked-3"],
            "consent_text": "\u200b",
            "scope": ["marked-4"],
        }
    )
    assert len(error.problems) == 5
    assert "marked" not in repr(error.to_payload()) + str(error)
