"""Leads whose keys are taken to be new, as nearly all are: they are decided without a question to the database.

Whether a key is new is decided by the database all the same, when the lead is written: a known one fails, with all that
came with it, and the leads are decided again the long way, with what is known.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from forecourt.store import Foreseen, LeadTransaction, NewLead, Remembered

__all__ = ["UnforeseenError", "decide_new"]


class UnforeseenError(Exception):
    """A lead asks or adds what was not foreseen of it."""


def decide_new(
    works: Iterable[tuple[Callable[[LeadTransaction], Any], Foreseen]],
) -> tuple[list[Any], list[NewLead]]:
    """Let leads be decided in turn; return what each returned, and what they add. Raises what one of them raises."""
    outcomes, added = [], []
    for work, foreseen in works:
        lead = _NewLead(foreseen)
        outcomes.append(work(lead))
        added += lead.added
    return outcomes, added


class _NewLead:
    """The one question and the answer of a lead."""

    def __init__(self, foreseen: Foreseen) -> None:
        self._foreseen = foreseen
        self.added: list[NewLead] = []

    def recall(self, scope: str, key: str, now: datetime) -> Remembered | None:
        foreseen = self._foreseen
        if self.added or (scope, key, now) != (foreseen.scope, foreseen.key, foreseen.now):
            raise UnforeseenError
        return None

    def twin(self, *_: Any) -> bytes | None:
        raise UnforeseenError

    def busy(self, *_: Any) -> int:
        raise UnforeseenError

    def add(self, lead: NewLead) -> None:
        foreseen = self._foreseen
        if lead.booking is not None or self.added or (lead.scope, lead.key) != (foreseen.scope, foreseen.key):
            raise UnforeseenError
        self.added.append(lead)
