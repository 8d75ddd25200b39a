"""`forecourt init` writes files that `serve` accepts as they are, with every key that there is."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import pytest
from click.testing import CliRunner, Result

from forecourt.cli import main
from forecourt.server import Config, create_app, load


def run(*arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, arguments, env={"FORECOURT_CONFIG": ""})


def keys(kind: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield every key of a configuration, without the numbers of lists."""
    for field in msgspec.structs.fields(kind):
        # The keys of a table with free names are its owner's.
        arms = () if get_origin(field.type) is dict else get_args(field.type)
        inner = [arm for arm in (field.type, *arms) if get_origin(arm) is None]
        tables = [arm for arm in inner if isinstance(arm, type) and issubclass(arm, msgspec.Struct)]
        if tables:
            yield from keys(tables[0], (*path, field.encode_name))
        else:
            yield (*path, field.encode_name)


def test_the_files_are_accepted_as_they_are(tmp_path: Path) -> None:
    result = run("init", str(tmp_path / "new" / "place"))
    assert result.exit_code == 0
    config = load(tmp_path / "new" / "place" / "forecourt.toml", environment={})
    assert list(create_app(config).deployment.sellers) == ["example-motors"]
    assert config.data == str(tmp_path / "new" / "place" / "data")


def test_what_is_commented_out_is_right_too_and_no_key_is_left_out(tmp_path: Path) -> None:
    assert run("init", str(tmp_path)).exit_code == 0
    text = (tmp_path / "forecourt.toml").read_text()
    shown = re.sub(r"^# (?=\[|[a-z_]+ = )", "", text, flags=re.MULTILINE)
    table = tomllib.loads(shown)
    for path in keys(Config):
        place: Any = table
        for name in path:
            place = place[0] if isinstance(place, list) else place
            assert name in place, ".".join(path)
            place = place[name]
    table.pop("dealers")
    for name in ("store",):
        table.pop(name)
    table["feeds"][0]["source"] = "stock.csv"
    config = msgspec.convert(table, Config)
    assert config.server.port == Config().server.port
    assert config.appointments.notice_minutes == Config().appointments.notice_minutes


@pytest.mark.parametrize("name", ["forecourt.toml", "dealer.json"])
def test_what_is_there_stays_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    result = run("init", str(tmp_path))
    assert result.exit_code == 1
    assert f"{name} is there already; nothing was written" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_a_place_that_is_no_folder_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("init", str(tmp_path / "file" / "inside"))
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
