"""The sixteen AAP error codes, each declared once, and the exceptions that carry them.

::

    Exception
     ├── AAPError          a skill failed: one `aap.error` object (this module)
     ├── A2AError          the A2A protocol failed: `forecourt.a2a`, which stands alone
     └── TransportError    nothing readable came back: `forecourt.client`

Source: "Errors and retries", sections "One automotive error" and "Error code reference". What a code is called on
the wire of one binding (a JSON-RPC number, an HTTP status) belongs to that binding, in one table of its own.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from forecourt.identifier import sortable_id

__all__ = ["CODES", "AAPError", "Code", "Kind", "Problem", "timestamp"]


class Kind(enum.StrEnum):
    """What sort of failure a code is; bindings map kinds to their own numbers where codes do not differ."""

    UNSUPPORTED_SKILL = "unsupported_skill"
    INVALID = "invalid"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    CONSENT = "consent"
    THROTTLED = "throttled"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class Code:
    """One AAP error code.

    `since` is the first contract that has it, `message` what is said when nothing more specific is known, and
    `hint` the standing advice for `details.hint` (ours; CONTRACTS.md section 4).
    """

    name: str
    kind: Kind
    retryable: bool
    since: str
    message: str
    hint: str

    def in_contract(self, version: str) -> bool:
        """Tell whether the contract `version` ("1.1", "3.1") has this code."""
        return _version_key(version) >= _version_key(self.since)


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


CODES: Final[Mapping[str, Code]] = {
    code.name: code
    for code in (
        Code(
            "UNSUPPORTED_SKILL", Kind.UNSUPPORTED_SKILL, False, "1.1",
            "This agent does not implement the skill that the payload's type names.",
            "Read skills[] on the agent card and send one of the request types that it lists.",
        ),
        Code(
            "UNSUPPORTED_FILTER", Kind.INVALID, False, "3.1",
            "This deployment does not support a filter that was sent.",
            "Read the published search capabilities before forming another query.",
        ),
        Code(
            "UNSUPPORTED_SORT", Kind.INVALID, False, "3.1",
            "This deployment does not sort by the field that was sent.",
            "Sort by one of the sort_fields in the published search capabilities.",
        ),
        Code(
            "INVALID_CURSOR", Kind.INVALID, False, "3.1",
            "The cursor cannot be continued.",
            "Restart the search without a cursor; never continue from a made-up position.",
        ),
        Code(
            "SCHEMA_VALIDATION_FAILED", Kind.INVALID, False, "1.1",
            "The request does not fit its schema.",
            "Correct every entry of details.errors; the request schemas are served below /schemas/.",
        ),
        Code(
            "MISSING_REQUIRED_FIELD", Kind.INVALID, False, "1.1",
            "A required field is missing.",
            "Add the field that details.errors names.",
        ),
        Code(
            "INVALID_CONDITION", Kind.INVALID, False, "1.1",
            "Sale and trade-in condition words were swapped.",
            "vehicle_of_interest.condition is new, used or cpo; trade_in.condition is excellent, good, fair or poor.",
        ),
        Code(
            "DEALER_NOT_FOUND", Kind.NOT_FOUND, False, "3.1",
            "No such seller is served here.",
            "Use a dealer_id from a listing or from dealer.information of this endpoint, or leave it out.",
        ),
        Code(
            "VEHICLE_NOT_FOUND", Kind.NOT_FOUND, False, "1.1",
            "No listing matches the vehicle that was named.",
            "Refresh the search and use an identifier from its results.",
        ),
        Code(
            "VEHICLE_UNAVAILABLE", Kind.CONFLICT, False, "1.1",
            "This vehicle can no longer be offered.",
            "Refresh the search and tell the buyer that this vehicle is gone.",
        ),
        Code(
            "CONTACT_CONSENT_REQUIRED", Kind.CONSENT, False, "1.1",
            "The shopper's consent is missing.",
            "Show the shopper what will be shared with whom, and send the grant that the shopper gives.",
        ),
        Code(
            "INVALID_CONSENT", Kind.CONSENT, False, "1.1",
            "The consent grant cannot be used.",
            "Ask the shopper for a new grant.",
        ),
        Code(
            "APPOINTMENT_TIME_UNAVAILABLE", Kind.CONFLICT, False, "1.1",
            "The submission was rejected because no appointment time could be accepted.",
            "Nothing was stored. Ask the shopper for another time, or submit the lead without an appointment.",
        ),
        Code(
            "IDEMPOTENCY_CONFLICT", Kind.CONFLICT, False, "1.1",
            "This idempotency_key came before with different content.",
            "Reconcile first: resend the original content under this key. A new key makes a new lead.",
        ),
        Code(
            "RATE_LIMITED", Kind.THROTTLED, True, "1.1",
            "Too many requests.",
            "Wait at least retry_after_ms, then send the same request again.",
        ),
        Code(
            "INTERNAL_ERROR", Kind.INTERNAL, True, "1.1",
            "The dealer agent failed to answer.",
            "Wait and send the same request again; a lead keeps its idempotency_key.",
        ),
    )
}  # fmt: skip
"""Every AAP code by name, in the order of the seed's table."""


