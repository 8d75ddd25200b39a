"""What the tests need to know of a database: how to get an empty one, and how to look past the store at its rows."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Database"]


@dataclass(frozen=True, slots=True)
class Database:
    """One kind of database.

    `fresh` gives the address of a new, empty database and removes it afterwards; it may use the folder. `execute`
    runs one statement on the database at an address, past the store, commits, and returns the rows; what the driver
    raises comes out.
    """

    fresh: Callable[[Path], AbstractContextManager[str]]
    execute: Callable[[str, str], Sequence[tuple[Any, ...]]]
