"""The soak's verdicts, on samples that are made up."""

import pytest
from benchmarks.processes import Held
from benchmarks.soak import Sample, growth, settled, verdicts


def samples(anonymous: list[float], *, files: int = 20, threads: int = 10, log: float = 4.0) -> list[Sample]:
    """Return a sample every 10,000 requests."""
    return [
        Sample(10_000 * number, Held(1, 50 + mib, mib, threads, files), log) for number, mib in enumerate(anonymous, 1)
    ]


def judged(found: list[Sample]) -> list[bool]:
    return [good for _, good in verdicts(found)]


def test_what_fills_up_at_first_does_not_count() -> None:
    found = samples([100, 140, 180, *[200] * 9])
    assert [sample.requests for sample in settled(found)] == [10_000 * number for number in range(4, 13)]
    assert judged(found) == [True] * 4


def test_a_leak_of_a_kilobyte_a_request_is_found() -> None:
    found = samples([100 + 10 * number for number in range(12)])
    assert growth(found) * 10_000 == pytest.approx(10)
    assert judged(found) == [False, True, True, True]


def test_one_sample_during_an_import_is_no_leak() -> None:
    assert judged(samples([100.0] * 11 + [180.0])) == [True] * 4


@pytest.mark.parametrize(
    ("late", "expected"),
    [
        ({"files": 60}, [True, False, True, True]),
        ({"threads": 20}, [True, True, False, True]),
        ({"log": 100.0}, [True, True, True, False]),
    ],
)
def test_files_threads_and_the_log_are_judged(late: dict[str, int], expected: list[bool]) -> None:
    found = samples([100.0] * 12)
    found[-1] = samples([100.0] * 12, **late)[-1]
    assert judged(found) == expected
