"""What became of every row of a feed, bounded in memory however long and however bad the feed is."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

__all__ = ["Finding", "Kind", "Report"]

Kind = Literal["refused", "left_out", "duplicate", "repaired", "warning"]
"""`refused`: not imported because of a fault. `left_out`: not for retail, or sold. `duplicate`: another row of the
same vehicle counts. `repaired`: imported, but a value was changed or dropped. `warning`: imported as it is, but worth
a look."""

_KINDS: Final[tuple[Kind, ...]] = ("refused", "left_out", "duplicate", "repaired", "warning")
_KEPT: Final = 1000
_NAMES: Final = 500
_NAME_LENGTH: Final = 80


class Finding(NamedTuple):
    """One thing that was found: in which row, about which field ("" for the row as a whole), and why.

    `line` is the physical line at which the row begins. `reason` never holds a value of the row.
    """

    kind: Kind
    line: int
    field: str
    reason: str


@dataclass(slots=True)
class Report:
    """An honest account of one reading of one feed.

    `rows` read = `imported` + refused + left out + duplicates. `changed`, `unchanged`, `added` and `removed` are
    known only when the stock was replaced; whoever does that says so with `stored`.
    """

    format: str = ""
    encoding: str = ""
    rows: int = 0
    imported: int = 0
    added: int | None = None
    changed: int | None = None
    unchanged: int | None = None
    removed: int | None = None
    findings: list[Finding] = field(default_factory=list)
    """At most 1000 of each kind, in the order of the file."""
    counts: Counter[tuple[Kind, str, str]] = field(default_factory=Counter)
    """How often each (kind, field, reason) occurred, those beyond the kept findings included."""
    warnings: list[str] = field(default_factory=list)
    """About the file as a whole."""
    unmapped_columns: list[str] = field(default_factory=list)
    """Columns that no alias and no mapping knows."""
    ignored_columns: list[str] = field(default_factory=list)
    """Columns that are known and left out on purpose: what the dealer paid, addresses, measurements of the exporter."""
    _kept: Counter[Kind] = field(default_factory=Counter)

    def add(self, kind: Kind, line: int, about: str, reason: str) -> None:
        """Note one finding."""
        self.counts[kind, about, reason] += 1
        if self._kept[kind] < _KEPT:
            self._kept[kind] += 1
            self.findings.append(Finding(kind, line, about, reason))

    def refuse(self, line: int, reason: str) -> None:
        """Note a row that could not even be read."""
        self.rows += 1
        self.add("refused", line, "", reason)

    def warn(self, text: str) -> None:
        """Note something about the file as a whole, once."""
        if text not in self.warnings and len(self.warnings) < _NAMES:
            self.warnings.append(text)

    def name_columns(self, unmapped: Iterable[str], ignored: Iterable[str]) -> None:
        """Note columns that nothing is made of; each is listed once, at most 500 of each sort."""
        for names, noted in ((unmapped, self.unmapped_columns), (ignored, self.ignored_columns)):
            for name in names:
                short = name[:_NAME_LENGTH]
                if short not in noted and len(noted) < _NAMES:
                    noted.append(short)

    def stored(self, *, added: int, changed: int, unchanged: int, removed: int) -> None:
        """Note what replacing the stock did."""
        self.added, self.changed, self.unchanged, self.removed = added, changed, unchanged, removed

    def total(self, kind: Kind) -> int:
        """Return how many findings of a kind there were; of the first three kinds, that is how many rows."""
        return sum([count for (each, _, _), count in self.counts.items() if each == kind])

    @property
    def refused(self) -> int:
        """Rows that were not imported because of a fault."""
        return self.total("refused")

    def to_payload(self) -> dict[str, Any]:
        """Return the report as JSON values; members that are not known yet are absent."""
        known = {name: getattr(self, name) for name in ("added", "changed", "unchanged", "removed")}
        return {
            "format": self.format,
            "encoding": self.encoding,
            "rows": self.rows,
            "imported": self.imported,
            **{kind: self.total(kind) for kind in _KINDS},
            **{name: count for name, count in known.items() if count is not None},
            "reasons": [
                {"kind": kind, "field": about, "reason": reason, "count": count}
                for (kind, about, reason), count in sorted(self.counts.items())
            ],
            "findings": [finding._asdict() for finding in self.findings],
            "not_listed": sum(self.counts.values()) - len(self.findings),
            "warnings": list(self.warnings),
            "unmapped_columns": list(self.unmapped_columns),
            "ignored_columns": list(self.ignored_columns),
        }

    def lines(self, findings: int = 50) -> list[str]:
        """Return the report for a person to read, without markup; at most `findings` single findings."""
        known = {
            "rows read": self.rows, "imported": self.imported, "added": self.added, "changed": self.changed,
            "unchanged": self.unchanged, "removed": self.removed,
            **{kind.replace("_", " "): self.total(kind) for kind in ("refused", "left_out", "duplicate")},
            "values repaired": self.total("repaired"), "values to look at": self.total("warning"),
        }  # fmt: skip
        width = max(map(len, known))
        lines = [f"{name:<{width}}  {count}" for name, count in known.items() if count is not None]
        lines += [f"warning: {text}" for text in self.warnings]
        for finding in self.findings[:findings]:
            about = f" {finding.field}:" if finding.field else ""
            lines.append(f"line {finding.line}: {finding.kind.replace('_', ' ')}:{about} {finding.reason}")
        rest = sum(self.counts.values()) - min(findings, len(self.findings))
        if rest:
            lines.append(f"and {rest} more")
        if self.unmapped_columns:
            lines.append(f"columns that nothing was made of: {', '.join(self.unmapped_columns)}")
        if self.ignored_columns:
            lines.append(f"columns left out on purpose: {', '.join(self.ignored_columns)}")
        return lines
