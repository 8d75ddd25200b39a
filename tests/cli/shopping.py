"""What the tests of the buyer's commands share: running one against the demo dealer."""

import json
import os
import subprocess
import sys
from typing import Any

from click.testing import CliRunner, Result

from forecourt.cli import main
from forecourt.client import CARDS

__all__ = ["in_a_terminal", "printed", "run"]


def run(*arguments: str, text: str | None = None) -> Result:
    """Run a command as a pipe would, and make sure that no traceback is shown."""
    CARDS.clear()
    result = CliRunner().invoke(main, list(arguments), input=text)
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def printed(*arguments: str, status: int = 0, text: str | None = None) -> Any:
    """Return the JSON that a command prints."""
    result = run(*arguments, text=text)
    assert result.exit_code == status, result.output
    return json.loads(result.stdout)


def in_a_terminal(answer: str, *arguments: str) -> tuple[int, str]:
    """Run a command in a terminal, type an answer, and return its status with all that stood there."""
    import pty
    import select

    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from forecourt.cli import main; main()", *arguments]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    os.write(ours, answer.encode())
    try:
        while True:
            ready, _, _ = select.select([ours], [], [], 30)
            if not ready:
                process.kill()
                raise TimeoutError(shown.decode())
            try:
                chunk = os.read(ours, 65536)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
    finally:
        os.close(ours)
        status = process.wait(30)
    return status, shown.decode()
