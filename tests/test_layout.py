"""The tests mirror the source: every module has its test file, every test file its module, or a written reason."""

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = ROOT / "src" / "forecourt"
TESTS: Final = ROOT / "tests"

WITHOUT_A_FILE: Final[Mapping[str, str]] = {
    "binding/__init__.py": "one plain record, which binding/test_a2a.py makes and reads",
    "catalog/bodies.py": "catalog/test_index_against_reference.py reads every body back",
    "catalog/build.py": "catalog/test_index_against_reference.py builds every index with it",
    "catalog/column.py": "catalog/test_index_against_reference.py filters and sorts by every column",
    "catalog/facet.py": "catalog/test_index_against_reference.py counts every facet a second time",
    "catalog/identifier_order.py": "catalog/test_index_against_reference.py walks every order",
    "catalog/listing.py": "catalog/test_index_against_reference.py reads listings by it",
    "catalog/matching.py": "catalog/test_index_against_reference.py meets every condition a second time",
    "catalog/paging.py": "catalog/test_index_against_reference.py turns every page a second time",
    "catalog/parts.py": "catalog/test_index_against_reference.py builds every index with it",
    "catalog/walk.py": "test_agent.py walks stocks that change between pages",
    "catalog/words.py": "catalog/test_index_against_reference.py searches by words",
    "cli/_mistake.py": "cli/test_config.py reads every mistake through it",
    "cli/_clear.py": "cli/test_config.py has every kind of address in the clear and not",
    "cli/_copy.py": "cli/test_backup.py runs both of its commands",
    "cli/restore.py": "cli/test_backup.py restores what it backs up",
    "cli/_store.py": "cli/test_stock.py and cli/test_keys.py work through it, and meet each of its failures",
    "cli/_shop.py": "every cli/test_*.py of a buyer's command runs through it",
    "client/carrier/interface.py": "client/carrier/test_a2a.py and test_mcp.py have every answer checked by it",
    "contract/phrase.py": "phrases show only with the violations they are about: contract/test_validation.py",
    "contract/violation.py": "contract/test_validation.py reads what it finds through the one door it has",
    "feed/build.py": "feed/test_points.py, points 13 and 14, and the samples",
    "feed/duplicate.py": "feed/test_points.py has the same VIN twice, in one rooftop and in two",
    "feed/error.py": "one exception, which feed/test_source.py and feed/test_read.py provoke in every way",
    "feed/linked_data.py": "feed/reader/test_json_ld.py reads by it",
    "feed/nested.py": "feed/reader/test_json_rows.py and test_json_ld.py read nested values by it",
    "feed/normalise/condition.py": "feed/test_points.py, point 5",
    "feed/normalise/date.py": "feed/test_points.py, point 7",
    "feed/normalise/mileage.py": "feed/test_points.py, point 3",
    "feed/normalise/number.py": "feed/test_points.py, points 2 and 3",
    "feed/normalise/photo.py": "feed/test_points.py, point 6",
    "feed/normalise/price.py": "feed/test_points.py, points 2 and 13",
    "feed/normalise/text.py": "feed/test_points.py, point 4",
    "feed/normalise/vin.py": "feed/test_points.py, point 8",
    "feed/normalise/word.py": "feed/test_points.py, point 14",
    "feed/options.py": "plain records; feed/test_read.py and test_points.py read with each of them",
    "feed/plan.py": "feed/test_alias.py and the samples read every column by it",
    "feed/reader/__init__.py": "finds readers by name; each feed/reader/test_*.py is found by it",
    "feed/row.py": "one plain record, which every reader makes",
    "feed/state.py": "feed/test_points.py, points 4 and 5, and the samples",
    "feed/vehicle.py": "feed/test_points.py and feed/test_read.py make every vehicle with it",
    "store/postgresql/access.py": "store/test_access.py runs over every store",
    "store/postgresql/backup.py": "store/test_backup.py runs one body of tests over every store",
    "store/postgresql/look.py": "store/test_survey.py runs one body of tests over every store",
    "store/sqlite_backup.py": "store/test_backup.py runs one body of tests over every store",
    "store/sqlite_look.py": "store/test_survey.py runs one body of tests over every store",
    "store/sqlite_access.py": "store/test_access.py runs over every store",
    "server/networks.py": "server/test_metrics.py looks addresses up in it, and lists what are none",
    "server/traces.py": "server/test_observer.py has spans made by it",
    "store/postgresql/lead.py": "store/ runs one body of tests over every store",
    "store/postgresql/outbox.py": "store/test_outbox.py runs one body of tests over every store",
    "store/sqlite_lead.py": "store/test_leads.py and test_outbox.py run one body of tests over every store",
    "store/postgresql/session.py": "store/ runs one body of tests over every store",
}
"""Module with code -> why it has no test file of its own, and where it is tested."""

