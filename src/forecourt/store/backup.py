"""A copy of the database in one file, and a database made of one: what both stores promise, and how they fail."""

import contextlib
import gzip
import os
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["EPHEMERAL", "Backup", "BackupError", "new_file", "pack", "scratch", "unpack"]

EPHEMERAL: Final = frozenset({"access_record", "access_mark", "lease"})
"""Tables whose rows no backup has: Sessions and what they have used, which must not come to life again, and leases."""

_GZIP: Final = 16 + zlib.MAX_WBITS
"""What zlib calls the form that `pack` writes."""
_PIECE: Final = 1 << 20
_LEVEL: Final = 1
"""The quickest compression: a stock of JSON becomes a fifth by it, and hardly less by a slower one."""


class BackupError(Exception):
    """A backup cannot be made, or cannot be restored; the message is for the one who runs the command."""


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup holds. `migration` is the newest that it has."""

    leads: int
    listings: int
    migration: str
    size: int


@contextlib.contextmanager
def new_file(file: Path) -> Iterator[Path]:
    """Give an empty file beside `file`, for its owner alone, that becomes `file` when the block ends well.

    `file` appears whole or not at all, and nothing that is there is written over. Raises BackupError.
    """
    draft = file.with_name(f".{file.name}.{os.getpid()}.part")
    if os.path.lexists(file):
        raise BackupError(f"{file} is there already, and nothing is written over")
    try:
        with _draft(draft):
            yield draft
            _sync(draft)
            _publish(draft, file)
            _sync(file.parent)
    except OSError as error:
        raise BackupError(f"{file} cannot be written: {error.strerror}") from None


@contextlib.contextmanager
def _draft(file: Path) -> Iterator[None]:
    """Make an empty file for its owner alone, and see that it is gone afterwards with what SQLite puts beside it."""
    os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        yield
    finally:
        for part in (file, *(file.with_name(file.name + end) for end in ("-journal", "-wal", "-shm"))):
            part.unlink(missing_ok=True)


@contextlib.contextmanager
def scratch(file: Path) -> Iterator[Path]:
    """Give an empty file beside `file`, for its owner alone, that is gone when the block ends. Raises BackupError."""
    place = file.with_name(f".{file.name}.{os.getpid()}.copy")
    try:
        with _draft(place):
            yield place
    except OSError as error:
        raise BackupError(f"{place.parent} cannot be written: {error.strerror}") from None


def pack(copy: Path, file: Path) -> int:
    """Write a copy into `file`, compressed, with a sum (CRC-32) by which `unpack` knows it again; return its size."""
    with copy.open("rb") as source, file.open("wb") as target:
        with gzip.GzipFile("", "wb", _LEVEL, target, mtime=0) as packed:
            shutil.copyfileobj(source, packed, _PIECE)
        target.flush()
    return file.stat().st_size


def unpack(file: Path, copy: Path) -> None:
    """Write what `pack` took into `copy`. Raises BackupError where a single byte of it is not as it was."""
    try:
        source = file.open("rb")
    except OSError as error:
        raise BackupError(f"{file} cannot be read: {error.strerror}") from None
    with source, copy.open("wb") as target:
        packed = zlib.decompressobj(wbits=_GZIP)
        try:
            while not packed.eof and (piece := packed.unconsumed_tail or source.read(_PIECE)):
                target.write(packed.decompress(piece, _PIECE))
            target.write(packed.flush())
        except zlib.error as error:
            damaged = "header" not in str(error)
            raise BackupError(f"{file} is {'damaged' if damaged else 'no backup of forecourt backup'}") from None
        if not packed.eof:
            raise BackupError(f"{file} is cut off")
        if packed.unused_data or source.read(1):
            raise BackupError(f"{file} is damaged: something follows the backup")


def _publish(draft: Path, file: Path) -> None:
    """Give the draft its name, unless something has that by now."""
    try:
        os.link(draft, file)
    except FileExistsError:
        raise BackupError(f"{file} is there already, and nothing is written over") from None
    except OSError:
        # A file system without links, as some network shares are.
        if os.path.lexists(file):
            raise BackupError(f"{file} is there already, and nothing is written over") from None
        draft.rename(file)


def _sync(place: Path) -> None:
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
