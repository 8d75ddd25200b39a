"""Labels of outcomes are few."""

import pytest

from forecourt.a2a import A2AError, FailureKind
from forecourt.client.failure import TransportError
from forecourt.client.trace import outcome_of
from forecourt.errors import AAPError


@pytest.mark.parametrize(
    ("error", "label"),
    [
        (None, "ok"),
        (AAPError("RATE_LIMITED"), "rate_limited"),
        (AAPError("whatever a dealer wrote"), "other"),
        (A2AError(-32601), A2AError(-32601).metric_label),
        (A2AError(-31999), A2AError(-31998).metric_label),
        (TransportError(FailureKind.TIMEOUT, "late"), "timeout"),
        (ValueError(), "other"),
    ],
)
def test_an_outcome_has_one_of_few_labels(error: Exception | None, label: str) -> None:
    assert outcome_of(error) == label
