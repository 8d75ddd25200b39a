"""`forecourt serve`: run the dealer agent."""

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import socket

    from forecourt.server import Application, Config
    from forecourt.server.workers import Plan


@click.command("serve")
@click.option("--config", type=click.Path(dir_okay=False), envvar="FORECOURT_CONFIG", help="Configuration file.")
@click.option("--host", help="Address to listen at (default 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen at (default 8000; 0 takes a free one).")
@click.option("--data", type=click.Path(file_okay=False), help="Folder of the database (default ./forecourt-data).")
@click.option("--workers", type=click.IntRange(1, 64), help="Processes that answer requests (default: this one).")
@click.option("--pap-dev", is_flag=True, help="Demonstrate PAP over TLS on this machine, with an agent to try it.")
def command(
    config: str | None, host: str | None, port: int | None, data: str | None, workers: int | None, pap_dev: bool
) -> None:
    """Run the dealer agent.

    Without a configuration it serves a demo dealer with two rooftops and some 500 vehicles. With --workers it is
    several processes, and SIGHUP replaces them one by one without losing a request.

    \b
    Example:
      forecourt serve --port 8000
      forecourt serve --config forecourt.toml --workers 4
    """
    from forecourt.cli._mistake import located, wrong_usage
    from forecourt.server import ConfigError, create_app, load
    from forecourt.server.logs import configure

    options = {"host": host, "port": port, "workers": workers}
    server: dict[str, Any] = {key: value for key, value in options.items() if value is not None}

    def read() -> tuple["Application", dict[str, str]]:
        settings = load(config, server=server, data=data, pap=_PAP_DEV if pap_dev else {})
        if settings.server.workers > 1 and os.name != "posix":
            raise ConfigError("several workers need a POSIX system", "server", "workers")
        app = create_app(settings)
        return app, _tls(settings) if settings.pap.demonstration else {}

    _make_shared_folder()
    try:
        app, tls = read()
    except ConfigError as error:
        raise wrong_usage(error, config) from None
    settings = app.deployment.config
    configure(settings.log)
    listener, at = _listener(settings)
    if workers is None and settings.server.workers == 1:
        _run(app, tls, listener, at)
        return

    def plan() -> "Plan":
        from forecourt.server.workers import Plan

        try:
            checked, tls = read()
        except ConfigError as error:
            raise located(error, config) from None
        return Plan(checked.deployment.config, tls, checked.deployment.config.server.workers)

    _run_workers(app, tls, listener, at, plan)


def _make_shared_folder() -> None:
    """Make the folder in which processes count together, where the environment names one."""
    from forecourt.server.metrics import SHARED_FOLDER

    if folder := os.environ.get(SHARED_FOLDER):
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.ClickException(f"{SHARED_FOLDER}: {folder} cannot be made: {error.strerror}") from None


_PAP_DEV = {"enabled": True, "domain": "dealer.localhost", "demonstration": True}


def _tls(settings: "Config") -> dict[str, str]:
    """Return what uvicorn needs to speak TLS with the demonstration's certificate."""
    from forecourt.server import ConfigError
    from forecourt.server.pap.demonstration import prepare

    if settings.server.host not in ("127.0.0.1", "::1", "localhost"):
        raise ConfigError("the PAP demonstration stays on this machine; listen at 127.0.0.1", "server", "host")
    made = prepare(Path(settings.data))
    return {"ssl_certfile": str(made.certificate), "ssl_keyfile": str(made.server_key)}


def _warn(settings: "Config", host: str, workers: int = 1) -> None:
    """Warn of an address that agents and shoppers' data should not go over in the clear, and of counts apart."""
    from forecourt.cli._clear import in_the_clear

    if (warning := in_the_clear(settings, host)) is not None:
        click.echo(f"warning: {warning}", err=True)
    limits = settings.limits
    if workers > 1 and limits.store is None and (limits.requests is not None or limits.skills):
        click.echo("warning: limits.store is not set: each worker counts requests for itself", err=True)


def _listener(settings: "Config") -> "tuple[socket.socket, tuple[str, int]]":
    """Return the socket to listen at, the service manager's or else one of our own, with its host and port."""
    import socket

    from forecourt.server.service_manager import SocketError, take_listener

    try:
        if (handed := take_listener()) is not None:
            return handed, handed.getsockname()[:2]
    except SocketError as error:
        raise click.ClickException(str(error)) from None
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
    return listener, (settings.server.host, listener.getsockname()[1])


def _run(app: "Application", tls: dict[str, str], listener: "socket.socket", at: tuple[str, int]) -> None:
    """Serve in this process."""
    import logging

    from forecourt.server.connections import raise_file_limit
    from forecourt.server.draining import DrainingServer, Hangup
    from forecourt.server.service_manager import notify
    from forecourt.server.serving import uvicorn_config

    settings = app.deployment.config
    raise_file_limit(settings.server.max_connections)

    class Server(DrainingServer):
        """Says where it listens once it does, and to the service manager how it is."""

        async def startup(self, sockets: "list[socket.socket] | None" = None) -> None:
            await super().startup(sockets)
            if self.started:
                _warn(settings, at[0])
                click.echo(_addresses(app, at))
                notify("READY=1")

        def asked_to_stop(self) -> None:
            notify("STOPPING=1")
            super().asked_to_stop()

    server = Server(uvicorn_config(app, **tls), app.deployment)
    if os.name == "posix":
        hangup = Hangup()

        def hung_up(number: int, frame: FrameType | None) -> None:
            meaning = hangup.meaning()
            if meaning == "stop":
                server.handle_exit(number, frame)
            elif meaning == "reload":
                logging.getLogger("forecourt.server").warning("SIGHUP reloads nothing without --workers")

        signal.signal(signal.SIGHUP, hung_up)
    # Where the start fails, uvicorn returns or exits, by its version; the one word about it is said here.
    with contextlib.suppress(SystemExit):
        server.run([listener])
    if not server.started:
        raise _cannot_start(settings)
    if server.force_exit:
        raise click.ClickException("stopped before all requests were answered")


def _run_workers(
    app: "Application",
    tls: dict[str, str],
    listener: "socket.socket",
    at: tuple[str, int],
    read: "Callable[[], Plan]",
) -> None:
    """Serve in processes of their own, which this one watches."""
    from forecourt.server.workers import Plan, StartError, Supervisor, WorkersError

    settings = app.deployment.config
    count = settings.server.workers
    addresses = _addresses(app, at, count)

    def tell() -> None:
        _warn(settings, at[0], count)
        click.echo(addresses)

    try:
        Supervisor(listener, Plan(settings, tls, count), read, tell).run()
    except StartError:
        raise _cannot_start(settings) from None
    except WorkersError as error:
        raise click.ClickException(str(error)) from None


def _cannot_start(settings: "Config") -> click.ClickException:
    return click.ClickException(f"cannot start with the data in {Path(settings.data).resolve()}; the reason is above")


def _addresses(app: "Application", at: tuple[str, int], workers: int | None = None) -> str:
    settings = app.deployment.config
    host, port = at
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
        *([] if workers is None else [f"  Workers            {workers}"]),
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
