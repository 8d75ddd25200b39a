"""Connections to a PostgreSQL server: bounded threads, each keeping the one connection that it uses.

Threads rather than asynchronous connections, because what decides a lead is synchronous and runs inside its
transaction. A thread's connection is its own, so there is no pool to wait for; what waits, waits for a thread, in a
queue of bounded length and for a bounded time. A kept connection whose server went away shows it at BEGIN, before
anything has been asked, and a fresh one takes its place: a server that comes back is used again at once.
"""

import asyncio
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from json.encoder import encode_basestring_ascii
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from forecourt.store import StoreError
from forecourt.store.postgresql.cause import cause

__all__ = ["Connection", "Lane", "asked", "connector", "conninfo_of", "lock_id", "store_error", "together"]

Connection: TypeAlias = psycopg.Connection[TupleRow]
Result = TypeVar("Result")

_QUEUE: Final = 4096
"""How many pieces of work may wait for a thread of a lane; more are refused, so that memory stays bounded."""

_CONNECTION: Final = {
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "fallback_application_name": "forecourt",
}
"""A server that is gone without a word is noticed within a quarter of a minute; an address may say otherwise."""

_WAITS: Final = "-c statement_timeout=15s -c lock_timeout=5s -c idle_in_transaction_session_timeout=4s"
"""How long the server lets us wait, and others wait for us; an address may say otherwise in its `options`.

Between two statements of a transaction pass milliseconds. A machine that is gone without a word lets go of its locks
sooner than those who wait for them give up.
"""

_GONE: Final = "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3 -c tcp_user_timeout=10s"
"""How soon the server notices that we are gone without a word; by itself it waits for hours. Where the request that it
was reading never ends, or the answer that it was sending is never taken, nothing else ends the transaction."""

_FIXED: Final = "-c synchronous_commit=on -c TimeZone=UTC"
"""A commit that was reported survives a loss of power, whatever the server's default and the address say."""


def connector(address: str) -> Callable[[], Connection]:
    """Return what connects to the database at `address`; ValueError when it cannot be read as one."""
    conninfo = conninfo_of(address)
    return lambda: psycopg.connect(conninfo, autocommit=True)


def conninfo_of(address: str) -> str:
    """Return an address as the driver takes it, with what we set for every connection; ValueError as above."""
    given: dict[str, Any] = {}
    try:
        given = conninfo_to_dict("postgresql:" + address.partition(":")[2])
    except psycopg.ProgrammingError:
        readable = False
    else:
        readable = True
    if not readable:
        # Outside of the handler: the driver's words repeat the address, and so a password.
        raise ValueError("the store's address is not like postgresql://user@host:5432/name")
    options = " ".join(part for part in (_WAITS, _GONE, given.get("options"), _FIXED) if part)
    return make_conninfo(**{**_CONNECTION, **given, "options": options, "client_encoding": "UTF8"})


