"""A server of several processes for tests: which workers it has, and how they come and go."""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.server_process import ServerProcess

__all__ = ["serving_with_workers", "until", "wait_for_workers", "workers_of"]

_SECONDS: Final = 60


def workers_of(server: ServerProcess) -> frozenset[int]:
    """Return the numbers of the processes that a server has started and that live."""
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                status = folder.joinpath("stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(status[1]) == server.pid and status[0] not in "ZX":
                found.add(int(folder.name))
    return frozenset(found)


def until(is_so: Callable[[], bool], seconds: float = _SECONDS) -> None:
    """Return once something is so."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not come to be so in time"
        time.sleep(0.02)


def wait_for_workers(server: ServerProcess, count: int, without: Collection[int] = ()) -> frozenset[int]:
    """Return the workers once there are that many, none of them among those `without`."""
    until(lambda: len(found := workers_of(server)) == count and not found & set(without))
    return workers_of(server)


@contextmanager
def serving_with_workers(
    folder: Path, count: int, config: Path | None = None, *, pap: bool = False
) -> Iterator[ServerProcess]:
    """Run a server with so many workers until the block ends; all of them serve."""
    arguments = ("--workers", str(count))
    server = ServerProcess(folder, config, pap, arguments)
    try:
        server.wait()
        wait_for_workers(server, count)
        yield server
    finally:
        server.stop()
