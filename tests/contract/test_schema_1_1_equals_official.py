"""The packaged 1.1 schemas decide as the official ones do (CONTRACTS.md section 5, "1.1")."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import jsonschema_rs
import pytest
from tests.contract.payload_maker import broken, changed_once, make

from forecourt.contract.validation import SchemaSet

_ROOT = Path(__file__).parents[2]
_OFFICIAL = Path(os.environ.get("FORECOURT_OFFICIAL_SCHEMAS") or _ROOT.parent / "shared" / "spec" / "aap-1.1")
_ROUNDS = 120
_FEWEST = 40
"""How many payloads of each verdict every schema must have met, so that agreement means something."""

_OURS = SchemaSet.load("1.1")

if not (_OFFICIAL / "schemas").is_dir() and os.environ.get("CI") != "true":
    pytest.skip("no official schemas; FORECOURT_OFFICIAL_SCHEMAS names their folder", allow_module_level=True)


def _documents() -> dict[str, dict[str, Any]]:
    folder = _OFFICIAL / "schemas"
    paths = sorted(folder.rglob("*.schema.json"))
    assert paths, "the official schemas are missing; FORECOURT_OFFICIAL_SCHEMAS must name their folder"
    return {path.relative_to(folder).as_posix(): json.loads(path.read_bytes()) for path in paths}


def _examples() -> Iterator[tuple[str, str, Any]]:
    """Yield each official example of a schema with the name of its file and of the schema's."""
    for path in sorted((_OFFICIAL / "examples").glob("*.example.json")):
        schema = f"{path.name.split('.')[0]}.schema.json"
        payload = json.loads(path.read_bytes())
        if schema not in _OURS.files():
            continue
        if ".jsonrpc." in path.name:
            message = payload["params"]["message"] if "params" in payload else payload["result"]["message"]
            payload = message["parts"][0]["data"]
        yield path.name, schema, payload


def _random_payloads(file: str, official: SchemaSet, examples: list[Any]) -> Iterator[Any]:
    random = Random(file)
    schema = official.inlined(file)
    yield from examples
    for example in examples:
        for _ in range(_ROUNDS):
            yield broken(example, random)
    for _ in range(_ROUNDS):
        good = make(schema, random)
        yield good
        yield broken(good, random)
        yield broken(good, random)


@pytest.fixture(scope="module")
def official() -> SchemaSet:
    return SchemaSet.from_folder(_OFFICIAL / "schemas")


@pytest.fixture(scope="module")
def official_verdicts() -> dict[str, jsonschema_rs.Draft202012Validator]:
    documents = _documents()
    registry = jsonschema_rs.Registry([(document["$id"], document) for document in documents.values()])
    return {
        file: jsonschema_rs.Draft202012Validator(document, registry=registry, validate_formats=True)
        for file, document in documents.items()
    }


def test_the_same_files_with_the_same_ids_exist() -> None:
    documents = _documents()
    assert _OURS.files() == tuple(sorted(documents))
    for file, document in documents.items():
        assert json.loads(_OURS.text(file))["$id"] == document["$id"]


@pytest.mark.requirement(
    "RPC-EX-INFORMATION-REQUEST",
    "RPC-EX-FACETS-REQUEST",
    "RPC-EX-SEARCH-REQUEST",
    "RPC-EX-VEHICLE-REQUEST",
    "RPC-EX-LEAD-REQUEST",
)
def test_every_official_example_is_accepted() -> None:
    examples = list(_examples())
    assert len(examples) >= 19
    for name, file, payload in examples:
        assert _OURS.problems(file, payload) == [], name


@pytest.mark.parametrize("file", _OURS.files())
def test_random_payloads_are_accepted_and_refused_alike(
    file: str, official: SchemaSet, official_verdicts: dict[str, jsonschema_rs.Draft202012Validator]
) -> None:
    verdict = official_verdicts[file]
    examples = [payload for _, schema, payload in _examples() if schema == file]
    counts = {True: 0, False: 0}
    for payload in _random_payloads(file, official, examples):
        expected = verdict.is_valid(payload)
        counts[expected] += 1
        assert _OURS.is_valid(file, payload) is expected, json.dumps(payload)
        assert (_OURS.problems(file, payload) == []) is expected, json.dumps(payload)
    assert min(counts.values()) >= _FEWEST, counts


@pytest.mark.parametrize("file", _OURS.files())
def test_every_change_of_one_place_is_accepted_and_refused_alike(
    file: str, official: SchemaSet, official_verdicts: dict[str, jsonschema_rs.Draft202012Validator]
) -> None:
    verdict = official_verdicts[file]
    counts = {True: 0, False: 0}
    for payload in changed_once(official.inlined(file), verdict.is_valid, Random(file)):
        expected = verdict.is_valid(payload)
        counts[expected] += 1
        assert _OURS.is_valid(file, payload) is expected, json.dumps(payload)
    assert counts[False] >= _FEWEST, counts
    assert counts[True] >= 3, counts


def test_a_validator_in_pure_python_agrees_apart_from_formats_and_patterns(official: SchemaSet) -> None:
    """`jsonschema` is another implementation: it would show a reading that only our engine has."""
    jsonschema = pytest.importorskip("jsonschema")
    seen = {True: 0, False: 0}
    for file in _OURS.files():
        random = Random(f"referee {file}")
        schema = official.inlined(file)
        referee = jsonschema.Draft202012Validator(_without_engine_differences(schema))
        plain = {**_without_engine_differences(_OURS.inlined(file)), "$id": "urn:example:schema"}
        ours = SchemaSet({file: json.dumps(plain).encode()})
        for _ in range(30):
            good = make(schema, random)
            for payload in (good, broken(good, random)):
                expected = referee.is_valid(payload)
                seen[expected] += 1
                assert ours.is_valid(file, payload) is expected, (file, json.dumps(payload))
    assert min(seen.values()) > 250, seen


def _without_engine_differences(schema: Any) -> Any:
    """Drop formats, which `jsonschema` does not assert by itself, and patterns, which it reads as Python does."""
    if isinstance(schema, dict):
        engine_dependent = [key for key in ("format", "pattern") if isinstance(schema.get(key), str)]
        return {k: _without_engine_differences(v) for k, v in schema.items() if k not in engine_dependent}
    if isinstance(schema, list):
        return [_without_engine_differences(item) for item in schema]
    return schema


def test_no_description_is_a_copy() -> None:
    theirs = {text for document in _documents().values() for text in _descriptions(document)}
    assert len(theirs) > 100
    for file in _OURS.files():
        for text in _descriptions(json.loads(_OURS.text(file))):
            assert len(text) <= 40 or text not in theirs, text


def _descriptions(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "description" and isinstance(value, str):
                yield value
            else:
                yield from _descriptions(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _descriptions(item)
