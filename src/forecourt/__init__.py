"""Forecourt: the Auto Agent Protocol (AAP) for Python. Public names only.

Each is imported when it is first asked for, so that `import forecourt` loads no server, database or HTTP client.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forecourt import a2a
    from forecourt.client import TransportError, connect, connect_sync
    from forecourt.errors import AAPError, Problem
    from forecourt.server import Config, create_app

__all__ = [
    "AAPError", "Config", "Problem", "TransportError", "__version__", "a2a", "connect", "connect_sync", "create_app",
]  # fmt: skip

__version__ = "0.1.0"

_HOMES = {
    "AAPError": "forecourt.errors",
    "Config": "forecourt.server",
    "Problem": "forecourt.errors",
    "TransportError": "forecourt.client",
    "connect": "forecourt.client",
    "connect_sync": "forecourt.client",
    "create_app": "forecourt.server",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "a2a":
        return import_module("forecourt.a2a")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
