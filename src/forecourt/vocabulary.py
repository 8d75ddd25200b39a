"""The feature vocabulary: codes that buyers filter by, found in the free texts of listings.

Ours (CONTRACTS.md, section 5): AAP 3.1 names `features_all`, `features_any`, `features_none` and feature
codes, and leaves to the deployment which codes it recognises. The packaged ones are in `vocabulary.toml`;
an operator's file of the same shape adds codes, or aliases to a code.

How a text is read: case, accents, punctuation and spacing do not matter. An alias is found where its words
stand in the text as one run of whole words; from left to right the longest alias wins, and what it covers
is not looked at again ("rear heated seats" does not also state "heated seats"). Commas, semicolons,
brackets and the like end a run. What a text denies ("no sunroof", "w/o navigation or sunroof", "sunroof
delete", "heated seats: no") is not found. In doubt a feature is left out: "no sunroof and navigation"
states neither.
"""

import difflib
import functools
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

__all__ = ["Vocabulary", "VocabularyError"]

_CODE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_CODE_LENGTH = 64
_MEMBERS = frozenset({"label", "aliases", "implies", "also"})

# Feeds of millions of rows repeat a few thousand texts. Only short ones are remembered, so that the memory is
# bounded by about 65,536 times 200 characters.
_REMEMBERED_TEXTS = 65_536
_REMEMBERED_LENGTH = 200

_BREAK = "|"
_BREAKS = ",;|()[]{}<>!?\n\r\t\u2022\u00b7\u25cf\u25aa"
# Left out without a space: apostrophes of all kinds; the registered, trade mark, copyright and degree signs.
_JOINED = "'`\u2019\u02bc\u00b4\u00ae\u2122\u00a9\u00b0"
_TABLE: Final[dict[int, str]] = {
    **{code: " " for code in range(128) if not chr(code).isalnum()},
    **{ord(character): f" {_BREAK} " for character in _BREAKS},
    **{ord(character): "" for character in _JOINED},
    ord("&"): " and ",
    ord("+"): " and ",
}

_DENIED_BEFORE = frozenset({"no", "non", "not", "without", "wout", "wo", "less", "minus", "lacks", "lacking"})
_DENIED_AFTER = frozenset({"delete", "deleted", "removed", "unavailable", "not", "missing", "ready"})
_DENIED_LAST = frozenset({"no", "none", "false", "na", "n"})
_FILLERS = frozenset({"a", "an", "any", "the", "equipped", "with", "factory", "power", "have", "include"})
_FURTHER = frozenset({"or", "nor", "and"})
_FILLERS_BETWEEN = 3


