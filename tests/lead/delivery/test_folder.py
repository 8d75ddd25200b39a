"""Files that are whole or not there, durable, private, and the same for the same delivery."""

import asyncio
import errno
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forecourt.lead.delivery import DeliveryError, Kind, Parcel
from forecourt.lead.delivery.folder import FolderSettings, FolderTarget


def parcel(kind: Kind = "adf", content: bytes = b"<adf/>", *, delivery_id: str = "del_1") -> Parcel:
    """Return a parcel of a kind."""
    return Parcel(delivery_id, "lead_1", kind, "Demo Toyota", content)


def send(folder: Path, *parcels: Parcel) -> None:
    """Send parcels one after the other."""

    async def run() -> None:
        target = FolderTarget(FolderSettings(path=str(folder)))
        for each in parcels:
            await target.send(each)
        await target.close()

    asyncio.run(run())


def names(folder: Path) -> list[str]:
    """Return what is in a folder."""
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("kind", "name"),
    [("adf", "lead_1-del_1.adf.xml"), ("event", "lead_1-del_1.json"), ("notice", "lead_1-del_1.txt")],
)
def test_a_parcel_is_one_file_of_its_kind(tmp_path: Path, kind: Kind, name: str) -> None:
    send(tmp_path, parcel(kind, b"what it says"))
    assert names(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == b"what it says"


def test_a_notice_with_a_calendar_is_two_files(tmp_path: Path) -> None:
    send(tmp_path, Parcel("del_1", "lead_1", "notice", "Demo Toyota", b"Hello", b"BEGIN:VCALENDAR"))
    assert names(tmp_path) == ["lead_1-del_1.ics", "lead_1-del_1.txt"]
    assert (tmp_path / "lead_1-del_1.ics").read_bytes() == b"BEGIN:VCALENDAR"


def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    send(tmp_path, parcel())
    assert stat.S_IMODE((tmp_path / "lead_1-del_1.adf.xml").stat().st_mode) == 0o600


def test_the_same_delivery_again_is_the_same_file(tmp_path: Path) -> None:
    send(tmp_path, parcel(), parcel(), parcel(content=b"<adf>resend</adf>"))
    assert names(tmp_path) == ["lead_1-del_1.adf.xml"]
    assert (tmp_path / "lead_1-del_1.adf.xml").read_bytes() == b"<adf>resend</adf>"


def test_another_delivery_is_another_file(tmp_path: Path) -> None:
    send(tmp_path, parcel(), parcel(delivery_id="del_2"))
    assert names(tmp_path) == ["lead_1-del_1.adf.xml", "lead_1-del_2.adf.xml"]


def test_many_at_once_leave_nothing_unfinished(tmp_path: Path) -> None:
    async def run() -> None:
        target = FolderTarget(FolderSettings(path=str(tmp_path)))
        await asyncio.gather(*(target.send(parcel(delivery_id=f"del_{number % 5}")) for number in range(50)))

    asyncio.run(run())
    assert names(tmp_path) == [f"lead_1-del_{number}.adf.xml" for number in range(5)]


@pytest.mark.parametrize(
    "hostile", ["../../etc/passwd", "a/b", ".hidden", "a\0b", "", "a" * 500, "con\n", "ä", "\ud800"]
)
def test_an_id_that_is_no_name_of_a_file_stays_in_the_folder(tmp_path: Path, hostile: str) -> None:
    folder = tmp_path / "leads"
    folder.mkdir()
    send(folder, parcel(delivery_id=hostile), parcel(delivery_id=hostile))
    (name,) = names(folder)
    assert name.startswith("lead_1-")
    assert name.isascii()
    assert names(tmp_path) == ["leads"]


def test_a_folder_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    with pytest.raises(DeliveryError) as caught:
        send(tmp_path / "unmounted", parcel())
    assert caught.value.reason == "the folder is not there"
    assert not caught.value.permanent
    assert names(tmp_path) == []


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "leads").write_text("")
    with pytest.raises(DeliveryError, match="not a folder"):
        send(tmp_path / "leads", parcel())


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, "the folder's disk is full"),
        (errno.EROFS, "the folder may not be written to"),
        (errno.EIO, "the folder cannot be written to"),
    ],
)
@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_write_that_fails_at_any_step_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: str, step: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, "secret", "secret")

    failing: dict[str, tuple[object, str]] = {
        "write": (os, "fdopen"),
        "fsync": (os, "fsync"),
        "replace": (Path, "replace"),
    }
    with monkeypatch.context() as patched:
        patched.setattr(*failing[step], fail)
        with pytest.raises(DeliveryError) as caught:
            send(tmp_path, parcel())
    assert (caught.value.reason, caught.value.permanent) == (reason, False)
    assert caught.value.__cause__ is None
    assert names(tmp_path) == []
    send(tmp_path, parcel())
    assert names(tmp_path) == ["lead_1-del_1.adf.xml"]


def test_the_file_is_on_the_disk_before_its_name_and_the_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def noted(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            steps.append(name)
            return real(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", noted("fsync", os.fsync))
    monkeypatch.setattr(Path, "replace", noted("replace", Path.replace))
    send(tmp_path, parcel())
    assert steps == ["fsync", "replace", "fsync"]


def test_what_a_dead_process_left_is_swept_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    old, new, other, foreign = (
        tmp_path / f".{name}.part"
        for name in (
            f"lead_1-del_1.adf.xml.{'a' * 16}",
            f"lead_1-del_1.adf.xml.{'b' * 16}",
            f"lead_1-del_2.adf.xml.{'c' * 16}",
            "download",
        )
    )
    for path in (old, new, other, foreign):
        path.write_bytes(b"half")
    for path in (old, other, foreign):
        os.utime(path, (time.time() - 7200,) * 2)
    send(tmp_path, parcel())
    assert names(tmp_path) == sorted([new.name, foreign.name, "lead_1-del_1.adf.xml"])


def test_a_long_folder_is_looked_through_once_and_not_with_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Path] = []
    scan = os.scandir

    def watched(path: Path) -> Any:
        looked.append(path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", watched)
    send(tmp_path, *(parcel(delivery_id=f"del_{number}") for number in range(3)))
    assert looked == [tmp_path]
    assert len(names(tmp_path)) == 3
