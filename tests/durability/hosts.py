"""Hosts of their own on one machine: network namespaces behind one bridge, for which Linux and root are needed.

They are kept by processes and gone with them. The bridge is in a namespace too, where the test's own servers and
buyers are: nothing of the machine's network is touched.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

import pytest

__all__ = ["HUB", "Hosts", "hosts"]

Result = TypeVar("Result")

HUB: Final = "10.77.0.1"
"""The address of the namespace in the middle."""
_NETWORK: Final = "10.77.0."
_LONGEST_SECONDS: Final = 1800
"""After what time the namespaces go by themselves, should a test be cut off."""
_CLONE_NEWNET: Final = 0x40000000
_SECONDS: Final = 20


class Hosts:
    """The namespace in the middle and two hosts around it."""

    def __init__(self) -> None:
        self._keepers: list[subprocess.Popen[bytes]] = []

    def build(self) -> None:
        """Make them. Raises CalledProcessError where that is not allowed."""
        for _ in range(3):
            self._keepers.append(_keeper())
        hub = self._keepers[0]
        _in(hub, "ip", "link", "add", "bridge0", "type", "bridge")
        _in(hub, "ip", "address", "add", f"{HUB}/24", "dev", "bridge0")
        _in(hub, "ip", "link", "set", "bridge0", "up")
        _in(hub, "ip", "link", "set", "lo", "up")
        for number, host in enumerate(self._keepers[1:]):
            inside = ("peer", "name", "eth0", "netns", str(host.pid))
            _in(hub, "ip", "link", "add", f"port{number}", "type", "veth", *inside)
            _in(hub, "ip", "link", "set", f"port{number}", "master", "bridge0", "up")
            _in(host, "ip", "address", "add", f"{self.address(number)}/24", "dev", "eth0")
            _in(host, "ip", "link", "set", "eth0", "up")
            _in(host, "ip", "link", "set", "lo", "up")

    def close(self) -> None:
        """Let them go."""
        for keeper in self._keepers:
            keeper.kill()
            keeper.wait()

    @staticmethod
    def address(number: int) -> str:
        """Return the address of a host."""
        return f"{_NETWORK}{11 + number}"

    def inside(self, number: int) -> tuple[str, ...]:
        """Return the command that runs another one on a host."""
        return ("nsenter", f"--net=/proc/{self._keepers[number + 1].pid}/ns/net")

    def cut(self, number: int) -> None:
        """Take a host's cable out: what it sends and what is sent to it is gone without a word."""
        _in(self._keepers[0], "ip", "link", "set", f"port{number}", "down")

    def mend(self, number: int) -> None:
        """Put the cable in again."""
        _in(self._keepers[0], "ip", "link", "set", f"port{number}", "up")

    def run(self, work: Callable[[], Result], host: int | None = None) -> Result:
        """Do something in the middle or on a host, with all the threads and processes that it starts."""
        library = ctypes.CDLL(None, use_errno=True)
        keeper = self._keepers[0 if host is None else host + 1]
        file = os.open(f"/proc/{keeper.pid}/ns/net", os.O_RDONLY)

        def enter_and_work() -> Result:
            # Of the calling thread alone, and of what it starts.
            if library.setns(file, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
            return work()

        try:
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(enter_and_work).result()
        finally:
            os.close(file)


def _keeper() -> "subprocess.Popen[bytes]":
    """Start a process that keeps a network namespace."""
    before = Path("/proc/self/ns/net").readlink()
    command = ["unshare", "--net", "sh", "-c", f"echo; exec sleep {_LONGEST_SECONDS}"]
    keeper = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert keeper.stdout is not None
    with keeper.stdout as said:
        if not said.readline() or Path(f"/proc/{keeper.pid}/ns/net").readlink() == before:
            keeper.kill()
            keeper.wait()
            raise subprocess.CalledProcessError(1, command)
    return keeper


def _in(keeper: "subprocess.Popen[bytes]", *command: str) -> None:
    entering = ("nsenter", f"--net=/proc/{keeper.pid}/ns/net")
    subprocess.run([*entering, *command], check=True, timeout=_SECONDS, capture_output=True)


@contextlib.contextmanager
def hosts() -> Iterator[Hosts]:
    """Make two hosts until the block ends; skip where the system or its owner does not allow it."""
    missing = [program for program in ("ip", "unshare", "nsenter") if shutil.which(program) is None]
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("network namespaces need Linux and root")
    if missing:
        assert not os.environ.get("CI"), f"CI needs {', '.join(missing)} (iproute2 and util-linux)"
        pytest.skip(f"network namespaces need {', '.join(missing)}")
    found = Hosts()
    try:
        try:
            found.build()
        except subprocess.CalledProcessError as error:
            # A container may be forbidden to make them, also where everything else is there.
            pytest.skip(f"network namespaces are not allowed here: {error.cmd}")
        yield found
    finally:
        found.close()
