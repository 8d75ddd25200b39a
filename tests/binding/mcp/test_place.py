"""What is to be read at an endpoint besides tools: resources by their URIs, as contract and sellers have them."""

from typing import Any

import pytest
from tests.binding.mcp.talk import NETWORK, PLACE
from tests.contract.example_requests import FEATURES, FILTERS, VERSIONS, contract

from forecourt.binding.mcp.place import Resources

both = pytest.mark.parametrize("version", VERSIONS)


def _uris(resources: Resources) -> list[str]:
    return [resource["uri"] for resource in resources.listed()]


def test_one_sellers_place_has_its_profile() -> None:
    assert _uris(Resources(contract("3.1"), PLACE)) == [
        "aap://search/capabilities",
        "aap://features/vocabulary",
        "aap://dealer/profile",
    ]
    assert _uris(Resources(contract("1.1"), PLACE)) == ["aap://search/capabilities", "aap://dealer/profile"]


def test_a_networks_place_has_its_sellers_where_the_contract_names_them() -> None:
    newer, older = Resources(contract("3.1"), NETWORK), Resources(contract("1.1"), NETWORK)
    assert _uris(newer)[-1] == "aap://dealers"
    assert [template["uriTemplate"] for template in newer.templates()] == ["aap://dealers/{dealer_id}/profile"]
    assert newer.content("aap://dealers") == {
        "dealers": [{"dealer_id": "north", "name": "North Cars"}, {"dealer_id": "south", "name": "South Cars"}]
    }
    assert _uris(older) == ["aap://search/capabilities"]
    assert older.templates() == []
    assert older.content("aap://dealers") is None


def test_a_profile_is_what_a_skill_answers() -> None:
    one, many = Resources(contract("3.1"), PLACE), Resources(contract("3.1"), NETWORK)
    asked = {"type": "dealer.information.request"}
    assert one.request("aap://dealer/profile") == asked
    assert many.request("aap://dealers/south/profile") == {**asked, "dealer_id": "south"}


@pytest.mark.parametrize(
    "uri",
    [
        "", "aap://", "aap://dealer/profile", "aap://dealers/east/profile", "aap://dealers//profile",
        "aap://dealers/south", "aap://dealers/south/profile/", "aap://dealers/north/south/profile",
        "aap://dealers/" + "x" * 200 + "/profile", "aap://dealers/profile",
    ],
)  # fmt: skip
def test_other_addresses_lead_nowhere_on_a_network(uri: str) -> None:
    resources = Resources(contract("3.1"), NETWORK)
    assert resources.request(uri) is None
    assert resources.content(uri) is None


@pytest.mark.parametrize(
    "uri", ["aap://dealers/demo/profile", "aap://dealers", "aap://features", "AAP://dealer/profile"]
)
def test_other_addresses_lead_nowhere_at_one_seller(uri: str) -> None:
    resources = Resources(contract("3.1"), PLACE)
    assert resources.request(uri) is None
    assert resources.content(uri) is None


def test_the_capabilities_are_the_published_ones() -> None:
    made = contract("3.1", filters=("make", "price_max"), feature_codes=("sunroof",), free_text=False)
    # A feature filter that is off leaves no code to filter by.
    expected = {**made.offer.capabilities.to_payload(), "feature_codes": ["sunroof"]}
    assert Resources(made, PLACE).content("aap://search/capabilities") == expected


def test_the_older_contract_shows_what_it_knows_itself() -> None:
    shown: Any = Resources(contract("1.1"), PLACE).content("aap://search/capabilities")
    assert set(shown["filters"]) < set(FILTERS)
    assert not [name for name in shown["filters"] if name.startswith(("features_", "electric_", "vehicle_type"))]
    assert shown["feature_codes"] == []


def test_the_vocabulary_has_a_label_for_every_code_that_is_offered() -> None:
    assert Resources(contract("3.1"), PLACE).content("aap://features/vocabulary") == {
        "features": [{"code": code, "label": code.replace("_", " ")} for code in FEATURES]
    }
    assert Resources(contract("1.1"), PLACE).content("aap://features/vocabulary") is None
    assert Resources(contract("3.1", feature_codes=()), PLACE).content("aap://features/vocabulary") is None


@both
def test_every_resource_is_described_and_says_its_type(version: str) -> None:
    for resource in Resources(contract(version), PLACE).listed():
        assert resource["mimeType"] == "application/json"
        assert resource["title"]
        assert resource["description"]


def test_the_server_says_whose_it_is() -> None:
    told = PLACE.implementation()
    assert (told["name"], told["title"], told["version"]) == ("forecourt", "Demo Cars", "1.2.3")
