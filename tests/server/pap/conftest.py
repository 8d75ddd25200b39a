"""Dealers with PAP: as processes over TLS, and as applications in this one."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.pap.dealer import Dealer, open_dealer
from tests.server_process import ServerProcess


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The demonstration of PAP, of this module's own."""
    process = ServerProcess(tmp_path_factory.mktemp("pap"), pap=True)
    try:
        process.wait()
        yield process
    finally:
        process.stop()


@pytest.fixture(scope="module")
def neighbour(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A second process on the database of `server`."""
    process = beside(server, tmp_path_factory.mktemp("neighbour"))
    try:
        process.wait()
        yield process
    finally:
        process.stop()


def beside(server: ServerProcess, folder: Path) -> ServerProcess:
    """Start another process on a server's data."""
    (folder / "data").symlink_to(server.folder / "data")
    return ServerProcess(folder, pap=True)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """The one event loop of a test."""
    with asyncio.Runner() as found:
        yield found


@pytest.fixture
def dealer(tmp_path: Path, runner: asyncio.Runner) -> Iterator[Dealer]:
    """A company in this process."""
    opened = open_dealer(tmp_path, runner)
    yield opened
    opened.close()
