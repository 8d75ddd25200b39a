"""The command line: one file a command, found by its name; a command parses, calls and prints."""

import importlib
import pkgutil
import sys
from typing import Any

import click

from forecourt import __version__

__all__ = ["main"]


class _Commands(click.Group):
    """Commands are the modules of this package; one is imported when it is called or listed.

    They import what they need inside their function, so that `--help` stays quick. A mistake is told in one line.
    """

    def main(self, *args: Any, **options: Any) -> Any:
        alone = options.pop("standalone_mode", True)
        run: Any = super().main
        if not alone:
            return run(*args, standalone_mode=False, **options)
        try:
            status = run(*args, standalone_mode=False, **options)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            status = error.exit_code
        except click.ClickException as error:
            context = getattr(error, "ctx", None)
            command = context.command_path if context else "forecourt"
            see = f" (see {command} --help)" if isinstance(error, click.UsageError) else ""
            click.echo(f"{command}: {' '.join(error.format_message().split())}{see}", err=True)
            status = error.exit_code
        except click.Abort:
            click.echo("forecourt: stopped", err=True)
            status = 1
        return sys.exit(status if isinstance(status, int) else 0)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_modules())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        modules = _modules()
        if cmd_name not in modules:
            return None
        command: click.Command = importlib.import_module(f"{__name__}.{modules[cmd_name]}").command
        _refuse_blanks(command)
        return command


def _refuse_blanks(command: click.Command) -> None:
    """Take a blank value of any option or argument for a mistake: a variable of the caller's script that is not set.

    Otherwise a lead goes without its vehicle, and a search without its bound.
    """
    for parameter in command.params:
        if parameter.callback is None:
            parameter.callback = _not_blank
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _refuse_blanks(inner)


def _not_blank(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    for given in value if isinstance(value, tuple) else (value,):
        if isinstance(given, str) and not given.strip():
            raise click.BadParameter("must not be blank; leave it out", context, parameter)
    return value


def _modules() -> dict[str, str]:
    """Return the module of each command; a trailing underscore keeps a name from being a keyword."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    return {name.removesuffix("_"): name for name in names}


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="forecourt")
def main() -> None:
    """Let AI agents shop a car dealership (Auto Agent Protocol).

    Try it: forecourt serve
    """
