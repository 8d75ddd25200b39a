"""Secrets come from the environment or a file, and what is wrong is told without them."""

from pathlib import Path

import pytest

from forecourt.lead.delivery import TargetError
from forecourt.lead.delivery.secret import read_secret


def test_a_secret_of_the_environment_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", " päss word\n")
    assert read_secret("password", "MAIL_PASSWORD", None) == " päss word\n"


@pytest.mark.parametrize(
    ("content", "secret"),
    [(b"abc", "abc"), (b"abc\n", "abc"), (b"abc\r\n", "abc"), (b"abc\n\n", "abc\n"), (b" abc ", " abc ")],
)
def test_the_last_line_end_of_a_file_is_no_part_of_the_secret(tmp_path: Path, content: bytes, secret: str) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    assert read_secret("password", None, str(file)) == secret


def test_no_setting_is_no_secret() -> None:
    assert read_secret("password", None, None) is None


def test_what_is_wrong_with_a_secret_names_its_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMPTY", " \n")
    monkeypatch.delenv("ABSENT", raising=False)
    (tmp_path / "long").write_bytes(b"x" * 100_000)
    (tmp_path / "binary").write_bytes(b"hush\xff")
    cases = [
        (("ABSENT", None), "password_env: there is no such variable in the environment"),
        (("EMPTY", None), "password_env: is empty"),
        (("EMPTY", "file"), "password_env: cannot stand beside password_file"),
        ((None, str(tmp_path / "none")), "password_file: cannot be read (No such file or directory)"),
        ((None, str(tmp_path)), "password_file: cannot be read (Is a directory)"),
        ((None, str(tmp_path / "long")), "password_file: is longer than a secret is"),
        ((None, str(tmp_path / "binary")), "password_file: cannot be read (it is no text)"),
        ((None, "a\0b"), "password_file: cannot be read (it is no text)"),
    ]
    for (env, file), told in cases:
        with pytest.raises(TargetError) as caught:
            read_secret("password", env, file)
        assert str(caught.value) == told
        assert caught.value.__cause__ is None
