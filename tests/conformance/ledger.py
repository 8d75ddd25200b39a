"""The requirements ledger: what the source pages ask, which tests show it, what is still open.

`requirements.toml` holds the entries and says what their fields mean. A test names the entries it shows
with ``@pytest.mark.requirement("ERR-…")``, a conformance case with ``"requirements": ["ERR-…"]``. Both are
read without running anything. ``python -m tests.conformance.ledger`` prints where the ledger stands.
"""

import ast
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = [
    "SOURCES",
    "TESTS",
    "LedgerError",
    "Requirement",
    "Section",
    "Tag",
    "collect_tags",
    "copied",
    "disagreements",
    "malformed",
    "parse_ledger",
    "read_ledger",
    "read_page",
    "report",
    "uncovered",
]

TESTS: Final = Path(__file__).resolve().parent.parent
LEDGER: Final = TESTS / "conformance" / "requirements.toml"

SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "errors": ("ERR", "Errors and retries"),
    "jsonrpc-1.1": ("RPC", "JSON-RPC 2.0 binding"),
    "a2a-error": ("A2A", "Struct A2aError"),
}
"""Per source the prefix of its ids and the title line of its page."""

LEVELS: Final = frozenset({"must", "should", "table", "fact"})
SIDES: Final = ("server", "client", "both")

_REQUIRED: Final = ("id", "source", "place", "level", "side", "text")
_OPTIONAL: Final = ("not_yet", "reason")
_ID: Final = re.compile(r"(ERR|RPC|A2A)(-[A-Z0-9]+)+")
_NOT_YET: Final = re.compile(r"issue \d+: \S.*")


class LedgerError(Exception):
    """The ledger or a tag cannot be read; the message names the file and the place."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One entry of the ledger."""

    id: str
    source: str
    place: str
    level: str
    side: str
    text: str
    not_yet: str | None = None
    reason: str | None = None

    @property
    def section(self) -> str:
        """The heading of the page's section that the place names."""
        return self.place.partition(", row ")[0]

    @property
    def row(self) -> str | None:
        """The table row (or "request", "response" of an example) that the place names."""
        return self.place.partition(", row ")[2] or None


@dataclass(frozen=True, slots=True)
class Tag:
    """One mention of a requirement by a test (`where` is path:line) or by a conformance case (its path)."""

    requirement: str
    where: str


# Reading the ledger -------------------------------------------------------------------------------


