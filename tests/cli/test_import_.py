"""`forecourt import`: a report and status 0, or one clear line and status 1 or 2; never a traceback."""

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.server.feed_server import Answer, feed_server

from forecourt.cli import main

STOCK = "stock,type,make,model,price\n" + "".join(f"S{number},Used,Honda,Civic,9000\n" for number in range(4))
COMMAND = "from forecourt.cli import main; main()"


@pytest.fixture
def config(tmp_path: Path) -> str:
    """A configuration with a seller of one rooftop and another of two."""
    for name, rooftops in (("small", ["Main"]), ("group", ["North", "South"])):
        profile = {"name": name, "rooftops": [{"name": rooftop} for rooftop in rooftops]}
        (tmp_path / f"{name}.json").write_text(json.dumps(profile))
    dealers = "".join(f'[[dealers]]\nid = "{name}"\nprofile = "{name}.json"\n' for name in ("small", "group"))
    (tmp_path / "stock.csv").write_text(STOCK)
    feed = '[[feeds]]\nsource = "named.csv"\ndealer = "small"\ncolumns = { model = "what" }\n'
    path = tmp_path / "forecourt.toml"
    path.write_text(f'data = "data"\n{dealers}{feed}')
    return str(path)


def run(*arguments: str, stdin: str | None = None, **environment: str) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(main, ["import", *arguments], input=stdin, env=environment)


def imported(config: str, *arguments: str, stdin: str | None = None) -> dict[str, Any]:
    """Import for the small dealer and return the report."""
    result = run(*arguments, "--dealer", "small", "--config", config, "--json", stdin=stdin)
    assert result.exit_code == 0, result.output
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def line_of(result: Result, status: int) -> str:
    """Return the one line that says what is wrong."""
    assert result.exit_code == status, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    lines = [line for line in result.stderr.splitlines() if line.startswith(("forecourt: ", "main import: "))]
    assert len(lines) == 1, result.stderr
    return lines[0]


def test_progress_is_shown_on_a_terminal_and_nowhere_else(config: str, tmp_path: Path) -> None:
    path = tmp_path / "stock.csv"
    path.write_text(STOCK + "".join(f"S{number},Used,Honda,Civic,9000\n" for number in range(4, 20_000)))
    command = [sys.executable, "-c", COMMAND, "import", str(path), "--dealer", "small", "--config", config]
    terminal, end = pty.openpty()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=end, env=os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    ) as process:
        os.close(end)
        shown = b""
        # Linux ends a terminal that nobody writes to any more with an error, other systems with nothing.
        with contextlib.suppress(OSError):
            while part := os.read(terminal, 4096):
                shown += part
        os.close(terminal)
        assert process.stdout is not None
        report = process.stdout.read()
    assert process.returncode == 0
    assert b"Importing" in shown
    # It ends at the size of the file, and takes itself away: the last thing is to erase its line.
    kilobytes = f"{path.stat().st_size / 1000:.1f}".encode()
    assert kilobytes + b"/" + kilobytes + b" kB" in shown
    assert shown.rstrip().endswith(b"\x1b[2K")
    assert re.search(rb"imported +20000\n", report)
    assert b"\x1b" not in report
    piped = subprocess.run(command, capture_output=True, check=True)
    assert piped.stderr == b""
    assert re.search(rb"unchanged +20000\n", piped.stdout)


def test_a_file_is_imported_and_the_report_is_lines_for_people(config: str, tmp_path: Path) -> None:
    result = run(str(tmp_path / "stock.csv"), "--dealer", "small", "--config", config)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [" ".join(line.split()) for line in lines[:3]] == ["rows read 4", "imported 4", "added 4"]
    assert "\x1b" not in result.output
    assert result.stderr == ""


def test_the_report_is_one_object_where_that_is_asked_for(config: str, tmp_path: Path) -> None:
    report = imported(config, str(tmp_path / "stock.csv"))
    assert report["source"] == "stock.csv"
    assert {name: report[name] for name in ("dealer_id", "outcome", "rows", "added", "removed")} == {
        "dealer_id": "small",
        "outcome": "imported",
        "rows": 4,
        "added": 4,
        "removed": 0,
    }
    again = imported(config, str(tmp_path / "stock.csv"))
    assert (again["added"], again["unchanged"]) == (0, 4)


def test_an_address_that_is_not_fetched_is_not_taken_for_a_file(config: str) -> None:
    line = line_of(run("ftp://feeds.example.com/stock.csv", "--dealer", "small", "--config", config), 1)
    assert line == "forecourt: stock.csv was not imported: only http and https addresses are fetched"


