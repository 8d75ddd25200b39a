"""`forecourt search`."""

from pathlib import Path

import pytest
from tests.cli.shopping import in_a_terminal, printed, run
from tests.client import hostile as acts
from tests.client.hostile import hostile

HONDAS = ("--make", "Honda", "--price-max", "30000", "--sort", "price")


def test_a_table_in_a_pipe_is_lines_with_tabs(demo: str) -> None:
    result = run("search", demo, *HONDAS, "--limit", "2")
    lines = result.stdout.splitlines()
    assert lines[0].split("\t")[:3] == ["vin", "year", "make"]
    assert lines[1].split("\t")[6:8] == ["$10,194", "78,329 mi"]
    assert len(lines) == 3
    assert result.stderr.startswith("2 of 28 vehicles; go on with --cursor ")


def test_a_table_on_a_terminal_is_drawn(demo: str) -> None:
    status, shown = in_a_terminal("", "search", demo, *HONDAS, "--limit", "2")
    assert status == 0
    assert "$10,194" in shown
    assert "─" in shown
    assert "2 of 28 vehicles" in shown


def test_the_next_page_is_a_cursor_away(demo: str) -> None:
    first = printed("search", demo, *HONDAS, "--limit", "2", "--json")
    second = printed("search", demo, *HONDAS, "--limit", "2", "--cursor", first["next_cursor"], "--json")
    assert len({car["vin"] for car in (*first["vehicles"], *second["vehicles"])}) == 4
    skipped = printed("search", demo, *HONDAS, "--limit", "2", "--skip", "2", "--contract", "1.1", "--json")
    assert [car["vin"] for car in skipped["vehicles"]] == [car["vin"] for car in second["vehicles"]]


def test_every_page_can_be_walked(demo: str) -> None:
    every = printed("search", demo, *HONDAS, "--limit", "10", "--all", "--json")
    assert len(every) == 28
    assert all(car["price"] <= 30000 for car in every)
    result = run("search", demo, *HONDAS, "--all")
    assert len(result.stdout.splitlines()) == 29
    assert result.stderr == "28 vehicles\n"


def test_any_filter_can_be_given(demo: str) -> None:
    found = printed(
        "search", demo, "--filter", "electric_range_mi_min=240", "--filter", 'charge_port=["ccs1"]', "--json"
    )
    assert found["total"] > 0
    assert all(car["electric_range_mi"] >= 240 for car in found["vehicles"])
    by_code = printed("search", demo, "--feature", "heat_pump", "--query", "tesla", "--json")
    assert all("heat_pump" in car["feature_codes"] for car in by_code["vehicles"])


def test_a_mistake_is_told_with_what_to_do_and_status_1(demo: str) -> None:
    result = run("search", demo, "--filter", "mkae=Honda", "--filter", 'year_min="2022"')
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0].startswith("SCHEMA_VALIDATION_FAILED: filters.mkae is not a known field")
    assert "  /filters/year_min: must be an integer" in result.stderr.splitlines()
    assert "did you mean `make`?" in result.stderr
    as_json = printed("search", demo, "--filter", "mkae=Honda", "--json", status=1)
    assert as_json["code"] == "SCHEMA_VALIDATION_FAILED"


def test_nothing_is_said_to_be_nothing(demo: str) -> None:
    assert run("search", demo, "--make", "Nobody").stdout == "no vehicle matches\n"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("ftp://x",), 2, "the address of a dealer is"),
        (("http://127.0.0.1:9",), 1, "the dealer cannot be reached"),
        (("DEMO", "--skip", "5"), 2, "pages by cursor"),
        (("DEMO", "--all", "--cursor", "x"), 2, "--all begins at the beginning"),
        (("DEMO", "--filter", "x"), 2, "--filter is NAME=VALUE"),
        (("DEMO", "--header", "x"), 2, "--header is NAME:VALUE"),
        (("DEMO", "--header", "X-API-Key: k\u00fc"), 2, "--header is NAME:VALUE, in ASCII"),
        (("DEMO", "--header", "@/nowhere/key"), 2, "/nowhere/key cannot be read"),
        (("DEMO", "--contract", "1.1", "--dealer", "x"), 2, "has no dealer_id"),
        (("DEMO", "--binding", "pap"), 1, "PAP needs an identity"),
        (("DEMO", "--cursor", "made-up"), 1, "INVALID_CURSOR"),
    ],
)
def test_a_failure_is_one_line_and_its_status(demo: str, arguments: tuple[str, ...], status: int, said: str) -> None:
    result = run("search", *(demo if each == "DEMO" else each for each in arguments))
    assert result.exit_code == status
    assert said in result.stderr


def test_a_header_is_sent(demo: str) -> None:
    assert run("search", demo, "--header", "Authorization: Bearer x", "--limit", "1").exit_code == 0


def test_headers_are_taken_from_a_file_too(demo: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("X-API-Key: fck_example\n\nX-Other: 1\n")
    with hostile(demo) as server:
        assert run("search", server.url, "--header", f"@{keys}", "--limit", "1").exit_code == 0
        sent = server.posts[-1].everything.lower()
    assert b"x-api-key: fck_example\r\n" in sent
    assert b"x-other: 1\r\n" in sent


def test_where_credentials_are_wanted_it_says_how_to_give_them(demo: str) -> None:
    with hostile(demo, acts.say({}, "401 Unauthorized")) as server:
        result = run("search", server.url)
    assert result.exit_code == 1
    assert result.stderr == "forecourt: the dealer wants credentials (HTTP 401); give right ones with --header\n"


def test_before_contract_3_1_the_next_page_is_told_by_its_number(demo: str) -> None:
    result = run("search", demo, "--contract", "1.1", "--skip", "10", "--limit", "2")
    assert result.stderr == "2 of 554 vehicles; go on with --skip 12\n"
    assert run("search", demo, "--contract", "1.1", "--skip", "553").stderr == "1 of 554 vehicles\n"