class VocabularyError(ValueError):
    """Vocabulary files cannot be used; `problems` lists all there is, each as "file: key: what is wrong"."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class _Node:
    """One word further in the tree of aliases; `codes` is not empty where an alias ends."""

    __slots__ = ("codes", "next")

    def __init__(self) -> None:
        self.next: dict[str, _Node] = {}
        self.codes: tuple[str, ...] = ()


class Vocabulary:
    """Feature codes with their labels and aliases. Never changes for its users; threads may share it."""

    def __init__(self, labels: dict[str, str], aliases: dict[tuple[str, ...], tuple[str, ...]]) -> None:
        """Build from `labels` by code, and from the words of each alias to the codes that it states.

        Callers use `packaged` or `load`, which check what they read.
        """
        self._labels = labels
        self.codes: tuple[str, ...] = tuple(sorted(labels))
        """Every code, in alphabetical order."""
        self._root = _Node()
        for words, codes in aliases.items():
            node = self._root
            for word in words:
                node = node.next.setdefault(word, _Node())
            node.codes = codes
        self._remembered: dict[str, tuple[str, ...]] = {}

    @staticmethod
    def packaged() -> "Vocabulary":
        """Return the vocabulary that comes with the package; read once."""
        return _packaged()

    @staticmethod
    def load(paths: Iterable[str | Path] = ()) -> "Vocabulary":
        """Return the packaged vocabulary extended by the TOML files at `paths`, in their order.

        A file may add codes (with `label` and `aliases`), add aliases to a code that exists, and give such a
        code another label. Raises `VocabularyError` with all problems of all files.
        """
        reading = _Reading()
        reading.add(resources.files("forecourt").joinpath("vocabulary.toml"), "vocabulary.toml")
        for path in paths:
            reading.add(Path(path), str(path))
        aliases = reading.finish()
        return Vocabulary(reading.labels, aliases)

    def __contains__(self, code: object) -> bool:
        """Tell whether `code` is a code of this vocabulary."""
        return code in self._labels

    def label(self, code: str) -> str:
        """Return what a person reads for `code`. Raises KeyError for a code that is not in the vocabulary."""
        return self._labels[code]

    def recognise(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return the codes that the free texts of one listing state, sorted and each once."""
        remembered = self._remembered
        found: set[str] = set()
        for text in texts:
            codes = remembered.get(text)
            if codes is None:
                codes = tuple(self._read(text))
                if len(text) <= _REMEMBERED_LENGTH:
                    if len(remembered) >= _REMEMBERED_TEXTS:
                        remembered.clear()
                    remembered[text] = codes
            if codes:
                found.update(codes)
        return tuple(sorted(found))

    def closest(self, code: str) -> str | None:
        """Return the code that `code` was probably meant to be, for a hint; None when nothing is near."""
        if len(code) > _CODE_LENGTH:
            return None
        spoken = self.recognise([code.replace("_", " ")])
        if len(spoken) == 1:
            return spoken[0]
        near = difflib.get_close_matches(code.lower(), self.codes, n=1, cutoff=0.75)
        return near[0] if near else None

    def _read(self, text: str) -> Iterator[str]:
        """Yield the codes of one text: leftmost and longest aliases that are not denied."""
        words = _words(text)
        count = len(words)
        root = self._root.next
        at = 0
        denied_until = -1
        while at < count:
            node = root.get(words[at])
            if node is None:
                at += 1
                continue
            codes, end, ahead = node.codes, at + 1, at + 1
            while ahead < count and (further := node.next.get(words[ahead])) is not None:
                node = further
                ahead += 1
                if node.codes:
                    codes, end = node.codes, ahead
            if not codes:
                at += 1
                continue
            # A denial goes on over "or", "and" and a slash: "w/o navigation or sunroof", "no sunroof/navigation".
            goes_on = denied_until == at or (denied_until == at - 1 and words[at - 1] in _FURTHER)
            if goes_on or _denied(words, at, end):
                denied_until = end
            else:
                yield from codes
            at = end


@functools.cache
def _packaged() -> Vocabulary:
    return Vocabulary.load()


def _words(text: str) -> list[str]:
    """Split `text` into comparable words; a word `|` stands where punctuation ends a run."""
    if text.isascii():
        return text.lower().translate(_TABLE).split()
    # Breaks and joined signs go first: NFKD would spell the trade mark sign out as the letters "TM".
    folded = unicodedata.normalize("NFKD", text.translate(_TABLE).casefold())
    return "".join([
        character if character.isalnum() or character == _BREAK else " "
        for character in folded
        if not unicodedata.combining(character)
    ]).split()  # fmt: skip


def _denied(words: list[str], start: int, end: int) -> bool:
    """Tell whether the text denies the alias at `words[start:end]`: right before it, or right after it."""
    if end < len(words):
        after = words[end]
        if after in _DENIED_AFTER:
            return True
        last = end + 1 == len(words) or words[end + 1] == _BREAK
        if after in _DENIED_LAST and (last or words[end : end + 2] == ["n", "a"]):
            return True
    at = start - 1
    if at < 0:
        return False
    if words[at] not in _FILLERS and not _denies(words, at) and words[at] != _BREAK:
        at -= 1  # one word of any kind may describe what is denied: "no rear heated seats"
    for place in range(at, max(at - _FILLERS_BETWEEN, 0) - 1, -1):
        if _denies(words, place):
            return True
        if words[place] not in _FILLERS:
            return False
    return False


def _denies(words: list[str], at: int) -> bool:
    """Tell whether a denial ends at `at`; "w/o" and "w/out" come as two words."""
    word = words[at]
    return word in _DENIED_BEFORE or (word in ("o", "out") and at > 0 and words[at - 1] == "w")