def test_standard_input_and_addresses_are_sources_too(config: str) -> None:
    assert imported(config, "-", stdin=STOCK)["source"] == "standard input"
    with feed_server() as web:
        web.answers["/stock.csv"] = Answer(STOCK.encode())
        report = imported(config, web.address("/stock.csv?token=abc", "sam:secret@"))
        assert report["unchanged"] == 4
        assert report["source"] == f"http://127.0.0.1:{web.port}/stock.csv?…"
        result = run(web.address("/gone.csv"), "--dealer", "small", "--config", config)
        assert "answered with status 404" in line_of(result, 1)


def test_a_dry_run_changes_nothing_and_says_so(config: str, tmp_path: Path) -> None:
    assert imported(config, str(tmp_path / "stock.csv"), "--dry-run")["outcome"] == "rehearsed"
    result = run(str(tmp_path / "stock.csv"), "--dealer", "small", "--config", config, "--dry-run")
    assert "nothing was changed" in result.stdout
    assert imported(config, str(tmp_path / "stock.csv"))["added"] == 4


def test_a_feed_that_drops_most_of_the_stock_is_refused_unless_that_is_allowed(config: str, tmp_path: Path) -> None:
    imported(config, str(tmp_path / "stock.csv"))
    small = STOCK.split("S1")[0]
    for arguments in ((), ("--dry-run",)):
        result = run("-", "--dealer", "small", "--config", config, "--json", *arguments, stdin=small)
        assert "drops 3 of 4 vehicles" in line_of(result, 1)
        report = json.loads(result.stdout)
        assert (report["outcome"], report["rows"], report["removed"]) == ("failed", 1, 3)
    assert imported(config, "-", "--allow-shrink", stdin=small)["removed"] == 3


def test_columns_are_mapped_by_the_call_and_by_the_configuration(config: str, tmp_path: Path) -> None:
    odd = STOCK.replace("model", "what").replace("make", "who")
    assert imported(config, "-", "--map", "model=what", "--map", "make=who", stdin=odd)["imported"] == 4
    (tmp_path / "named.csv").write_text(odd)
    assert imported(config, str(tmp_path / "named.csv"), "--map", "make=who")["imported"] == 4


def test_a_rooftop_is_named_by_the_call(config: str) -> None:
    for rooftop in ("North", "South"):
        result = run("-", "--dealer", "group", "--rooftop", rooftop, "--config", config, "--json", stdin=STOCK)
        assert json.loads(result.stdout)["added"] == 4
    refused = run("-", "--dealer", "group", "--config", config, "--json", stdin=STOCK)
    assert "leaves no vehicle" in line_of(refused, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing argument 'SOURCE'"),
        (("stock.csv", "--dealer", "other"), "there is no seller 'other'"),
        (("stock.csv",), "there are several sellers"),
        (("stock.csv", "--dealer", "group", "--rooftop", "West"), "the seller has no 'West'; it has 'North', 'South'"),
        (("stock.csv", "--dealer", "small", "--map", "model"), "--map model: write it as FIELD=COLUMN"),
        (("stock.csv", "--dealer", "small", "--map", "colour=x"), "no such field: colour"),
        (("stock.csv", "--no-such-option"), "--no-such-option"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(config: str, arguments: tuple[str, ...], said: str) -> None:
    assert said in line_of(run(*arguments, FORECOURT_CONFIG=config), 2)


def test_without_a_configuration_there_is_nobody_to_import_for(tmp_path: Path) -> None:
    result = run("stock.csv", "--data", str(tmp_path / "data"), FORECOURT_CONFIG="")
    assert "[dealer]" in line_of(result, 2)
    assert "--config" in line_of(result, 2)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("content", "said"), [(None, "cannot be opened"), (b"", "the file is empty"), (b"%PDF-1.7", "PDF")]
)
def test_a_file_that_is_no_feed_is_one_line_and_status_1(
    config: str, tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "feed.csv"
    if content is not None:
        path.write_bytes(content)
    line = line_of(run(str(path), "--dealer", "small", "--config", config), 1)
    assert line.startswith("forecourt: feed.csv was not imported: ")
    assert said in line


def test_names_of_columns_cannot_steer_a_terminal(config: str) -> None:
    result = run("-", "--dealer", "small", "--config", config, stdin=STOCK.replace("price", "\x1b[31mprice of it"))
    assert result.exit_code == 0
    assert "price of it" in result.stdout
    assert "\x1b" not in result.output


def test_a_pipe_gets_neither_bar_nor_colours(config: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", COMMAND, "import", "-", "--dealer", "small", "--config", config, "--json"]
    done = subprocess.run(command, input=STOCK.encode(), capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["imported"] == 4
