"""XML rows, and what XML must not be able to do (FEEDS.md, table; entities are not expanded, nothing is fetched)."""

import pytest
from tests.feed.reading import read

from forecourt.feed import FeedError

CELLS = "<stock>S1</stock><make>Honda</make><model>Civic</model><type>Used</type>"


@pytest.mark.parametrize(
    "document",
    [
        f"<inventory><vehicle>{CELLS}</vehicle></inventory>",
        f'<?xml version="1.0" encoding="ISO-8859-1"?>\n<listings><title>x</title><listing>{CELLS}</listing></listings>',
        f"<rss><channel><title>Cars</title><item>{CELLS}</item></channel></rss>",
        '<rss xmlns:g="urn:g"><channel><item><g:id>S1</g:id><g:make>Honda</g:make><g:model>Civic</g:model>'
        "<g:condition>used</g:condition><stock>S1</stock></item></channel></rss>",
        '<cars><car stock="S1" make="Honda" model="Civic" type="Used"/></cars>',
        f"<inventory><dealer><name>x</name><vehicles><Vehicle>{CELLS}</Vehicle></vehicles></dealer></inventory>",
        f"\n\n  <inventory><vehicle>{CELLS.replace('S1', '<![CDATA[S1]]>')}</vehicle></inventory>",
        f"<listings><listing><vehicle>{CELLS}</vehicle></listing></listings>",
    ],
)
def test_every_shape_gives_the_vehicle(document: str) -> None:
    reading = read(document)
    assert (reading.only["stock"], reading.only["make"], reading.only["condition"]) == ("S1", "Honda", "used")
    assert reading.findings() == []


def test_repeated_and_nested_elements_are_lists() -> None:
    photos = "".join(f"<image><url>https://x.example.com/{at}.jpg</url></image>" for at in (1, 2))
    options = "<options><option>Sunroof</option><option>Heated Seats, front</option></options>"
    vehicle = read(f"<i><vehicle>{CELLS}<images>{photos}</images>{options}</vehicle></i>").only
    assert vehicle["photos"] == ["https://x.example.com/1.jpg", "https://x.example.com/2.jpg"]
    assert vehicle["features"] == ["Sunroof", "Heated Seats, front"]


def test_lines_are_those_on_which_rows_begin() -> None:
    bad = "<vehicle>\n<make>Honda</make>\n<model>Civic</model></vehicle>\n"
    reading = read(f"<inventory>\n{bad}{bad}<vehicle>{CELLS}</vehicle></inventory>")
    assert [(finding.kind, finding.line) for finding in reading.report.findings] == [("refused", 2), ("refused", 5)]


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">',
        '<!ENTITY x SYSTEM "file:///etc/hostname">',
        '<!ENTITY % p SYSTEM "http://x.example.com/">',
    ],
)
def test_entities_of_the_files_own_are_refused(declaration: str) -> None:
    with pytest.raises(FeedError, match="entities"):
        read(f"<!DOCTYPE i [{declaration}]>\n<i><vehicle>{CELLS}</vehicle></i>")


def test_an_external_document_type_is_not_fetched() -> None:
    assert (
        read(f'<!DOCTYPE i SYSTEM "http://x.example.com/i.dtd">\n<i><vehicle>{CELLS}</vehicle></i>').only["stock"]
        == "S1"
    )


def test_xml_that_is_not_well_formed_says_where() -> None:
    with pytest.raises(FeedError, match="line 2"):
        read(f"<i><vehicle>{CELLS}</vehicle>\n<vehicle></i>")


def test_what_is_nested_without_end_is_refused() -> None:
    with pytest.raises(FeedError, match="nested"):
        read("<i><vehicle>" + "<a>" * 500)
