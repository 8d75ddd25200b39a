"""The shopper, the rooftop and the provider (ADF.md, "Rules for the mapping")."""

from typing import Any
from xml.etree import ElementTree

import pytest
from tests.lead.adf.sample import CALIFORNIA, CUSTOMER, SELLER

from forecourt.lead.adf.element import Element, document
from forecourt.lead.adf.party import customer_contact, provider, vendor


def read(element: Element) -> ElementTree.Element:
    """Return an element as it is read."""
    return ElementTree.fromstring(document(element))


def shown(element: ElementTree.Element) -> list[tuple[str, str | None, dict[str, str]]]:
    """Return the children with text and attributes."""
    return [(child.tag, child.text, child.attrib) for child in element]


def test_first_and_last_name_are_parts_of_their_own() -> None:
    assert shown(read(customer_contact(CUSTOMER)))[:3] == [
        ("name", "Ada", {"part": "first", "type": "individual"}),
        ("name", "Example", {"part": "last", "type": "individual"}),
        ("email", "ada@example.com", {}),
    ]


def test_a_blank_name_is_left_out_and_two_are_unknown() -> None:
    one = read(customer_contact({"first_name": " ", "last_name": "Example"}))
    assert shown(one) == [("name", "Example", {"part": "last", "type": "individual"})]
    none = read(customer_contact({"first_name": "", "last_name": "\x00"}))
    assert shown(none) == [("name", "Unknown", {"part": "full", "type": "individual"})]


@pytest.mark.parametrize(
    ("preferred", "kind", "mark"),
    [
        ("phone", "voice", "1"),
        ("sms", "cellphone", "1"),
        ("email", "voice", "0"),
        ("any", "voice", "0"),
        (None, "voice", "0"),
    ],
)
def test_the_phone_says_whether_it_is_preferred(preferred: str | None, kind: str, mark: str) -> None:
    customer = {**CUSTOMER, "preferred_contact": preferred}
    phone = read(customer_contact(customer)).find("phone")
    assert phone is not None
    assert (phone.text, phone.attrib) == ("+14155550123", {"type": kind, "preferredcontact": mark})


def test_an_address_has_numbered_lines_and_the_country_us_by_default() -> None:
    address = read(customer_contact(CUSTOMER)).find("address")
    assert address is not None
    assert shown(address) == [
        ("street", "320 Example Street", {"line": "1"}),
        ("street", "Apt 412", {"line": "2"}),
        ("city", "San Francisco", {}),
        ("regioncode", "CA", {}),
        ("postalcode", "94107", {}),
        ("country", "US", {}),
    ]


@pytest.mark.parametrize(
    ("address", "children"),
    [
        ({"address_line_2": "Suite 2"}, [("street", "Suite 2", {"line": "1"}), ("country", "US", {})]),
        ({"zip": "94107", "country": "CA"}, [("postalcode", "94107", {}), ("country", "CA", {})]),
        ({"zip": "94107", "country": " "}, [("postalcode", "94107", {}), ("country", "US", {})]),
    ],
)
def test_an_address_holds_what_is_given(address: dict[str, str], children: list[object]) -> None:
    found = read(customer_contact({**CUSTOMER, "address": address})).find("address")
    assert found is not None
    assert shown(found) == children


@pytest.mark.parametrize("address", [None, {}, {"city": " "}])
def test_an_empty_address_is_left_out(address: dict[str, str] | None) -> None:
    assert read(customer_contact({**CUSTOMER, "address": address})).find("address") is None


@pytest.mark.parametrize(
    ("department", "email", "phone"),
    [
        ("sales", "sales@demo-toyota.example.com", "+14155550100"),
        ("service", "service@demo-toyota.example.com", "+14155550101"),
    ],
)
def test_the_vendor_is_the_rooftop_with_the_contact_of_the_department(department: str, email: str, phone: str) -> None:
    found = read(vendor(SELLER.profile, SELLER.rooftop(CALIFORNIA), CALIFORNIA, department, "Forecourt"))
    assert found.findtext("vendorname") == found.findtext("contact/name") == CALIFORNIA
    assert found.findtext("url") == "https://demo-toyota.example.com"
    assert found.findtext("contact/email") == email
    assert found.findtext("contact/phone") == phone
    assert found.findtext("contact/address/regioncode") == "CA"


def test_without_a_channel_of_the_department_the_first_one_serves() -> None:
    rooftop: dict[str, Any] = {
        "emails": [{"value": " "}, {"value": "a@example.com"}, {"name": "Parts", "value": "b@example.com"}]
    }
    found = read(vendor({}, rooftop, "North", "sales", "Forecourt"))
    assert found.findtext("contact/email") == "a@example.com"
    assert found.find("contact/phone") is None


def test_a_rooftop_that_is_not_known_any_more_still_has_the_contact_that_adf_requires() -> None:
    found = read(vendor({"name": "Group", "dealer_id": "group-1"}, None, "Gone", "sales", "Forecourt"))
    assert [found.findtext(place) for place in ("id", "vendorname", "contact/name")] == ["group-1", "Gone", "Gone"]
    assert read(vendor({"name": "Group"}, None, None, "sales", "Forecourt")).findtext("vendorname") == "Group"


def test_the_provider_is_the_buyer_agent() -> None:
    found = read(provider({"name": "example-assistant", "url": "https://agent.example.com"}, None, None))
    assert shown(found) == [
        ("name", "example-assistant", {"part": "full", "type": "business"}),
        ("url", "https://agent.example.com", {}),
    ]
    assert read(provider({"name": " "}, None, None)).findtext("name") == "Unknown"


def test_a_network_is_the_provider_with_the_agent_as_its_service() -> None:
    agent = {"name": "example-assistant", "url": "https://agent.example.com"}
    assert shown(read(provider(agent, "Example Network", "https://network.example.com"))) == [
        ("name", "Example Network", {"part": "full", "type": "business"}),
        ("service", "example-assistant", {}),
        ("url", "https://network.example.com", {}),
    ]
    assert read(provider(agent, "Example Network", None)).find("url") is None
