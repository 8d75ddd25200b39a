"""`forecourt vehicle`."""

from tests.cli.shopping import printed, run

VIN = "1G1FY6SW1NA000493"


def test_a_vehicle_is_shown_in_full(demo: str) -> None:
    lines = run("vehicle", demo, VIN).stdout.splitlines()
    assert lines[:3] == ["vehicle\t2022 Chevrolet Bolt EUV Premier", "price\t$21,380", "mileage\t52,586 mi"]
    assert "fees\tDealer preparation and documentation $1,790" in lines
    assert "electric_range_mi\t247 mi" in lines


def test_it_is_found_by_each_of_its_names(demo: str) -> None:
    found = printed("vehicle", demo, VIN, "--json")
    assert printed("vehicle", demo, "--stock", found["stock"], "--json") == found
    assert printed("vehicle", demo, "--id", found["vehicle_id"], "--json") == found
    assert run("vehicle", demo).exit_code == 2


def test_a_sold_car_is_told_apart_from_one_that_never_was(demo: str) -> None:
    gone = run("vehicle", demo, "5YFB4MBE3RM000012")
    assert gone.exit_code == 1
    assert gone.stderr.splitlines()[0] == "VEHICLE_UNAVAILABLE: This vehicle can no longer be offered."
    assert "Refresh the search" in gone.stderr
    assert run("vehicle", demo, "1G1FY6SW1NA999999").stderr.startswith("VEHICLE_NOT_FOUND")
