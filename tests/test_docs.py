"""What the documentation shows is true: its requests are sent, its answers compared, its tables held against the code.

A block is checked when a comment stands above it: `<!-- checked: KIND -->`.

========================  =========================================================================================
curl                      a shell block, run in order with the others of its page; what it prints is kept
request 3.1, request 1.1  a bare AAP payload, sent to that contract; the answer is kept
again OLD -> NEW; ...     beside an `error`: the last curl block is run once more with these replacements
answer                    the payload of what was kept (`result.message.parts[0].data`)
error                     the `aap.error` of what was kept, in the envelope of either contract
wire                      the whole of what was kept
text                      the lines that were kept
python                    runs by itself
assistant                 the configuration of an MCP host: an address of ours, or a command that this project has
shop                      Python that shops at the demo dealer; what it prints is kept
toml, profile             a configuration, and the dealer's profile beside it, from which an application is made
========================  =========================================================================================

Shown members must be equal, lists begin with the shown entries, and `…` in a text stands for anything.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import msgspec
import pytest
from tests.server_process import ServerProcess

from forecourt.a2a import ErrorCode
from forecourt.binding.a2a import A2ABinding
from forecourt.cli import main
from forecourt.contract import Offer, contract_class, versions
from forecourt.errors import CODES, AAPError
from forecourt.feed.plan import check_mapping
from forecourt.model import Capabilities
from forecourt.server import Config, create_app, load
from forecourt.server.destinations import COMMON_KEYS

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "src" / "forecourt"
DOCS: Final = ROOT / "docs"
PAGES: Final = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))

_BLOCK: Final = re.compile(r"^<!-- checked: (.+?) -->\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_ADDRESS: Final = re.compile(r"https?://([A-Za-z0-9.-]+)")
_HOSTS: Final = re.compile(
    r"127\.0\.0\.1|(.+\.)?localhost|(.+\.)?example\.com|autoagentprotocol\.org|a2a-protocol\.org|(docs|www)\.python\.org"
    r"|(datatracker|www)\.ietf\.org|www\.rfc-editor\.org"
)
_MACHINE_PATH: Final = re.compile(r"(?<![\w.])/(work|tmp|home|root|usr|opt|Users)/")
_DEMO: Final = "http://127.0.0.1:8000"
_MARK: Final = "-- end of block --"
_DASH: Final = "\u2013"

_STAND_IN: Final = '''
"""What the documentation uses of curl: -s, -H, -d, -w; for machines without it."""
import sys, urllib.error, urllib.request
arguments, headers, body, form, address = sys.argv[1:], {}, None, "", ""
while arguments:
    word = arguments.pop(0)
    if word == "-s":
        pass
    elif word == "-H":
        name, value = arguments.pop(0).split(":", 1)
        headers[name] = value.strip()
    elif word == "-d":
        body = arguments.pop(0).encode()
    elif word == "-w":
        form = arguments.pop(0)
    else:
        address = word
try:
    answer = urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=10)
except urllib.error.HTTPError as error:
    answer = error
sys.stdout.write(answer.read().decode() + form.replace("%{http_code}", str(answer.status)).replace("\\\\n", "\\n"))
'''


@dataclass(frozen=True, slots=True)
class Block:
    """One checked block of a page."""

    kind: str
    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """Return the checked blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = [
        Block(match[1], match[2], match[3], text.count("\n", 0, match.start()) + 1) for match in _BLOCK.finditer(text)
    ]
    assert len(found) == text.count("<!-- checked: "), f"{page.name}: a mark stands above no block"
    return found


def name_of(page: Path) -> str:
    """Return how a page is called from the root of the project."""
    return page.relative_to(ROOT).as_posix()


