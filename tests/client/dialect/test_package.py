"""Dialects are found by their names, and extensions name them exactly."""

import pytest
from tests.client.simulated import URIS

from forecourt.client.dialect import dialect, dialect_of_uri, versions
from forecourt.contract import contract_class
from forecourt.contract import versions as served


def test_all_live_versions_are_spoken_newest_first() -> None:
    assert versions() == ("3.1", "1.3", "1.2", "1.1", "1.0")
    assert {version: dialect(version).extension_uri for version in versions()} == URIS
    with pytest.raises(KeyError):
        dialect("2.0")


def test_every_contract_that_is_served_here_is_spoken_here() -> None:
    for version in served():
        assert dialect(version).extension_uri == contract_class(version).extension_uri


def test_an_extension_is_named_exactly_or_not_at_all() -> None:
    assert dialect_of_uri(URIS["1.2"]) is dialect("1.2")
    for uri in (URIS["1.1"] + "/", URIS["1.1"].upper(), "", "https://autoagentprotocol.org/extensions/aap/v9.9"):
        assert dialect_of_uri(uri) is None
