"""The check before a document leaves: every rule of the structure can be broken, and is then told (ADF.md)."""

import re
import tomllib
from importlib import resources
from typing import Any

import pytest
from tests.lead.adf.reading import against_the_dtd
from tests.lead.adf.sample import CASES

from forecourt.lead.adf import check, to_adf
from forecourt.lead.adf.schema import MOST_PROBLEMS

GOOD = to_adf(*CASES["vehicle-and-trade-in-resent"]).decode()
VEHICLE = "adf/prospect[1]/vehicle[1]"


def without(name: str, text: str = GOOD) -> str:
    """Return the document without the first element of this name, which holds text."""
    return re.sub(rf"<{name}[ >][^<]*</{name}>\s*", "", text, count=1)


def test_a_good_document_has_no_problems() -> None:
    assert check(GOOD.encode()) == against_the_dtd(GOOD.encode()) == []


@pytest.mark.parametrize(
    ("xml", "problem"),
    [
        (without("requestdate"), "adf/prospect[1]: requestdate is missing here"),
        (without("year"), f"{VEHICLE}: year is missing here"),
        (without("make"), f"{VEHICLE}: make is missing here"),
        (without("model"), f"{VEHICLE}: model is missing here"),
        (without("vendorname"), "adf/prospect[1]/vendor[1]: vendorname is missing here"),
        (re.sub(r"(<vendor>.*)<contact>.*</contact>", r"\1", GOOD, flags=re.DOTALL),
         "adf/prospect[1]/vendor[1]: contact is missing here"),
        (re.sub(r"<vehicle.*</vehicle>", "", GOOD, flags=re.DOTALL), "adf/prospect[1]: vehicle is missing here"),
        (re.sub(r"<customer>.*</customer>", "", GOOD, flags=re.DOTALL), "adf/prospect[1]: customer is missing here"),
        (re.sub(r"(<vin>.*</vin>)(\s*)(<stock>.*</stock>)", r"\3\2\1", GOOD),
         f"{VEHICLE}: child 6 is not allowed, or not in this place"),
        (GOOD.replace("<email>", "<email>a@example.com</email><email>", 1),
         "adf/prospect[1]/customer[1]/contact[1]: more than 1 email"),
        (GOOD.replace('interest="test-drive"', 'interest="look"'),
         f"{VEHICLE}: interest must be one of buy, lease, sell, trade-in, test-drive"),
        (GOOD.replace('status="used"', 'status="cpo"', 1), f"{VEHICLE}: status must be one of new, used"),
        (GOOD.replace('status="resend"', 'status="again"'), "adf/prospect[1]: status must be one of new, resend"),
        (GOOD.replace('units="mi"', 'units="miles"', 1), f"{VEHICLE}/odometer[1]: units must be one of km, mi"),
        (GOOD.replace('type="asking"', 'type="final"'),
         f"{VEHICLE}/price[1]: type must be one of quote, offer, msrp, invoice, call, appraisal, asking"),
        (GOOD.replace('preferredcontact="1"', 'preferredcontact="yes"'),
         "adf/prospect[1]/customer[1]/contact[1]/phone[1]: preferredcontact must be one of 0, 1"),
        (GOOD.replace("<make>", '<make secret="x">', 1), f"{VEHICLE}/make[1]: no attribute of this name is allowed"),
        (GOOD.replace(' source="Forecourt"', "", 1), "adf/prospect[1]/id[1]: source is missing"),
        (GOOD.replace("<trim>", "<condition>good</condition><trim>", 1),
         f"{VEHICLE}: child 7 is not allowed, or not in this place"),
        (GOOD.replace("<vin>", "<vin><b/>", 1), f"{VEHICLE}/vin[1]: child 1 is not allowed, or not in this place"),
        (GOOD.replace("<year>", "Shopper<year>", 1), f"{VEHICLE}: no text is allowed between its elements"),
    ],
)  # fmt: skip
def test_a_break_of_the_structure_is_told_by_the_check_and_by_the_dtd(xml: str, problem: str) -> None:
    assert xml != GOOD
    assert problem in check(xml.encode())
    assert against_the_dtd(xml.encode()) != []


