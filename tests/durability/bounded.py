"""Imports a small feed and then a large one under a limit, and prints what memory that took; run as a program.

    python -m tests.durability.bounded SMALL LARGE ADDRESS ALLOWANCE

ALLOWANCE is in bytes. The small import loads and opens everything that any import needs; what the large one may take
beyond that is limited for the process that stores (`RLIMIT_AS`) and measured for both.
"""

import asyncio
import json
import os
import resource
import sys
import threading
from pathlib import Path

from tests.durability.importer import seller

from forecourt.server.config import Feed
from forecourt.server.importing import import_feed
from forecourt.store import open_store
from forecourt.vocabulary import Vocabulary


def _peak(whose: int) -> int:
    return resource.getrusage(whose).ru_maxrss * 1024


def _limit(allowance: int) -> None:
    held = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (held + allowance, held + allowance))


def _fits(path: Path) -> bool:
    """Tell whether a whole file fits into the memory that is left."""
    try:
        path.read_bytes()
    except MemoryError:
        return False
    return True


async def _measured(small: Path, large: Path, address: str, allowance: int) -> dict[str, int | bool]:
    store = open_store(address)
    await store.open()
    try:
        for path in (small, small):
            await import_feed(store, seller(), path, Feed(source=str(path)), Vocabulary.packaged())
        own, workers = _peak(resource.RUSAGE_SELF), _peak(resource.RUSAGE_CHILDREN)
        _limit(allowance)
        report = await import_feed(store, seller(), large, Feed(source=str(large)), Vocabulary.packaged())
        return {
            "imported": report.imported,
            "own_bytes": _peak(resource.RUSAGE_SELF) - own,
            "worker_bytes": _peak(resource.RUSAGE_CHILDREN) - workers,
            "is_limited": not _fits(large),
        }
    finally:
        await store.close()


if __name__ == "__main__":
    _, small, large, address, allowance = sys.argv
    # The limit counts a thread's stack, eight mebibytes as a rule, whether it is used or not.
    threading.stack_size(512 << 10)
    json.dump(asyncio.run(_measured(Path(small), Path(large), address, int(allowance))), sys.stdout)
