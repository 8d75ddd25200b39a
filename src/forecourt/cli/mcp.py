"""`forecourt mcp`: a dealer as an MCP server on standard input and output."""

from typing import IO, TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from forecourt.cli._header import credentials

if TYPE_CHECKING:
    from forecourt.server import Config

_LONGEST_LINE: Final = 8 << 20


@click.command("mcp")
@click.argument("url", required=False)
@click.option("--config", type=click.Path(dir_okay=False), envvar="FORECOURT_CONFIG", help="Configuration file.")
@click.option("--data", type=click.Path(file_okay=False), help="Folder of the database (default ./forecourt-data).")
@click.option("--contract", help="AAP version to speak (default the newest; only without URL).")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME:VALUE",
    help="Credentials for URL, or @FILE with them, one a line; may be repeated.",
)
def command(
    url: str | None, config: str | None, data: str | None, contract: str | None, headers: tuple[str, ...]
) -> None:
    """Serve a desktop assistant by MCP.

    The assistant starts it and talks on standard input and output; it ends with its input. With URL, every message is
    passed on to that dealer's MCP endpoint. Without, it answers from the local data: the demo dealer's, unless a
    configuration says otherwise.

    \b
    Example:
      forecourt mcp https://dealer.example.com --header @key.txt
      forecourt mcp --config forecourt.toml
    """
    import asyncio
    import logging

    from forecourt.server import ConfigError, load

    # Standard output is the protocol's: everything else goes to standard error.
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if url is not None:
        # A configuration from the environment is there for other commands, too, and is no mistake.
        source = click.get_current_context().get_parameter_source
        if any(source(name) is ParameterSource.COMMANDLINE for name in ("config", "data", "contract")):
            raise click.UsageError("URL is another dealer's: --config, --data and --contract are about your own")
        asyncio.run(_relay(url, credentials(headers)))
        return
    if headers:
        raise click.UsageError("--header is for URL: your own data need no credentials")
    try:
        settings = load(config, data=data)
        asyncio.run(_serve(settings, contract))
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _input() -> IO[bytes]:
    """Return standard input without its buffer."""
    import sys

    unbuffered: IO[bytes] = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    return unbuffered


async def _relay(url: str, headers: dict[str, str]) -> None:
    import sys

    from forecourt.server.relay import Relay, endpoint_of
    from forecourt.server.stdio import serve_lines

    try:
        relay = Relay(endpoint_of(url), headers=headers)
    except ValueError as error:
        raise click.UsageError(f"URL: {error}") from None
    await serve_lines(relay.answer, _input(), sys.stdout.buffer, _LONGEST_LINE)


async def _serve(settings: "Config", contract: str | None) -> None:
    import sys

    from forecourt.contract import default_version
    from forecourt.server import create_app
    from forecourt.server.stdio import serve_lines
    from forecourt.store import StoreError

    app = create_app(settings)
    endpoint = app.mcp_endpoint(contract or default_version())
    if endpoint is None:
        raise click.UsageError(f"--contract: choose one of {', '.join(app.deployment.contracts)}")
    try:
        await app.deployment.open()
    except StoreError as error:
        raise click.ClickException(f"the data cannot be opened: {error}") from None

    async def answer(line: bytes) -> bytes | None:
        said = await endpoint.answer(line, None)
        return said.body if said.body else None

    try:
        await serve_lines(answer, _input(), sys.stdout.buffer, settings.server.max_body_bytes)
    finally:
        await app.deployment.close()
