"""The SQL of a store, read from its files."""

import re
from functools import cache
from importlib.resources import files
from typing import Final

_MARK: Final = "-- name: "
_ROW: Final = re.compile(r"\bVALUES (\([^()]*\))")


@cache
def queries(store: str) -> dict[str, str]:
    """Return the statements of the files in `sql/{store}` by the names that stand above them."""
    found: dict[str, str] = {}
    for file in files("forecourt.store").joinpath("sql", store).iterdir():
        if file.is_file():
            for part in file.read_text(encoding="utf-8").split(_MARK)[1:]:
                name, _, statement = part.partition("\n")
                if name.strip() in found:
                    raise ValueError(f"two statements of {store} are named {name.strip()}")
                found[name.strip()] = statement.strip().rstrip(";")
    return found


def repeated(statement: str, rows: int) -> str:
    """Return the statement with its one row of VALUES so many times over; a row of it has no brackets inside."""
    (found,) = _ROW.finditer(statement)
    return statement[: found.end()] + f", {found[1]}" * (rows - 1) + statement[found.end() :]


@cache
def migrations(store: str) -> tuple[tuple[int, str, str], ...]:
    """Return (number, name, script) of each file in `sql/{store}/migrations/`, in the order in which they apply."""
    folder = files("forecourt.store").joinpath("sql", store, "migrations")
    found = []
    for file in folder.iterdir():
        number, _, name = file.name.removesuffix(".sql").partition("_")
        found.append((int(number), name, file.read_text(encoding="utf-8")))
    return tuple(sorted(found))
