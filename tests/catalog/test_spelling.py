"""The spelling that is shown to who asks some sellers."""

from forecourt.catalog.spelling import Spellings
from forecourt.model import Facets

SPELLINGS = Spellings({"make": {"Honda": {"north": {"HONDA": 1}, "south": {"Honda": 2, "honda": 2}}}})


def test_a_seller_that_writes_a_value_its_own_way_sees_that_way() -> None:
    facets = SPELLINGS.shown(Facets({"make": [("Honda", 1)]}), ["north"])
    assert facets.terms["make"] == [("HONDA", 1)]


def test_spellings_as_frequent_as_each_other_give_way_to_the_smaller_text() -> None:
    facets = SPELLINGS.shown(Facets({"make": [("Honda", 4)]}), ["south"])
    assert facets.terms["make"] == [("Honda", 4)]
