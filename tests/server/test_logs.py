"""Log records as JSON lines: what machines need, and never what an exception choked on."""

import json
import logging
import os
import sys

import pytest

from forecourt.server.config import Log
from forecourt.server.logs import JSONFormatter, configure


def record(message: str = "hello %s", *arguments: object, **fields: object) -> logging.LogRecord:
    """Return a record with extra fields."""
    made = logging.LogRecord("forecourt.x", logging.WARNING, "file", 1, message, arguments or ("you",), None)
    made.created = 1_800_000_000.25
    made.__dict__.update(fields)
    return made


def test_a_record_is_one_object_a_line() -> None:
    line = JSONFormatter().format(record("two\nlines %s", "x", error_id="err_1", status=200, secret="hidden"))
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2027-01-15T08:00:00.250Z",
        "level": "warning",
        "logger": "forecourt.x",
        "message": "two\nlines x",
        "process": os.getpid(),
        "error_id": "err_1",
        "status": 200,
    }


def test_of_an_exception_only_its_kind_is_told() -> None:
    made = record()
    try:
        raise ValueError("zephyrine@example.com")
    except ValueError:
        made.exc_info = sys.exc_info()
    line = JSONFormatter().format(made)
    assert "zephyrine" not in line
    assert json.loads(line)["exception"] == "ValueError"


def test_only_our_own_records_come_at_lower_levels(capsys: pytest.CaptureFixture[str]) -> None:
    root, ours = logging.getLogger(), logging.getLogger("forecourt")
    before = root.handlers[:], root.level, ours.level
    try:
        configure(Log(format="json", level="info"))
        logging.getLogger("forecourt.requests").info("seen")
        logging.getLogger("httpx").info("unseen")
        logging.getLogger("httpx").warning("warned")
    finally:
        root.handlers[:], root.level, ours.level = before
        logging.getLogger("forecourt").setLevel(before[2])
    assert [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()] == ["seen", "warned"]


def test_a_process_among_others_names_itself_in_text_too(capsys: pytest.CaptureFixture[str]) -> None:
    root, ours = logging.getLogger(), logging.getLogger("forecourt")
    before = root.handlers[:], root.level, ours.level
    try:
        configure(Log(), among_others=True)
        logging.getLogger("forecourt.x").warning("hello")
    finally:
        root.handlers[:], root.level, _ = before
        ours.setLevel(before[2])
    assert f" WARNING forecourt.x [{os.getpid()}]: hello\n" in capsys.readouterr().err
