"""Several worker processes on one listening socket: started, watched, replaced one after the other, and ended together.

The socket is opened here and inherited by each worker, so that a connection which nobody has accepted yet belongs to no
worker and is lost with none. This process serves nothing itself. Workers are fresh interpreters, which hear their
configuration through a socket and say there when they are ready and that they turn.
"""

import asyncio
import contextlib
import itertools
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from forecourt.server import service_manager
from forecourt.server.config import Config, ConfigError
from forecourt.server.draining import Hangup
from forecourt.server.metrics import SHARED_FOLDER, count_no_more
from forecourt.server.serving import DRAIN_SECONDS
from forecourt.server.worker import ASKED, BEAT, READY, Drain, Order, write_order

__all__ = ["Plan", "StartError", "Supervisor", "WorkersError"]

START_SECONDS: Final = 300.0
"""How long a worker may take until it answers: a large stock is read first."""
HANG_SECONDS: float = 30.0
"""After how long without a sign of its event loop a worker is killed and replaced."""
CLOSE_SECONDS: Final = 25.0
"""How long a worker may take to close, once its last request is answered; deliveries under way get ten of them."""
_LOOK_SECONDS: Final = 1.0
_STEADY_SECONDS: Final = 60.0
"""A worker that lived as long is replaced at once when it dies; others the later, the more often it happened."""
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
_LONGEST_LINE: Final = 64

_spread = random.Random()  # noqa: S311 - spreads waits and keeps no secret; not everybody's own generator

_log = logging.getLogger("forecourt.server")


class WorkersError(Exception):
    """The workers did not do what they are for; the text says what was in the way."""


class StartError(WorkersError):
    """Not even the first worker could start; it has logged why."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to run: a configuration that was checked, what uvicorn is told of TLS, and how many workers."""

    config: Config
    tls: dict[str, str]
    count: int


@dataclass(slots=True, eq=False)
class _Worker:
    """One process."""

    number: int
    process: asyncio.subprocess.Process
    hearing: asyncio.StreamReader
    saying: asyncio.StreamWriter
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    silent: float = 0.0
    """Seconds since its event loop was last heard of, as far as this process was awake to hear it."""
    began: float = 0.0
    listening: asyncio.Task[None] | None = None
    leaves: bool = False
    """Whether it was ordered to end, or killed by us."""

    def order(self, drain: Drain) -> None:
        """Order it to end."""
        self.leaves = True
        with contextlib.suppress(OSError):
            self.saying.write(msgspec.json.encode(drain) + b"\n")

    def kill(self) -> None:
        """End it at once."""
        self.leaves = True
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()


@dataclass(slots=True, eq=False)
class _Place:
    """One of the places that the plan has workers in, and who is there now."""

    plan: Plan
    worker: _Worker
    deaths: int = 0
    keeping: asyncio.Task[None] | None = None


