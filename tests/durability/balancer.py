"""A small TCP balancer: a connection goes to one machine, or to the next where that takes none, and ends with it."""

import contextlib
import socket
import threading
from collections.abc import Iterator

from tests.durability.machines import Machines

__all__ = ["balancing"]

_SECONDS = 60


class _Balancer:
    """Listens at a free port of 127.0.0.1."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._turn = 0
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def serve(self) -> None:
        """Take connections until closed."""
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(client,), daemon=True).start()

    def close(self) -> None:
        """Take no more."""
        # Closing alone does not wake the thread that accepts.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _join(self, client: socket.socket) -> None:
        with client:
            machine = self._connected()
            if machine is None:
                return
            with machine:
                other = threading.Thread(target=_copy, args=(machine, client), daemon=True)
                other.start()
                _copy(client, machine)
                other.join(_SECONDS)

    def _connected(self) -> socket.socket | None:
        self._turn += 1
        servers = self._machines.servers
        for number in range(len(servers)):
            server = servers[(self._turn + number) % len(servers)]
            with contextlib.suppress(OSError):
                return socket.create_connection((server.host, server.port), _SECONDS)
        return None


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    # The end of one is the end of both, so that nobody waits for a machine that is gone.
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def balancing(machines: Machines) -> Iterator[str]:
    """Balance between machines until the block ends; gives the address."""
    balancer = _Balancer(machines)
    thread = threading.Thread(target=balancer.serve, daemon=True)
    thread.start()
    try:
        yield balancer.url
    finally:
        balancer.close()
        thread.join(_SECONDS)
        assert not thread.is_alive()
