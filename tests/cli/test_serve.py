"""`forecourt serve`: wrong usage is one clear line and status 2; a server that runs says where."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.server_process import ServerProcess

from forecourt.cli import main


def serve(*arguments: str, **environment: str) -> Result:
    """Run the command in this process; only for calls that end by themselves."""
    return CliRunner().invoke(main, ["serve", *arguments], env=environment)


def error_of(result: Result, status: int) -> str:
    """Return the one line that says what is wrong."""
    assert result.exit_code == status
    (line,) = result.stderr.splitlines()
    assert result.stdout == ""
    command = "main serve: " if status == 2 else "forecourt: "
    assert line.startswith(command)
    return line.removeprefix(command)


@pytest.mark.parametrize("port", ["65536", "-1", "http", ""])
def test_a_port_that_is_none_is_wrong_usage(port: str) -> None:
    assert "--port" in error_of(serve("--port", port), 2)


def test_an_option_that_is_unknown_is_wrong_usage() -> None:
    assert "--prot" in error_of(serve("--prot", "80"), 2)


def test_a_configuration_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.toml")
    for result in (serve("--config", missing), serve(FORECOURT_CONFIG=missing)):
        assert "missing.toml: cannot be read (No such file or directory)" in error_of(result, 2)


def test_a_configuration_that_is_a_folder_is_wrong_usage(tmp_path: Path) -> None:
    assert str(tmp_path) in error_of(serve("--config", str(tmp_path)), 2)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[server]\nprot = 1", "prot"),
        ("server = 5", "server"),
        ("[server]\nport = 'x'", "server.port"),
        ("[dealer]\nid = 'own'\nprofile = 'missing.json'", "dealer.profile"),
        ("[search]\nfilters_off = ['colour']", "search.filters_off"),
        ("[search\n", "TOML"),
        ("store = 'nothing:x'", "store"),
    ],
)
def test_a_mistake_in_the_configuration_is_told_with_its_key(tmp_path: Path, text: str, key: str) -> None:
    file = tmp_path / "forecourt.toml"
    file.write_text(text)
    assert key in error_of(serve("--config", str(file)), 2)


def test_a_port_in_use_is_a_failure_that_names_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = error_of(serve("--port", str(port), "--data", str(tmp_path)), 1)
    assert line == f"cannot listen at 127.0.0.1 port {port}: Address already in use"


def test_a_folder_of_counts_that_cannot_be_made_is_a_failure(tmp_path: Path) -> None:
    tmp_path.joinpath("file").touch()
    folder = str(tmp_path / "file" / "counts")
    line = error_of(serve("--port", "0", "--data", str(tmp_path), PROMETHEUS_MULTIPROC_DIR=folder), 1)
    assert line == f"PROMETHEUS_MULTIPROC_DIR: {folder} cannot be made: Not a directory"


def test_a_host_that_nobody_has_is_a_failure(tmp_path: Path) -> None:
    line = error_of(serve("--host", "no such host", "--port", "0", "--data", str(tmp_path)), 1)
    assert line == "cannot listen at no such host port 0: no such host"


def test_a_database_that_is_none_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.joinpath("forecourt.db").write_bytes(b"no database at all, but long enough to be looked at" * 20)
    command = [sys.executable, "-m", "forecourt.cli", "serve", "--port", "0", "--data", str(data)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert "the dealer agent cannot start" in ended.stderr
    assert ended.stderr.splitlines()[-1] == f"forecourt: cannot start with the data in {data}; the reason is above"
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("count", ["0", "65", "many"])
def test_a_number_of_workers_that_is_none_is_wrong_usage(count: str) -> None:
    assert "--workers" in error_of(serve("--workers", count), 2)


def test_workers_whose_database_is_none_are_told_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.joinpath("forecourt.db").write_bytes(b"no database at all, but long enough to be looked at" * 20)
    command = [sys.executable, "-m", "forecourt.cli", "serve", "--port", "0", "--workers", "4", "--data", str(data)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.count("the dealer agent cannot start") == 1
    assert ended.stderr.splitlines()[-1] == f"forecourt: cannot start with the data in {data}; the reason is above"


def test_a_service_manager_hands_the_socket_over_and_hears_of_every_turn(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, socket.create_server(("127.0.0.1", 0)) as given:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        # As systemd does it: the socket is number 3, and the number of the process is told to itself.
        program = (
            f"import os; os.dup2({given.fileno()}, 3); os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1')\n"
            "from forecourt.cli import main; main()"
        )
        command = [sys.executable, "-c", program, "serve", "--workers", "1", "--port", "1", "--data", str(tmp_path)]
        process = subprocess.Popen(
            command,
            pass_fds=[given.fileno()],
            env={**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert manager.recv(1000) == b"READY=1\nSTATUS=1 of 1 workers serve"
            with socket.create_connection(given.getsockname(), timeout=20) as connection:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                assert connection.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")
            process.send_signal(signal.SIGHUP)
            assert re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=\d+", manager.recv(1000))
            assert manager.recv(1000) == b"READY=1\nSTATUS=1 of 1 workers serve"
            process.send_signal(signal.SIGTERM)
            assert manager.recv(1000) == b"STOPPING=1"
            said, complaints = process.communicate(timeout=30)
        finally:
            process.kill()
        assert (process.returncode, complaints) == (0, "")
        assert f"Listening at       127.0.0.1 port {given.getsockname()[1]}\n" in said
        assert re.search(r"^  Workers +1$", said, re.MULTILINE)


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_server_says_its_addresses_and_where_its_data_is_and_ends_in_peace(tmp_path: Path, stop: int) -> None:
    server = ServerProcess(tmp_path)
    server.wait()
    said = tmp_path.joinpath("stdout.txt").read_text()
    assert said.startswith(f"Demo Auto Group answers AI agents at {server.base_url}\n")
    assert re.findall(r"AAP (\S+) over A2A +(\S+)", said) == [
        ("3.1", f"{server.base_url}/v3.1/a2a"),
        ("1.1", f"{server.base_url}/v1.1/a2a"),
    ]
    assert f"{server.base_url}/.well-known/agent-card.json" in said
    assert str(server.database.parent) in said
    assert "Ctrl+C" in said
    server._process.send_signal(stop)
    assert server._process.wait(20) == 0
    assert server.log == ""


@pytest.mark.parametrize("workers", [(), ("--workers", "1")])
def test_a_second_signal_cuts_requests_off_and_says_so(tmp_path: Path, workers: tuple[str, ...]) -> None:
    server = ServerProcess(tmp_path, arguments=workers)
    server.wait()
    with socket.create_connection((server.host, server.port)) as connection:
        connection.sendall(b"POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        time.sleep(0.3)
        server._process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        server._process.send_signal(signal.SIGINT)
        assert server._process.wait(20) == 1
    assert "Traceback" not in server.log
    assert server.log.splitlines()[-1] == "forecourt: stopped before all requests were answered"
