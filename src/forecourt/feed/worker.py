"""A feed read in a process of its own, so that reading and storing it each have a processor.

The process is a plain `python -c`, spoken to through its standard input and output: unlike `multiprocessing` it never
runs the program's main module again, whatever that is. It ends with the reader: a pipe that nobody reads breaks.
"""

import gc
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from forecourt.feed.body import Kept, KeptBodies, read_rows
from forecourt.feed.error import FeedError
from forecourt.feed.options import FeedOptions
from forecourt.feed.report import Report
from forecourt.feed.source import Expansion, open_feed

__all__ = ["Tracked", "can_read_beside", "read_beside"]

_BATCH: Final = 1 << 18
"""Bytes of bodies that are handed over at once: some hundred vehicles, or a few with very long descriptions."""
_PROGRAM: Final = "from forecourt.feed.worker import work; work()"
_SECONDS: Final = 10


def can_read_beside() -> bool:
    """Tell whether there is an interpreter to start, and a second processor for it."""
    return bool(sys.executable) and (os.cpu_count() or 1) > 1


class Tracked:
    """A binary stream that says how many bytes were read from it."""

    def __init__(self, stream: IO[bytes], tell: Callable[[int], None] | None = None) -> None:
        self._stream = stream
        self._tell = tell
        self.taken = 0

    def read(self, size: int = -1) -> bytes:
        """Read as the stream does."""
        data = self._stream.read(size)
        self.taken += len(data)
        if self._tell is not None:
            self._tell(self.taken)
        return data


def read_beside(
    path: Path, options: FeedOptions, known: KeptBodies, report: Report, tell: Callable[[int], None]
) -> Generator[Kept, None, None]:
    """Give what `read_bodies` gives of a file, in another process, and fill `report` at the end.

    `tell` is called with the bytes that were read so far. Raises FeedError as `read_feed` does. Leaving the iterator
    ends the process.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(  # noqa: S603 - this interpreter and a constant
        [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(BrokenPipeError):
            pickle.dump((str(path), options, known), process.stdin, pickle.HIGHEST_PROTOCOL)
            process.stdin.close()
        while True:
            try:
                # What is read here was written by our own process a moment ago.
                kind, content = pickle.load(process.stdout)  # noqa: S301
            except (EOFError, pickle.UnpicklingError) as error:
                raise FeedError("the process that reads the file has ended before the file did") from error
            if kind == "batch":
                taken, batch = content
                tell(taken)
                yield from map(Kept._make, batch)
            elif kind == "error":
                raise FeedError(content)
            else:
                for name in Report.__slots__:
                    setattr(report, name, getattr(content, name))
                return
    finally:
        process.kill()
        process.stdout.close()
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.wait(_SECONDS)


def work() -> None:
    """Read the file that standard input names, and write what is in it to standard output."""
    # Ctrl+C goes to both processes; the other one decides, and this one ends when nobody reads it any more.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Rows make no cycles: looking for them less often saves a fifth of the time.
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
    path, options, known = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the process that started this one
    out = sys.stdout.buffer

    def say(kind: str, content: Any) -> None:
        pickle.dump((kind, content), out, pickle.HIGHEST_PROTOCOL)
        out.flush()

    report = Report()
    size = 0
    # Plain tuples: a named one is pickled as a call, which takes four times as long.
    batch: list[tuple[str, str, str | None, str | None, bytes]] = []
    with suppress(BrokenPipeError):
        try:
            with Path(path).open("rb") as file:
                tracked = Tracked(file)
                with open_feed(tracked, Expansion()) as stream:  # type: ignore[arg-type]
                    for kept in read_rows(stream, options, known, report):
                        batch.append(kept)
                        size += len(kept[-1])
                        if size >= _BATCH:
                            say("batch", (tracked.taken, batch))
                            batch, size = [], 0
            say("batch", (tracked.taken, batch))
            say("report", report)
        except BrokenPipeError:
            raise
        except OSError:
            say("error", "the file cannot be opened")
        except FeedError as error:
            say("error", str(error))
