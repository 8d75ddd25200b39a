"""A look at a PostgreSQL schema that may be another version's, or empty; nothing of it is changed by that."""

import contextlib
from collections.abc import Callable, Collection
from datetime import datetime

from forecourt.store import FeedState, NoDatabaseError
from forecourt.store.postgresql.session import Connection
from forecourt.store.statements import migrations, queries
from forecourt.store.survey import MOST_ROWS, Backlog, LeadCount, RooftopStock, Survey

__all__ = ["found_at", "migration_names", "survey"]


def found_at(connection: Connection) -> tuple[str, str, bool]:
    """Return the database, the schema that it is about, and whether anything of ours is in it."""
    found = connection.execute(queries("postgresql")["survey_place"]).fetchone()
    assert found is not None
    return str(found[0]), str(found[1] or "public"), bool(found[2])


def migration_names(connection: Connection) -> dict[int, str]:
    """Return the names of the migrations that a database has, by number."""
    found = connection.execute(queries("postgresql")["survey_migrations"])
    return {number: f"{number:04}_{name}" for number, name in found}


def survey(connect: Callable[[], Connection], starts: Collection[datetime]) -> Survey:
    """Look at everything in one snapshot, on a connection of its own."""
    sql = queries("postgresql")
    limit = {"limit": MOST_ROWS}
    with contextlib.closing(connect()) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        database, schema, is_there = found_at(connection)
        if not is_there:
            raise NoDatabaseError(f"there is no database yet in the schema {schema} of {database}")
        applied = migration_names(connection)
        known = {number: f"{number:04}_{name}" for number, name, _ in migrations("postgresql")}
        missing = [name for number, name in known.items() if number not in applied]
        names, unknown = list(applied.values()), len(applied.keys() - known.keys())
        if missing:
            return Survey(names, missing, unknown)
        values = {"starts": sorted(starts), **limit}
        counted = connection.execute(sql["survey_keys"]).fetchone()
        assert counted is not None
        return Survey(
            names,
            unknown=unknown,
            stock=[RooftopStock(*row) for row in connection.execute(sql["survey_stock"], limit)],
            feeds=[FeedState(*row) for row in connection.execute(sql["feed_states"])],
            leads=[LeadCount(*row) for row in connection.execute(sql["survey_leads"], values)],
            backlogs=[Backlog(*row) for row in connection.execute(sql["survey_deliveries"], limit)],
            keys=counted[0],
            keys_revoked=counted[1],
        )
