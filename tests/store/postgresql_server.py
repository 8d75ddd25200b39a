"""A real PostgreSQL server for the tests, and an empty schema of it for each.

The server is the one that `FORECOURT_TEST_POSTGRES` names, else one on this machine, else one that is started from
installed binaries for this run. Without any, tests are skipped and say why; with CI=true they fail instead.
"""

import atexit
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
from tests.store.database import Database

__all__ = [
    "PATIENCE",
    "POSTGRESQL",
    "OwnServer",
    "application_name",
    "connections",
    "hang_up",
    "locks",
    "own_server",
    "unavailable",
    "until",
]

PATIENCE: Final = 30
"""How many seconds a test waits for what has to happen."""

LOCAL: Final = "postgresql://postgres@127.0.0.1:5432/"
PLACES: Final = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin")


def unavailable(reason: str) -> NoReturn:
    """Skip the test, or fail it where everything has to be there."""
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(reason)
    pytest.skip(reason)


class OwnServer:
    """A server of our own, reached through a socket in its folder, with nothing in it."""

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        self.folder = Path(tempfile.mkdtemp(prefix="forecourt-pg-"))
        self._user: int | None = None
        if os.geteuid() == 0:
            # The server refuses to run as root.
            self._user = 65534
            os.chown(self.folder, self._user, -1)
        self.address = f"postgresql://postgres@/postgres?host={self.folder}"
        self._run("initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), "-D", str(self.folder / "data"), *arguments]
        # To a file: the server would keep a pipe open for as long as it runs.
        with (self.folder / "log").open("ab") as log:
            subprocess.run(command, check=True, timeout=60, cwd=self.folder, user=self._user, stdout=log, stderr=log)

    def start(self, listen: str = "") -> None:
        """Start it and return once it answers; it also listens at an address, where one is given."""
        self._run("pg_ctl", "-w", "-o", f"-c listen_addresses='{listen}' -k {self.folder}", "start")

    def trust(self, network: str) -> None:
        """Let everybody of a network in; to be called before it starts."""
        with (self.folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {network} trust\n")

    def stop(self) -> None:
        """Stop it at once, as in a loss of power."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    def remove(self) -> None:
        """Stop it if it runs, and leave nothing behind."""
        if (self.folder / "data" / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.folder)


def own_server() -> OwnServer | None:
    """Return a new server, not yet started, or None where PostgreSQL is not installed."""
    found = [Path(path).parent for path in [shutil.which("initdb")] if path]
    found += [place for pattern in PLACES for place in sorted(Path("/").glob(pattern[1:]), reverse=True)]
    binaries = next((place for place in found if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)
    return OwnServer(binaries) if binaries else None


@cache
def _server() -> str | None:
    """Return the address of the server for this run, if there is one."""
    import psycopg

    named = os.environ.get("FORECOURT_TEST_POSTGRES")
    if named:
        return named
    try:
        psycopg.connect(LOCAL, connect_timeout=3).close()
    except psycopg.Error:
        own = own_server()
        if own is None:
            return None
        atexit.register(own.remove)
        own.start()
        return own.address
    return LOCAL


@contextmanager
def _fresh(folder: Path) -> Iterator[str]:
    try:
        import psycopg
    except ImportError:
        unavailable("psycopg is not installed")
    server = _server()
    if server is None:
        unavailable("no PostgreSQL: FORECOURT_TEST_POSTGRES names none, none is on localhost, none is installed")
    name = f"forecourt_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        try:
            separator = "&" if "?" in server else "?"
            yield f"{server}{separator}options=-csearch_path%3D{name}&application_name={name}"
        finally:
            # What a killed process was about to do may still be on its way to being undone.
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", (name,)
            )
            connection.execute(f"DROP SCHEMA {name} CASCADE")


def _execute(address: str, statement: str) -> Sequence[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def application_name(address: str) -> str:
    """Return the name under which a fresh database's connections are listed."""
    return address.rpartition("=")[2]


POSTGRESQL: Final = Database(_fresh, _execute)


def connections(address: str, waiting: bool = False) -> int:
    """Count a store's connections, or those of them that wait for an advisory lock."""
    where = f"application_name = '{application_name(address)}' AND pid <> pg_backend_pid()"
    if waiting:
        where += " AND wait_event = 'advisory'"
    return int(_execute(address, f"SELECT count(*) FROM pg_stat_activity WHERE {where}")[0][0])


def locks(address: str) -> int:
    """Count the advisory locks that a store's connections hold."""
    (row,) = _execute(
        address,
        "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)"
        f" WHERE locktype = 'advisory' AND application_name = '{application_name(address)}'",
    )
    return int(row[0])


def until(holds: Callable[[], bool]) -> None:
    """Return once `holds` is true."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def hang_up(address: str) -> None:
    """End all of a store's connections from the server's side, and return once they are gone."""
    _execute(
        address,
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        f" WHERE application_name = '{application_name(address)}' AND pid <> pg_backend_pid()",
    )
