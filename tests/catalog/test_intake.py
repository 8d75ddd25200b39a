"""Columns as they are read."""

from forecourt.catalog.intake import MISSING, Flags, Numbers, texts_of


def test_a_whole_number_is_whole_however_it_was_written_and_a_truth_value_is_none() -> None:
    assert list(Numbers(whole=False).take([5, 5.0, 5.5, True, "5", None])) == [5, 5, 5.5, None, None, None]
    assert list(Numbers(whole=True).take([2020.0, 2020.5])) == [2020, None]


def test_one_is_no_truth_value() -> None:
    flags = Flags()
    flags.take([True, 1, False, None])
    assert flags.codes().tolist() == [0, MISSING, 1, MISSING]


def test_whatever_is_no_text_reads_as_absent() -> None:
    assert texts_of(["a", None, 3, []]) == ["a", None, None, None]
