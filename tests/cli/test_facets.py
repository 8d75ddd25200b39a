"""`forecourt facets`."""

from tests.cli.shopping import printed, run


def test_a_stock_is_counted_under_filters(demo: str) -> None:
    lines = run("facets", demo, "--fuel", "bev", "--condition", "used", "--condition", "cpo", "--top", "2").stdout
    assert "makes\tTesla\t20\n" in lines
    assert "makes\t… 8 more\t\n" in lines
    assert "price_range\t$14,389 to $73,390\t\n" in lines
    assert "electric_range_mi_range\t176 mi to 363 mi\t" in lines


def test_json_is_the_data_of_the_answer(demo: str) -> None:
    assert printed("facets", demo, "--fuel", "bev", "--json")["makes"][0] == {"value": "Tesla", "count": 20}


def test_nothing_is_said_to_be_nothing(demo: str) -> None:
    assert run("facets", demo, "--make", "Nobody").stdout == "nothing matches\n"
