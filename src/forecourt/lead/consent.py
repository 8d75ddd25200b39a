"""Whether a consent grant may be used, and all that is wrong with it if not.

Source: CONTRACTS.md section 6, "Consent"; "Errors and retries", section "Important distinctions".
"""

import unicodedata
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from forecourt.errors import AAPError, Problem
from forecourt.lead.moment import parse_time

__all__ = ["CLOCK_SKEW", "check_consent"]

CLOCK_SKEW: Final = timedelta(seconds=60)
"""How far ahead of our clock the buyer's may be (ours)."""

_SCOPE: Final = ["lead_submission"]
_CHANNELS: Final = frozenset({"email", "phone", "sms"})
_BLANK_LETTERS: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Hangul fillers and the empty braille cell: letters and symbols by category, but nothing to see."""


def check_consent(
    consent: Mapping[str, Any],
    customer: Mapping[str, Any],
    now: datetime,
    *,
    skew: timedelta = CLOCK_SKEW,
) -> None:
    """Return if the grant covers this submission at `now` (aware).

    Raises AAPError INVALID_CONSENT with every problem. When the one problem is that the channel of
    `customer.preferred_contact` is not allowed, its `reason` is "channel": the 1.1 contract has another code
    for that. An expiry is past once `now` is later; a grant from ahead of `now` by no more than `skew` is
    current.
    """
    problems = [*_times(consent, now, skew), *_terms(consent)]
    channel = _channel(consent, customer)
    if channel is not None:
        reason = None if problems else "channel"
        raise AAPError("INVALID_CONSENT", problems=[*problems, channel], reason=reason)
    if problems:
        raise AAPError("INVALID_CONSENT", problems=problems)


def _times(consent: Mapping[str, Any], now: datetime, skew: timedelta) -> Iterator[Problem]:
    granted = _moment(consent.get("granted_at"))
    if granted is None:
        yield Problem("/consent/granted_at", "format", "must be an RFC 3339 date-time with an offset")
    elif granted > now + skew:
        yield Problem("/consent/granted_at", "future", "must not lie in the future")
    if "expires_at" not in consent:
        return
    expires = _moment(consent["expires_at"])
    if expires is None:
        yield Problem("/consent/expires_at", "format", "must be an RFC 3339 date-time with an offset")
        return
    if expires < now:
        yield Problem("/consent/expires_at", "expired", "has passed")
    if granted is not None and expires < granted:
        yield Problem("/consent/expires_at", "order", "must not lie before granted_at")


def _terms(consent: Mapping[str, Any]) -> Iterator[Problem]:
    text = consent.get("consent_text")
    if not isinstance(text, str) or not _is_visible(text):
        yield Problem("/consent/consent_text", "minLength", "must be the text that the shopper agreed to")
    if consent.get("scope") != _SCOPE:
        yield Problem("/consent/scope", "const", 'must be exactly ["lead_submission"]')


def _channel(consent: Mapping[str, Any], customer: Mapping[str, Any]) -> Problem | None:
    preferred = customer.get("preferred_contact")
    allowed = consent.get("allowed_channels")
    if not isinstance(preferred, str) or preferred not in _CHANNELS:
        return None
    if isinstance(allowed, list | tuple) and preferred in allowed:
        return None
    return Problem(
        "/consent/allowed_channels",
        "channel",
        "must include the channel that customer.preferred_contact asks for",
        "Ask the shopper to allow that channel, or to prefer one that is allowed.",
    )


def _moment(value: object) -> datetime | None:
    try:
        return parse_time(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _is_visible(text: str) -> bool:
    """Tell whether there is a letter, number, punctuation or symbol: white and zero-width text has none."""
    first = text[:1]
    if first.isascii() and first.isalnum():
        return True  # as nearly all begin
    return any(unicodedata.category(sign)[0] in "LNPS" and sign not in _BLANK_LETTERS for sign in text)
