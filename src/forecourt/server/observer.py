"""What is seen of every answer: counted always, logged where the operator asks for it, traced where that is set up."""

import logging
import re
from collections.abc import Callable
from typing import Final

from starlette.types import Scope

from forecourt.binding import Answer
from forecourt.contract import SKILLS
from forecourt.identifier import sortable_id
from forecourt.server.config import Log
from forecourt.server.metrics import Metrics, Reading
from forecourt.server.traces import spans

__all__ = ["Observer"]

_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_NO_SKILL: Final = "none"

_log = logging.getLogger("forecourt.requests")


class Observer:
    """Watches the answers of one deployment."""

    def __init__(self, settings: Log, read: Callable[[], Reading]) -> None:
        self.metrics = Metrics(read)
        self._logs = settings.requests
        self._span = spans()

    def answered(
        self, scope: Scope, binding: str, contract: str, skill: str | None, answer: Answer, seconds: float
    ) -> None:
        """See one answer. `skill` is what was asked for, None for what names no skill of ours."""
        word = skill if skill is not None and skill in SKILLS else _NO_SKILL
        self.metrics.answered(binding, contract, word, answer.outcome, seconds)
        if self._span is not None:
            self._span(scope["headers"], binding, contract, word, answer.outcome, seconds)
        if self._logs:
            _log.info(
                "%s %s: %s",
                binding,
                word,
                answer.outcome,
                extra={
                    "request_id": _request_id(scope),
                    "error_id": answer.error_id,
                    "binding": binding,
                    "contract": contract,
                    "skill": word,
                    "outcome": answer.outcome,
                    "status": answer.status,
                    "milliseconds": round(seconds * 1000, 3),
                },
            )


def _request_id(scope: Scope) -> str:
    """Return the id that a proxy in front gave the request, if it is one, else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            text: str = value.decode("ascii")
            return text
    return sortable_id("req_")
