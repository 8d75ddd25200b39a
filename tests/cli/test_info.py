"""`forecourt info`."""

from tests.cli.shopping import printed, run


def test_a_dealer_is_told_with_its_rooftops(demo: str) -> None:
    lines = run("info", demo).stdout.splitlines()
    assert lines[0] == "dealer\tDemo Auto Group"
    assert f"speaks\tAAP 3.1 over a2a at {demo}/a2a" in lines
    assert "rooftop\tDemo Toyota San Francisco" in lines
    assert "fees\tDealer preparation and documentation $1,790" in lines


def test_json_is_the_data_of_the_answer(demo: str) -> None:
    assert printed("info", demo, "--json")["dealer_id"] == "demo-auto-group"


def test_a_contract_can_be_insisted_on(demo: str) -> None:
    assert f"speaks\tAAP 1.1 over a2a at {demo}/v1.1/a2a" in run("info", demo, "--contract", "1.1").stdout
    refused = run("info", demo, "--contract", "1.2")
    assert refused.exit_code == 1
    assert "contract 1.2 is not offered: the dealer offers 3.1" in refused.stderr
    assert run("info", demo, "--contract", "9").exit_code == 2
    assert run("info", demo, "--binding", "smoke").exit_code == 2
