"""What a hook sees of every try: enough to log and to measure, and nothing of a shopper unless it was asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from forecourt.a2a import A2AError, ClientError
from forecourt.errors import AAPError

__all__ = ["Hook", "Try", "outcome_of"]


@dataclass(frozen=True, slots=True)
class Try:
    """One request and what became of it.

    `outcome` is "ok" or a label of bounded cardinality; `error_id` is what the dealer's log calls the failure by;
    `wait` is how many seconds later the same request goes out again, None when it does not. `request` and `answer`
    are None unless the client was made with `hook_sees_bodies=True`: they hold what the shopper said.
    """

    skill: str
    contract: str
    binding: str
    url: str
    attempt: int
    seconds: float
    outcome: str
    status: int | None = None
    error_id: str | None = None
    wait: float | None = None
    request: Mapping[str, Any] | None = field(default=None, repr=False)
    answer: bytes | None = field(default=None, repr=False)


Hook = Callable[[Try], None]


def outcome_of(error: Exception | None) -> str:
    """Return the label of a failure: its AAP code, its A2A code's label, or what was met instead of an answer."""
    if error is None:
        return "ok"
    if isinstance(error, AAPError | A2AError):
        return error.metric_label
    return error.kind.value if isinstance(error, ClientError) else "other"
