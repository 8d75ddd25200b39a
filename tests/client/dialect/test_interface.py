"""What requests look like in every version; the product's own contracts accept them."""

from typing import Any

import pytest

from forecourt.client.dialect import dialect, versions
from forecourt.contract import Offer, contract_class
from forecourt.model import FLAG_FILTERS, MAX_FILTERS, MIN_FILTERS, SORT_FIELDS, TERM_FILTERS, Capabilities

FILTERS = {"make": "Honda", "condition": ("used", "cpo"), "price_max": 30000, "model": None, "query": "red"}


@pytest.mark.parametrize("version", ["1.1", "3.1"])
def test_what_is_written_is_what_the_contract_reads(version: str) -> None:
    names = (*TERM_FILTERS, *MIN_FILTERS, *MAX_FILTERS, *FLAG_FILTERS)
    contract = contract_class(version)(Offer(Capabilities(names, (), SORT_FIELDS), frozenset()))
    speaks = dialect(version)
    contract.read(speaks.search(FILTERS, "-price", 5, None, None, None))
    contract.read(speaks.request("dealer.information", {}))
    contract.read(speaks.request("inventory.facets", {"filters": speaks.filters(FILTERS)}))
    contract.read(speaks.request("inventory.vehicle", {"vin": "1G1FY6SW1NA000493", "stock": None}))
    consent: dict[str, Any] = {
        "granted_at": "2026-11-01T12:00:00Z",
        "allowed_channels": ["email"],
        "consent_text": "x",
        "scope": ["lead_submission"],
    }
    customer = {"first_name": "A", "last_name": "B", "email": "a@example.com"}
    contract.read(speaks.lead({"customer": customer, "consent": consent, "source_agent": {"name": "x"}}, "k", None))


def test_a_search_without_anything_is_only_its_type() -> None:
    for version in versions():
        assert dialect(version).search({}, None, None, None, None, None) == {"type": "inventory.search.request"}


def test_paging_is_that_of_the_version() -> None:
    assert dialect("1.2").search({}, None, 5, 10, None, None)["pagination"] == {"limit": 5, "skip": 10}
    assert dialect("3.1").search({}, None, 5, None, "c", "d")["pagination"] == {"limit": 5, "cursor": "c"}
    with pytest.raises(ValueError, match="skip does not exist"):
        dialect("3.1").search({}, None, None, 1, None, None)
    with pytest.raises(ValueError, match="has no cursors"):
        dialect("1.3").search({}, None, None, None, "c", None)


def test_a_seller_is_named_where_the_version_can() -> None:
    assert dialect("3.1").request("dealer.information", {}, "north")["dealer_id"] == "north"
    with pytest.raises(ValueError, match="has no dealer_id"):
        dialect("1.1").request("dealer.information", {}, "north")


def test_lists_are_lists_and_the_rest_is_left_alone() -> None:
    written = dialect("3.1").filters({**FILTERS, "features_all": "apple_carplay", "vin": "V", "rooftops": {"North"}})
    assert written == {
        "make": ["Honda"], "condition": ["used", "cpo"], "price_max": 30000, "query": "red", "vin": "V",
        "features_all": ["apple_carplay"], "rooftops": ["North"],
    }  # fmt: skip
