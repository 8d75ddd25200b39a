"""The five skills: their ids, types, media types and schemas (CONTRACTS.md section 1)."""

import json

import pytest

from forecourt.contract import SKILLS, Skill
from forecourt.contract.validation import SchemaSet

NAMES = {
    "dealer.information": "dealer-information",
    "inventory.facets": "inventory-facets",
    "inventory.search": "inventory-search",
    "inventory.vehicle": "vehicle-detail",
    "lead.submit": "lead-submit",
}


def test_there_are_five_skills_by_id() -> None:
    assert list(SKILLS) == list(NAMES)
    assert [skill.id for skill in SKILLS.values()] == list(NAMES)


@pytest.mark.parametrize(("skill", "name"), [(SKILLS[id_], name) for id_, name in NAMES.items()], ids=NAMES)
def test_a_skills_types_and_media_types_follow_from_its_names(skill: Skill, name: str) -> None:
    assert skill.request_type == f"{skill.id}.request"
    assert skill.response_type == f"{skill.id}.response"
    assert skill.request_media_type == f"application/vnd.autoagent.{name}-request+json"
    assert skill.response_media_type == f"application/vnd.autoagent.{name}-response+json"


@pytest.mark.parametrize("version", ["1.1", "3.1"])
@pytest.mark.parametrize("skill", SKILLS.values(), ids=SKILLS)
def test_both_schemas_of_a_skill_are_packaged_and_name_its_types(skill: Skill, version: str) -> None:
    schemas = SchemaSet.load(version)
    for file, kind in ((skill.request_schema, skill.request_type), (skill.response_schema, skill.response_type)):
        assert file in schemas.files()
        assert json.loads(schemas.text(file))["properties"]["type"]["const"] == kind


def test_only_a_lead_writes() -> None:
    assert [skill.id for skill in SKILLS.values() if skill.writes] == ["lead.submit"]


@pytest.mark.parametrize("skill", SKILLS.values(), ids=SKILLS)
def test_a_skill_says_what_it_is_for(skill: Skill) -> None:
    assert skill.name
    assert skill.description.endswith(".")
    assert "automotive" in skill.tags
