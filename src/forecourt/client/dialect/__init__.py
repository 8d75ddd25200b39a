"""How a request is written in each AAP version that a dealer may speak; found by name, like the contracts.

Live dealers run 1.0 to 1.2 beside 3.1, so this client speaks more versions than the server of this package serves.
"""

import importlib
import pkgutil
from functools import cache

from forecourt.client.dialect.interface import Dialect

__all__ = ["Dialect", "dialect", "dialect_of_uri", "versions"]


@cache
def versions() -> tuple[str, ...]:
    """Return the versions that can be spoken, newest first."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    found = [name[1:].replace("_", ".") for name in names if name[0] == "v" and name[1:2].isdigit()]
    return tuple(sorted(found, key=lambda version: [-int(part) for part in version.split(".")]))


@cache
def dialect(version: str) -> Dialect:
    """Return the dialect of a version ("3.1"); KeyError when this client does not speak it."""
    if version not in versions():
        raise KeyError(version)
    found: Dialect = importlib.import_module(f"{__name__}.v{version.replace('.', '_')}").DIALECT
    return found


def dialect_of_uri(uri: str) -> Dialect | None:
    """Return the dialect that an A2A extension URI names exactly, None when this client does not implement it."""
    return next((found for found in map(dialect, versions()) if found.extension_uri == uri), None)
