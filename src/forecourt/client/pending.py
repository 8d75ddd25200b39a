"""A lead on its way, kept in a file until the dealer's last word on it is there.

The file is on the disk before the first try. A buyer that crashed, or never learned the outcome, sends what it holds
once more: the same payload under the same key, which makes no second lead (CONTRACTS.md section 6).
"""

import contextlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from forecourt.client.json_text import decode, encode
from forecourt.contract import SKILLS

__all__ = ["PendingError", "Submission", "erase", "keep", "load"]

_FORMAT: Final = 1
_MAX_BYTES: Final = 4 * 1024 * 1024


class PendingError(Exception):
    """A pending file cannot be used as asked; the message says why and what to do."""


@dataclass(slots=True)
class Submission:
    """One lead: its payload, with the key in it, fixed before the first try and the same for every one.

    `dealer` is the origin of the dealer's site. `uncertain` is True while it cannot be known whether the dealer has
    the lead: then it is only ever cleared up with the same key. `path` is the file that holds it, if one does.
    """

    payload: Mapping[str, Any] = field(repr=False)
    dealer: str
    contract: str
    path: Path | None = None
    uncertain: bool = False

    @property
    def key(self) -> str:
        """The idempotency key."""
        key: str = self.payload["idempotency_key"]
        return key


def keep(submission: Submission, path: str | os.PathLike[str]) -> Submission:
    """Write a submission to `path`, for its owner's eyes alone, and return it when it is on the disk.

    A file that is there already holds a lead whose outcome nobody knows. If it is the same lead but for its key, that
    one is returned instead, so that a program which is simply run again makes no second lead. Raises PendingError if
    it holds another one, OSError if the file cannot be written.
    """
    place = Path(path)
    record = {
        "format": _FORMAT,
        "dealer": submission.dealer,
        "contract": submission.contract,
        "payload": submission.payload,
    }
    descriptor, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(encode(record))
            file.flush()
            os.fsync(file.fileno())
        try:
            # Unlike a rename, a link never replaces the file of somebody who was quicker.
            os.link(name, place)
        except FileExistsError:
            return _again(submission, place)
    finally:
        with contextlib.suppress(OSError):
            Path(name).unlink()
    _sync_folder(place)
    submission.path = place
    return submission


def _again(submission: Submission, place: Path) -> Submission:
    kept = load(place)
    same = _business(kept.payload) == _business(submission.payload) and kept.dealer == submission.dealer
    if not same:
        raise PendingError(
            f"{place} holds another lead, whose outcome is not known; resume it first (resume_lead, or forecourt lead "
            "--resume)"
        )
    return kept


def _business(payload: Mapping[str, Any]) -> dict[str, Any]:
    own = ("idempotency_key", "submitted_at")
    return {name: value for name, value in payload.items() if name not in own}


def load(path: str | os.PathLike[str]) -> Submission:
    """Read a submission from its file. Raises PendingError for a file that is none, OSError where there is none."""
    place = Path(path)
    with place.open("rb") as file:
        text = file.read(_MAX_BYTES + 1)
    try:
        record = decode(text) if len(text) <= _MAX_BYTES else None
    except ValueError:
        record = None
    payload = record.get("payload") if isinstance(record, dict) and record.get("format") == _FORMAT else None
    if (
        not isinstance(record, dict)
        or not isinstance(payload, dict)
        or payload.get("type") != SKILLS["lead.submit"].request_type
        or not isinstance(payload.get("idempotency_key"), str)
        or not isinstance(record.get("dealer"), str)
        or not isinstance(record.get("contract"), str)
    ):
        raise PendingError(f"{place} is not a pending lead of this version")
    # Whoever wrote it may have been cut off at any point after that.
    return Submission(payload, record["dealer"], record["contract"], place, uncertain=True)


def erase(submission: Submission) -> None:
    """Remove the file of a submission whose outcome is known: it holds a shopper's data."""
    if submission.path is not None:
        submission.path.unlink(missing_ok=True)
        _sync_folder(submission.path)
        submission.path = None


def _sync_folder(place: Path) -> None:
    """Make a change of a folder survive a power cut, where folders can be opened at all."""
    try:
        folder = os.open(place.parent, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
