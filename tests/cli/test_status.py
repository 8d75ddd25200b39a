"""`forecourt status`: readable for one dealer and for a network, for cron, for programs; it never changes anything."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result
from tests.server_process import ServerProcess

from forecourt.cli import main

PROFILE: Final = {"name": "Example\x1b[2J", "rooftops": [{"name": "Main", "timezone": "America/Chicago"}]}
STOCK: Final = "stock,type,make,model,price\nS1,Used,Honda,Civic,9000\nS2,Used,Honda,Fit,8000\n"


def run(folder: Path, *arguments: str) -> Result:
    """Run `forecourt status` in this process."""
    config = folder / "forecourt.toml"
    environment = {"FORECOURT_CONFIG": str(config) if config.exists() else ""}
    return CliRunner().invoke(main, ["status", "--data", str(folder / "data"), *arguments], env=environment)


def imported(folder: Path, text: str) -> Result:
    """Import a feed by hand."""
    (folder / "stock.csv").write_text(text)
    arguments = ["import", str(folder / "stock.csv"), "--data", str(folder / "data")]
    return CliRunner().invoke(main, arguments, env={"FORECOURT_CONFIG": str(folder / "forecourt.toml")})


@pytest.fixture
def dealer(tmp_path: Path) -> Path:
    """A seller without a database yet."""
    (tmp_path / "dealer.json").write_text(json.dumps(PROFILE))
    (tmp_path / "forecourt.toml").write_text('[dealer]\nid = "own"\nprofile = "dealer.json"\n')
    return tmp_path


def test_without_a_database_it_says_so_and_makes_none(dealer: Path) -> None:
    result = run(dealer)
    place = dealer / "data" / "forecourt.db"
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"forecourt: there is no database yet at {place}\n"
    assert not place.parent.exists()


def test_what_was_imported_by_hand_is_shown_and_a_failure_needs_attention(dealer: Path) -> None:
    assert imported(dealer, STOCK).exit_code == 0
    text = run(dealer).stdout
    assert ": well\n" in text
    assert "stock       2 listings, 1 rooftop\n" in text
    assert "\x1b" not in text
    row = next(line for line in text.splitlines() if line.startswith("Main  ")).split()
    assert (row[1], row[-2:]) == ("2", ["0", "America/Chicago"])
    assert "stock.csv (by hand)" in text
    assert run(dealer, "--check").stdout == "well\n"
    assert imported(dealer, STOCK.splitlines()[0] + "\n").exit_code == 1
    result = run(dealer, "--check")
    assert result.exit_code == 1
    assert result.stdout.startswith("own, feed stock.csv: ")
    # The last good import still says how old the stock is, and without --check the command has done what it should.
    found = json.loads(run(dealer, "--json").stdout)
    assert found["dealers"][0]["rooftops"][0]["age_seconds"] < 600
    assert run(dealer).exit_code == 0
    assert json.loads(run(dealer, "--json", "--check").stdout)["attention"] == found["attention"]
    assert run(dealer, "--json", "--check").exit_code == 1


def test_a_rehearsal_is_no_import(dealer: Path) -> None:
    assert imported(dealer, STOCK).exit_code == 0
    before = json.loads(run(dealer, "--json").stdout)["dealers"]
    environment = {"FORECOURT_CONFIG": str(dealer / "forecourt.toml")}
    arguments = ["import", str(dealer / "stock.csv"), "--data", str(dealer / "data"), "--dry-run"]
    assert CliRunner().invoke(main, arguments, env=environment).exit_code == 0
    after = json.loads(run(dealer, "--json").stdout)["dealers"]
    assert [each["checked_at"] for each in after[0]["feeds"]] == [each["checked_at"] for each in before[0]["feeds"]]


def test_a_network_is_shown_by_its_totals_and_its_stalest(tmp_path: Path) -> None:
    sellers = "".join(f'[[dealers]]\nid = "d{number}"\nprofile = "dealer.json"\n' for number in range(200))
    (tmp_path / "dealer.json").write_text(json.dumps(PROFILE))
    (tmp_path / "forecourt.toml").write_text(sellers)
    (tmp_path / "data").mkdir()
    assert (
        CliRunner()
        .invoke(main, ["keys", "list", "--data", str(tmp_path / "data")], env={"FORECOURT_CONFIG": ""})
        .exit_code
        == 0
    )  # which makes the database
    text = run(tmp_path, "--stalest", "5").stdout
    lines = text.splitlines()
    assert lines[0].endswith(": 200 things to look at")
    assert "  and 180 more: forecourt status --check lists all" in lines
    assert "stock       0 listings, 200 sellers, 200 rooftops" in lines
    assert len(lines) < 50
    assert len(run(tmp_path, "--check").stdout.splitlines()) == 200
    assert run(tmp_path, "--check", "--dealer", "d7").stdout == "d7, Main: nothing is in stock\n"
    assert len(json.loads(run(tmp_path, "--json").stdout)["dealers"]) == 200
    wrong = run(tmp_path, "--dealer", "other")
    assert (wrong.exit_code, "there is no seller 'other'" in wrong.stderr) == (2, True)


def test_it_works_beside_a_server_and_on_what_a_killed_one_left(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    try:
        server.wait()
        command = [sys.executable, "-m", "forecourt.cli", "status", "--data", str(tmp_path / "data")]
        beside = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path)
        assert ": well\n" in beside.stdout
        assert "listings, 2 rooftops" in beside.stdout
    finally:
        server.kill()
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    result = CliRunner().invoke(main, ["status", "--data", str(tmp_path / "copy")], env={"FORECOURT_CONFIG": ""})
    assert result.exit_code == 0
    assert "listings, 2 rooftops" in result.stdout


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "forecourt.db").write_bytes(b"no database" * 1000)
    result = run(tmp_path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "forecourt: the database does not answer: the database refused: SQLITE_NOTADB\n"
