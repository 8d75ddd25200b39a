"""The PAP binding: one HTTP operation a skill, the AAP payload as its JSON body, `aap.error` under a status.

Credentials are PAP's own and are settled before anything here is asked ("Errors and retries", section "Three
envelopes"). What is wrong with a request before any skill is meant keeps PAP's own form too, an object with `error`.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from forecourt.binding import REFUSED, Answer
from forecourt.binding.json_text import MalformedJSONError, decode, encode
from forecourt.contract import Contract, Skill
from forecourt.errors import CODES, AAPError, Kind, Problem

__all__ = ["IDEMPOTENCY_KEY", "STATUSES", "PAPBinding", "answer", "refuse"]

STATUSES: Final[Mapping[Kind, int]] = {
    Kind.UNSUPPORTED_SKILL: 404,
    Kind.INVALID: 422,
    Kind.NOT_FOUND: 404,
    Kind.CONFLICT: 409,
    Kind.CONSENT: 403,
    Kind.THROTTLED: 429,
    Kind.INTERNAL: 500,
}
"""HTTP statuses of skill errors ("Errors and retries", section "Error code reference"; CONTRACTS.md section 4)."""

IDEMPOTENCY_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")
"""What an `Idempotency-Key` may be (PAP guides, "Retries")."""

_JSON: Final = (b"content-type", b"application/json")
_NOT_STORED: Final = (b"cache-control", b"no-store")
_HEADERS: Final = (_JSON, _NOT_STORED)


class PAPBinding:
    """One contract over PAP. Bytes and headers in, `Answer` out; it neither waits nor runs a skill."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract

    def read(self, skill: Skill, body: bytes, content_type: str | None) -> Any:
        """Return the AAP payload of a request for `skill`, not yet checked by the contract; an `Answer` refuses it.

        Raises AAPError for a payload that asks for another skill than the operation's.
        """
        essence, _, parameters = (content_type or "").partition(";")
        charset = parameters.strip().lower().removeprefix("charset=").strip('"')
        media_types = ("application/json", skill.request_media_type)
        if essence.strip().lower() not in media_types or charset not in ("", "utf-8", "utf8"):
            return refuse(415, "unsupported_media_type", "Send the request as Content-Type: application/json in UTF-8.")
        try:
            payload = decode(body)
        except MalformedJSONError as error:
            # These messages are ours, word for word: they hold nothing of the body.
            return refuse(400, "invalid_request", f"The request cannot be read: {error}.")
        meant = self.contract.skill_of(payload)
        if meant is not None and meant is not skill:
            raise AAPError(
                "SCHEMA_VALIDATION_FAILED",
                problems=[
                    Problem(
                        "/type",
                        "const",
                        "asks for another skill than this operation's",
                        f"Send `{skill.request_type}` here; every skill has an operation of its own.",
                    )
                ],
            )
        return payload

    def write(self, *payload: bytes) -> Answer:
        """Return the answer that carries a skill's response payload: JSON bytes, whole or in pieces."""
        return Answer(200, _HEADERS, b"".join(payload))

    def fail(self, error: AAPError) -> Answer:
        """Return the answer that carries an `aap.error`; 429 also says in `Retry-After` how long to wait."""
        payload = self.contract.write_error(error)
        declared = CODES.get(payload["code"])
        status = STATUSES[declared.kind if declared else Kind.INTERNAL]
        more: tuple[tuple[bytes, bytes], ...] = ()
        if status == STATUSES[Kind.THROTTLED]:
            # Whole seconds, rounded up: whoever obeys the header obeys retry_after_ms.
            wait = max(1, math.ceil(payload["details"]["retry_after_ms"] / 1000))
            more = ((b"retry-after", b"%d" % wait),)
        return Answer(status, (*_HEADERS, *more), encode(payload), payload["code"], payload["error_id"])


def refuse(status: int, error: str, description: str | None = None, **headers: str) -> Answer:
    """Return a refusal in PAP's own form; underscores in the names of headers stand for hyphens."""
    body = {"error": error} if description is None else {"error": error, "error_description": description}
    given = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return msgspec.structs.replace(answer(status, encode(body), given), outcome=REFUSED)


def answer(status: int, body: bytes, headers: Sequence[tuple[str, str]] = ()) -> Answer:
    """Return an answer of JSON bytes that is not to be stored, with further headers."""
    more = tuple((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers)
    return Answer(status, (_JSON, *(pair for pair in more if pair[0] != b"cache-control"), _NOT_STORED), body)
