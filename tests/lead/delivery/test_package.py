"""Targets are found by name and set up from a table; what is wrong with one is told in one line."""

import json
import re
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from forecourt.lead.delivery import DeliveryError, Parcel, TargetError, open_target, settings_of, ways

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "delivery.md"


def test_the_ways_to_deliver_are_the_modules_that_deliver() -> None:
    assert ways() == ("email", "folder", "https")


@pytest.mark.parametrize("way", ways())
def test_every_setting_of_a_way_is_known_by_its_struct(way: str) -> None:
    struct = settings_of(way)
    assert struct.__struct_config__.forbid_unknown_fields
    assert struct.__struct_fields__
    assert struct.__doc__


def test_a_target_is_opened_by_its_way(tmp_path: Path) -> None:
    assert open_target({"via": "folder", "path": str(tmp_path)}).kind == "folder"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "via: must be one of email, folder, https"),
        ({"via": 7}, "via: must be one of email, folder, https"),
        ({"via": "fax"}, "via: must be one of email, folder, https"),
        ({"via": "calendar"}, "via: must be one of email, folder, https"),
        ({"via": "../folder"}, "via: must be one of email, folder, https"),
        ({"via": "folder"}, "Object missing required field `path`"),
        ({"via": "folder", "path": 7}, "path: Expected `str`, got `int`"),
        ({"via": "folder", "path": ""}, "path: Expected `str` of length >= 1"),
        ({"via": "folder", "path": "a\0b"}, "path: holds a null character"),
        ({"via": "folder", "path": "a", "mode": 7}, "Object contains unknown field `mode`"),
    ],
)
def test_what_is_wrong_with_a_target_is_told_in_one_line(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(TargetError) as caught:
        open_target(settings)
    assert str(caught.value) == told


def test_a_parcel_shows_nothing_of_its_content() -> None:
    shown = repr(Parcel("del_1", "lead_1", "notice", "Demo Toyota", b"Ada Lovelace", b"BEGIN:VCALENDAR"))
    assert "Ada" not in shown
    assert "VCALENDAR" not in shown
    assert "del_1" in shown


def test_an_error_says_what_came_of_the_parcel() -> None:
    error = DeliveryError("the server is busy", retry_after=30)
    assert (str(error), error.reason, error.permanent, error.retry_after) == (
        "the server is busy",
        "the server is busy",
        False,
        30,
    )


@pytest.mark.parametrize("way", ways())
def test_the_page_has_every_setting_with_its_default(way: str) -> None:
    _, heading, section = PAGE.read_text(encoding="utf-8").partition(f'## `via = "{way}"`\n')
    assert heading
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", section.partition("\n## ")[0], re.MULTILINE)
    documented = dict(rows)
    fields = msgspec.structs.fields(settings_of(way))
    assert list(documented) == [field.name for field in fields]
    for field in fields:
        default = documented[field.name]
        assert (default == "required") is field.required, field.name
        if not field.required and field.default not in (None, ()):
            assert default == f"`{json.dumps(field.default)}`", field.name
