"""How a call travels: one module a binding, found by its name."""

import importlib
import pkgutil
from functools import cache

from forecourt.client.carrier.interface import Carrier

__all__ = ["Carrier", "bindings", "carrier_class"]


@cache
def bindings() -> tuple[str, ...]:
    """Return the names of the bindings: "a2a", "mcp", "pap"."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    return tuple(sorted(name for name in names if name != "interface"))


def carrier_class(binding: str) -> type[Carrier]:
    """Return the carrier of a binding; KeyError when there is none."""
    if binding not in bindings():
        raise KeyError(binding)
    found: type[Carrier] = importlib.import_module(f"{__name__}.{binding}").CARRIER
    return found
