"""Elements and how they are written."""

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from forecourt.lead.adf.element import branch, document, leaf, optional
from forecourt.lead.adf.text import clean


def test_a_document_has_the_prolog_that_adf_asks_for() -> None:
    assert document(branch("adf", leaf("a", "b", c="d"))) == (
        b'<?xml version="1.0" encoding="UTF-8"?>\n<?adf version="1.0"?>\n<adf>\n  <a c="d">b</a>\n</adf>\n'
    )


def test_a_value_that_says_nothing_has_no_element() -> None:
    assert optional("a", None) == optional("a", " ") == optional("a", "\x00") == ()
    assert optional("a", 5, b="c") == (leaf("a", "5", b="c"),)


def test_an_element_shows_nothing_of_its_text() -> None:
    assert "Ada" not in repr(branch("name", leaf("a", "Ada")))


@given(st.text(st.characters(), max_size=50))
def test_any_text_is_read_back_as_what_xml_can_hold_of_it(text: str) -> None:
    read = ElementTree.fromstring(
        document(branch("adf", leaf("a", text, b=text.replace("\n", "").replace("\t", "").replace("\r", ""))))
    )
    assert (read[0].text or "") == clean(text)
    assert read[0].attrib["b"] == clean(text).replace("\n", "").replace("\t", "")
