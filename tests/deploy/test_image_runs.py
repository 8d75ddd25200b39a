"""What the image holds, built and run without Docker: the wheel from the files that are copied, then its command.

The command runs as the image's user, without any capability, in a file system that cannot be written except for the
data and /tmp: a mount namespace of its own does what `docker run --read-only` would. That takes root and Linux;
elsewhere it is skipped, but fails under `CI=true`.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

import pytest
from tests.deploy.dockerfile import copied, in_context, values, variables
from tests.deploy.shipped import DEPLOY, ROOT, tracked
from tests.interop.front import STOCK
from tests.interop.npm import missing
from tests.server.running import JSON, Reply, envelope, lead, search

USER, GROUP = (int(number) for number in values("USER")[-1].split(":"))
_SECONDS: Final = 60
_PORT: Final = re.compile(r"^  Listening at .* port (\d+)$", re.MULTILINE)
_WRITABLE: Final = ("/proc", "/sys", "/dev")
_CONFINE: Final = """
set -eu
python=$1 app=$2 needed=$3 etc=$4 data=$5
shift 5
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /mnt
for name in python app needed etc data; do
    mkdir /mnt/$name
    eval "mount --bind \"\\$$name\" /mnt/$name"
done
mount -t tmpfs -o size=64m,mode=1777 tmpfs /tmp
cut -d ' ' -f 2 /proc/self/mounts | sort -u | while read -r place; do
    case $place in
        /proc|/proc/*|/sys|/sys/*|/dev|/dev/*|/tmp|/mnt/data) ;;
        *) mount -o remount,bind,ro "$place" 2>/dev/null || true ;;
    esac
done
cd /mnt/data
exec setpriv --reuid "$USER_ID" --regid "$GROUP_ID" --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all \
    /mnt/python/bin/"$(basename "$PYTHON")" /mnt/app/bin/forecourt "$@"
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel as the Dockerfile builds it: from the files that it copies and from no other."""
    folder = tmp_path_factory.mktemp("build")
    for file in tracked():
        if any(file == name or file.startswith(f"{name}/") for name in copied()) and in_context(file):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, folder / file)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "wheel", "."]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=180, check=False)
    assert ended.returncode == 0, ended.stderr
    (made,) = (folder / "wheel").glob("forecourt-*.whl")
    return zipfile.ZipFile(made)


def test_the_wheel_holds_every_file_of_the_package_and_no_other(wheel: zipfile.ZipFile) -> None:
    packaged = {file.removeprefix("src/") for file in tracked() if file.startswith("src/")}
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert held == packaged
    kinds = {Path(name).suffix for name in held}
    assert {".json", ".sql", ".toml", ".typed"} <= kinds


def test_the_wheel_brings_the_licence_and_the_command(wheel: zipfile.ZipFile) -> None:
    beside = {name.partition(".dist-info/")[2]: name for name in wheel.namelist() if ".dist-info/" in name}
    assert {"METADATA", "RECORD", "entry_points.txt", "licenses/LICENSE"} <= beside.keys()
    assert b"forecourt = forecourt.cli:main" in wheel.read(beside["entry_points.txt"])


class Image:
    """The wheel and what it needs, as the image has it, and one volume."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.app, self.etc, self.data = folder / "app", folder / "etc", folder / "data"
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(self.app),
            str(wheel),
        ]
        subprocess.run(command, check=True, timeout=180)
        self.etc.mkdir()
        for name in ("forecourt.toml", "dealer.json"):
            shutil.copy(DEPLOY / name, self.etc)
        (self.etc / "stock.csv").write_text(STOCK, encoding="utf-8")
        self.fresh()

    def fresh(self) -> None:
        """Begin with an empty volume."""
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(mode=0o700)
        os.chown(self.data, USER, GROUP)

    def start(self, *arguments: str, config: bool) -> "subprocess.Popen[str]":
        """Start `forecourt` with these arguments, as the image would."""
        environment = {
            **variables(),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": "/mnt/app:/mnt/needed",
            # A Python that is built as a shared library looks for it where it was installed.
            "LD_LIBRARY_PATH": "/mnt/python/lib",
            "FORECOURT_DATA": "/mnt/data",
            "USER_ID": str(USER),
            "GROUP_ID": str(GROUP),
            "PYTHON": os.path.realpath(sys.executable),
        }
        if config:
            environment["FORECOURT_CONFIG"] = "/mnt/etc/forecourt.toml"
        places = (sys.base_prefix, self.app, sysconfig.get_path("platlib"), self.etc, self.data)
        command = ["unshare", "--mount", "sh", "-c", _CONFINE, "sh", *map(str, places), *arguments]
        return subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    @contextlib.contextmanager
    def serving(self, *, config: bool) -> Iterator["Served"]:
        """Serve until the block ends; it must end well and have complained of nothing."""
        process = self.start("serve", "--host", "127.0.0.1", "--port", "0", config=config)
        try:
            assert process.stdout is not None
            said = ""
            while (found := _PORT.search(said)) is None:
                line = process.stdout.readline()
                assert line, process.communicate()
                said += line
            yield Served(process.pid, int(found[1]), self.data)
        finally:
            process.send_signal(signal.SIGTERM)
            _, complaints = process.communicate(timeout=_SECONDS)
        assert process.returncode == 0, complaints
        assert "Read-only" not in complaints
        assert "Permission" not in complaints
        assert "Traceback" not in complaints


class Served:
    """A server in its confinement, seen from outside."""

    def __init__(self, pid: int, port: int, data: Path) -> None:
        self.pid, self.port, self.data = pid, port, data

    def request(self, method: str, path: str, body: object = None) -> Reply:
        """Send one request."""
        with contextlib.closing(HTTPConnection("127.0.0.1", self.port, timeout=_SECONDS)) as connection:
            connection.request(method, path, None if body is None else json.dumps(body), JSON)
            return Reply.of(connection.getresponse())

    def status(self, name: str) -> str:
        """Return a line of what the system says of the process."""
        found = re.search(rf"^{name}:\t(.*)$", Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8"), re.M)
        assert found is not None
        return found[1]

    def writable(self) -> set[str]:
        """Return where the process could write if the permissions let it, apart from devices and the like."""
        lines = Path(f"/proc/{self.pid}/mounts").read_text(encoding="utf-8").splitlines()
        options = {line.split()[1]: line.split()[3].split(",") for line in lines}
        return {place for place, said in options.items() if "rw" in said and not place.startswith(_WRITABLE)}


@pytest.fixture(scope="module")
def image(wheel: zipfile.ZipFile) -> Iterator[Image]:
    if os.geteuid() != 0:
        missing("only root may make a mount namespace without a user namespace")
    needed = [name for name in ("unshare", "setpriv", "mount") if shutil.which(name) is None]
    if needed or subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0:
        missing("this machine lets nobody make a mount namespace")
    assert wheel.filename is not None
    # Not among the folders of pytest, which are their user's alone.
    with tempfile.TemporaryDirectory(prefix="forecourt-image-") as folder:
        os.chmod(folder, 0o755)
        yield Image(Path(folder), Path(wheel.filename))


def _take_a_lead(served: Served) -> None:
    answer = served.request("POST", "/a2a", envelope(lead())).json()
    assert answer["result"]["message"]["parts"][0]["data"]["data"]["status"] == "received"
    end = time.monotonic() + _SECONDS
    while not list((served.data / "leads").glob("*.adf.xml")):
        assert time.monotonic() < end, "the lead was not delivered"
        time.sleep(0.05)


def _healthcheck(port: int) -> int:
    """Return how the check of health in the Dockerfile ends for this port."""
    (health,) = values("HEALTHCHECK")
    python, *arguments = json.loads(health[health.index("[") :])
    assert python == "python"
    # A proxy for the world outside is no way to oneself.
    environment = {**os.environ, "FORECOURT_SERVER__PORT": str(port), "http_proxy": "http://127.0.0.1:1"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, timeout=_SECONDS, check=False).returncode


@pytest.mark.parametrize("config", [False, True], ids=["demo", "configured"])
def test_it_serves_takes_a_lead_and_delivers_it_where_nothing_else_can_be_written(config: bool, image: Image) -> None:
    image.fresh()
    total = 554
    if config:
        process = image.start("import", "/mnt/etc/stock.csv", config=True)
        _, complaints = process.communicate(timeout=_SECONDS)
        assert process.returncode == 0, complaints
        total = 2
    with image.serving(config=config) as served:
        assert (served.status("Uid").split()[0], served.status("Gid").split()[0]) == (str(USER), str(GROUP))
        assert (int(served.status("CapBnd"), 16), served.status("NoNewPrivs")) == (0, "1")
        assert served.writable() == {"/mnt/data", "/tmp"}
        assert served.request("GET", "/healthz").status == 200
        assert served.request("GET", "/readyz").json()["listings"] == total
        found = served.request("POST", "/a2a", envelope(search())).json()
        assert found["result"]["message"]["parts"][0]["data"]["data"]["total"] == total
        _take_a_lead(served)
        metrics = served.request("GET", "/metrics").body.decode()
        assert re.search(r'^forecourt_requests_total\{.*skill="lead\.submit"\} 1', metrics, re.M), metrics
        assert os.listdir(f"/proc/{served.pid}/root/tmp") == []
        assert _healthcheck(served.port) == 0
    assert _healthcheck(served.port) != 0
    assert {path.stat().st_uid for path in image.data.rglob("*")} == {USER}
