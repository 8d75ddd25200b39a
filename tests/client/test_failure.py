"""Failures keep what they were made of, and show nothing of a body."""

import pickle

import pytest

from forecourt.a2a import A2AError, FailureClass, FailureKind, error_class, to_a2a_error
from forecourt.client import Answer, DealerError, PagingError, TransportError
from forecourt.client.reading import status_failure

RAW = Answer(
    "https://x.example.com/a", 401, {"www-authenticate": "Bearer", "content-type": "Text/HTML; a=b"}, b"secret"
)


def test_an_answer_tells_its_media_type_and_hides_its_body() -> None:
    assert RAW.media_type == "text/html"
    assert Answer("", 200, {}, b"").media_type == ""
    assert "secret" not in repr(RAW)


@pytest.mark.parametrize(
    "failure",
    [TransportError(FailureKind.TIMEOUT, "late", raw=RAW, sent=False), DealerError("none", raw=RAW, status=404),
     PagingError("endless")],
)  # fmt: skip
def test_a_failure_can_be_pickled(failure: TransportError) -> None:
    copy = pickle.loads(pickle.dumps(failure))
    assert type(copy) is type(failure)
    assert (copy.kind, copy.message, copy.status, copy.raw, copy.sent) == (
        failure.kind, failure.message, failure.status, failure.raw, failure.sent,
    )  # fmt: skip


def test_a_challenge_is_that_of_the_answer() -> None:
    assert TransportError(FailureKind.AUTH_REQUIRED, "x", raw=RAW).challenge == "Bearer"
    assert TransportError(FailureKind.AUTH_REQUIRED, "x").challenge is None


def test_an_agent_that_delegates_passes_a_failure_on() -> None:
    busy = to_a2a_error(status_failure(Answer("https://x.example.com", 503, {}, b"")))
    assert isinstance(busy, A2AError)
    assert error_class(busy) is FailureClass.TRANSIENT
    assert error_class(to_a2a_error(DealerError("no card"))) is FailureClass.INTERNAL