OTHER_SUBJECTS: Final[Mapping[str, str]] = {
    "store/test_postgresql_cause.py": "store/postgresql/cause.py",
    "store/test_postgresql_group.py": "store/postgresql/group.py",
    "store/test_postgresql_intake.py": "store/postgresql/intake.py",
    "client/test_client_hostile.py": "client/client.py",
    "client/test_client_lossy.py": "client/client.py",
    "contract/test_contracts_found_by_name.py": "contract/__init__.py",
    "contract/test_schema_1_1_equals_official.py": "contract/schema/1.1",
    "contract/test_schema_3_1.py": "contract/schema/3.1",
    "demo/test_dealer.py": "demo/__init__.py",
    "feed/test_points.py": "feed",
    "feed/test_samples.py": "feed",
    "server/test_network.py": "server/app.py",
    "server/test_privacy.py": "server/courier.py",
    "store/test_api_keys.py": "store/__init__.py",
    "store/test_history.py": "store/__init__.py",
    "store/test_leads.py": "store/__init__.py",
    "store/test_listings.py": "store/__init__.py",
    "store/test_processes.py": "store/__init__.py",
    "store/test_store.py": "store/__init__.py",
    "store/test_upkeep.py": "store/__init__.py",
    "test_docs.py": "",
    "test_imports.py": "",
    "test_layout.py": "",
}
"""Test file -> what it is about, where its name does not say so; "" is the project as a whole."""

FREE: Final[Mapping[str, str]] = {
    "benchmarks": "what benchmarks compute and decide, beside their measuring",
    "conformance": "cases as data, from the outside",
    "deploy": "what is shipped beside the package: the image, units and manifests",
    "durability": "crashes, from the outside",
    "interop": "other people's clients",
}
"""Folders of tests that mirror nothing."""


def mirror_of(module: str) -> str:
    """Return the test file of a module: `contract/v3_1.py` has `contract/test_v3_1.py`, a package `test_package.py`."""
    path = Path(module)
    return path.with_name("test_package.py" if path.stem == "__init__" else f"test_{path.name}").as_posix()


def subject_of(test: str) -> str | None:
    """Return what a test file is about: the module of its name, or of a beginning of it, None when there is none.

    `binding/test_a2a_errors.py` is about `binding/a2a.py`; a file named after a package beside it is about that.
    """
    if test in OTHER_SUBJECTS:
        return OTHER_SUBJECTS[test]
    path = Path(test)
    if path.name == "test_package.py":
        names = ["__init__"]
    else:
        words = path.stem.removeprefix("test_").split("_")
        names = ["_".join(words[:length]) for length in range(len(words), 0, -1)]
    found = [(path.parent / place).as_posix() for name in names for place in (f"{name}.py", f"{name}/__init__.py")]
    return next((module for module in found if SOURCE.joinpath(module).is_file()), None)


def has_code(module: str) -> bool:
    """Tell whether a module defines anything; one that only gives names to what others define is tested with them."""
    tree = ast.parse(SOURCE.joinpath(module).read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in tree.body)


MODULES: Final = sorted(filter(has_code, (path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))))
"""Every module with code."""
TEST_FILES: Final = sorted(path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py"))
SUBJECTS: Final = {test: subject_of(test) for test in TEST_FILES if test.split("/")[0] not in FREE}


@pytest.mark.parametrize("module", MODULES)
def test_every_module_with_code_has_its_test_file_or_a_reason(module: str) -> None:
    tested = module in SUBJECTS.values()
    if module in WITHOUT_A_FILE:
        assert not tested, f"{module} has its test file by now; take its reason away"
    else:
        assert tested, f"{module} needs {mirror_of(module)}"


@pytest.mark.parametrize("test", SUBJECTS)
def test_every_test_file_is_about_something_that_is_there(test: str) -> None:
    subject = SUBJECTS[test]
    assert subject is not None, f"{test} mirrors nothing"
    assert SOURCE.joinpath(subject).exists(), f"{test} is about {subject}, which is gone"


def test_the_reasons_are_about_modules_and_tests_that_are_there() -> None:
    assert WITHOUT_A_FILE.keys() <= set(MODULES)
    assert OTHER_SUBJECTS.keys() <= set(TEST_FILES)
    assert all(WITHOUT_A_FILE.values())


@pytest.mark.parametrize(
    ("module", "test"),
    [
        ("errors.py", "test_errors.py"),
        ("__init__.py", "test_package.py"),
        ("contract/v3_1.py", "contract/test_v3_1.py"),
        ("a2a/__init__.py", "a2a/test_package.py"),
    ],
)
def test_a_module_and_its_test_file_find_each_other(module: str, test: str) -> None:
    assert mirror_of(module) == test
    assert subject_of(test) == module


def test_a_test_file_of_nothing_is_found() -> None:
    assert subject_of("binding/test_a2a_errors.py") == "binding/a2a.py"
    assert subject_of("binding/test_nothing.py") is None
    assert subject_of("contract/test_package_of_cards.py") is None
