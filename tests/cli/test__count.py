"""Numbers of things."""

import pytest

from forecourt.cli._count import counted


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 leads"), (1, "1 lead"), (2, "2 leads"), (1000, "1,000 leads"), (-1, "-1 leads")]
)
def test_one_is_singular_and_thousands_have_a_comma(number: int, text: str) -> None:
    assert counted(number, "lead") == text


def test_a_word_may_have_a_plural_of_its_own() -> None:
    assert [counted(number, "delivery", "deliveries") for number in (1, 2)] == ["1 delivery", "2 deliveries"]
