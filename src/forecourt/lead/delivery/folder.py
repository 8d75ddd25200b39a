"""Delivery into a folder: one file per parcel, whole or not there at all."""

import asyncio
import contextlib
import errno
import os
import re
import secrets
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from forecourt.lead.delivery import DeliveryError, Parcel, TargetError

__all__ = ["SETTINGS", "TARGET", "FolderSettings", "FolderTarget"]

_SUFFIXES: Final[Mapping[str, str]] = {"adf": ".adf.xml", "event": ".json", "notice": ".txt"}
_SAFE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}", re.ASCII)
_UNFINISHED: Final = re.compile(r"\..+\.[0-9a-f]{16}\.part", re.ASCII | re.DOTALL)
_ABANDONED: Final = 3600.0
"""Seconds after which an unfinished file has no writer any more; a target looks for such as often."""
_REASONS: Final[Mapping[int, str]] = {
    errno.ENOENT: "the folder is not there",
    errno.ENOTDIR: "the folder is not a folder",
    errno.EACCES: "the folder may not be written to",
    errno.EPERM: "the folder may not be written to",
    errno.EROFS: "the folder may not be written to",
    errno.ENOSPC: "the folder's disk is full",
    errno.EDQUOT: "the folder's disk is full",
}


class FolderSettings(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What a target of `via = "folder"` says."""

    path: Annotated[str, Meta(min_length=1)]
    """The folder. It must be there: one that is not is a share that is not mounted, and is waited for."""


class FolderTarget:
    """A folder that somebody empties."""

    kind = "folder"

    def __init__(self, settings: FolderSettings) -> None:
        """Keep the settings. Raises TargetError for a path that no system can have."""
        if "\0" in settings.path:
            raise TargetError("path: holds a null character")
        self._folder = Path(settings.path)
        self._swept = float("-inf")

    async def send(self, parcel: Parcel) -> None:
        """Write the parcel and see it onto the disk. A calendar comes first: the text says that all is there."""
        try:
            await asyncio.to_thread(self._write_all, parcel)
        except OSError as error:
            reason = _REASONS.get(error.errno or 0, "the folder cannot be written to")
            # Chained causes would carry the path of the lead's file.
            raise DeliveryError(reason) from None

    async def close(self) -> None:
        """Nothing is held open."""

    def _write_all(self, parcel: Parcel) -> None:
        now = time.monotonic()
        if now >= self._swept + _ABANDONED:
            # Not with every file: a folder that nobody empties is long.
            _sweep(self._folder)
            self._swept = now
        name = f"{_named(parcel.lead_id)}-{_named(parcel.delivery_id)}"
        if parcel.calendar is not None:
            _write(self._folder, f"{name}.ics", parcel.calendar)
        _write(self._folder, f"{name}{_SUFFIXES[parcel.kind]}", parcel.content)


def _write(folder: Path, name: str, content: bytes) -> None:
    """Put a file in place in one step, durable before this returns; one that is there already is replaced.

    A crash leaves the old state or the new one, and at most an unfinished file that begins with a dot, which is taken
    away later.
    """
    unfinished = folder / f".{name}.{secrets.token_hex(8)}.part"
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(folder / name)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    _keep_names(folder)


def _sweep(folder: Path) -> None:
    """Take away what tries left behind when their process died; nothing but unfinished files of ours."""
    until = time.time() - _ABANDONED
    with os.scandir(folder) as entries:
        for entry in entries:
            if not _UNFINISHED.fullmatch(entry.name):
                continue
            with contextlib.suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime < until:
                    os.unlink(entry.path)


def _keep_names(folder: Path) -> None:
    """See the folder's own entry onto the disk, where the system can (Windows cannot open a folder)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _named(identifier: str) -> str:
    """Return an id as part of a file's name: as it is if any system takes it, else its hash."""
    return identifier if _SAFE.fullmatch(identifier) else sha256(identifier.encode("utf-8", "replace")).hexdigest()[:32]


SETTINGS: Final = FolderSettings
TARGET: Final = FolderTarget
