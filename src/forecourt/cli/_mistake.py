"""How commands tell that a configuration cannot be used: one line, with file, line, key and what to do."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from forecourt.server import ConfigError

__all__ = ["located", "wrong_usage"]


def located(error: "ConfigError", config: str | None) -> "ConfigError":
    """Return the error with the lines of the configuration file, where that is what it is about."""
    if config is None or error.file is not None or not any(problem.key for problem in error.problems):
        return error
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return error.located(config, Path(config).read_text(encoding="utf-8"))
    return error


def wrong_usage(error: "ConfigError", config: str | None) -> click.UsageError:
    """Return what a command raises for a configuration that cannot be used."""
    lines = located(error, config).lines
    more = f" ({len(lines) - 1} more: forecourt config check lists all)" if len(lines) > 1 else ""
    return click.UsageError(lines[0] + more)
