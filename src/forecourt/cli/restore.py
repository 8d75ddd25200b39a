"""`forecourt restore`: the database of a backup, where there is none."""

import json

import click

from forecourt.cli._copy import copying, told
from forecourt.cli._count import counted

__all__ = ["command"]


@click.command("restore")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--config", type=click.Path(dir_okay=False), envvar="FORECOURT_CONFIG", help="Configuration file.")
@click.option("--data", type=click.Path(file_okay=False), help="Folder of the database (default ./forecourt-data).")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def command(file: str, config: str | None, data: str | None, as_json: bool) -> None:
    """Make the database of a backup.

    It is there as a whole or not at all. Stop the server and move the old database away first: nothing is written
    over. With PostgreSQL, pg_restore is needed.

    \b
    Example:
      forecourt restore forecourt-2026-05-04.backup --config forecourt.toml
    """
    made = copying(config, data, lambda store, path: store.restore(path), file)
    if as_json:
        click.echo(json.dumps({"file": file, **told(made)}))
        return
    click.echo(
        f"restored {counted(made.leads, 'lead')}, {counted(made.listings, 'listing')}, at migration {made.migration}"
    )
    click.echo("What was revoked, purged or marked since the backup is as it was then: do these again.", err=True)
