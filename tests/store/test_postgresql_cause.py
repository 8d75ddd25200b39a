"""What is wrong with a PostgreSQL database is said in our own words, and nothing of its address or its rows."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.postgresql_server import POSTGRESQL

from forecourt.store import StoreError, open_store

psycopg = pytest.importorskip("psycopg")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with POSTGRESQL.fresh(tmp_path) as found:
        yield found


def refusal(address: str) -> str:
    """Return what the store says that cannot be opened."""

    async def work() -> str:
        with pytest.raises(StoreError) as caught:
            await open_store(address).open()
        return str(caught.value)

    return asyncio.run(work())


def test_a_server_that_is_not_there_is_told_from_a_host_that_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    nobody = refusal(f"postgresql://secret-user:secret-word@127.0.0.1:{port}/secret-name")
    assert nobody == "the database refused: nothing answers at its address"
    nowhere = refusal("postgresql://secret-user@host.invalid/secret-name?connect_timeout=2")
    assert nowhere == "the database refused: its host's name leads nowhere"


def test_what_a_server_refuses_is_named_and_nothing_of_the_address_is(address: str) -> None:
    server = address.partition("?")[0]
    base, _, _ = server.rpartition("/")
    assert refusal(f"{base}/secret-name") == "the database refused: there is no such database"
    user = base.replace("postgres@", "secret-user@", 1)
    assert refusal(f"{user}/postgres") == "the database refused: it refuses the user or the password"
    read_only = f"{server}?options=-cdefault_transaction_read_only%3Don"
    assert refusal(read_only) == "the database refused: it takes no writes (a standby, or read-only)"
    missing = f"{server}?options=-csearch_path%3Dno_such_schema"
    assert refusal(missing) == "the database refused: there is no such schema"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("53100", "its disk is full"),
        ("53300", "it has no connection left"),
        ("57P01", "it is shutting down"),
        ("55P03", "a lock was not to be had in time"),
        ("57014", "it took too long"),
        ("42501", "the user may not do this there"),
        ("08006", "the connection was lost"),
        ("58030", "its system or its disk fails"),
        ("22P05", "UntranslatableCharacter 22P05"),
    ],
)
def test_each_state_of_the_server_has_its_words(state: str, words: str) -> None:
    from forecourt.store.postgresql.cause import cause

    error = psycopg.errors.lookup(state)("secret text")
    assert cause(error) == words


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ('FATAL:  password authentication failed for user "secret"', "it refuses the user or the password"),
        ("FATAL:  sorry, too many clients already", "it has no connection left"),
        ("FATAL:  the database system is starting up", "it is starting or shutting down"),
        ("connection timeout expired", "it does not answer in time"),
        ("server closed the connection unexpectedly", "the connection was lost"),
        ("secret", "OperationalError"),
    ],
)
def test_what_is_said_before_there_is_a_state_has_its_words(said: str, words: str) -> None:
    from forecourt.store.postgresql.cause import cause

    assert cause(psycopg.OperationalError(said)) == words
