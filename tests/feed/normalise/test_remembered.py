"""Answers are remembered for short texts alone."""

from forecourt.feed.normalise.remembered import remembered


def test_a_short_text_is_looked_at_once_and_a_long_one_each_time() -> None:
    asked: list[str] = []

    @remembered(2)
    def length(text: str, more: int) -> int:
        asked.append(text)
        return len(text) + more

    assert [length("a" * 256, 1), length("a" * 256, 1), length("a" * 256, 2)] == [257, 257, 258]
    assert len(asked) == 2
    assert [length("a" * 257, 1), length("a" * 257, 1)] == [258, 258]
    assert len(asked) == 4