def malformed(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with the form of `entries`, as sentences; an empty list when nothing is."""
    found: list[str] = []
    for number, entry in enumerate(entries, start=1):
        name = entry.get("id") or f"entry {number}"
        found += [f"{name} lacks {field}" for field in _REQUIRED if not _filled(entry.get(field))]
        excuses = [field for field in _OPTIONAL if field in entry]
        found += [f"{name} has an empty {field}" for field in excuses if not _filled(entry[field])]
        unknown = [field for field in entry if field not in _REQUIRED + _OPTIONAL]
        found += [f"{name} has an unknown field {field}" for field in unknown]
        prefix, _ = SOURCES.get(str(entry.get("source")), (None, None))
        if prefix is None:
            found.append(f"{name} names an unknown source")
        elif not _ID.fullmatch(str(name)) or not str(name).startswith(f"{prefix}-"):
            found.append(f"{name} is no id of the form {prefix}-WORD-WORD")
        if entry.get("level") not in LEVELS:
            found.append(f"{name} has an unknown level")
        if entry.get("side") not in SIDES:
            found.append(f"{name} has an unknown side")
        if "not_yet" in entry and not _NOT_YET.fullmatch(str(entry["not_yet"])):
            found.append(f'{name}: not_yet is not of the form "issue N: what is missing"')
        if "not_yet" in entry and "reason" in entry:
            found.append(f"{name} has both not_yet and reason")
    counts = Counter(str(entry.get("id")) for entry in entries)
    return found + [f"{name} stands {count} times" for name, count in counts.items() if count > 1]


def _filled(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def parse_ledger(text: str) -> tuple[Requirement, ...]:
    """Read the entries of a ledger. Raises LedgerError that lists everything malformed."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LedgerError(f"the ledger is no TOML: {error}") from error
    entries = document.pop("requirement", [])
    found = [f"unknown table {name}" for name in document] + malformed(entries)
    if found:
        raise LedgerError("; ".join(found))
    return tuple(Requirement(**entry) for entry in entries)


def read_ledger(path: Path = LEDGER) -> tuple[Requirement, ...]:
    """Read the ledger's file. Raises LedgerError that lists everything malformed."""
    return parse_ledger(path.read_text(encoding="utf-8"))


# Reading the tags ---------------------------------------------------------------------------------


def collect_tags(tests: Path = TESTS) -> list[Tag]:
    """Return every tag under `tests`, read from the syntax trees of the tests and from the conformance cases.

    A tag on a test that is marked as skipped or as expected to fail shows nothing and is left out. Raises
    LedgerError for a tag that cannot be read statically.
    """
    tags: list[Tag] = []
    for path in sorted(tests.rglob("*.py")):
        where = path.relative_to(tests.parent).as_posix()
        tags += _marker_tags(ast.parse(path.read_text(encoding="utf-8"), filename=where), where)
    for path in sorted((tests / "conformance" / "cases").rglob("*.json")):
        where = path.relative_to(tests.parent).as_posix()
        tags += _case_tags(json.loads(path.read_text(encoding="utf-8")), where)
    return tags


def _marker_tags(tree: ast.Module, where: str) -> Iterator[Tag]:
    silent: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and any(
            _mark(decorator) in {"skip", "xfail"} for decorator in node.decorator_list
        ):
            silent.update(inner for decorator in node.decorator_list for inner in ast.walk(decorator))
            if isinstance(node, ast.ClassDef):
                silent.update(ast.walk(node))
    for node in ast.walk(tree):
        if node in silent or not isinstance(node, ast.Call) or _mark(node) != "requirement":
            continue
        if not node.args or node.keywords:
            raise LedgerError(f"{where}:{node.lineno}: the marker requirement takes ids and nothing else")
        for argument in node.args:
            if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
                raise LedgerError(f"{where}:{node.lineno}: the marker requirement takes ids as plain strings")
            yield Tag(argument.value, f"{where}:{node.lineno}")


def _mark(node: ast.expr) -> str | None:
    """Return the name of the pytest marker that `node` is or calls: `pytest.mark.skip(…)` is skip."""
    target = node.func if isinstance(node, ast.Call) else node
    if not isinstance(target, ast.Attribute):
        return None
    owner = target.value
    is_mark = (isinstance(owner, ast.Attribute) and owner.attr == "mark") or (
        isinstance(owner, ast.Name) and owner.id == "mark"
    )
    return target.attr if is_mark else None


def _case_tags(document: object, where: str) -> Iterator[Tag]:
    cases = document if isinstance(document, list) else [document]
    for case in cases:
        if not isinstance(case, dict):
            raise LedgerError(f"{where}: a conformance case is an object, or a list of objects")
        ids = case.get("requirements", [])
        if not isinstance(ids, list) or not all(isinstance(name, str) for name in ids):
            raise LedgerError(f"{where}: requirements is a list of ids")
        for name in ids:
            yield Tag(name, where)


def disagreements(ledger: Sequence[Requirement], tags: Iterable[Tag]) -> list[str]:
    """Return where the ledger and the tags disagree, as sentences.

    An entry needs a test or says why it has none; one with a test says no such thing; a tag names an entry.
    """
    shown: dict[str, list[str]] = {}
    for tag in tags:
        shown.setdefault(tag.requirement, []).append(tag.where)
    found: list[str] = []
    for entry in ledger:
        places = shown.pop(entry.id, [])
        excuse = "not_yet" if entry.not_yet else "reason" if entry.reason else None
        if not places and excuse is None:
            found.append(f"{entry.id} has no test: {entry.text}")
        elif places and excuse:
            found.append(f"{entry.id} has a test ({places[0]}); clear its {excuse}")
    return found + [f"{places[0]} names {name}, which is no entry" for name, places in shown.items()]


# Reading the source pages -------------------------------------------------------------------------

_HEADING: Final = re.compile(r"`?[a-z]+\.[a-z]+`?|[A-Z`][^\t]{0,68}[^\s.:;,]|impl[ <].*|[a-z]+: [A-Z]\S*")
_METHOD: Final = re.compile(r"pub (?:const )?fn (\w+)")
_CODE: Final = re.compile(r"[\s{}\"/#]|(?:pub |async )?fn |where |use \w+::")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=\W?[A-Z])")
_DUTY: Final = re.compile(r"\b(must|should|shall|never|sole|do not|(?:is|are) required)\b", re.IGNORECASE)
_WITHOUT_RULES: Final = frozenset(
    {
        "Open full-size diagram ↗",
        "Version: v1.1.0",
        "Implementations",
        "impl A2aError",
        "Trait Implementations",
    }
)
_EXAMPLES: Final = frozenset({"Request", "Response"})
_COPIED_RUN: Final = 10


