"""The AAP contracts: each version reads a payload into `forecourt.model` and writes replies and errors from it.

A contract is one module here, named after its version (`v3_1.py`), with a folder of schemas (`schema/3.1/`). It is
found by that name: adding one edits no list. Nothing here does I/O, knows a protocol, or knows a car.
"""

import importlib
import pkgutil
from functools import cache

from forecourt.contract.interface import Contract, Offer
from forecourt.contract.skill import SKILLS, Skill

__all__ = ["SKILLS", "Contract", "Offer", "Skill", "contract_class", "default_version", "versions"]


@cache
def versions() -> tuple[str, ...]:
    """Return the contract versions that this package can speak, oldest first, for example ("1.1", "3.1")."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    found = [name[1:].replace("_", ".") for name in names if name[0] == "v" and name[1:2].isdigit()]
    return tuple(sorted(found, key=lambda version: [int(part) for part in version.split(".")]))


def default_version() -> str:
    """Return the newest version: the contract that answers at the well-known places."""
    return versions()[-1]


def contract_class(version: str) -> type[Contract]:
    """Return the class of the contract `version`; KeyError when there is none."""
    if version not in versions():
        raise KeyError(version)
    module = importlib.import_module(f"{__name__}.v{version.replace('.', '_')}")
    found: type[Contract] = module.CONTRACT
    return found
