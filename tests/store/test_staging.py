"""How much of a stock an import holds in memory (docstrings of `forecourt.store.staging`)."""

from dataclasses import replace

from tests.store.sample import listing

from forecourt.store.staging import BYTES, ROWS, batches


def test_no_more_listings_than_may_be_are_in_memory_at_once() -> None:
    rows = [listing(str(number)) for number in range(2 * ROWS + 1)]
    found = list(batches(rows))
    assert [len(batch) for batch in found] == [ROWS, ROWS, 1]
    assert [row for batch in found for row in batch.values()] == rows


def test_large_bodies_end_a_batch_even_if_their_ids_repeat() -> None:
    large = replace(listing("1"), body=b"x" * (BYTES // 2))
    assert [len(batch) for batch in batches([large, listing("2"), large, large, listing("3")])] == [2, 2]


def test_of_several_listings_with_one_id_the_last_counts() -> None:
    assert list(batches([listing("1", price=1), listing("1", price=2)])) == [{"dealer-a/1": listing("1", price=2)}]


def test_no_listings_are_no_batch() -> None:
    assert list(batches([])) == []
