"""`forecourt call`: one skill, its payload as it is."""

import json
import sys
from pathlib import Path
from typing import Any, Final

import click

from forecourt.cli._shop import print_json, run, shopping

SKILLS: Final = ("dealer.information", "inventory.facets", "inventory.search", "inventory.vehicle", "lead.submit")
"""The skills' ids, written down so that help needs no contract."""

_MAX_BYTES: Final = 16 * 1024 * 1024


@click.command("call")
@shopping
@click.argument("skill", type=click.Choice(SKILLS))
@click.argument("payload", default="{}")
def command(url: str, as_json: bool, skill: str, payload: str, **options: Any) -> None:
    """Send one skill's payload as it is.

    It is JSON, @FILE, or - for standard input, and `type` may be left out; the response payload is printed, or the
    aap.error. For a lead, the consent in the payload is the caller's to have asked for.

    \b
    Example:
      forecourt call https://dealer.example.com inventory.search '{"filters": {"make": ["Honda"]}}'
    """
    del as_json  # JSON is all that this command prints.
    sent = _read(payload)
    print_json(run(lambda dealer: dealer.call(skill, sent), url, True, **options))


def _read(payload: str) -> dict[str, Any]:
    try:
        if payload == "-":
            text = sys.stdin.buffer.read(_MAX_BYTES)
        elif payload.startswith("@"):
            with Path(payload[1:]).open("rb") as file:
                text = file.read(_MAX_BYTES)
        else:
            text = payload.encode()
        value = json.loads(text)
    except OSError as error:
        raise click.UsageError(f"the payload cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise click.UsageError("the payload is no JSON") from None
    if not isinstance(value, dict):
        raise click.UsageError("the payload is a JSON object")
    return value