class Supervisor:
    """Runs the workers of one listening socket. `run` returns when all have ended as they were asked to."""

    def __init__(
        self, listener: socket.socket, plan: Plan, read: Callable[[], Plan], started: Callable[[], None]
    ) -> None:
        """`read` makes the plan anew, or raises ConfigError; `started` is called once requests are answered."""
        self._listener = listener
        self._plan = plan
        self._address = (plan.config.server.host, plan.config.server.port)
        self._read = read
        self._tell_started = started
        self._environment: dict[str, str] = {}
        self._workers: set[_Worker] = set()
        self._numbers: set[int] = set()
        """Of living workers. The smallest that is free is used again, for what is counted goes on under it."""
        self._places: list[_Place] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._stop = asyncio.Event()
        self._force = asyncio.Event()
        self._reload = False
        self._hangup = Hangup()
        self._opening: set[asyncio.Task[None]] = set()

    def run(self) -> None:
        """Serve until a signal to stop. Raises WorkersError."""
        with _counting_folder(self._plan.config) as folder:
            self._environment = _environment(folder)
            asyncio.run(self._run())

    # The whole

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._signalled, number)
        try:
            # The first alone: what keeps it from starting keeps them all, and need not be told by each.
            if not await self._open_place(self._plan):
                if self._stop.is_set():
                    return
                raise StartError("no worker could start")
            self._tell_started()
            service_manager.notify("READY=1", self._status())
            self._task(self._watch())
            self._open_missing_places()
            while not self._stop.is_set():
                self._news.clear()
                if self._reload:
                    self._reload = False
                    await self._unless_stopped(self._reload_all())
                else:
                    await self._news.wait()
        finally:
            await self._end()

    def _signalled(self, number: int) -> None:
        meaning = self._hangup.meaning() if number == signal.SIGHUP else "stop"
        if meaning == "reload":
            self._reload = True
        elif meaning == "stop" and self._stop.is_set() and number == signal.SIGINT:
            self._force.set()
        elif meaning == "stop":
            self._stop.set()
        self._news.set()

    async def _unless_stopped(self, work: Coroutine[None, None, None]) -> None:
        doing = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in (doing, stopping):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await doing

    def _task(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _end(self) -> None:
        """End every worker, those that do not serve yet at once. Raises WorkersError when some were cut off."""
        service_manager.notify("STOPPING=1")
        # What nobody accepts any more is refused, once the last worker has closed it, too.
        self._listener.close()
        for task in list(self._tasks):
            task.cancel()
        accept = self._plan.config.server.drain_seconds
        for worker in self._workers:
            if worker.ready.is_set():
                worker.order(Drain(accept, replaced=False))
            else:
                worker.kill()
        cut_off = False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(accept + DRAIN_SECONDS + CLOSE_SECONDS):
                while self._workers and not self._force.is_set():
                    ends = [asyncio.ensure_future(worker.ended.wait()) for worker in self._workers]
                    forced = asyncio.ensure_future(self._force.wait())
                    try:
                        await asyncio.wait({*ends, forced}, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        for each in (*ends, forced):
                            each.cancel()
        for worker in list(self._workers):
            cut_off = True
            worker.kill()
            await worker.ended.wait()
        if cut_off:
            raise WorkersError("stopped before all requests were answered")

    def _status(self) -> str:
        return f"STATUS={len(self._places)} of {self._plan.count} workers serve"

    # Places

    async def _open_place(self, plan: Plan) -> bool:
        """Put a worker in a new place; False when it cannot start."""
        worker = await self._start_and_wait(plan)
        if worker is None:
            return False
        place = _Place(plan, worker)
        place.keeping = self._task(self._keep(place))
        self._places.append(place)
        return True

    def _open_missing_places(self) -> None:
        """Begin to open what the plan has more of; each goes on until it succeeds."""
        for _ in range(len(self._places) + len(self._opening), self._plan.count):
            task = self._task(self._open_until_ready(self._plan))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open_until_ready(self, plan: Plan) -> None:
        for pause in _pauses():
            if await self._open_place(plan):
                break
            _log.error("a worker could not start; it is tried again in %.1f seconds", pause)
            await asyncio.sleep(pause)
        service_manager.notify(self._status())

    async def _keep(self, place: _Place) -> None:
        """Put another worker in a place whenever the one that is there dies."""
        loop = asyncio.get_running_loop()
        while True:
            worker = place.worker
            await worker.ended.wait()
            if place.worker is not worker:
                continue
            is_steady = worker.ready.is_set() and loop.time() - worker.began > _STEADY_SECONDS
            place.deaths = 0 if is_steady else place.deaths + 1
            _log.error(
                "worker %d (process %d) has ended %s; another is started",
                worker.number,
                worker.process.pid,
                _end_of(worker.process.returncode),
            )
            for pause in itertools.islice(_pauses(), max(place.deaths - 1, 0), None):
                await asyncio.sleep(0.0 if is_steady else pause)
                is_steady = False
                # Meanwhile a reload may have put one there.
                started = await self._start(place.plan) if place.worker is worker else None
                if started is not None and place.worker is worker:
                    place.worker = started
                    self._task(self._bound_start(started))
                elif started is not None:
                    started.kill()
                if place.worker is not worker:
                    break

    async def _bound_start(self, worker: _Worker) -> None:
        await self._becomes_ready(worker)

    async def _replace(self, place: _Place, plan: Plan, only: _Worker | None = None) -> bool:
        """Start the successor of a place's worker (of `only`, if given), and once it is ready end the other.

        False: it could not start, and all stays as it is.
        """
        successor = await self._start_and_wait(plan)
        if successor is None:
            return False
        if only is not None and place.worker is not only:
            await self._dismiss(successor)
            return True
        leaving, place.worker, place.plan, place.deaths = place.worker, successor, plan, 0
        await self._dismiss(leaving)
        return True

    async def _dismiss(self, worker: _Worker) -> None:
        """End a worker whose place another has taken; return when it is gone."""
        worker.order(Drain(0.0, replaced=True))
        try:
            async with asyncio.timeout(2 * DRAIN_SECONDS + CLOSE_SECONDS):
                await worker.ended.wait()
        except TimeoutError:
            _log.error("worker %d did not end when it was asked to", worker.number)
            worker.kill()

    async def _reload_all(self) -> None:
        service_manager.reloading()
        failure = await self._reload_each()
        if failure:
            _log.error("%s", failure)
        else:
            _log.info("%d workers were replaced", len(self._places))
        service_manager.notify("READY=1", f"{self._status()}; {failure}" if failure else self._status())

    async def _reload_each(self) -> str:
        """Replace all workers by ones of the configuration as it is now; return what kept it from that."""
        try:
            plan = self._read()
        except ConfigError as error:
            return f"the workers stay as they are, since the configuration cannot be used: {error.lines[0]}"
        except Exception as error:
            return f"the workers stay as they are, since the configuration cannot be read: {type(error).__name__}"
        server = plan.config.server
        if (server.host, server.port) != self._address:
            _log.warning("a reload keeps the address; start the service anew for another server.host or server.port")
        opening = list(self._opening)
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        try:
            return await self._follow(plan)
        finally:
            if not self._stop.is_set():
                self._open_missing_places()

    async def _follow(self, plan: Plan) -> str:
        """Replace worker after worker by one of the plan, open places or close some; return what kept it from that."""
        for done, place in enumerate(list(self._places[: plan.count])):
            if not await self._replace(place, plan):
                return f"the new worker did not become ready; {len(self._places) - done} workers stay as they are"
            self._plan = plan
        for place in self._places[plan.count :]:
            self._places.remove(place)
            if place.keeping is not None:
                place.keeping.cancel()
            await self._dismiss(place.worker)
        for _ in range(len(self._places), plan.count):
            if not await self._open_place(plan):
                return f"a further worker could not start; {len(self._places)} serve"
        return ""

    # Processes

    async def _start_and_wait(self, plan: Plan) -> _Worker | None:
        """Start a worker and return it once it answers; None when it does not."""
        worker = await self._start(plan)
        if worker is None:
            return None
        try:
            return worker if await self._becomes_ready(worker) else None
        except asyncio.CancelledError:
            worker.kill()
            raise

    async def _start(self, plan: Plan) -> _Worker | None:
        """Start a process and give it its order; None when the system does not let us."""
        try:
            worker = await self._spawn()
        except OSError as error:
            _log.error("no process can be started: %s", error.strerror)
            return None
        order = Order(config=plan.config, tls=plan.tls, counts_as=_counts_as(worker))
        with contextlib.suppress(OSError):
            worker.saying.write(write_order(order))
            await worker.saying.drain()
        return worker

    async def _spawn(self) -> _Worker:
        number = next(number for number in itertools.count(1) if number not in self._numbers)
        ours, theirs = socket.socketpair()
        listener = self._listener.fileno()
        self._numbers.add(number)
        with theirs, contextlib.ExitStack() as undo:
            undo.callback(self._numbers.discard, number)
            undo.callback(ours.close)
            command = [sys.executable, "-P", "-m", "forecourt.server.worker", str(number)]
            process = await asyncio.create_subprocess_exec(
                *command,
                str(theirs.fileno()),
                str(listener),
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), listener),
                env=self._environment,
                # Ctrl+C is for this process, which tells the workers.
                process_group=0,
            )
            undo.pop_all()
        ours.setblocking(False)
        hearing, saying = await asyncio.open_connection(sock=ours, limit=_LONGEST_LINE)
        worker = _Worker(number, process, hearing, saying)
        self._workers.add(worker)
        # Not among the tasks that are cancelled in the end: it is how the end is noticed.
        worker.listening = asyncio.ensure_future(self._hear(worker))
        return worker

    async def _becomes_ready(self, worker: _Worker) -> bool:
        """Wait until a worker answers; False when it ends or takes too long instead, or all are to stop."""
        waits = [asyncio.ensure_future(event.wait()) for event in (worker.ready, worker.ended, self._stop)]
        try:
            await asyncio.wait(waits, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if worker.ready.is_set():
            return True
        if not worker.ended.is_set():
            if not self._stop.is_set():
                _log.error("worker %d took longer than %d seconds to start", worker.number, START_SECONDS)
            worker.kill()
        return False

    async def _hear(self, worker: _Worker) -> None:
        """Take in what a worker says until it ends."""
        loop = asyncio.get_running_loop()
        worker.began = loop.time()
        with contextlib.suppress(OSError, ValueError):
            while line := await worker.hearing.readline():
                if line == BEAT:
                    worker.silent = 0.0
                elif line == READY:
                    worker.began = loop.time()
                    worker.ready.set()
                elif line == ASKED and not worker.leaves:
                    self._task(self._replace_asked(worker))
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await worker.process.wait()
        except TimeoutError:
            worker.kill()
            await worker.process.wait()
        worker.saying.close()
        count_no_more(_counts_as(worker), self._environment[SHARED_FOLDER])
        self._workers.discard(worker)
        self._numbers.discard(worker.number)
        worker.ended.set()

    async def _replace_asked(self, worker: _Worker) -> None:
        """Replace a worker that somebody has sent SIGTERM, unless that was everybody's end."""
        await asyncio.sleep(_LOOK_SECONDS / 2)
        for place in self._places:
            if place.worker is worker and not worker.leaves:
                _log.info("worker %d was asked to end and is replaced", worker.number)
                await self._replace(place, place.plan, worker)

    async def _watch(self) -> None:
        """Kill workers that serve and do not turn any more."""
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            # Time in which this process stood still itself, with the whole machine or container, counts for nobody.
            passed, last = min(loop.time() - last, 2 * _LOOK_SECONDS), loop.time()
            for worker in list(self._workers):
                if worker.ready.is_set():
                    worker.silent += passed
                if worker.silent > HANG_SECONDS:
                    _log.error("worker %d (process %d) hangs and is killed", worker.number, worker.process.pid)
                    worker.process.kill()
                    worker.silent = 0.0


def _pauses() -> Iterator[float]:
    """Yield the waits before one start after the other."""
    pause = _FIRST_PAUSE
    while True:
        yield pause * _spread.uniform(0.8, 1.2)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _end_of(status: int | None) -> str:
    """Return how a process ended, in words."""
    if status is not None and status < 0:
        with contextlib.suppress(ValueError):
            return f"by {signal.Signals(-status).name}"
    return f"with status {status}"


def _environment(folder: str) -> dict[str, str]:
    """Return the environment of the workers: modules are found as here, and the service manager is our business."""
    environment = {name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    environment[SHARED_FOLDER] = folder
    return environment


def _counts_as(worker: _Worker) -> str:
    """Return the name under which a worker counts: the next one with its number goes on where it ended."""
    return f"{os.getpid()}-{worker.number}"


@contextlib.contextmanager
def _counting_folder(config: Config) -> Iterator[str]:
    """Make the folder in which the workers count together, unless the environment names one. Raises WorkersError."""
    named = os.environ.get(SHARED_FOLDER)
    with contextlib.ExitStack() as stack:
        try:
            if not named:
                named = stack.enter_context(_temporary(config))
        except OSError as error:
            raise WorkersError(
                f"no folder for what the workers count can be made ({error.strerror}); {SHARED_FOLDER} may name one"
            ) from None
        yield named


def _temporary(config: Config) -> "tempfile.TemporaryDirectory[str]":
    try:
        return tempfile.TemporaryDirectory(prefix="forecourt-metrics-")
    except OSError:
        # A file system that is read-only but for the data.
        return tempfile.TemporaryDirectory(prefix="forecourt-metrics-", dir=config.data)
