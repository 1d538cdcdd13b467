"""Which column is meant by a name: by the name itself, else by what offices call the same thing."""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from chathands.workers.cells import plain
from chathands.workers.protocol import Rejected

_WORDS = json.loads(Path(__file__).with_name("office_words.json").read_text("utf-8"))
_BEFORE: list[str] = _WORDS["before"]
_AFTER: list[str] = _WORDS["after"]
_CHANGING: list[str] = _WORDS["changing"]
_UNITS = frozenset(_WORDS["units"])
_GROUPS = {term: at for at, group in enumerate(_WORDS["synonyms"]) for term in group}

_BRACKETED = re.compile(r"[(\[{【〔<《].*?[)\]}】〕>》]")
_BREAKS = re.compile(r"[\W_]+")
_LONGEST = 60
"""Characters of a name that are looked at; headings are cut there, too."""

_LISTED = 40


class NoColumn(Rejected):
    """`wanted` names no column of the table; `head` says so, without what there is instead."""

    def __init__(self, wanted: str, head: str, names: Sequence[str]) -> None:
        super().__init__(f"{head}这张表的列有：{'、'.join(names[:_LISTED])}。")
        self.wanted = wanted
        self.head = head


class UnreadCondition(NoColumn):
    """`wanted` is a whole condition, in which no operator was found."""


class SeveralColumns(Rejected):
    """A name that fits more than one column."""

    def __init__(self, wanted: str, names: Sequence[str]) -> None:
        several = "、".join(names[:8])
        super().__init__(f"列「{wanted[:_LONGEST]}」对应不止一列：{several}。请写完整的列名。")


class ColumnFinder:
    """Finds the columns of one table. `loose`: by other words for the same thing as well; only for
    names that no visible sheet has, or a sheet with the very column would be passed over."""

    def __init__(self, names: Sequence[str], *, loose: bool = False) -> None:
        self.names = names
        self.loose = loose
        self.guessed: dict[str, str] = {}
        """Name asked for → column that was taken by other words."""
        self.readings: list[str] = []
        """A phrase for each column that was taken under another name."""

    def find(self, wanted: str) -> int:
        """Position of the column. Raises NoColumn or SeveralColumns."""
        try:
            return self.find_plainly(wanted)
        except NoColumn:
            found = alike(wanted, self.names) if self.loose else []
            if not found:
                raise
        if len(found) > 1:
            raise SeveralColumns(wanted, [self.names[at] for at in found])
        self.guessed[wanted] = self.names[found[0]]
        self._tell(wanted, found[0])
        return found[0]

    def find_plainly(self, wanted: str) -> int:
        """As `find`, by the name itself only: whole, without brackets, or the only one it is in."""
        found = called(wanted, self.names)
        if len(found) > 1:
            raise SeveralColumns(wanted, [self.names[at] for at in found])
        if found:
            name = self.names[found[0]]
            if bare(wanted) not in (bare(name), bare(name.split("/")[-1])):
                self._tell(wanted, found[0])
            return found[0]
        key, keys = plain(wanted), [plain(name) for name in self.names]
        close = difflib.get_close_matches(key, keys, n=1, cutoff=0.75)
        hint = f"是不是「{self.names[keys.index(close[0])]}」？" if close else ""
        raise NoColumn(wanted, f"没有列「{wanted[:_LONGEST]}」。{hint}", self.names)

    def _tell(self, wanted: str, at: int) -> None:
        reading = f"「{wanted}」按列「{self.names[at]}」算"
        if reading not in self.readings:
            self.readings.append(reading)


def called(wanted: str, names: Sequence[str]) -> list[int]:
    """Positions of the columns of this very name, or the ones it is a part of; best kind only."""
    key = plain(wanted)
    keys = [plain(name) for name in names]
    for same in (
        lambda name: name == key,
        lambda name: re.sub(r"[(（].*?[)）]", "", name) == key,
        lambda name: name.split("/")[-1] == key,
        lambda name: bool(key) and key in name,
    ):
        if found := [at for at, name in enumerate(keys) if same(name)]:
            return found
    return []


def split_names(texts: Sequence[str], names: Sequence[str] = ()) -> list[str]:
    """Column names; one text may hold several (`区域、产品`) unless one of `names` is called so."""
    known = {plain(name) for name in names}
    parts: list[str] = []
    for text in texts:
        parts += [text] if plain(text) in known else re.split(r"[,，、;；]", text)
    return [part.strip() for part in parts if part.strip()]


def alike(wanted: str, names: Sequence[str]) -> list[int]:
    """Positions of the columns that mean what `wanted` says in other words; best kind only.

    Words that mean an office thing (`营业额`) are looked up among its synonyms and nowhere else:
    `订单数量` is a count of orders, though it contains `数量`.
    """
    key = bare(wanted)
    bares = [bare(name) for name in names]
    if not key:
        return []
    if same := [at for at, name in enumerate(bares) if name == key]:
        return same
    if (meant := _meaning(key)) is not None:
        lasts = [bare(name.split("/")[-1]) for name in names]
        return [
            at
            for at, pair in enumerate(zip(bares, lasts, strict=True))
            if any(_same_thing(meant, _meaning(name)) for name in pair)
        ]
    if same := [
        at for at, name in enumerate(bares) if name and (name in _cores(key) or key in _cores(name))
    ]:
        return same
    return _containing(key, bares)


def _containing(key: str, names: Sequence[str]) -> list[int]:
    """Columns within the name asked for, or that it is within; the longest where they overlap."""
    inside = [name for name in names if len(name) > 1 and name in key]
    whole = {name for name in inside if not any(name != o and name in o for o in inside)}
    found = [
        at
        for at, name in enumerate(names)
        if name in whole and not any(word in key.replace(name, " ", 1) for word in _CHANGING)
    ]
    return found or [at for at, name in enumerate(names) if len(key) > 1 and key in name]


@lru_cache(maxsize=512)
def bare(name: str) -> str:
    """A name without case, width, punctuation, brackets and units: ` 金额（万元）` → `金额`."""
    text = unicodedata.normalize("NFKC", name[:_LONGEST]).casefold()
    parts = _BREAKS.split(_BRACKETED.sub(" ", text)) if _BRACKETED.sub("", text).strip() else []
    parts = [part for part in parts or _BREAKS.split(text) if part]
    while len(parts) > 1 and parts[-1] in _UNITS:
        parts.pop()
    return "".join(parts)


@lru_cache(maxsize=512)
def _cores(name: str) -> tuple[str, ...]:
    """The name with words that say nothing taken off its ends, longest first; itself not."""
    found: set[str] = set()
    left = [name]
    while left:
        text = left.pop()
        shorter = [text[len(word) :] for word in _BEFORE if text.startswith(word)]
        shorter += [text[: -len(word)] for word in _AFTER if text.endswith(word)]
        new = {each for each in shorter if len(each) > 1} - found
        found |= new
        left += new
    return tuple(sorted(found, key=lambda text: (-len(text), text)))


@dataclass(frozen=True, slots=True)
class _Meaning:
    """A group of synonyms, and whether the name stands there as it is, nothing taken off."""

    group: int
    as_it_is: bool


def _meaning(name: str) -> _Meaning | None:
    if name in _GROUPS:
        return _Meaning(_GROUPS[name], True)
    core = next((core for core in _cores(name) if core in _GROUPS), None)
    return None if core is None else _Meaning(_GROUPS[core], False)


def _same_thing(one: _Meaning, other: _Meaning | None) -> bool:
    """Not if both were shortened: 客户类型 and 产品类型 are types of different things."""
    return other is not None and one.group == other.group and (one.as_it_is or other.as_it_is)
