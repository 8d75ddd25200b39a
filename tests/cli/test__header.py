"""Headers with credentials: from the command line and from files."""

from pathlib import Path

import click
import pytest

from forecourt.cli._header import credentials


def test_headers_are_read_from_the_line_and_from_files_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "key.txt"
    file.write_text("\n  X-API-Key: one \nX-Tenant:two:three\n")
    assert credentials([f"@{file}", "Authorization: Bearer x"]) == {
        "X-API-Key": "one",
        "X-Tenant": "two:three",
        "Authorization": "Bearer x",
    }


@pytest.mark.parametrize("header", ["x", ": x", "a b: x", "X-Key: kü", "X-Key: a\r\nX-Other: b", "X-Key: \x00"])
def test_what_is_no_header_is_refused_and_not_repeated(header: str) -> None:
    with pytest.raises(click.UsageError, match=r"^--header is NAME:VALUE, in ASCII, or @FILE with such lines$"):
        credentials([header])


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"X-Key: \xff")
    with pytest.raises(click.UsageError, match="--header is NAME:VALUE"):
        credentials([f"@{tmp_path / 'key'}"])
    with pytest.raises(click.UsageError, match="cannot be read: No such file"):
        credentials([f"@{tmp_path / 'none'}"])
