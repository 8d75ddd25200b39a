"""Real dealer agents for tests: server processes with a folder of their own, started once each and stopped in peace.

A configuration is named: "demo" is `forecourt serve` without any, another name is a TOML file among the
configurations of the tests. What follows an @ makes it another server of that configuration; one
@pap runs as the demonstration of PAP. Where a file of the same
name with the suffix .sql stands beside the configuration, it is run on the server's database once the server is ready:
that is how a broken database is had.
"""

import contextlib
import http.client
import re
import signal
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

import pytest

__all__ = ["COMMAND", "CONFIGS", "DEMO", "ServerFarm", "ServerProcess", "servers"]

DEMO: Final = "demo"
"""The name of the packaged demo dealer, which needs no configuration."""

CONFIGS: Final = Path(__file__).parent / "conformance" / "configs"

COMMAND: Final = "from forecourt.cli import main; main()"
"""What the installed command does, run by the interpreter of the tests."""

_PEACEFUL: Final = (0, -signal.SIGTERM)
"""Exit statuses after SIGTERM: uvicorn shuts down in order and then lets the signal end the process."""

_START_SECONDS: Final = 60
_STOP_SECONDS: Final = 15
_POLL_SECONDS: Final = 0.05
_ADDRESS: Final = re.compile(r" at https?://([^:\s]+):(\d+)$", re.MULTILINE)


@dataclass(slots=True)
class ServerProcess:
    """One `forecourt serve` on a free port of 127.0.0.1, with its database in `folder`."""

    folder: Path
    config: Path | None = None
    pap: bool = False
    """Whether it runs as the demonstration of PAP, over TLS."""
    arguments: Sequence[str] = ()
    """Further arguments of the command."""
    program: str = COMMAND
    """What the interpreter is given to run."""
    inside: Sequence[str] = ()
    """The command that runs it somewhere else, in a network namespace for example."""
    started_on: date = field(init=False)
    """The UTC day of the start, from which the demo stock counts its dates back."""
    host: str = field(init=False, default="")
    port: int = field(init=False, default=0)
    _process: "subprocess.Popen[bytes]" = field(init=False, repr=False)
    _ready: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        """Start the process; `wait` returns when it serves."""
        chosen = [] if self.config is None else ["--config", str(self.config)]
        chosen += ["--pap-dev"] if self.pap else []
        command = [sys.executable, "-c", self.program, "serve", "--port", "0", *chosen, *self.arguments]
        self.started_on = datetime.now(UTC).date()
        with self._output("stdout").open("wb") as out, self._output("stderr").open("wb") as err:
            self._process = subprocess.Popen(
                [*self.inside, *command, "--data", str(self.folder / "data")], stdout=out, stderr=err, cwd=self.folder
            )

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def base_url(self) -> str:
        """The address of the server, without a trailing slash."""
        return f"{'https' if self.pap else 'http'}://{self.host}:{self.port}"

    @property
    def database(self) -> Path:
        """The file of the embedded database."""
        return self.folder / "data" / "forecourt.db"

    @property
    def log(self) -> str:
        """What the server has said on standard error so far."""
        return self._output("stderr").read_text(encoding="utf-8", errors="replace")

    def wait(self) -> None:
        """Return when /readyz says so; RuntimeError with the log when it does not in time."""
        end = time.monotonic() + _START_SECONDS
        while not self._ready:
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server did not start: {self.log}")
            found = _ADDRESS.search(self._output("stdout").read_text(encoding="utf-8"))
            if found is not None:
                self.host, self.port = found[1], int(found[2])
                self._ready = self._says_ready()
            if not self._ready:
                time.sleep(_POLL_SECONDS)

    def connect(self, seconds: float) -> http.client.HTTPConnection:
        """Return a connection to the server, not yet opened; over TLS where it speaks that."""
        if not self.pap:
            return http.client.HTTPConnection(self.host, self.port, timeout=seconds)
        trusted = ssl.create_default_context(cafile=self.folder / "data" / "pap-dev" / "ca.pem")
        return http.client.HTTPSConnection(self.host, self.port, timeout=seconds, context=trusted)

    def end(self) -> None:
        """Ask the process to end by SIGTERM, as an operator would; `stop` waits for it."""
        self._process.send_signal(signal.SIGTERM)

    def signal(self, number: int) -> None:
        """Send the process a signal."""
        self._process.send_signal(number)

    def ended(self, seconds: float) -> int:
        """Wait for the end of the process and return its exit status."""
        return self._process.wait(seconds)

    def stop(self) -> int:
        """End the process in order and return its exit status; by SIGKILL if it hangs."""
        self.end()
        try:
            return self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def kill(self) -> None:
        """End the process by SIGKILL, wherever it is, and return once it is gone."""
        self._process.kill()
        self._process.wait()

    def _says_ready(self) -> bool:
        connection = self.connect(_START_SECONDS)
        with contextlib.closing(connection):
            try:
                connection.request("GET", "/readyz")
                return connection.getresponse().status == http.HTTPStatus.OK
            except OSError:
                return False

    def _output(self, stream: str) -> Path:
        return self.folder / f"{stream}.txt"


_PAP: Final = "@pap"


def _config(name: str) -> Path | None:
    configuration = name.partition("@")[0]
    return None if configuration == DEMO else CONFIGS / f"{configuration}.toml"


class ServerFarm:
    """The servers of one test session: one for each configuration that is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers: dict[str, ServerProcess] = {}
        self._waiting: set[str] = set()

    def start(self, names: Iterable[str]) -> None:
        """Start the servers of these names side by side, without waiting for them."""
        for name in names:
            if name not in self._servers:
                config = _config(name)
                folder = self._folder / name
                folder.mkdir()
                self._servers[name] = ServerProcess(folder, config, name.endswith(_PAP))
                self._waiting.add(name)

    def get(self, name: str) -> ServerProcess:
        """Return the server of this name, which serves by now."""
        self.start([name])
        server = self._servers[name]
        if name in self._waiting:
            server.wait()
            config = _config(name)
            if config is not None and (script := config.with_suffix(".sql")).is_file():
                with contextlib.closing(sqlite3.connect(server.database)) as database:
                    database.executescript(script.read_text(encoding="utf-8"))
            self._waiting.discard(name)
        return server

    def logs(self) -> dict[str, str]:
        """Return what each server has logged so far."""
        return {name: server.log for name, server in self._servers.items()}

    def stop(self) -> dict[str, int]:
        """Stop every server, side by side, and return their exit statuses."""
        for server in self._servers.values():
            server.end()
        return {name: server.stop() for name, server in self._servers.items()}


@pytest.fixture(scope="session")
def servers() -> Iterator[ServerFarm]:
    """The farm of this session; every server in it is stopped in the end and must have gone in peace."""
    with tempfile.TemporaryDirectory(prefix="forecourt-") as folder:
        farm = ServerFarm(Path(folder))
        statuses: dict[str, int] = {}
        try:
            yield farm
        finally:
            statuses = farm.stop()
        assert set(statuses.values()) <= set(_PEACEFUL), f"servers ended with {statuses}"
