"""The shopper's consent in two steps: words that say what is shared, and a grant that only a yes to them makes.

CONTRACTS.md section 6: the grant holds the words that the shopper saw, when, and which channels the dealer may use.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from forecourt.errors import timestamp

__all__ = ["CHANNELS", "ConsentGrant", "Disclosure"]

CHANNELS: Final = ("email", "phone", "sms")
"""The channels by which a dealer may answer (official 1.1 schema, consent-grant, allowed_channels)."""

_BY: Final = {"email": "by email", "phone": "by phone call", "sms": "by text message (SMS)"}
_CONTACTS: Final = {"email": "email address", "phone": "phone number", "sms": "phone number"}


@dataclass(frozen=True, slots=True)
class ConsentGrant:
    """What the shopper agreed to. Made by `Disclosure.granted`, or by you from an answer that you have kept.

    `granted_at` and `expires_at` are aware datetimes. ValueError for a grant that no dealer could accept.
    """

    text: str = field(repr=False)
    channels: tuple[str, ...]
    granted_at: datetime
    expires_at: datetime | None = None

    def __post_init__(self) -> None:
        """Check what can be checked without a dealer."""
        if not self.text.strip():
            raise ValueError("a grant holds the words that the shopper saw")
        _check(self.channels)
        if self.granted_at.tzinfo is None or (self.expires_at is not None and self.expires_at.tzinfo is None):
            raise ValueError("the times of a grant have an offset from UTC")
        if self.expires_at is not None and self.expires_at <= self.granted_at:
            raise ValueError("a grant ends after it began")

    def to_payload(self) -> dict[str, Any]:
        """Return the grant as it travels."""
        payload: dict[str, Any] = {
            "granted_at": timestamp(self.granted_at),
            "allowed_channels": list(self.channels),
            "consent_text": self.text,
            "scope": ["lead_submission"],
        }
        if self.expires_at is not None:
            payload["expires_at"] = timestamp(self.expires_at)
        return payload

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> "ConsentGrant":
        """Read a grant that was kept as it travels; ValueError for what is none."""
        try:
            expires = payload.get("expires_at")
            grant = cls(
                payload["consent_text"],
                tuple(payload["allowed_channels"]),
                datetime.fromisoformat(payload["granted_at"]),
                None if expires is None else datetime.fromisoformat(expires),
            )
            scope = payload["scope"]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError("a grant has consent_text, allowed_channels, granted_at and scope") from error
        if scope != ["lead_submission"]:
            raise ValueError('the scope of a grant is ["lead_submission"]')
        return grant


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What the shopper is told before anything is shared: with whom, what for, and how the seller may answer.

    Show `text`, word for word; only then, and only after a yes, make the grant. There is no other way from here to a
    grant, and `submit_lead` takes nothing but a grant.
    """

    seller: str
    channels: tuple[str, ...]
    vehicle: str | None = None
    agent: str | None = None
    shares: tuple[str, ...] = ()
    appointment: str | None = None

    def __post_init__(self) -> None:
        """Check the seller and the channels: ValueError."""
        if not self.seller.strip():
            raise ValueError("a disclosure names the seller")
        object.__setattr__(self, "channels", tuple(dict.fromkeys(self.channels)))
        _check(self.channels)

    @property
    def text(self) -> str:
        """The words to show."""
        contacts = list(dict.fromkeys(_CONTACTS[channel] for channel in self.channels))
        shared = _list(["name", *contacts, *self.shares])
        by = f"{self.agent.strip()} may share" if self.agent and self.agent.strip() else "You may share"
        about = f" about the {self.vehicle.strip()}" if self.vehicle and self.vehicle.strip() else ""
        visit = f", and arrange {self.appointment.strip()}" if self.appointment and self.appointment.strip() else ""
        ways = _list([_BY[channel] for channel in self.channels], "or")
        return (
            f"{by} my {shared} with {self.seller.strip()}, so that they contact me {ways}{about}{visit}. "
            "I can withdraw this consent at any time."
        )

    def granted(self, *, at: datetime | None = None, days: int | None = 365) -> ConsentGrant:
        """Return the grant of a shopper who has seen `text` and said yes, now or `at`; it ends after `days`."""
        at = at or datetime.now(UTC)
        return ConsentGrant(self.text, self.channels, at, None if days is None else at + timedelta(days=days))


def _check(channels: Iterable[str]) -> None:
    found = tuple(channels)
    if not found or len(set(found)) != len(found) or not set(found) <= set(CHANNELS):
        raise ValueError(f"channels are one or more of {', '.join(CHANNELS)}")


def _list(words: list[str], last: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"
