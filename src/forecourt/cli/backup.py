"""`forecourt backup`: a copy of the database in one file, while it serves."""

import json

import click

from forecourt.cli._copy import copying, told
from forecourt.cli._count import counted

__all__ = ["command"]


@click.command("backup")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--config", type=click.Path(dir_okay=False), envvar="FORECOURT_CONFIG", help="Configuration file.")
@click.option("--data", type=click.Path(file_okay=False), help="Folder of the database (default ./forecourt-data).")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def command(file: str, config: str | None, data: str | None, as_json: bool) -> None:
    """Copy the database into a new FILE.

    It is the database of one moment; servers go on meanwhile. FILE must not be there yet; it is for its owner alone,
    and checked before it appears. With PostgreSQL, pg_dump is needed.

    \b
    Example:
      forecourt backup forecourt-2026-05-04.backup --config forecourt.toml
    """
    made = copying(config, data, lambda store, path: store.back_up(path), file)
    click.echo(json.dumps({"file": file, **told(made)}) if as_json else f"{file}: {counted(made.leads, 'lead')}, "
               f"{counted(made.listings, 'listing')}, {made.size:,} bytes, at migration {made.migration}")  # fmt: skip