def lock_id(*parts: str) -> int:
    """Return the number of the advisory lock for what is named; two names share one with a chance of 2^-64."""
    # The names as a JSON list, which keeps them apart; put together here, which is several times as fast.
    names = ", ".join(map(encode_basestring_ascii, parts))
    digest = hashlib.blake2b(f"[{names}]".encode("ascii"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


_KNOWN: Final = all(
    hasattr(psycopg.Pipeline, name) for name in ("_exit_gen", "_enqueue_sync", "_communicate_gen", "_fetch_gen")
)
"""Whether the driver ends a pipeline by the methods that we know. These are its own: where a release of it has others,
its own end is good enough to work, and a test says that it is not good enough to keep."""


@contextmanager
def together(connection: Connection) -> Iterator[None]:
    """Send the statements of the block together, in one round trip; their answers are there after it.

    This is the driver's pipeline, but for its end. The driver asks for a flush after the last message, and a server
    that has been asked so does not measure any more how long a transaction says nothing: then one whose process stands
    still would keep its locks for good (decision 0048).
    """
    with connection.pipeline() as pipeline:
        if _KNOWN:
            pipeline._exit_gen = lambda: _ended(pipeline)  # type: ignore[method-assign]
        yield


def _ended(pipeline: psycopg.Pipeline) -> PQGen[None]:
    pipeline._enqueue_sync()
    try:
        yield from pipeline._communicate_gen()
    finally:
        yield from pipeline._fetch_gen(flush=False)


def asked(work: Callable[[], Result]) -> Result:
    """Run `work` and turn the driver's error, if it raises one, into a StoreError."""
    try:
        return work()
    except psycopg.Error as error:
        refused = store_error(error)
    # Outside of the handler, so that the driver's error with the data in it is not carried along as the context.
    raise refused


def store_error(error: psycopg.Error) -> StoreError:
    """Return our error, with a copy of the driver's as its cause that names no value of any row.

    The server puts values into DETAIL and CONTEXT, and for data exceptions (class 22) into the message itself.
    """
    if error.sqlstate is None:
        said = str(error) if isinstance(error, psycopg.OperationalError) else ""
    else:
        said = "" if error.sqlstate.startswith("22") else error.diag.message_primary or ""
    refused = StoreError(f"the database refused: {cause(error)}")
    refused.__cause__ = type(error)(f"{error.sqlstate or ''} {said}".strip())
    return refused


class Lane:
    """Threads for one kind of work, so that one kind cannot keep another waiting.

    `threads` is also the number of connections at the most; `patience` is how long work may wait for a thread, in
    seconds.
    """

    def __init__(self, name: str, threads: int, patience: float, connect: Callable[[], Connection]) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"forecourt-{name}")
        self._patience = patience
        self._connect = connect
        self._room = threading.BoundedSemaphore(_QUEUE + threads)
        self._own = threading.local()
        self._kept: set[Connection] = set()

    async def close(self) -> None:
        """Finish the work that waits, then close every connection."""
        await asyncio.to_thread(self._threads.shutdown)
        while self._kept:
            self._kept.pop().close()

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run `work` in a thread; StoreError when too much waits or for too long, and for what the driver raises.

        Once a thread has taken it up, it is done whether or not the caller is still there.
        """
        if not self._room.acquire(blocking=False):
            raise StoreError("too much work is waiting for the database")
        until = time.monotonic() + self._patience

        def in_time() -> Result:
            if time.monotonic() > until:
                raise StoreError("the database is too busy")
            return asked(work)

        try:
            future = self._threads.submit(in_time)
        except RuntimeError:
            self._room.release()
            raise StoreError("the store is not open") from None
        future.add_done_callback(lambda _: self._room.release())
        return await asyncio.wrap_future(future)

    async def transact(self, work: Callable[[Connection], Result], begin: str = "BEGIN") -> Result:
        """Run `work` once, in a transaction on the thread's connection; what it raises undoes everything."""
        return await self.run(lambda: self._transact(work, begin))

    def _transact(self, work: Callable[[Connection], Result], begin: str) -> Result:
        connection = self._begun(begin)
        try:
            result = work(connection)
            if connection.info.transaction_status is not TransactionStatus.INTRANS:
                # The server would answer the COMMIT of a failed transaction by undoing it, without an error.
                raise StoreError("a statement failed, so nothing can be kept")
            connection.commit()
        except BaseException:
            self._undo(connection)
            raise
        return result

    def _begun(self, begin: str) -> Connection:
        kept: Connection | None = getattr(self._own, "connection", None)
        if kept is not None:
            try:
                kept.execute(begin)
            except psycopg.Error:
                self._drop(kept)
            else:
                return kept
        fresh = self._connect()
        self._own.connection = fresh
        self._kept.add(fresh)
        fresh.execute(begin)
        return fresh

    def _undo(self, connection: Connection) -> None:
        try:
            connection.rollback()
        except psycopg.Error:
            # Then the server undoes it, having lost us; the next work begins with a fresh connection.
            self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        self._own.connection = None
        self._kept.discard(connection)
        connection.close()
