"""The SQL of a store, read from its files."""

from functools import cache
from importlib.resources import files
from typing import Final

_MARK: Final = "-- name: "


@cache
def queries(store: str, subject: str = "queries") -> dict[str, str]:
    """Return the statements of `sql/{store}/{subject}.sql` by the names that stand above them."""
    text = files("forecourt.store").joinpath("sql", store, f"{subject}.sql").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for part in text.split(_MARK)[1:]:
        name, _, statement = part.partition("\n")
        found[name.strip()] = statement.strip().rstrip(";")
    return found


@cache
def migrations(store: str) -> tuple[tuple[int, str, str], ...]:
    """Return (number, name, script) of each file in `sql/{store}/migrations/`, in the order in which they apply."""
    folder = files("forecourt.store").joinpath("sql", store, "migrations")
    found = []
    for file in folder.iterdir():
        number, _, name = file.name.removesuffix(".sql").partition("_")
        found.append((int(number), name, file.read_text(encoding="utf-8")))
    return tuple(sorted(found))
