"""The ledger is whole and agrees with its pages and with the tests; each of these checks is able to fail."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conformance.ledger import (
    SOURCES,
    TESTS,
    LedgerError,
    Requirement,
    Tag,
    collect_tags,
    copied,
    disagreements,
    parse_ledger,
    read_ledger,
    read_page,
    report,
    uncovered,
)

ENTRY = Requirement("ERR-ONE-THING", "errors", "One section", "must", "server", "It does one thing.")

ENTRY_TOML = """
[[requirement]]
id = "ERR-ONE-THING"
source = "errors"
place = "One section, row FIRST"
level = "table"
side = "server"
text = "It does one thing."
"""

PAGE = """Errors and retries

Opening words that command nothing.

One section

It MUST do this. Never do that; it is bad.

name\tmeaning
FIRST\tThe first thing.
SECOND\tThe second thing.
"""


@pytest.fixture(scope="module")
def ledger() -> tuple[Requirement, ...]:
    return read_ledger()


@pytest.fixture(scope="module")
def pages() -> Mapping[str, str]:
    """The text of the source pages by source, from FORECOURT_SEEDS or the folder beside the project."""
    folder = Path(os.environ.get("FORECOURT_SEEDS") or TESTS.parent.parent / "shared" / "seeds")
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        head = {line.strip() for line in text.splitlines()[:5]}
        found |= {source: text for source, (_, title) in SOURCES.items() if title in head}
    if missing := sorted(SOURCES.keys() - found.keys()):
        message = f"source pages not found (set FORECOURT_SEEDS to their folder): {', '.join(missing)}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return found


# The ledger and the tests -------------------------------------------------------------------------


def test_every_requirement_has_a_test_or_says_why_not_and_every_tag_names_a_requirement(
    ledger: tuple[Requirement, ...],
) -> None:
    found = disagreements(ledger, collect_tags())
    if found:
        pytest.fail(f"{len(found)} disagreements:\n" + "\n".join(found), pytrace=False)


def test_an_entry_without_a_test_and_without_a_word_is_found() -> None:
    assert disagreements([ENTRY], []) == ["ERR-ONE-THING has no test: It does one thing."]


@pytest.mark.parametrize(
    "excused", [replace(ENTRY, not_yet="issue 4: MCP binding"), replace(ENTRY, reason="a mere statement")]
)
def test_an_entry_that_says_why_needs_no_test_and_must_be_cleared_by_one(excused: Requirement) -> None:
    field = "not_yet" if excused.not_yet else "reason"
    assert disagreements([excused], []) == []
    assert disagreements([excused], [Tag("ERR-ONE-THING", "tests/test_a.py:3")]) == [
        f"ERR-ONE-THING has a test (tests/test_a.py:3); clear its {field}"
    ]


def test_a_tag_that_names_no_entry_is_found() -> None:
    tags = [Tag("ERR-ONE-THING", "tests/test_a.py:3"), Tag("ERR-OTHER", "tests/test_a.py:9")]
    assert disagreements([ENTRY], tags) == ["tests/test_a.py:9 names ERR-OTHER, which is no entry"]


def test_tags_are_read_from_functions_classes_modules_parameters_and_cases(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    cases = tests / "conformance" / "cases" / "3.1"
    cases.mkdir(parents=True)
    (tests / "test_a.py").write_text(
        "import pytest\n"
        "from pytest import mark\n"
        "pytestmark = pytest.mark.requirement('ERR-MODULE')\n"
        "@pytest.mark.requirement('ERR-FUNCTION', 'ERR-SECOND')\n"
        "async def test_one(): ...\n"
        "@mark.requirement('ERR-CLASS')\n"
        "class TestIt: ...\n"
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.requirement('ERR-PARAMETER'))])\n"
        "def test_two(x): ...\n"
    )
    (cases / "one.json").write_text('{"requirements": ["ERR-CASE"]}')
    (cases / "list.json").write_text('[{"requirements": ["ERR-LISTED"]}, {"name": "untagged"}]')
    assert {(tag.requirement, tag.where) for tag in collect_tags(tests)} == {
        ("ERR-MODULE", "tests/test_a.py:3"),
        ("ERR-FUNCTION", "tests/test_a.py:4"),
        ("ERR-SECOND", "tests/test_a.py:4"),
        ("ERR-CLASS", "tests/test_a.py:6"),
        ("ERR-PARAMETER", "tests/test_a.py:8"),
        ("ERR-CASE", "tests/conformance/cases/3.1/one.json"),
        ("ERR-LISTED", "tests/conformance/cases/3.1/list.json"),
    }


@pytest.mark.parametrize("silencer", ["pytest.mark.skip(reason='later')", "pytest.mark.xfail"])
def test_a_tag_on_a_skipped_test_or_one_expected_to_fail_shows_nothing(silencer: str, tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        f"import pytest\n@{silencer}\n@pytest.mark.requirement('ERR-ONE')\ndef test_one(): ...\n"
        f"@{silencer}\nclass TestIt:\n    @pytest.mark.requirement('ERR-TWO')\n    def test_two(self): ...\n"
    )
    assert collect_tags(tmp_path) == []


@pytest.mark.parametrize("arguments", ["", "NAME", "f'ERR-{name}'", "*NAMES", "'ERR-ONE', why='so'"])
def test_a_tag_that_is_not_written_out_is_refused(arguments: str, tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(f"import pytest\n@pytest.mark.requirement({arguments})\ndef test_one(): ...\n")
    with pytest.raises(LedgerError, match=r"test_a\.py:2: the marker requirement takes ids"):
        collect_tags(tmp_path)


@pytest.mark.parametrize("case", ['{"requirements": "ERR-ONE"}', '{"requirements": [1]}', '"ERR-ONE"'])
def test_a_case_whose_requirements_are_no_list_of_ids_is_refused(case: str, tmp_path: Path) -> None:
    cases = tmp_path / "conformance" / "cases"
    cases.mkdir(parents=True)
    (cases / "one.json").write_text(case)
    with pytest.raises(LedgerError, match=r"one\.json"):
        collect_tags(tmp_path)


# The form of the ledger ---------------------------------------------------------------------------


def test_a_whole_entry_is_read_with_its_section_and_row() -> None:
    (entry,) = parse_ledger(ENTRY_TOML)
    assert (entry.id, entry.section, entry.row) == ("ERR-ONE-THING", "One section", "FIRST")
    assert (ENTRY.section, ENTRY.row) == ("One section", None)


@pytest.mark.parametrize("field", ["id", "source", "place", "level", "side", "text"])
def test_a_missing_field_is_refused(field: str) -> None:
    lines = [line for line in ENTRY_TOML.splitlines() if not line.startswith(f"{field} ")]
    with pytest.raises(LedgerError, match=f"lacks {field}"):
        parse_ledger("\n".join(lines))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('"ERR-ONE-THING"', '"err-one-thing"'), "is no id of the form ERR-WORD-WORD"),
        (('"ERR-ONE-THING"', '"RPC-ONE-THING"'), "is no id of the form ERR-WORD-WORD"),
        (('"ERR-ONE-THING"', '"ERR"'), "is no id of the form ERR-WORD-WORD"),
        (('"errors"', '"hearsay"'), "names an unknown source"),
        (('"table"', '"maybe"'), "has an unknown level"),
        (('"server"', '"nobody"'), "has an unknown side"),
        (('"It does one thing."', '" "'), "lacks text"),
        (('"It does one thing."', '"It."\nreason = ""'), "has an empty reason"),
        (('"It does one thing."', '"It."\nowner = "x"'), "has an unknown field owner"),
        (
            ('"It does one thing."', '"It."\nnot_yet = "later"'),
            'not_yet is not of the form "issue N: what is',
        ),
        (
            ('"It does one thing."', '"It."\nnot_yet = "issue 4: x"\nreason = "no"'),
            "has both not_yet and reason",
        ),
        (("[[requirement]]", "[[requirements]]"), "unknown table requirements"),
        (("[[requirement]]", "[[requirement"), "the ledger is no TOML"),
    ],
)
def test_a_malformed_entry_is_refused(change: tuple[str, str], complaint: str) -> None:
    with pytest.raises(LedgerError, match=complaint):
        parse_ledger(ENTRY_TOML.replace(*change))


def test_an_id_that_stands_twice_is_refused() -> None:
    with pytest.raises(LedgerError, match="ERR-ONE-THING stands 2 times"):
        parse_ledger(ENTRY_TOML * 2)


# The ledger and its pages -------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
def test_every_section_row_and_command_of_the_page_has_its_entries(
    source: str, ledger: tuple[Requirement, ...], pages: Mapping[str, str]
) -> None:
    assert uncovered(ledger, source, read_page(pages[source])) == []


def test_the_pages_are_read_to_their_tables(pages: Mapping[str, str]) -> None:
    """Counted by hand on the pages, so that a reader that overlooks a table or a method is noticed."""
    rows = {
        (source, section.heading): len(section.rows) for source, page in pages.items() for section in read_page(page)
    }
    assert rows["errors", "Error code reference"] == 16
    assert rows["errors", "Three envelopes"] == 3
    assert rows["errors", "Protocol-level A2A failures"] == 5
    assert rows["jsonrpc-1.1", "Error mapping (A2A Section 9.5)"] == 10
    assert rows["jsonrpc-1.1", "A2A v1.0 wire format — the ProtoJSON form"] == 7
    inventory = ["inventory.facets", "inventory.search", "inventory.vehicle"]
    for skill in ["dealer.information", *inventory, "lead.submit"]:
        assert rows["jsonrpc-1.1", skill] == 2, "a request and a response"
    assert rows["a2a-error", "impl From<ClientError> for A2aError"] == 4
    assert sum(source == "a2a-error" for source, _ in rows) == 37
    assert sum(source == "errors" for source, _ in rows) == 11


def test_no_entry_is_copied_from_a_page(ledger: tuple[Requirement, ...], pages: Mapping[str, str]) -> None:
    assert copied(ledger, pages.values()) == []


def test_a_page_is_read_into_sections_rows_and_commands() -> None:
    opening, section = read_page(PAGE)
    assert (opening.heading, opening.rows, opening.duties) == ("Errors and retries", [], [])
    assert (section.heading, section.rows) == ("One section", ["FIRST", "SECOND"])
    assert section.duties == ["It MUST do this.", "Never do that; it is bad."]


def test_what_a_page_has_and_the_ledger_lacks_is_found() -> None:
    first = replace(ENTRY, place="One section, row FIRST", level="table")
    stray = replace(ENTRY, id="ERR-STRAY", place="One section, row THIRD", level="table")
    found = uncovered([ENTRY, first, stray], "errors", read_page(PAGE))
    assert found == [
        "errors: nothing for the section 'Errors and retries'",
        "errors: nothing for One section, row SECOND",
        "errors: 1 entries for 2 commands in 'One section': It MUST do this. / Never do that; it is bad.",
        "ERR-STRAY names a place that its page does not have: One section, row THIRD",
    ]


def test_a_copied_sentence_and_a_copied_run_of_words_are_found() -> None:
    page = "It MUST do this. The agent lists each one of the many problems that it was able to find in time."
    sentence = replace(ENTRY, text="It must do this.")
    run = replace(ENTRY, text="Here each one of the many problems that it was able to find counts.")
    own = replace(ENTRY, text="This is what it does, and all that it finds is listed.")
    assert [line.split(": ")[1] for line in copied([sentence, run, own], [page])] == [sentence.text, run.text]


# The report ---------------------------------------------------------------------------------------


def test_the_report_counts_each_entry_once() -> None:
    entries = [
        ENTRY,
        replace(ENTRY, id="ERR-TWO", not_yet="issue 4: MCP binding"),
        replace(ENTRY, id="ERR-THREE", reason="a mere statement"),
        replace(ENTRY, id="ERR-FOUR", side="client"),
    ]
    table = report(entries, [Tag("ERR-ONE-THING", "tests/test_a.py:3")])
    assert [line.split() for line in table.splitlines()[1:]] == [
        ["errors", "server", "1", "1", "1", "0"],
        ["errors", "client", "0", "0", "0", "1"],
        ["all", "1", "1", "1", "1"],
    ]


def test_the_report_runs_as_a_command(ledger: tuple[Requirement, ...]) -> None:
    command = [sys.executable, "-m", "tests.conformance.ledger"]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=True)
    assert sum(int(number) for number in done.stdout.splitlines()[-1].split()[1:]) == len(ledger)
