"""Keys are found in the text they were read from, however it is laid out."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecourt.server.toml_place import Key, line_of, spelled

TEXT = '''\
# a comment with [brackets] and a = 1
data = "x"  # [server]

[server]
host = """
[not.a.table]
port = 1
"""
port = 8000
"quoted key" = { a = 1, b = [1, 2] }
lines = [
    "one",  # ]
    "two",

    "three",
]
dotted.inner = true

[[dealers]]
id = "a"
  [dealers.more]
  x = 1
[[dealers]]
id = "b = c"
hosts = ["x", "y"]
'''


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("data",), 2),
        (("server",), 4),
        (("server", "host"), 5),
        (("server", "port"), 9),
        (("server", "quoted key"), 10),
        (("server", "quoted key", "b", 1), 10),
        (("server", "lines"), 11),
        (("server", "lines", 0), 12),
        (("server", "lines", 1), 13),
        (("server", "lines", 2), 15),
        (("server", "dotted", "inner"), 17),
        (("server", "missing"), 4),
        (("dealers", 0, "id"), 20),
        (("dealers", 0, "more", "x"), 22),
        (("dealers", 1, "id"), 24),
        (("dealers", 1, "hosts", 1), 25),
        (("dealers", 1, "profile"), 23),
        (("nothing",), None),
        ((), None),
    ],
)
def test_a_key_is_found_where_it_stands(key: Key, line: int | None) -> None:
    assert tomllib.loads(TEXT)
    assert line_of(TEXT, key) == line


def test_a_key_is_spelled_with_lists_counted_from_one() -> None:
    assert spelled(("dealers", 1, "hosts", 0)) == "dealers[2].hosts[1]"
    assert spelled(()) == ""


@given(st.text(max_size=80), st.lists(st.text(max_size=3) | st.integers(0, 3), max_size=3))
def test_any_text_and_any_key_give_a_line_of_it_or_none(text: str, key: list[str | int]) -> None:
    line = line_of(text, key)
    assert line is None or 1 <= line <= len(text.splitlines())
