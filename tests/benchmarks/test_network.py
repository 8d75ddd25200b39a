"""The networks that benchmarks make: whose vehicle is which."""

import pytest
from benchmarks.network import profile_of, rooftops_of, share_of


@pytest.mark.parametrize(("sellers", "stock"), [(1, 7), (3, 10), (20, 10_000), (7, 7)])
def test_every_vehicle_is_one_sellers(sellers: int, stock: int) -> None:
    shares = [share_of(sellers, stock, number) for number in range(sellers)]
    assert [place for share in shares for place in share] == list(range(stock))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_sellers_have_rooftops_of_their_own() -> None:
    one, other = profile_of("dealer-0001"), profile_of("dealer-0002")
    assert [rooftop["name"] for rooftop in one["rooftops"]] == rooftops_of("dealer-0001")
    assert not set(rooftops_of("dealer-0001")) & set(rooftops_of("dealer-0002"))
    assert one["name"] != other["name"]
