"""`forecourt serve` in processes of its own, started as an operator does, and what the system says of them.

`python -m benchmarks.processes ARGUMENTS` is the command `forecourt` with two changes for a server that is measured:
PAP's demonstration (`serve --pap-dev`) speaks plain HTTP, as behind a proxy that ends TLS, and on SIGUSR1 the process
writes how many objects of which types its collector knows to the file that `FORECOURT_BENCHMARK_OBJECTS` names.
"""

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

__all__ = ["Held", "Served", "served"]

_START_SECONDS: Final = 180.0
_STOP_SECONDS: Final = 45.0
_OBJECTS: Final = "FORECOURT_BENCHMARK_OBJECTS"


@dataclass(frozen=True, slots=True)
class Held:
    """What the processes of a server hold at one moment, taken together."""

    processes: int
    rss_mib: float
    anonymous_mib: float
    """What no file stands behind: the part of `rss_mib` that the system cannot take back."""
    threads: int
    files: int


class Served:
    """A server that runs, with its workers."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
        self.process, self.port, self._folder = process, port, folder
        self.ready_seconds = 0.0
        """From the start of the process until `/readyz` was 200."""

    def get(self, path: str, timeout: float = 10.0) -> tuple[int, bytes]:
        """Return the status and the body of a GET."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=timeout) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def held(self) -> Held:
        """Return what its processes hold."""
        found = [_held(pid) for pid in _descendants(self.process.pid)]
        return Held(
            len(found),
            sum(each[0] for each in found),
            sum(each[1] for each in found),
            int(sum(each[2] for each in found)),
            int(sum(each[3] for each in found)),
        )

    def cpu_seconds(self) -> float:
        """Return the processor time that its processes have taken."""
        ticks = 0
        for pid in _descendants(self.process.pid):
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def objects(self) -> Counter[str]:
        """Return how many objects of which types the first process has made since it was started and still has."""
        file = self._folder / "objects.json"
        file.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGUSR1)
        for _ in range(100):
            with contextlib.suppress(OSError, ValueError):
                return Counter(json.loads(file.read_bytes()))
            time.sleep(0.05)
        raise SystemExit("the server did not count its objects")


@contextmanager
def served(config: Path, port: int, *options: str) -> Iterator[Served]:
    """Run `forecourt serve` on a configuration until the block ends, and give it once `/readyz` is 200."""
    folder = config.parent
    command = [sys.executable, "-m", "benchmarks.processes", "serve", "--config", str(config), "--port", str(port)]
    began = time.perf_counter()
    with (folder / "served.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=os.environ | {_OBJECTS: str(folder / "objects.json")},
        )
    try:
        running = Served(process, port, folder)
        while True:
            with contextlib.suppress(OSError):
                if running.get("/readyz", 1.0)[0] == 200:
                    break
            if process.poll() is not None or time.perf_counter() - began > _START_SECONDS:
                raise SystemExit(f"the server did not start:\n{(folder / 'served.log').read_text()[-2000:]}")
            time.sleep(0.01)
        running.ready_seconds = time.perf_counter() - began
        yield running
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _held(pid: int) -> tuple[float, float, int, int]:
    with contextlib.suppress(OSError):
        found = {}
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(":")
            found[name] = value
        files = len(os.listdir(f"/proc/{pid}/fd"))
        rss, anonymous = (int(found[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon"))
        return rss, anonymous, int(found["Threads"]), files
    return 0.0, 0.0, 0, 0


def _descendants(pid: int) -> list[int]:
    """Return a process and all that it started, directly or not."""
    children: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(file.parent.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def _count(_: int, __: FrameType | None) -> None:
    gc.collect()
    counts: Counter[str] = Counter(type(each).__qualname__ for each in gc.get_objects())
    file = Path(os.environ[_OBJECTS])
    unfinished = file.with_suffix(".part")
    unfinished.write_text(json.dumps(counts))
    unfinished.replace(file)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    from forecourt.cli import main as command
    from forecourt.cli import serve
    from forecourt.server import Config

    def no_tls(settings: Config) -> dict[str, str]:  # noqa: ARG001 - as the command calls it
        return {}

    serve._tls = no_tls
    if _OBJECTS in os.environ:
        signal.signal(signal.SIGUSR1, _count)
    command(arguments)


if __name__ == "__main__":
    main()
