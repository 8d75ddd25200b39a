"""Identifiers that sort by time (`forecourt.identifier`; the ULID layout)."""

import os
import re
import subprocess
import sys
import threading
import time
from itertools import pairwise

import pytest

from forecourt import identifier
from forecourt.identifier import random_bytes, sortable_id

DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def milliseconds(text: str) -> int:
    """Read the time of an identifier: its first ten digits."""
    value = 0
    for digit in text[:10]:
        value = value * 32 + DIGITS.index(digit)
    return value


def test_an_identifier_is_its_prefix_and_twenty_six_digits_without_those_easily_mistaken() -> None:
    assert re.fullmatch(r"err_[0-9A-HJKMNP-TV-Z]{26}", sortable_id("err_"))
    assert re.fullmatch(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", sortable_id())


def test_an_identifier_begins_with_the_time_it_was_made() -> None:
    before = time.time_ns() // 1_000_000
    made = milliseconds(sortable_id())
    assert before <= made <= time.time_ns() // 1_000_000 + 1


def test_a_hundred_thousand_identifiers_are_different_and_in_order() -> None:
    made = [sortable_id() for _ in range(100_000)]
    assert all(first < second for first, second in pairwise(made))


def test_identifiers_of_many_threads_are_different_and_in_order_within_each() -> None:
    start = threading.Barrier(8)
    made: list[list[str]] = [[] for _ in range(8)]

    def work(mine: list[str]) -> None:
        start.wait()
        mine.extend(sortable_id() for _ in range(3000))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(mine == sorted(mine) for mine in made)
    assert len({each for mine in made for each in mine}) == 8 * 3000


def test_an_identifier_made_after_another_thread_finished_sorts_behind_all_of_its() -> None:
    made: list[str] = []
    for _ in range(20):
        thread = threading.Thread(target=lambda: made.append(sortable_id()))
        thread.start()
        thread.join()
        made.append(sortable_id())
    assert made == sorted(made)


def test_a_clock_that_is_set_back_does_not_disturb_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    first = sortable_id()
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() - 3_600_000_000_000)
    made = [first, *(sortable_id() for _ in range(100))]
    assert made == sorted(set(made))


def test_the_random_part_running_over_moves_on_to_the_next_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    sortable_id()
    monkeypatch.setattr(identifier, "_last_ms", (1 << 47))
    monkeypatch.setattr(identifier, "_last_random", (1 << 80) - 1)
    made = sortable_id()
    assert milliseconds(made) == (1 << 47) + 1
    assert len(made) == 26
    assert made < sortable_id()


def test_the_next_identifier_cannot_be_guessed_from_the_last() -> None:
    made = [sortable_id() for _ in range(1000)]
    values = [int("".join(f"{DIGITS.index(digit):05b}" for digit in text), 2) for text in made]
    steps = [second - first for first, second in pairwise(values)]
    assert len(set(steps)) > 990


def test_random_bytes_are_of_the_length_asked_for_and_never_the_same() -> None:
    found = [random_bytes(16) for _ in range(2000)]
    assert {len(each) for each in found} == {16}
    assert len(set(found)) == len(found)
    assert len(random_bytes(4096)) == 4096


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system with fork")
def test_a_forked_process_goes_on_with_bytes_of_its_own() -> None:
    code = (
        "import os; from forecourt.identifier import random_bytes; random_bytes(1); sys = __import__('sys');"
        "child = os.fork(); os.write(1, random_bytes(16).hex().encode() + b'\\n'); child and os.waitpid(child, 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    one, other = found.stdout.split()
    assert one != other
