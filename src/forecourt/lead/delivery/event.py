"""An `aap.event`: what became of a lead or an appointment, for a webhook.

Source: AAP 1.1, event.schema.json.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from forecourt.lead.moment import format_time

__all__ = ["EVENT_STATUSES", "render_event"]

EVENT_STATUSES: Final[Mapping[str, tuple[str, ...]]] = {
    "lead.status_changed": ("received", "duplicate", "rejected", "working", "sold_to", "lost"),
    "appointment.status_changed": ("requested", "proposed", "confirmed", "rejected", "completed", "no_show"),
}
"""Kind of event -> the statuses that it may tell."""


def render_event(
    event_kind: str, entity_id: str, status: str, occurred_at: datetime, payload: Mapping[str, Any] | None = None
) -> bytes:
    """Return the event as compact JSON: the same arguments give the same bytes.

    `entity_id` is the lead's id or the appointment's, as the kind says; `occurred_at` is aware, and written in UTC to
    the second. `payload` is the dealer's own; what is personal does not belong in it. Raises ValueError for a kind
    or status that AAP does not have.
    """
    if event_kind not in EVENT_STATUSES:
        raise ValueError(f"an event is one of {', '.join(EVENT_STATUSES)}")
    if status not in EVENT_STATUSES[event_kind]:
        raise ValueError(f"the status in {event_kind} is one of {', '.join(EVENT_STATUSES[event_kind])}")
    event: dict[str, Any] = {
        "type": "aap.event",
        "event_kind": event_kind,
        "entity_id": entity_id,
        "status": status,
        "occurred_at": format_time(occurred_at.replace(microsecond=0), UTC),
    }
    if payload:
        event["payload"] = dict(payload)
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
