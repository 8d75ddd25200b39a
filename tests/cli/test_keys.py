"""`forecourt keys`: a key is shown once, listed without what it is, and revoked once."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from forecourt.cli import main


def run(folder: Path, *arguments: str) -> Result:
    """Run a command on the database of a folder."""
    return CliRunner().invoke(main, ["keys", *arguments, "--data", str(folder / "data")], env={"FORECOURT_CONFIG": ""})


def test_a_key_is_made_listed_and_revoked(tmp_path: Path) -> None:
    assert run(tmp_path, "list").stdout == "there are no keys\n"
    made = run(tmp_path, "create", "Example\x07 agent", "--seller", "a", "--requests", "5")
    key = made.stdout.strip()
    assert made.exit_code == 0
    assert "not shown again" in made.stderr
    key_id, _, secret = key.partition(".")
    listed = run(tmp_path, "list").stdout
    assert secret not in listed
    assert listed.splitlines()[1].split("\t")[:4] == [key_id, "Example\ufffd agent", "a", "5 in 60 s"]
    assert run(tmp_path, "revoke", key_id).stdout == "revoked\n"
    again = run(tmp_path, "revoke", key_id)
    assert again.exit_code == 1
    assert again.stderr == "forecourt: there is no such key that still opens anything\n"
    (shown,) = json.loads(run(tmp_path, "list", "--json").stdout)
    assert shown["id"] == key_id
    assert shown["revoked_at"] is not None


def test_a_program_gets_the_key_with_what_it_opens(tmp_path: Path) -> None:
    made = json.loads(run(tmp_path, "create", "x", "--json").stdout)
    assert made["key"].startswith(made["id"])
    assert (made["sellers"], made["requests"], made["revoked_at"]) == (None, None, None)


def test_a_whole_key_can_be_revoked_by_pasting_it(tmp_path: Path) -> None:
    key = run(tmp_path, "create", "x").stdout.strip()
    assert run(tmp_path, "revoke", key).exit_code == 0


def test_a_seller_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "dealer.json").write_text(json.dumps({"name": "Example", "rooftops": [{"name": "Main"}]}))
    config = tmp_path / "forecourt.toml"
    config.write_text('data = "data"\n[dealer]\nid = "own"\nprofile = "dealer.json"\n')
    result = run(tmp_path, "create", "x", "--seller", "other", "--config", str(config))
    assert result.exit_code == 2
    assert "there is no seller 'other'" in result.stderr


def test_a_database_that_cannot_be_reached_is_one_line_and_status_1(tmp_path: Path) -> None:
    (tmp_path / "data" / "forecourt.db").mkdir(parents=True)
    result = run(tmp_path, "list")
    assert result.exit_code == 1
    assert result.stderr.startswith("forecourt: the keys cannot be reached: ")
    assert len(result.stderr.splitlines()) == 1
