"""SQL is read from files (STYLE.md, stores)."""

from importlib.resources import files

import pytest

from forecourt.store.statements import migrations, queries, repeated

STORES = sorted(each.name for each in (files("forecourt.store") / "sql").iterdir() if each.is_dir())


@pytest.mark.parametrize("store", STORES)
def test_every_statement_has_a_name_of_its_own_and_ends_without_a_semicolon(store: str) -> None:
    folder = files("forecourt.store") / "sql" / store
    text = "".join(each.read_text() for each in folder.iterdir() if each.is_file())
    found = queries(store)
    assert len(found) == text.count("-- name: ") > 0
    assert all(statement and ";" not in statement for statement in found.values())


@pytest.mark.parametrize("store", STORES)
def test_migrations_are_numbered_from_one_without_gaps_in_the_order_they_apply(store: str) -> None:
    found = migrations(store)
    assert [number for number, _, _ in found] == list(range(1, len(found) + 1))
    assert all(name and script.strip() for _, name, script in found)


def test_a_query_is_found_by_the_name_above_it() -> None:
    assert queries("sqlite")["generation"] == "SELECT generation FROM inventory"


def test_a_row_of_values_is_repeated_where_it_stands() -> None:
    statement = "WITH a (b) AS (VALUES (?, 'x')) SELECT count(b) FROM a"
    assert repeated(statement, 1) == statement
    assert repeated(statement, 3) == "WITH a (b) AS (VALUES (?, 'x'), (?, 'x'), (?, 'x')) SELECT count(b) FROM a"
    with pytest.raises(ValueError, match="unpack"):
        repeated("SELECT 1", 2)