def with_blocks(*kinds: str) -> list[Path]:
    """Return the pages that have a block of one of these kinds."""
    return [page for page in PAGES if any(block.kind.split()[0] in kinds for block in blocks(page))]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Run the demo dealer, of this module's own: leads that the pages submit must find their slots free."""
    process = ServerProcess(tmp_path_factory.mktemp("demo"))
    try:
        process.wait()
        yield process
    finally:
        process.stop()


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the commands of the pages that this machine may lack."""
    folder = tmp_path_factory.mktemp("tools")
    (folder / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    if shutil.which("curl") is None:
        (folder / "curl.py").write_text(_STAND_IN)
        (folder / "curl").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{folder}/curl.py" "$@"\n')
    for command in folder.iterdir():
        command.chmod(0o755)
    return folder


def requests_of(page: Path) -> list[tuple[Block, list[str]]]:
    """Return each block that must be compared, with the lines of shell that give what it is compared with.

    Every block of shell is run once, in the order of the page; its lines stand with the first block that shows it.
    """
    waiting: list[str] = []
    curl = ""
    shown: list[tuple[Block, list[str]]] = []
    for block in blocks(page):
        kind, _, more = block.kind.partition(" ")
        if kind == "curl":
            curl = block.text
            waiting = [*waiting, block.text]
        elif kind == "shop":
            waiting = [*waiting, f"python3 - <<'END OF SHOPPING'\n{block.text}END OF SHOPPING\n"]
        elif kind == "request":
            waiting = [_sending(block.text, more)]
        elif kind in ("answer", "error", "wire", "text"):
            if more:
                assert more.startswith("again "), f"{name_of(page)}:{block.line}: {more}"
                text = curl
                for change in more.removeprefix("again ").split("; "):
                    old, new = change.split(" -> ")
                    assert old in text, f"{name_of(page)}:{block.line}: {old} is not in the request"
                    text = text.replace(old, new)
                waiting = [text]
            assert waiting, f"{name_of(page)}:{block.line}: no request stands above"
            shown.append((block, waiting))
            waiting = []
        elif kind not in ("python", "toml", "profile", "assistant"):
            raise AssertionError(f"{name_of(page)}:{block.line}: no such kind: {kind}")
    assert not waiting, f"{name_of(page)}: the last request has no answer"
    return shown


def _sending(payload: str, version: str) -> str:
    envelope = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": json.loads(payload)}]}},
    }
    body = json.dumps(envelope)
    assert "'" not in body
    return f"curl -s {_DEMO}/v{version}/a2a -H 'Content-Type: application/json' -d '{body}'\n"


@pytest.mark.parametrize("page", with_blocks("curl", "request", "shop"), ids=name_of)
def test_what_a_page_shows_is_what_the_demo_dealer_answers(
    page: Path, server: ServerProcess, tools: Path, tmp_path: Path
) -> None:
    shown = requests_of(page)
    # A line of shell may end without a newline in what it prints, so the mark begins with one.
    script = "".join(
        "".join([*lines[:-1], f"printf '%s\\n' '{_MARK} skip'\n" if lines[:-1] else "", lines[-1]])
        + f"printf '\\n%s\\n' '{_MARK}'\n"
        for _, lines in shown
    ).replace(_DEMO, server.base_url)
    environment = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    environment |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    run = subprocess.run(
        ["sh", "-eu", "-c", script], cwd=tmp_path, env=environment, capture_output=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr.decode()
    printed = run.stdout.decode().split(f"\n{_MARK}\n")[:-1]
    assert len(printed) == len(shown)
    for (block, _), text in zip(shown, printed, strict=True):
        output = text.rpartition(f"{_MARK} skip\n")[2]
        compare(block, output, f"{name_of(page)}:{block.line}")


def compare(block: Block, output: str, place: str) -> None:
    """Fail unless the block is true of what was printed."""
    kind = block.kind.split()[0]
    if kind == "text":
        assert _fits(block.text.strip(), output.strip()), f"{place}: printed was {output}"
        return
    answer = json.loads(output)
    if kind == "answer":
        assert "result" in answer, f"{place}: {output}"
        answer = answer["result"]["message"]["parts"][0]["data"]
    elif kind == "error":
        assert "error" in answer, f"{place}: {output}"
        answer = aap_error(answer["error"]["data"])
    differences = list(differing(json.loads(block.text), answer, ""))
    assert not differences, f"{place}: {differences}\nwhole answer: {json.dumps(answer, ensure_ascii=False)[:3000]}"


def aap_error(data: Any) -> Any:
    """Return the `aap.error` object, which 3.1 puts among typed details."""
    if isinstance(data, dict):
        return data
    return next(entry["value"] for entry in data if entry.get("value", {}).get("type") == "aap.error")


def differing(shown: Any, real: Any, at: str) -> Iterator[str]:
    """Yield where what is shown is not what is."""
    if isinstance(shown, dict) and isinstance(real, dict):
        for name, value in shown.items():
            if name in real:
                yield from differing(value, real[name], f"{at}/{name}")
            else:
                yield f"{at}/{name} is absent"
    elif isinstance(shown, list) and isinstance(real, list):
        if len(real) < len(shown) or (real and not shown):
            yield f"{at} has {len(real)} entries"
        for index, (value, other) in enumerate(zip(shown, real, strict=False)):
            yield from differing(value, other, f"{at}/{index}")
    elif isinstance(shown, str) and isinstance(real, str):
        if not _fits(shown, real):
            yield f"{at} is {real!r}"
    elif shown != real or type(shown) is not type(real):
        yield f"{at} is {real!r}"


def _fits(shown: str, real: str) -> bool:
    return re.fullmatch(".+".join(map(re.escape, shown.split("…"))), real, re.DOTALL) is not None


def test_the_comparison_notices_every_kind_of_difference() -> None:
    real = {"a": 1, "b": [1, 2], "c": "lead_01", "d": {"e": True}}
    assert not list(differing({"a": 1, "b": [1], "c": "lead_…", "d": {"e": True}}, real, ""))
    differ: list[dict[str, Any]] = [{"a": 2}, {"a": 1.0}, {"x": 1}, {"c": "appt_…"}, {"d": {"e": 1}}]
    differ += [{"b": entries} for entries in ([2], [1, 2, 3], [])]
    for wrong in differ:
        assert list(differing(wrong, real, "")), wrong


@pytest.mark.parametrize("page", with_blocks("python"), ids=name_of)
def test_the_python_of_a_page_runs(page: Path) -> None:
    for block in blocks(page):
        if block.kind == "python":
            source = "\n" * (block.line + 1) + block.text
            exec(compile(source, name_of(page), "exec"), {"__name__": "__docs__"})


def test_readme_and_tutorial_are_checked_at_all() -> None:
    kinds = [block.kind.split()[0] for block in blocks(ROOT / "README.md")]
    assert kinds == ["shop", "text", "curl", "answer", "error", "python"]
    tutorial = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    assert tutorial.count("```") == 2 * len(blocks(DOCS / "tutorial.md"))
    for skill in ("dealer.information", "inventory.facets", "inventory.search", "inventory.vehicle", "lead.submit"):
        assert f'"type": "{skill}.request"' in tutorial.replace("\\", "")


# Tables


def table(page: str, heading: str) -> dict[str, list[str]]:
    """Return the rows of the table whose first column is headed so, by that column without its backticks."""
    lines = iter((DOCS / page).read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line.startswith(f"| {heading} |"):
            break
    else:
        raise AssertionError(f"{page} has no table of {heading}")
    next(lines)
    rows: dict[str, list[str]] = {}
    for line in lines:
        if not line.startswith("|"):
            break
        first, *more = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        assert first.strip("`") not in rows, first
        rows[first.strip("`")] = more
    return rows


def number_of(code: str, version: str) -> str:
    """Return the number that the contract's A2A binding really sends for a code, a dash where it has none."""
    if not CODES[code].in_contract(version):
        return _DASH
    contract = contract_class(version)(Offer(Capabilities((), (), ()), frozenset()))
    answer = A2ABinding(contract).fail(1, AAPError(code))
    return str(json.loads(answer.body)["error"]["code"])