@dataclass(slots=True)
class Section:
    """One section of a page: its heading, the rows of its tables and examples, and its prose by sentence."""

    heading: str
    rows: list[str]
    sentences: list[str]

    @property
    def duties(self) -> list[str]:
        """The sentences that command or forbid, in capitals or without."""
        return [sentence for sentence in self.sentences if _DUTY.search(sentence)]


def read_page(text: str) -> list[Section]:
    """Split the plain text of a page into its sections; a heading that comes again continues its section."""
    lines = [line.rstrip() for line in text.splitlines()]
    sections: dict[str, Section] = {}
    section: Section | None = None
    for before, line, after in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        method = _METHOD.match(line)
        if not line or line in _WITHOUT_RULES:
            continue
        if method or (not before and not after and line not in _EXAMPLES and _HEADING.fullmatch(line)):
            name = method[1] if method else line.strip("`")
            section = sections.setdefault(name, Section(name, [], []))
        elif section is None:
            raise LedgerError("the page starts without a heading")
        elif line in _EXAMPLES or "\t" in line:
            row = line.lower() if line in _EXAMPLES else line.partition("\t")[0].replace("`", "").strip()
            is_head = "\t" in line and "\t" not in before
            if not is_head and row not in section.rows:
                section.rows.append(row)
        elif not _CODE.match(line):
            section.sentences += _SENTENCE_END.split(line)
    return list(sections.values())


def uncovered(ledger: Sequence[Requirement], source: str, sections: Sequence[Section]) -> list[str]:
    """Return where the ledger falls short of the page of `source`, or names what the page does not have.

    Each heading needs an entry, each row one of its own, and each section at least as many entries of level
    must or should, rows aside, as it has sentences that command.
    """
    entries = [entry for entry in ledger if entry.source == source]
    found: list[str] = []
    for section in sections:
        here = [entry for entry in entries if entry.section == section.heading]
        if not here:
            found.append(f"{source}: nothing for the section {section.heading!r}")
        missing = [row for row in section.rows if row not in {entry.row for entry in here}]
        found += [f"{source}: nothing for {section.heading}, row {row}" for row in missing]
        commands = sum(entry.level in {"must", "should"} and entry.row is None for entry in here)
        if commands < len(section.duties):
            found.append(
                f"{source}: {commands} entries for {len(section.duties)} commands in {section.heading!r}: "
                + " / ".join(section.duties)
            )
    known = {section.heading: section.rows for section in sections}
    for entry in entries:
        if entry.section not in known or (entry.row is not None and entry.row not in known[entry.section]):
            found.append(f"{entry.id} names a place that its page does not have: {entry.place}")
    return found


def copied(ledger: Sequence[Requirement], pages: Iterable[str]) -> list[str]:
    """Return the entries whose text is a sentence of a page, or has a long run of a page's words."""
    runs: set[tuple[str, ...]] = set()
    sentences: set[tuple[str, ...]] = set()
    for page in pages:
        for line in page.splitlines():
            runs.update(_runs(_words(line)))
            sentences.update(_words(sentence) for sentence in _SENTENCE_END.split(line))
    return [
        f"{entry.id} copies its page: {entry.text}"
        for entry in ledger
        if _words(entry.text) in sentences or not runs.isdisjoint(_runs(_words(entry.text)))
    ]


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text.lower()))


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(words[start : start + _COPIED_RUN]) for start in range(len(words) - _COPIED_RUN + 1))


# The report ---------------------------------------------------------------------------------------


def report(ledger: Sequence[Requirement], tags: Iterable[Tag]) -> str:
    """Return a table: how many entries per source and side are tested, not yet, reasoned, or simply open."""
    shown = {tag.requirement for tag in tags}
    columns = ("tested", "not yet", "reasoned", "open")
    counts: Counter[tuple[str, str, str]] = Counter()
    for entry in ledger:
        excuse = "not yet" if entry.not_yet else "reasoned" if entry.reason else "open"
        state = "tested" if entry.id in shown else excuse
        for source, side in ((entry.source, entry.side), ("all", "")):
            counts[source, side, state] += 1
    lines = [f"{'source':<12} {'side':<7}" + "".join(f"{column:>10}" for column in columns)]
    for source, side in [*((source, side) for source in SOURCES for side in SIDES), ("all", "")]:
        numbers = [counts[source, side, column] for column in columns]
        if any(numbers):
            lines.append(f"{source:<12} {side:<7}" + "".join(f"{number:>10}" for number in numbers))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(report(read_ledger(), collect_tags()))
