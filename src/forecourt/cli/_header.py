"""Headers with credentials, as the buyer's commands take them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click

__all__ = ["credentials"]

_MAX_BYTES: Final = 64 * 1024
_WHAT: Final = "--header is NAME:VALUE, in ASCII, or @FILE with such lines"


def credentials(headers: Sequence[str]) -> dict[str, str]:
    """Return the headers by name. Raises click.UsageError for what is none."""
    found = {}
    for header in _lines(headers):
        name, colon, value = header.partition(":")
        usable = header.isascii() and header.isprintable()
        if not colon or not name.strip().replace("-", "").isalnum() or not usable:
            raise click.UsageError(_WHAT)
        found[name.strip()] = value.strip()
    return found


def _lines(headers: Sequence[str]) -> Iterator[str]:
    """Yield headers, those in files too: what stands on the command line, every user of the machine can read."""
    for header in headers:
        if not header.startswith("@"):
            yield header
            continue
        try:
            with Path(header[1:]).open("rb") as file:
                text = file.read(_MAX_BYTES).decode()
        except OSError as error:
            raise click.UsageError(f"--header: {header[1:]} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise click.UsageError(_WHAT) from None
        yield from (line for line in map(str.strip, text.splitlines()) if line)