@pytest.mark.parametrize(
    ("xml", "problem"),
    [
        (GOOD.replace("<year>2024", "<year>soon"), f"{VEHICLE}/year[1]: the text must be a number"),
        (GOOD.replace("<make>Honda", "<make> "), f"{VEHICLE}/make[1]: the text must be more than blanks"),
        (GOOD.replace("04:05:09-07:00", "04:05:09"),
         "adf/prospect[1]/requestdate[1]: the text must be an ISO 8601 time with an offset"),
        (GOOD.replace('<?adf version="1.0"?>\n', ""), 'the prolog must be the one instruction <?adf version="1.0"?>'),
        (GOOD.replace("<adf>", "<adf><?php x?>"), 'the prolog must be the one instruction <?adf version="1.0"?>'),
        ("<a/>", "the root element must be adf"),
        ("<adf>" * 30 + "</adf>" * 30, "elements are nested too deep"),
        ('<!DOCTYPE adf [<!ENTITY a "b">]><adf>&a;</adf>', "a document type is not allowed"),
        ("<adf>&nbsp;</adf>", "not well-formed XML: line 1, column 6"),
        ("<adf>", "not well-formed XML: line 1, column 6"),
        ("", "not well-formed XML: line 1, column 1"),
    ],
)  # fmt: skip
def test_what_no_dtd_can_say_is_told_by_the_check(xml: str, problem: str) -> None:
    assert problem in check(xml.encode())


def test_bytes_that_are_no_utf_8_are_told() -> None:
    (problem,) = check(GOOD.encode().replace(b"Honda", b"\xff"))
    assert problem.startswith("not well-formed XML")


def test_a_problem_repeats_no_text_of_the_document() -> None:
    hostile = GOOD.replace("<year>2024", "<year>Ada-Secret").replace("<vin>", "<secret>Ada-Secret</secret><vin>")
    hostile = hostile.replace('interest="test-drive"', 'interest="Ada-Secret" Ada-Secret="x"')
    problems = check(hostile.encode())
    assert len(problems) >= 4
    assert "secret" not in " ".join(problems).casefold()


def test_the_problems_of_one_document_are_bounded() -> None:
    vehicles = "<vehicle/>" * 100
    assert len(check(GOOD.replace("<vehicle", vehicles + "<vehicle", 1).encode())) == MOST_PROBLEMS


def test_the_condition_is_accepted_only_where_a_crm_wants_it() -> None:
    xml = to_adf(*CASES["trade-in-condition-element"])
    assert check(xml, condition_element=True) == against_the_dtd(xml, condition_element=True) == []
    assert check(xml) == ["adf/prospect[1]/vehicle[2]: child 8 is not allowed, or not in this place"]
    assert against_the_dtd(xml) != []


def test_an_option_and_a_finance_may_hold_anything() -> None:
    more = "<option><optionname>x</optionname></option><option/><finance><method>cash</method></finance><comments>"
    assert check(GOOD.replace("<comments>", more, 1).encode()) == []


def test_every_child_in_the_schema_has_its_own_rule_and_says_what_it_holds() -> None:
    table = tomllib.loads(resources.files("forecourt.lead.adf").joinpath("schema.toml").read_text("utf-8"))
    elements: dict[str, dict[str, Any]] = table["element"]
    named = {child.rstrip("?*+") for entry in elements.values() for child in entry.get("children", ())}
    assert named | {table["root"]} == set(elements)
    assert all(len({"children", "text", "open"} & entry.keys()) == 1 for entry in elements.values())
    assert all(set(entry.get("required", ())) <= entry.get("attributes", {}).keys() for entry in elements.values())
