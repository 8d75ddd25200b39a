"""Records and marks of access control, over every store (docstrings of `forecourt.store.access`)."""

import asyncio
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta

import pytest
from tests.store import worker
from tests.store.sample import NOW
from tests.store.worker import PROCESSES

from forecourt.store import AccessRecord, AccessStore, Admission, Mark, Store, open_store

HOUR = timedelta(hours=1)
UNTIL = int(NOW.timestamp()) + 60


@pytest.fixture
def access(store: Store) -> AccessStore:
    """The part under test."""
    return store.access


def record(value: bytes = b"{}", version: str = "v1", lives: timedelta | None = HOUR) -> AccessRecord:
    return AccessRecord(value, version, None if lives is None else NOW + lives)


def test_a_record_is_given_back_as_it_was_put(access: AccessStore, runner: asyncio.Runner) -> None:
    runner.run(access.put("session", "s1", record(b'{"a":1}')))
    assert runner.run(access.get("session", "s1", NOW)) == record(b'{"a":1}')
    assert runner.run(access.get("token", "s1", NOW)) is None
    runner.run(access.put("session", "s1", record(b"[]", "v2", None)))
    assert runner.run(access.get("session", "s1", NOW)) == record(b"[]", "v2", None)


def test_what_has_expired_is_not_there(access: AccessStore, runner: asyncio.Runner) -> None:
    runner.run(access.put("session", "s1", record()))
    later = NOW + HOUR
    assert runner.run(access.get("session", "s1", later)) is None
    assert runner.run(access.take("session", "s1", later)) is None
    assert not runner.run(access.replace("session", "s1", "v1", record(), later))
    assert runner.run(access.records("session", later, 10)) == []
    assert runner.run(access.create("session", "s1", record(b"new", "v2", 2 * HOUR), later))
    found = runner.run(access.get("session", "s1", later))
    assert found is not None
    assert found.value == b"new"


def test_a_record_is_created_once(access: AccessStore, runner: asyncio.Runner) -> None:
    assert runner.run(access.create("session", "s1", record(b"first"), NOW))
    assert not runner.run(access.create("session", "s1", record(b"second"), NOW))
    found = runner.run(access.get("session", "s1", NOW))
    assert found is not None
    assert found.value == b"first"


def test_a_record_is_replaced_only_in_the_version_that_was_read(access: AccessStore, runner: asyncio.Runner) -> None:
    runner.run(access.put("session", "s1", record()))
    assert runner.run(access.replace("session", "s1", "v1", record(version="v2"), NOW))
    assert not runner.run(access.replace("session", "s1", "v1", record(version="v3"), NOW))
    found = runner.run(access.get("session", "s1", NOW))
    assert found is not None
    assert found.version == "v2"


def test_of_all_that_take_a_record_one_gets_it(access: AccessStore, runner: asyncio.Runner) -> None:
    runner.run(access.put("code", "c1", record(b"x")))

    async def take() -> list[bytes | None]:
        return await asyncio.gather(*(access.take("code", "c1", NOW) for _ in range(16)))

    assert [found for found in runner.run(take()) if found is not None] == [b"x"]
    assert runner.run(access.get("code", "c1", NOW)) is None


def test_a_deleted_record_is_gone(access: AccessStore, runner: asyncio.Runner) -> None:
    runner.run(access.put("code", "c1", record()))
    runner.run(access.delete("code", "c1"))
    runner.run(access.delete("code", "c1"))
    assert runner.run(access.get("code", "c1", NOW)) is None


def test_the_records_of_a_kind_are_listed_up_to_a_bound(access: AccessStore, runner: asyncio.Runner) -> None:
    for number in range(5):
        runner.run(access.put("client", f"c{number}", record(b"%d" % number)))
    runner.run(access.put("other", "c9", record(b"9")))
    values = sorted(found.value for found in runner.run(access.records("client", NOW, 10)))
    assert values == [b"0", b"1", b"2", b"3", b"4"]
    assert len(runner.run(access.records("client", NOW, 2))) == 2


def test_a_mark_is_the_first_of_its_digest_once(access: AccessStore, runner: asyncio.Runner) -> None:
    one, two = Mark(b"1" * 32, UNTIL), Mark(b"2" * 32, UNTIL)
    assert runner.run(access.admit([one], NOW)) == [Admission(True, None)]
    assert runner.run(access.admit([one, two], NOW)) == [Admission(False, None), Admission(True, None)]


def test_of_two_alike_in_one_batch_the_earlier_is_the_first(access: AccessStore, runner: asyncio.Runner) -> None:
    mark = Mark(b"1" * 32, UNTIL)
    assert [found.first for found in runner.run(access.admit([mark, mark, mark], NOW))] == [True, False, False]


def test_a_mark_counts_until_its_time_and_no_longer(access: AccessStore, runner: asyncio.Runner) -> None:
    mark = Mark(b"1" * 32, UNTIL)
    runner.run(access.admit([mark], NOW))
    [at_the_end] = runner.run(access.admit([mark], NOW + timedelta(seconds=60)))
    assert not at_the_end.first
    [after] = runner.run(access.admit([Mark(mark.digest, UNTIL + 90)], NOW + timedelta(seconds=62)))
    assert after.first


def test_a_mark_tells_the_version_of_the_record_that_it_depends_on(access: AccessStore, runner: asyncio.Runner) -> None:
    runner.run(access.put("session", "s1", record()))

    def version(digest: bytes, key: str) -> str | None:
        [found] = runner.run(access.admit([Mark(digest * 32, UNTIL, ("session", key))], NOW))
        assert found.first
        return found.version

    assert version(b"1", "s1") == "v1"
    assert version(b"2", "s2") is None
    runner.run(access.put("session", "s1", record(version="v2")))
    assert version(b"3", "s1") == "v2"
    runner.run(access.put("session", "s1", record(version="v3", lives=-HOUR)))
    assert version(b"4", "s1") is None


def test_what_has_expired_is_forgotten_up_to_a_bound(access: AccessStore, runner: asyncio.Runner) -> None:
    for number in range(4):
        runner.run(access.put("session", f"s{number}", record()))
        runner.run(access.admit([Mark(b"%d" % number * 32, UNTIL)], NOW))
    runner.run(access.put("session", "kept", record(lives=None)))
    assert runner.run(access.forget_expired(NOW, 10)) == 0
    assert runner.run(access.forget_expired(NOW + 2 * HOUR, 3)) == 6
    assert runner.run(access.forget_expired(NOW + 2 * HOUR, 10)) == 2
    assert runner.run(access.get("session", "kept", NOW + 2 * HOUR)) is not None


def test_marks_and_records_survive_the_end_of_the_process(
    access: AccessStore, address: str, runner: asyncio.Runner
) -> None:
    mark = Mark(b"1" * 32, UNTIL)
    runner.run(access.admit([mark], NOW))
    runner.run(access.put("session", "s1", record()))

    async def again() -> tuple[bool, AccessRecord | None]:
        other = open_store(address)
        await other.open()
        try:
            [found] = await other.access.admit([mark], NOW)
            return found.first, await other.access.get("session", "s1", NOW)
        finally:
            await other.close()

    assert runner.run(again()) == (False, record())


def test_a_mark_that_four_processes_make_at_once_is_the_first_of_one(
    processes: ProcessPoolExecutor, address: str, store: Store
) -> None:
    begin = time.time() + 0.4
    running = [processes.submit(worker.mark_once, address, begin, 200) for _ in range(PROCESSES)]
    answers = [each.result(timeout=60) for each in running]
    assert [sum(firsts) for firsts in zip(*answers, strict=True)] == [1] * 200
