"""What systemd and its like are told, and what they hand over: sd_notify(3) and sd_listen_fds(3), without a library."""

import contextlib
import os
import socket
import time
from collections.abc import MutableMapping
from typing import Final

__all__ = ["SocketError", "notify", "reloading", "take_listener"]

_FIRST: Final = 3
_NOTIFY: Final = "NOTIFY_SOCKET"
_HANDED_OVER: Final = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID")


class SocketError(Exception):
    """What was handed over cannot be listened at; the text says why."""


def notify(*lines: str) -> None:
    """Tell the service manager, such as `notify("READY=1", "STATUS=4 workers")`; without one nothing happens."""
    address = os.environ.get(_NOTIFY, "")
    if address[:1] not in ("/", "@"):
        return
    # A leading @ is how an abstract address is written. A manager that does not listen must not keep us from serving.
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        sending.setblocking(False)
        sending.sendto("\n".join(lines).encode(), "\0" + address[1:] if address[0] == "@" else address)


def reloading() -> None:
    """Tell that a reload begins, with the time by which the manager matches it to its wish; READY=1 ends it."""
    notify("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")


def take_listener(environment: MutableMapping[str, str] | None = None) -> socket.socket | None:
    """Return the listening socket that the service manager opened for this process, None when there is none.

    The variables that tell of it are taken away, so that no child takes them for its own. Raises SocketError unless it
    is one TCP socket that listens.
    """
    environment = os.environ if environment is None else environment
    pid, count = (environment.get(name, "") for name in _HANDED_OVER[:2])
    for name in _HANDED_OVER:
        environment.pop(name, None)
    if pid != str(os.getpid()) or not count.isdecimal() or int(count) == 0:
        return None
    if int(count) != 1:
        raise SocketError(f"the service manager handed over {count} sockets; one is listened at")
    try:
        handed = socket.socket(fileno=_FIRST)
    except OSError:
        raise SocketError("what the service manager handed over is no socket") from None
    is_tcp = handed.family in (socket.AF_INET, socket.AF_INET6) and handed.type == socket.SOCK_STREAM
    if not is_tcp or not handed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        handed.detach()
        raise SocketError("what the service manager handed over is no listening TCP socket (ListenStream= is)")
    handed.set_inheritable(False)
    return handed
