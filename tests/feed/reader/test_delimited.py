"""Cells with a delimiter between them, as `csv` of the standard library reads them (RFC 4180)."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.feed.reading import read

from forecourt.feed import FeedError
from forecourt.feed.reader.delimited import split_line


@given(st.text('ab", ;\t', max_size=24), st.sampled_from(",;\t"))
def test_the_short_way_reads_a_line_as_csv_does(line: str, delimiter: str) -> None:
    cells = split_line(line + "\n", delimiter)
    if cells is not None and line:
        (expected,) = csv.reader([line + "\n"], delimiter=delimiter, skipinitialspace=True)
        # Spaces around a cell are taken off later in any case.
        assert [cell.strip() for cell in cells] == [cell.strip() for cell in expected]


@given(st.lists(st.text("ab ;", max_size=5), min_size=1, max_size=6), st.booleans())
def test_ordinary_lines_take_the_short_way(cells: list[str], quoted: bool) -> None:
    written = [f'"{cell}"' for cell in cells] if quoted else cells
    assert split_line(",".join(written) + "\n", ",") == cells


def test_a_title_above_the_header_is_passed_over() -> None:
    reading = read("Inventory of North Motors\nsep=;\n\nstock;make;model;type\nS1;Honda;Fit;Used\n")
    assert reading.only["stock"] == "S1"


def test_empty_cells_beyond_the_last_column_cost_nothing() -> None:
    reading = read("stock,make,model,type\nS1,Honda,Fit,Used,,\n")
    assert reading.only["stock"] == "S1"
    assert reading.findings() == [("repaired", 2, "")]


def test_blank_lines_are_no_rows() -> None:
    reading = read("stock,make,model,type\n\nS1,Honda,Fit,Used\n\n,,,\n")
    assert (reading.report.rows, reading.findings()) == (1, [])


def test_a_quotation_mark_that_is_open_at_the_end_costs_its_own_row_only() -> None:
    reading = read('stock,make,model,type\nS1,Honda,Fit,Used\nS2,Honda,"Fit,Used\nS3,Honda,Fit,Used\n')
    assert [vehicle["stock"] for vehicle in reading.vehicles] == ["S1", "S3"]
    assert reading.findings() == [("refused", 3, "")]


def test_a_file_without_known_columns_is_no_feed() -> None:
    with pytest.raises(FeedError, match="known columns"):
        read("a,b,c\n1,2,3\n")


def test_a_line_without_end_is_no_feed() -> None:
    with pytest.raises(FeedError, match="longer"):
        read("stock,make,model,type\n" + "x" * (9 << 20))