class _Reading:
    """Gathers vocabulary files into labels and aliases, and every problem with them."""

    def __init__(self) -> None:
        self.labels: dict[str, str] = {}
        self._owners: dict[tuple[str, ...], str] = {}
        self._also: dict[tuple[str, ...], tuple[str, list[str]]] = {}
        self._implies: dict[str, tuple[str, list[str]]] = {}
        self._problems: list[str] = []

    def add(self, file: Path | Traversable, name: str) -> None:
        """Read one file; `name` is what problems call it."""
        try:
            document = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError:
            self._problems.append(f"{name}: cannot be read")
            return
        except UnicodeDecodeError:
            self._problems.append(f"{name}: is not UTF-8")
            return
        except tomllib.TOMLDecodeError as error:
            self._problems.append(f"{name}: is not TOML: {error}")
            return
        for code, entry in document.items():
            self._add_code(f"{name}: {code}", code, entry)

    def finish(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """Return the codes that each alias states. Raises `VocabularyError` if anything was wrong."""
        for place, codes in (*self._also.values(), *self._implies.values()):
            unknown = [code for code in codes if code not in self.labels]
            self._problems.extend(f"{place}: {code!r} is not a code" for code in unknown)
        if self._problems:
            raise VocabularyError(self._problems)
        return {
            words: self._with_implied([owner, *self._also.get(words, ("", []))[1]])
            for words, owner in self._owners.items()
        }

    def _with_implied(self, codes: list[str]) -> tuple[str, ...]:
        stated = dict.fromkeys(codes)
        waiting = list(stated)
        while waiting:
            for implied in self._implies.get(waiting.pop(), ("", []))[1]:
                if implied not in stated:
                    stated[implied] = None
                    waiting.append(implied)
        return tuple(stated)

    def _add_code(self, place: str, code: str, entry: object) -> None:
        if len(code) > _CODE_LENGTH or not _CODE.fullmatch(code):
            self._problems.append(f"{place}: a code is snake_case of at most {_CODE_LENGTH} characters")
            return
        if not isinstance(entry, dict):
            self._problems.append(f"{place}: must be a table with label and aliases")
            return
        self._problems.extend(f"{place}.{member}: unknown key" for member in entry if member not in _MEMBERS)
        is_new = code not in self.labels
        label = entry.get("label", self.labels.get(code))
        if not isinstance(label, str) or not label.strip():
            self._problems.append(f"{place}.label: must be a text that is not blank")
            label = code
        self.labels[code] = label
        aliases = self._texts(f"{place}.aliases", entry.get("aliases", []))
        if is_new and not entry.get("aliases"):
            self._problems.append(f"{place}.aliases: a new code needs at least one alias")
        for alias in aliases:
            self._add_alias(f"{place}.aliases", code, alias)
        implied = self._texts(f"{place}.implies", entry.get("implies", []))
        self._implies[code] = (f"{place}.implies", self._implies.get(code, ("", []))[1] + implied)
        self._add_also(f"{place}.also", code, entry.get("also", {}))

    def _add_alias(self, place: str, code: str, alias: str) -> None:
        words = tuple(_words(alias))
        if not words or _BREAK in words:
            self._problems.append(f"{place}: {alias!r} must be words without commas or brackets")
            return
        owner = self._owners.setdefault(words, code)
        if owner != code:
            self._problems.append(f"{place}: {alias!r} already belongs to {owner}")

    def _add_also(self, place: str, code: str, table: object) -> None:
        if not isinstance(table, dict):
            self._problems.append(f"{place}: must be a table of alias to codes")
            return
        for alias, codes in table.items():
            words = tuple(_words(alias))
            if self._owners.get(words) != code:
                self._problems.append(f"{place}: {alias!r} is not an alias of {code}")
                continue
            self._also[words] = (place, self._texts(f"{place}.{alias}", codes))

    def _texts(self, place: str, value: object) -> list[str]:
        if isinstance(value, list) and all(isinstance(text, str) for text in value):
            return list(value)
        self._problems.append(f"{place}: must be an array of texts")
        return []
