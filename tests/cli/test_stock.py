"""`forecourt stock`: what is in stock, for people, for programs, and in one clear line where there is none."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from forecourt.cli import main


def run(*arguments: str, stdin: str | None = None) -> Result:
    """Run a command in this process, without a configuration of the environment's."""
    return CliRunner().invoke(main, arguments, input=stdin, env={"FORECOURT_CONFIG": ""})


@pytest.fixture
def config(tmp_path: Path) -> str:
    """The configuration of a seller with three vehicles in stock."""
    (tmp_path / "dealer.json").write_text(json.dumps({"name": "Example", "rooftops": [{"name": "Main"}]}))
    path = tmp_path / "forecourt.toml"
    path.write_text('data = "data"\n[dealer]\nid = "example"\nprofile = "dealer.json"\n')
    feed = "stock,type,make,model,price,miles\n" + "".join(
        f"S{number},Used,Honda,Civic\x07,{number}9000,12345\n" for number in (2, 1, 3)
    )
    assert run("import", "-", "--config", str(path), stdin=feed).exit_code == 0
    return str(path)


def test_a_pipe_gets_one_line_a_listing_by_listing_id(config: str) -> None:
    header, *lines = run("stock", "--config", config).stdout.splitlines()
    assert header.split("\t") == ["id", "year", "make", "model", "trim", "condition", "price", "mileage", "rooftop"]
    assert [line.split("\t") for line in lines] == [
        [f"S{number}", "", "Honda", "Civic", "", "used", f"{number}9,000", "12,345", "Main"] for number in (1, 2, 3)
    ]


def test_a_program_gets_the_listings_as_they_are_stored(config: str) -> None:
    listings = json.loads(run("stock", "--config", config, "--json", "--limit", "2").stdout)
    assert [(each["vehicle_id"], each["dealer_id"], each["price"]) for each in listings] == [
        ("S1", "example", 19_000),
        ("S2", "example", 29_000),
    ]
    assert json.loads(run("stock", "--config", config, "--json", "--dealer", "example").stdout)[2]["price"] == 39_000


def test_a_seller_that_is_not_there_and_a_limit_that_is_none_are_wrong_usage(config: str) -> None:
    for arguments, said in ((("--dealer", "other"), "there is no seller 'other'"), (("--limit", "0"), "--limit")):
        result = run("stock", "--config", config, *arguments)
        assert result.exit_code == 2
        assert said in result.stderr.splitlines()[-1]


def test_nothing_in_stock_is_said_in_a_line(tmp_path: Path) -> None:
    assert run("stock", "--data", str(tmp_path / "data")).stdout == "nothing is in stock\n"
    assert json.loads(run("stock", "--data", str(tmp_path / "data"), "--json").stdout) == []


def test_a_database_that_cannot_be_opened_is_one_line_and_status_1(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("stock", "--data", str(tmp_path / "file" / "data"))
    assert result.exit_code == 1
    assert result.stderr.startswith("forecourt: the stock cannot be read: ")
