"""Consent in two steps: the words, and the grant that only a yes to them makes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.client.simulated import URIS

from forecourt.client import ConsentGrant, Disclosure
from forecourt.contract.validation import SchemaSet

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def test_a_disclosure_says_who_gets_what_for_what_and_how_they_answer() -> None:
    told = Disclosure(
        "Demo Auto Group",
        ("email", "sms"),
        "2022 Chevrolet Bolt EUV",
        "Example Assistant",
        ("message",),
        "a test drive",
    )
    assert told.text == (
        "Example Assistant may share my name, email address, phone number and message with Demo Auto Group, so that "
        "they contact me by email or by text message (SMS) about the 2022 Chevrolet Bolt EUV, and arrange a test "
        "drive. I can withdraw this consent at any time."
    )


def test_what_is_not_known_is_left_out() -> None:
    assert Disclosure("Demo", ("email",)).text == (
        "You may share my name and email address with Demo, so that they contact me by email. "
        "I can withdraw this consent at any time."
    )


def test_a_phone_number_is_named_once_for_calls_and_messages() -> None:
    assert Disclosure("Demo", ("phone", "sms", "phone")).text.count("phone number") == 1


@pytest.mark.parametrize("version", ["1.1", "3.1"])
def test_the_grant_is_what_the_contracts_ask_for(version: str) -> None:
    assert version in URIS
    told = Disclosure("Demo", ("email", "phone"))
    payload = told.granted(at=NOW, days=30).to_payload()
    assert payload == {
        "granted_at": "2026-11-01T12:00:00.000Z",
        "expires_at": "2026-12-01T12:00:00.000Z",
        "allowed_channels": ["email", "phone"],
        "consent_text": told.text,
        "scope": ["lead_submission"],
    }
    assert SchemaSet.load(version).problems("consent-grant.schema.json", payload) == []
    assert "expires_at" not in told.granted(at=NOW, days=None).to_payload()


def test_a_grant_survives_being_kept() -> None:
    grant = Disclosure("Demo", ("email",)).granted(at=NOW)
    assert ConsentGrant.from_payload(grant.to_payload()) == grant


@pytest.mark.parametrize(
    "make",
    [
        lambda: Disclosure(" ", ("email",)),
        lambda: Disclosure("Demo", ()),
        lambda: Disclosure("Demo", ("fax",)),
        lambda: ConsentGrant(" ", ("email",), NOW),
        lambda: ConsentGrant("Yes.", ("email", "email"), NOW),
        lambda: ConsentGrant("Yes.", (), NOW),
        lambda: ConsentGrant("Yes.", ("email",), NOW.replace(tzinfo=None)),
        lambda: ConsentGrant("Yes.", ("email",), NOW, NOW.replace(tzinfo=None) + timedelta(1)),
        lambda: ConsentGrant("Yes.", ("email",), NOW, NOW),
    ],
)
def test_what_no_dealer_could_accept_is_refused_here(make: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        make()


@pytest.mark.parametrize(
    "payload",
    [
        {},
        [],
        None,
        {"consent_text": "x"},
        {"consent_text": "x", "allowed_channels": ["email"], "scope": ["x"], "granted_at": "2026-11-01T12:00:00Z"},
        {"consent_text": "x", "allowed_channels": ["email"], "scope": ["lead_submission"], "granted_at": 5},
    ],
)
def test_a_kept_grant_that_is_none_is_refused(payload: Any) -> None:
    with pytest.raises(ValueError, match="grant"):
        ConsentGrant.from_payload(payload)


def test_the_words_stay_out_of_logs() -> None:
    assert "share" not in repr(Disclosure("Demo", ("email",)).granted(at=NOW))