def timestamp(moment: datetime | None = None) -> str:
    """Return `moment` (default: now) as RFC 3339 in UTC with milliseconds, for example 2026-10-24T15:00:00.000Z."""
    moment = datetime.now(UTC) if moment is None else moment.astimezone(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong with a request: one entry of `details.errors[]`.

    `location` is a JSON Pointer into the AAP payload ("" is the whole of it), `keyword` the constraint, and `error` a
    plain phrase ("must be an integer") that holds no value from the request. `hint` is a correction, where one is
    known; it is gathered into `details.hint`.
    """

    location: str
    keyword: str
    error: str
    hint: str | None = field(default=None, compare=False)

    @property
    def sentence(self) -> str:
        """The problem as one phrase that names the field: "filters.year_min must be an integer"."""
        name = self.location[1:].replace("/", ".").replace("~1", "/").replace("~0", "~")
        return f"{name or 'the request'} {self.error}"

    def to_payload(self) -> dict[str, str]:
        """Return the entry as it travels."""
        return {"instanceLocation": self.location, "keyword": self.keyword, "error": self.error}


class AAPError(Exception):
    """A skill could not be carried out: the one `aap.error` object, whatever binding brings it.

    `code` is usually a key of `CODES`; a code from the wire that this version does not know is kept as it came.
    `problems` become `details.errors`, `details` holds whatever else the code carries. `reason` is a word for our own
    use (a contract may tell cases of one code apart by it); it never travels. `error_id` and `created_at` are made
    here unless the error came from elsewhere, so that the log and the caller name the same event.
    """

    def __init__(
        self,
        code: str,
        message: str | None = None,
        *,
        problems: Sequence[Problem] = (),
        hint: str | None = None,
        retry_after_ms: int | None = None,
        details: Mapping[str, Any] | None = None,
        retryable: bool | None = None,
        reason: str | None = None,
        error_id: str | None = None,
        created_at: str | None = None,
    ) -> None:
        declared = CODES.get(code)
        self.code = code
        self.problems = tuple(sorted(problems))
        self.message = message or _message(declared, self.problems)
        self.retryable = retryable if retryable is not None else declared is not None and declared.retryable
        self.hint = hint or _hints(self.problems) or (declared.hint if declared else None)
        if code == "RATE_LIMITED" and retry_after_ms is None and error_id is None:
            # "Retry without changing the outcome": ours never goes without; what came from elsewhere stays as it came.
            retry_after_ms = _RETRY_AFTER_MS
        self.retry_after_ms = retry_after_ms
        self.details = dict(details or {})
        self.reason = reason
        self.error_id = error_id or sortable_id("err_")
        self.created_at = created_at or timestamp()
        self.received: Mapping[str, Any] | None = None
        """The `aap.error` object as it came, unknown members and all; None for an error that was made here."""
        self.raw: Any = None
        """The answer that brought it (`forecourt.client.Answer`), kept before anything was read; None for ours."""
        super().__init__(code, self.message)

    def __str__(self) -> str:
        """Return the code and the message, which hold nothing of the shopper."""
        return f"{self.code}: {self.message}"

    @property
    def kind(self) -> Kind:
        """The kind of the code; a code that this version does not know reads as internal."""
        declared = CODES.get(self.code)
        return declared.kind if declared else Kind.INTERNAL

    @property
    def metric_label(self) -> str:
        """The code in lower case, or "other": a label of bounded cardinality."""
        return self.code.lower() if self.code in CODES else "other"

    def to_payload(self) -> dict[str, Any]:
        """Return the `aap.error` object ("Errors and retries", section "One automotive error")."""
        details: dict[str, Any] = dict(self.details)
        if self.problems:
            details["errors"] = [problem.to_payload() for problem in self.problems]
        if self.retry_after_ms is not None:
            details["retry_after_ms"] = self.retry_after_ms
        if self.hint:
            details["hint"] = self.hint
        payload: dict[str, Any] = {
            "type": "aap.error",
            "error_id": self.error_id,
            "code": self.code,
            "message": self.message,
            "retryable": self.retryable,
        }
        if details:
            payload["details"] = details
        payload["created_at"] = self.created_at
        return payload


def _message(declared: Code | None, problems: Sequence[Problem]) -> str:
    if not problems:
        return declared.message if declared else "The dealer agent answered with an error."
    first = problems[0].sentence
    if len(problems) == 1:
        return first
    return f"{first} (and {len(problems) - 1} more; see details.errors)"


_HINTS_SHOWN: Final = 3
_RETRY_AFTER_MS: Final = 1000


def _hints(problems: Sequence[Problem]) -> str | None:
    hints = list(dict.fromkeys(problem.hint for problem in problems if problem.hint))
    return " ".join(hints[:_HINTS_SHOWN]) or None
