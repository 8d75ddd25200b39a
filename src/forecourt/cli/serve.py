"""`forecourt serve`: run the dealer agent."""

import contextlib
import os
import signal
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from forecourt.server import Application, Config

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1", "[::1]")


@click.command("serve")
@click.option("--config", type=click.Path(dir_okay=False), envvar="FORECOURT_CONFIG", help="Configuration file.")
@click.option("--host", help="Address to listen at (default 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen at (default 8000; 0 takes a free one).")
@click.option("--data", type=click.Path(file_okay=False), help="Folder of the database (default ./forecourt-data).")
@click.option("--pap-dev", is_flag=True, help="Demonstrate PAP over TLS on this machine, with an agent to try it.")
def command(config: str | None, host: str | None, port: int | None, data: str | None, pap_dev: bool) -> None:
    """Run the dealer agent.

    Without a configuration it serves a demo dealer with two rooftops and some 500 vehicles.

    \b
    Example:
      forecourt serve --port 8000
    """
    from forecourt.cli._mistake import wrong_usage
    from forecourt.server import ConfigError, create_app, load
    from forecourt.server.logs import configure

    server: dict[str, Any] = {key: value for key, value in (("host", host), ("port", port)) if value is not None}
    try:
        settings = load(config, server=server, data=data, pap=_PAP_DEV if pap_dev else {})
        app = create_app(settings)
        tls = _tls(settings) if settings.pap.demonstration else {}
    except ConfigError as error:
        raise wrong_usage(error, config) from None
    configure(settings.log)
    _run(app, tls)


_PAP_DEV = {"enabled": True, "domain": "dealer.localhost", "demonstration": True}


def _tls(settings: "Config") -> dict[str, str]:
    """Return what uvicorn needs to speak TLS with the demonstration's certificate."""
    from forecourt.server import ConfigError
    from forecourt.server.pap.demonstration import prepare

    if settings.server.host not in ("127.0.0.1", "::1", "localhost"):
        raise ConfigError("the PAP demonstration stays on this machine; listen at 127.0.0.1", "server", "host")
    made = prepare(Path(settings.data))
    return {"ssl_certfile": str(made.certificate), "ssl_keyfile": str(made.server_key)}


def _warn(settings: "Config") -> None:
    """Warn of an address that agents and shoppers' data should not go over in the clear."""
    server = settings.server
    if server.public_url is not None:
        host = server.public_url.partition("://")[2].partition("/")[0].rsplit(":", 1)[0]
        if not server.public_url.startswith("https://") and host not in _LOOPBACK:
            click.echo("warning: server.public_url is not https: leads would cross the network in the clear", err=True)
    elif server.host not in _LOOPBACK:
        click.echo(
            "warning: server.public_url is not set: cards name whatever address was asked for, without https", err=True
        )


def _run(app: "Application", tls: dict[str, str]) -> None:
    import socket

    import uvicorn

    from forecourt.server.connections import raise_file_limit
    from forecourt.server.serving import uvicorn_config

    settings = app.deployment.config
    raise_file_limit(settings.server.max_connections)
    try:
        listener = socket.create_server(
            (settings.server.host, settings.server.port),
            family=socket.AF_INET6 if ":" in settings.server.host else socket.AF_INET,
            backlog=2048,
        )
    except OSError as error:
        # A name that cannot be resolved has a negative number, which is none of the system's own.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else "no such host"
        raise click.ClickException(
            f"cannot listen at {settings.server.host} port {settings.server.port}: {reason}"
        ) from None

    class Server(uvicorn.Server):
        """Says where it listens once it does, and takes a signal to stop as the end that was wished for."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                _warn(settings)
                click.echo(_addresses(app, listener.getsockname()[1]))

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            # What uvicorn does, but for its raising the signal once more at the end: the status would be a failure's.
            del frame
            if self.should_exit and sig == signal.SIGINT:
                self.force_exit = True
            self.should_exit = True

    server = Server(uvicorn_config(app, **tls))
    # Where the start fails, uvicorn returns or exits, by its version; the one word about it is said here.
    with contextlib.suppress(SystemExit):
        server.run([listener])
    if not server.started:
        raise click.ClickException(
            f"cannot start with the data in {Path(settings.data).resolve()}; the reason is above"
        )
    if server.force_exit:
        raise click.ClickException("stopped before all requests were answered")


def _addresses(app: "Application", port: int) -> str:
    settings = app.deployment.config
    host = settings.server.host
    shown = f"[{host}]" if ":" in host else host
    scheme = "https" if settings.pap.demonstration else "http"
    base = settings.server.public_url or f"{scheme}://{shown}:{port}"
    name = app.deployment.name
    versions = list(reversed(list(app.deployment.contracts)))
    lines = [
        f"{name} answers AI agents at {base}",
        "",
        *(f"  AAP {version} over A2A   {base}/v{version}/a2a" for version in versions),
        *(f"  AAP {version} over MCP   {base}/v{version}/mcp" for version in versions),
        f"  Agent card         {base}/.well-known/agent-card.json",
        *_pap_addresses(app, port),
        f"  Listening at       {shown} port {port}",
        f"  Data               {Path(settings.data).resolve()}",
        "",
        "Press Ctrl+C to stop.",
    ]
    return "\n".join(lines)


def _pap_addresses(app: "Application", port: int) -> list[str]:
    """Return the lines about PAP, where it is on."""
    settings = app.deployment.config
    if not settings.pap.enabled:
        return []
    from forecourt.server.pap.settings import public_url

    public = public_url(settings)
    lines = [
        f"  PAP                {public}/.well-known/poppy.json",
        f"  PAP operations     {public}/api/openapi.json",
    ]
    if settings.pap.demonstration:
        folder = Path(settings.data) / "pap-dev"
        lines += [
            "",
            "Try PAP from another terminal:",
            "",
            f"  python -m forecourt.server.pap.shopper --port {port} --data {settings.data}",
            f"  curl --cacert {folder / 'ca.pem'} --connect-to ::127.0.0.1:{port} {public}/.well-known/poppy.json",
            f"  forecourt search https://127.0.0.1:{port} --identity {folder / 'agent.json'}",
            "",
        ]
    return lines
