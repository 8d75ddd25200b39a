"""The command line as a whole: quick help, commands found by name."""

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

import forecourt
from forecourt.cli import main

COMMANDS = main.list_commands(click.Context(main))

HEAVY = ("uvicorn", "numpy", "starlette", "jsonschema_rs", "msgspec", "sqlite3", "asyncio", "http.client", "limits")


def test_the_commands_are_the_modules_of_the_package() -> None:
    assert "serve" in COMMANDS
    assert not any(name.startswith("_") for name in COMMANDS)
    assert sorted(COMMANDS) == COMMANDS


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help_lists_every_command_with_what_it_does(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == (0 if arguments else 2)
    width = max(map(len, COMMANDS))
    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        assert f"  {name:<{width}}  {command.get_short_help_str()}" in result.output
    assert "forecourt serve" in result.output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_of_its_own(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    _, _, example = result.output.partition("Example:")
    assert f"forecourt {name}" in example
    assert "Options:" in result.output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_explained(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert all(option.help for option in command.params if isinstance(option, click.Option))


def taking_text() -> Iterator[tuple[list[str], str]]:
    """Yield every command, commands of groups too, with each option of it that takes a text or a path."""

    def walk(words: list[str], command: click.Command) -> Iterator[tuple[list[str], str]]:
        for parameter in command.params:
            if isinstance(parameter, click.Option) and isinstance(
                parameter.type, click.Path | click.types.StringParamType
            ):
                yield words, parameter.opts[-1]
        for name, inner in command.commands.items() if isinstance(command, click.Group) else ():
            yield from walk([*words, name], inner)

    for name in COMMANDS:
        found = main.get_command(click.Context(main), name)
        assert found is not None
        yield from walk([name], found)


def test_a_blank_value_is_wrong_usage_everywhere() -> None:
    tried = list(taking_text())
    assert (["lead"], "--vin") in tried
    for words, option in tried:
        for blank in ("", "  "):
            result = CliRunner().invoke(main, [*words, option, blank])
            assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1), (words, option, result.stderr)
            # A path that must exist says that it does not.
            assert "must not be blank" in result.stderr or "does not exist" in result.stderr, (words, option)


def test_a_blank_argument_is_wrong_usage() -> None:
    for words in (["keys", "create", ""], ["keys", "create", " "], ["leads", "show", ""], ["import", ""], ["info", ""]):
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 2
        assert "must not be blank; leave it out" in result.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"], ["--version"]])
def test_help_loads_nothing_that_takes_long(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from forecourt.cli import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        f"print('loaded:', *[name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.splitlines()[-1] == "loaded:"


def test_the_version_is_the_packages() -> None:
    result = CliRunner().invoke(main, ["--version"])
    assert result.output == f"forecourt, version {forecourt.__version__}\n"


def test_a_command_that_does_not_exist_is_wrong_usage() -> None:
    for name in ("sell", "__main__", "serve_"):
        result = CliRunner().invoke(main, [name])
        assert result.exit_code == 2
        assert name in result.output


def test_the_module_runs_as_the_script_does() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "forecourt.cli", "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == f"forecourt, version {forecourt.__version__}\n"
