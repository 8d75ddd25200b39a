"""Events are what the official 1.1 schema says (event.schema.json)."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import pytest

from forecourt.lead.delivery.event import EVENT_STATUSES, render_event

AT: Final = datetime(2026, 4, 30, 14, 8, 0, 123456, UTC)
OFFICIAL: Final = (
    Path(os.environ.get("FORECOURT_OFFICIAL_SCHEMAS") or Path(__file__).parents[4] / "shared" / "spec" / "aap-1.1")
    / "schemas"
    / "event.schema.json"
)


@pytest.fixture(scope="module")
def official() -> Any:
    """Return the official schema of events."""
    if OFFICIAL.is_file():
        return json.loads(OFFICIAL.read_bytes())
    if os.environ.get("CI") == "true":
        pytest.fail("the official schemas are missing; FORECOURT_OFFICIAL_SCHEMAS must name their folder")
    pytest.skip("no official schemas; FORECOURT_OFFICIAL_SCHEMAS names their folder")


def every() -> Iterator[tuple[str, str]]:
    """Yield every kind with every status that it may tell."""
    for kind, statuses in EVENT_STATUSES.items():
        for status in statuses:
            yield kind, status


def test_an_event_is_compact_json_in_a_fixed_order() -> None:
    assert render_event("lead.status_changed", "lead_1", "working", AT) == (
        b'{"type":"aap.event","event_kind":"lead.status_changed","entity_id":"lead_1","status":"working",'
        b'"occurred_at":"2026-04-30T14:08:00+00:00"}'
    )


@pytest.mark.parametrize(("kind", "status"), list(every()))
@pytest.mark.parametrize("payload", [None, {}, {"previous_status": "received", "note": "ä"}])
def test_every_event_is_valid_by_the_official_schema(
    official: Any, kind: str, status: str, payload: dict[str, Any] | None
) -> None:
    event = json.loads(render_event(kind, "id_1", status, AT, payload))
    jsonschema_rs.Draft202012Validator(official, validate_formats=True).validate(event)


def test_the_statuses_are_the_official_ones(official: Any) -> None:
    assert official["properties"]["event_kind"]["enum"] == list(EVENT_STATUSES)
    for rule in official["allOf"]:
        kind = rule["if"]["properties"]["event_kind"]["const"]
        assert rule["then"]["properties"]["status"]["enum"] == list(EVENT_STATUSES[kind])


def test_a_payload_is_carried_as_it_is() -> None:
    event = json.loads(render_event("lead.status_changed", "lead_1", "lost", AT, {"previous_status": "working"}))
    assert event["payload"] == {"previous_status": "working"}


def test_the_time_is_told_in_utc() -> None:
    local = AT.astimezone(timezone(timedelta(hours=-7)))
    assert render_event("lead.status_changed", "a", "lost", local) == render_event(
        "lead.status_changed", "a", "lost", AT
    )


@pytest.mark.parametrize(
    ("kind", "status"),
    [("lead.created", "received"), ("lead.status_changed", "confirmed"), ("appointment.status_changed", "lost")],
)
def test_what_aap_does_not_have_is_refused(kind: str, status: str) -> None:
    with pytest.raises(ValueError, match="one of"):
        render_event(kind, "id_1", status, AT)


def test_a_payload_that_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        render_event("lead.status_changed", "id_1", "lost", AT, {"share": float("nan")})
