"""Icons: pictures that need no fetching."""

import base64
from xml.etree import ElementTree

import pytest

from forecourt.binding.mcp.icon import icon


@pytest.mark.parametrize("name", ["car", "chart", "house", "lens", "letter"])
def test_an_icon_is_a_drawing_of_any_size_in_its_own_address(name: str) -> None:
    shown = icon(name)
    kind, _, data = shown["src"].partition(";base64,")
    assert (kind, shown["mimeType"], shown["sizes"]) == ("data:image/svg+xml", "image/svg+xml", ["any"])
    drawing = ElementTree.fromstring(base64.b64decode(data, validate=True))
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    # Nothing in it runs or is fetched.
    assert [inner.tag for inner in drawing] == ["{http://www.w3.org/2000/svg}path"]
    assert len(shown["src"]) < 500
