"""What is logged, and how: lines for people, or one JSON object a line for machines.

Nothing of a shopper, no credential and no client's address is ever handed to a logger; tests search what a whole server
wrote. `error_id` is the one that the caller was given.
"""

import json
import logging
from datetime import UTC, datetime
from typing import Any, Final

from forecourt.server.config import Log

__all__ = ["JSONFormatter", "configure"]

_FIELDS: Final = ("request_id", "error_id", "binding", "contract", "skill", "outcome", "status", "milliseconds")
"""What a record may carry besides its message, all of our own making but `request_id`, which is checked."""
_TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_TEXT_OF_A_WORKER: Final = "%(asctime)s %(levelname)s %(name)s [%(process)d]: %(message)s"


class JSONFormatter(logging.Formatter):
    """Writes a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line: time (UTC, RFC 3339), level, logger, message, process and the fields of the record."""
        moment = datetime.fromtimestamp(record.created, UTC)
        entry: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        entry.update({name: record.__dict__[name] for name in _FIELDS if record.__dict__.get(name) is not None})
        if record.exc_info and record.exc_info[0] is not None:
            # The kind alone: the text of an exception quotes what it choked on.
            entry["exception"] = record.exc_info[0].__name__
        return json.dumps(entry, ensure_ascii=False)


def configure(settings: Log, *, among_others: bool = False) -> None:
    """Send the records of this process to standard error, as the configuration says.

    A process `among_others` that write to the same place names itself by its number in text, too.
    """
    handler = logging.StreamHandler()
    text = _TEXT_OF_A_WORKER if among_others else _TEXT
    handler.setFormatter(JSONFormatter() if settings.format == "json" else logging.Formatter(text))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    # Others' records stay at warning: what a library says at lower levels is not ours to promise anything about.
    logging.getLogger("forecourt").setLevel(settings.level.upper())
