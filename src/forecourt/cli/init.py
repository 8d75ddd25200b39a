"""`forecourt init`: write a configuration to begin with."""

import os
from importlib import resources
from pathlib import Path
from typing import Final

import click

__all__ = ["command"]

_FILES: Final = ("forecourt.toml", "dealer.json")


@click.command("init")
@click.argument("folder", metavar="[DIR]", type=click.Path(file_okay=False), default=".")
def command(folder: str) -> None:
    """Write a configuration to begin with.

    That is a commented forecourt.toml, and the dealer.json that it names, in DIR (default: here). Files that are there
    already stay as they are, and nothing is written.

    \b
    Example:
      forecourt init example-motors
      forecourt serve --config example-motors/forecourt.toml
    """
    place = Path(folder)
    there = [name for name in _FILES if (place / name).exists()]
    if there:
        raise click.ClickException(f"{place / there[0]} is there already; nothing was written")
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            text = resources.files("forecourt.cli").joinpath("begin", name).read_text(encoding="utf-8")
            # "x" once more: of two that begin at once, one is told.
            with (place / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "it cannot be written"
        raise click.ClickException(f"{place}: {reason}") from None
    click.echo(f"wrote {place / _FILES[0]} and {place / _FILES[1]}")
    click.echo(f"Put your dealership into {_FILES[1]}, then: forecourt serve --config {place / _FILES[0]}")
