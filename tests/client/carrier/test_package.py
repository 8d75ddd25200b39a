"""Bindings are found by their names."""

import pytest

from forecourt.client.carrier import bindings, carrier_class


def test_the_bindings_are_the_modules() -> None:
    assert bindings() == ("a2a", "mcp", "pap")
    assert [carrier_class(name).binding for name in bindings()] == ["a2a", "mcp", "pap"]
    with pytest.raises(KeyError):
        carrier_class("interface")
