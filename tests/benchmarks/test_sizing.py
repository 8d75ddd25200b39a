"""The sizing table: the page has the rows and columns that the command prints, and the command still runs."""

import re
from pathlib import Path

import pytest
from benchmarks.sizing import COLUMNS, MILLION, ROWS, Sized, main, table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "sizing.md"
SIZED = Sized(2.0, 120.4, 3.2, 1.0, 800.0, 500.0, 1.5, 9.0)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_page_has_the_table_that_the_command_prints() -> None:
    text = PAGE.read_text(encoding="utf-8")
    between = re.search(r"<!-- sizing -->\n(.*?)\n<!-- end of sizing -->", text, re.DOTALL)
    assert between is not None, "the table stands between <!-- sizing --> and <!-- end of sizing -->"
    shown = [cells(line) for line in between[1].splitlines() if line.startswith("|")]
    printed = [cells(line) for line in table([(row, SIZED) for row in (*ROWS, MILLION)]).splitlines()]
    assert shown[:2] == printed[:2]
    assert [line[0] for line in shown[2:]] == [line[0] for line in printed[2:]]
    assert {len(line) for line in shown} == {1 + len(COLUMNS)}


def test_every_column_is_explained() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for column in COLUMNS:
        assert f"**{column}**" in text


def test_a_rate_that_no_step_sustained_is_told_as_none() -> None:
    broken = Sized(2.0, 120.4, 3.2, 1.0, 0.0, 500.0, 1.5, 9.0)
    assert "| none |" in table([(ROWS[0], broken)])


def test_the_smoke_run_measures_a_network(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--quick", "--rows", "4"])
    shown = capsys.readouterr().out
    found = cells(next(line for line in shown.splitlines() if line.startswith("| 2,000 dealers")))
    start, memory, disk, imported, _, leads, p50, p99 = found[1:]
    assert float(start) > 0
    assert float(memory) > 20
    assert float(disk) >= 0
    assert float(imported) > 0
    assert float(leads) > 0
    assert 0 < float(p50) <= float(p99)
    assert re.search(r"Measured on \d+ processors \(.+\), .+, Python 3\.", shown)