def test_the_table_of_codes_says_what_is_sent() -> None:
    rows = table("reference/errors.md", "code")
    assert list(rows) == list(CODES)
    assert len(rows) == 16
    for code, (_, retryable, first, second, advice) in rows.items():
        assert retryable == ("yes" if CODES[code].retryable else "no"), code
        assert [first, second] == [number_of(code, version) for version in ("1.1", "3.1")], code
        assert advice


def test_the_documented_contracts_are_the_contracts() -> None:
    assert versions() == ("1.1", "3.1")


def test_the_table_of_protocol_errors_has_every_code() -> None:
    rows = table("reference/errors.md", "number")
    assert {int(number) for number in rows} == {int(code) for code in ErrorCode}
    for number, (reason, _) in rows.items():
        assert reason == (ErrorCode(int(number)).reason or _DASH)


def test_every_keyword_of_an_error_is_documented() -> None:
    page = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    section = page.partition("## Keywords in")[2].partition("\n## ")[0]
    ours = table("reference/errors.md", "keyword")
    raised = set(_keywords())
    assert raised >= ours.keys(), "a keyword is documented that nothing raises"
    for keyword in raised | _schema_keywords():
        assert f"`{keyword}`" in section, keyword


def _keywords() -> Iterator[str]:
    """Yield the keywords that our own problems are made with."""
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Problem":
                keyword = node.args[1]
                if isinstance(keyword, ast.Constant):
                    yield str(keyword.value)


