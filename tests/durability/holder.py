"""Holds the lock of a lead's key and goes no further; run by its path in a process of its own.

`between` two statements of the transaction, as after an answer of the database; or `within` one exchange with it,
whose end the database still waits for.
"""

import sys
import time

from forecourt.store.postgresql.session import connector, lock_id, together

__all__ = ["hold"]


def hold(address: str, scope: str, key: str, where: str) -> None:
    """Take the lock as `PostgreSQLLeadTransaction` does, say so, and stay."""
    connection = connector(address)()
    statement, values = "SELECT pg_advisory_xact_lock(%s)", (lock_id("key", scope, key),)
    connection.execute("BEGIN")
    with together(connection):
        found = connection.execute(statement, values)
        if where == "within":
            # This asks for the answer without an end of the exchange.
            found.fetchone()
            _stay()
    _stay()


def _stay() -> None:
    sys.stdout.write("held\n")
    sys.stdout.flush()
    time.sleep(600)


if __name__ == "__main__":
    hold(*sys.argv[1:])
