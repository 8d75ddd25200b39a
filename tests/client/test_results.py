"""Results are typed, patient and complete."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecourt.client.results import DealerInformation, Facets, Receipt, Record, SearchPage, Vehicle
from forecourt.contract.validation import SchemaSet


@pytest.mark.parametrize(
    ("file", "kind"), [("vehicle", Vehicle), ("facets", Facets), ("dealer-information", DealerInformation)]
)
def test_every_member_of_the_contract_has_its_attribute(file: str, kind: type[Record]) -> None:
    schema = json.loads(SchemaSet.load("3.1").text(f"{file}.schema.json"))
    assert schema["properties"].keys() <= kind.members()


def test_a_vehicle_is_named_and_found_again() -> None:
    car = Vehicle({"year": 2022, "make": "Honda", "model": "Civic", "vin": "V", "stock": "S", "trim": None})
    assert car.title == "2022 Honda Civic"
    assert car.reference == {"vin": "V", "stock": "S"}
    assert car["make"] == "Honda"
    assert "vin" in car
    assert "vehicle_id" not in car
    with pytest.raises(KeyError):
        car["vehicle_id"]
    assert car == Vehicle(dict(car.raw))
    assert car != Vehicle({})


@pytest.mark.parametrize(
    ("value", "read"),
    [(26780, 26780), (26780.0, 26780), (12.5, 12.5), (True, None), ("26780", None), (None, None), ([1], None)],
)
def test_an_amount_is_a_number_or_absent(value: Any, read: Any) -> None:
    price = Vehicle({"price": value}).price
    assert price == read
    assert type(price) is type(read)


def test_facets_that_are_not_known_yet_are_there_too() -> None:
    facets = Facets({"makes": [{"value": "Honda", "count": 2.0}, "x"], "wheels": [{"value": 4, "count": 1}],
                     "price_range": {"min": 1, "max": 2}, "depth_range": {"min": 3}})  # fmt: skip
    assert [(each.value, each.count) for each in facets.makes] == [("Honda", 2)]
    assert facets.counts()["wheels"][0].value == 4
    assert facets.ranges()["depth_range"].min == 3
    assert facets.price_range is not None
    assert facets.price_range.max == 2
    assert facets.mileage_range is None
    assert set(facets.extra) == {"wheels", "depth_range"}


def test_a_receipt_has_both_outcomes() -> None:
    data = {"lead_id": "l", "status": "received", "appointment": {"status": "rejected", "proposed_times": ["t", 5]}}
    receipt = Receipt(data, "k", "Thanks")
    assert (receipt.lead_id, receipt.key, receipt.message) == ("l", "k", "Thanks")
    assert receipt.appointment is not None
    assert (receipt.appointment.status, receipt.appointment.proposed_times) == ("rejected", ("t",))
    assert "l" not in repr(receipt).replace("lead_id", "").replace("Receipt", "").replace("status, appointment", "")


@given(
    st.dictionaries(
        st.sampled_from([*Vehicle.members(), *SearchPage.members(), *DealerInformation.members(), *Receipt.members()]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
            max_leaves=4,
        ),
    )
)
def test_whatever_came_every_attribute_can_be_read(raw: dict[str, Any]) -> None:
    for kind in (Vehicle, SearchPage, Facets, DealerInformation, Receipt):
        record = kind(raw)
        for name in kind.members():
            getattr(record, name)
        assert record.raw is raw
        assert repr(record)