def _schema_keywords() -> set[str]:
    """Return the keywords of our schemas that a violation can be told by."""
    known = {
        "additionalProperties", "anyOf", "const", "contains", "enum", "exclusiveMaximum", "exclusiveMinimum", "format",
        "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "multipleOf", "not", "oneOf", "pattern",
        "required", "type", "uniqueItems",
    }  # fmt: skip
    found: set[str] = set()

    def walk(schema: Any) -> None:
        if isinstance(schema, dict):
            found.update(known & schema.keys())
            for value in schema.values():
                walk(value)
        elif isinstance(schema, list):
            for value in schema:
                walk(value)

    for file in (SOURCE / "contract" / "schema").rglob("*.json"):
        walk(json.loads(file.read_text(encoding="utf-8")))
    return found


_TYPES: Final[Mapping[type, str]] = {
    msgspec.inspect.StrType: "text",
    msgspec.inspect.IntType: "integer",
    msgspec.inspect.FloatType: "number",
    msgspec.inspect.BoolType: "true or false",
    msgspec.inspect.VarTupleType: "list of text",
    msgspec.inspect.DictType: "table",
}


def settings(struct: msgspec.inspect.StructType, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield every key of the configuration with its type and its default, as the page writes them."""
    for field in struct.fields:
        kinds = [field.type]
        if isinstance(field.type, msgspec.inspect.UnionType):
            kinds = [each for each in field.type.types if not isinstance(each, msgspec.inspect.NoneType)]
        # A kind that says of itself what it is comes with that as metadata around it.
        kinds = [each.type if isinstance(each, msgspec.inspect.Metadata) else each for each in kinds]
        kind = kinds[0]
        if isinstance(kind, msgspec.inspect.StructType):
            yield from settings(kind, f"{prefix}{field.encode_name}.")
            continue
        if isinstance(kind, msgspec.inspect.VarTupleType) and isinstance(kind.item_type, msgspec.inspect.StructType):
            yield from settings(kind.item_type, f"{prefix}{field.encode_name}[].")
            continue
        if isinstance(kind, msgspec.inspect.VarTupleType) and isinstance(kind.item_type, msgspec.inspect.DictType):
            yield f"{prefix}{field.encode_name}", "list of tables", "none"
            continue
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        text = "required" if field.required else "none" if default is None else f"`{json.dumps(default)}`"
        yield f"{prefix}{field.encode_name}", " or ".join(_TYPES[type(each)] for each in kinds), text


def test_the_configuration_page_has_every_key_with_its_type_and_default() -> None:
    structure = msgspec.inspect.type_info(Config)
    assert isinstance(structure, msgspec.inspect.StructType)
    documented = {key: (cells[0], cells[1]) for key, cells in table("reference/configuration.md", "key").items()}
    assert documented == {key: (kind, default) for key, kind, default in settings(structure)}


def test_the_example_configuration_makes_an_application(tmp_path: Path) -> None:
    found = {block.kind: block.text for block in blocks(DOCS / "reference" / "configuration.md")}
    (tmp_path / "forecourt.toml").write_text(found["toml"], encoding="utf-8")
    (tmp_path / "dealer.json").write_text(found["profile"], encoding="utf-8")
    config = load(tmp_path / "forecourt.toml")
    assert config.dealer is not None
    assert config.appointments.holidays == {"2026-12-24": {"open": "09:00", "close": "13:00"}, "2026-12-25": False}
    application = create_app(config)
    assert list(application.deployment.sellers) == ["example-motors"]
    assert "charge_port" not in application.deployment.capabilities.filters


def test_the_configurations_of_assistants_lead_to_a_dealer() -> None:
    found = [block.text for block in blocks(DOCS / "how-to" / "add-to-an-assistant.md") if block.kind == "assistant"]
    assert len(found) == 5
    context = click.Context(main)
    for text in found:
        (servers,) = json.loads(text).values()
        (entry,) = servers.values()
        if "url" in entry:
            assert entry["url"].endswith("/mcp")
            continue
        assert entry["command"] == "forecourt"
        name, *arguments = entry["args"]
        command = main.get_command(context, name)
        assert command is not None
        assert command.make_context(name, arguments).params


def test_every_command_and_option_is_documented() -> None:
    page = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    context = click.Context(main)
    commands = main.list_commands(context)
    assert "serve" in commands
    for name in commands:
        _, heading, section = page.partition(f"\n## `forecourt {name}`\n")
        assert heading, f"forecourt {name} has no section"
        section = section.partition("\n## ")[0]
        command = main.get_command(context, name)
        assert command is not None
        for parameter in command.params:
            assert any(f"`{option}`" in section for option in parameter.opts), f"forecourt {name} {parameter.opts}"
        for inner in command.commands.values() if isinstance(command, click.Group) else ():
            _, heading, part = section.partition(f"\n### `forecourt {name} {inner.name}`\n")
            part = part.partition("\n### ")[0] if heading else section
            assert str(inner.name) in section, f"forecourt {name} {inner.name}"
            for option in (each for each in inner.params if isinstance(each, click.Option)):
                assert f"`{option.opts[0]}`" in part, f"forecourt {name} {inner.name} {option.opts}"
                assert option.help, f"forecourt {name} {inner.name} {option.opts}"


def test_the_mappings_of_feeds_that_pages_show_name_fields() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))
    shown = re.findall(r'--map "([a-z_]+)=', pages)
    assert shown
    check_mapping(dict.fromkeys(shown, ""))


def test_the_keys_that_every_target_has_are_documented() -> None:
    assert table("reference/delivery.md", "common key").keys() == set(COMMON_KEYS)


# Links and words


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if anchor:
            assert anchor in _anchors(linked), target


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_index() -> None:
    for folder in (DOCS, DOCS / "decisions"):
        index = (folder / "README.md").read_text(encoding="utf-8")
        listed = {(folder / target.partition("#")[0]).resolve() for target in _LINK.findall(index)}
        pages = folder.glob("*.md") if folder.name == "decisions" else folder.rglob("*.md")
        for page in pages:
            within = page.parent.name == "decisions" and folder == DOCS and page.name != "README.md"
            assert within or page == folder / "README.md" or page in listed, name_of(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_names_only_public_places(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for host in _ADDRESS.findall(text):
        assert _HOSTS.fullmatch(host), host
    assert not _MACHINE_PATH.search(text)


def test_decisions_are_numbered_without_gaps_and_have_their_three_parts() -> None:
    records = sorted((DOCS / "decisions").glob("0*.md"))
    for number, record in enumerate(records, 1):
        text = record.read_text(encoding="utf-8")
        assert record.name.startswith(f"{number:04d}-"), record.name
        assert text.startswith(f"# {number:04d} "), record.name
        for part in ("**Context.**", "**Decision.**", "**Consequence.**"):
            assert text.count(part) == 1, record.name
