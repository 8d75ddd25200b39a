"""`forecourt config check`: whether a configuration can be used, and everything that keeps it from it."""

import json

import click

__all__ = ["command"]


@click.group("config")
def command() -> None:
    """Look at a configuration.

    \b
    Example:
      forecourt config check --config forecourt.toml
    """


@command.command("check")
@click.option("--config", type=click.Path(dir_okay=False), envvar="FORECOURT_CONFIG", help="Configuration file.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def check(config: str | None, as_json: bool) -> None:
    """Read the configuration, and every file that it names, as `serve` would, and list every mistake.

    Nothing is opened and nothing is changed. Status 2 means that `serve` would not start.

    \b
    Example:
      forecourt config check --config forecourt.toml
    """
    from forecourt.cli._clear import in_the_clear
    from forecourt.cli._mistake import located
    from forecourt.server import ConfigError, create_app, load

    lines: tuple[str, ...] = ()
    good, warning = "", None
    try:
        deployment = create_app(load(config)).deployment
        # Never the store's address: it may hold a password.
        count = len(deployment.sellers)
        sellers = "the demo dealer" if deployment.is_demo else f"{count} seller{'' if count == 1 else 's'}"
        warning = in_the_clear(deployment.config)
        good = f"{config or 'no file'}: good; serves {sellers} at {deployment.config.server.host}"
    except ConfigError as error:
        lines = located(error, config).lines
    if as_json:
        told = {"good": not lines, "problems": list(lines), "warnings": [warning] if warning else []}
        click.echo(json.dumps(told, ensure_ascii=False))
    elif lines:
        # What is wrong is what this command was asked for, and goes where its result goes.
        click.echo("\n".join(lines))
    else:
        click.echo(good)
    if warning:
        click.echo(f"warning: {warning}", err=True)
    if lines:
        raise SystemExit(2)
