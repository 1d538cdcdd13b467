"""Which file is meant by a vague name. Pure: names in, one name or none out."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

_WORDS = json.loads(Path(__file__).with_name("words.json").read_text("utf-8"))
_FILLER = sorted(_WORDS["filler"], key=len, reverse=True)
_TRANSLATIONS: dict[str, list[str]] = _WORDS["translations"]

_ROOTS = re.compile(r"(?:\./)?(?:data/)?(?:shared/)?")
"""Prefixes people copy from documentation; paths here begin below them."""

_NUMERALS = dict(zip("一二三四五六七八九十", range(1, 11), strict=True)) | {"十一": 11, "十二": 12}
_SPELLED_MONTH = re.compile(r"(十[一二]?|[一二三四五六七八九])(?=月)")
_SUFFIX = re.compile(r"\.[a-z]{3,4}$")
_NUMBER = re.compile(r"\d+")
_UNITS = re.compile(r"(?<=\d)(?:年度?|月份?|[日号季周])")
_BREAKS = re.compile(r"[^0-9a-z\u3400-\u9fff]+")


def clear_match(wanted: str, names: Sequence[str]) -> str | None:
    """The only one of `names` that `wanted` can mean; None when there is none, or several."""
    found = matches(wanted, names)
    return found[0] if len(found) == 1 else None


def matches(wanted: str, names: Sequence[str]) -> list[str]:
    """Those of `names` that `wanted` can mean.

    First as a path with something left out or another extension (`09.xlsx`, `2024/09`), then by
    what it says: every number must occur in the path, and every word, or its translation. A wrong
    file is worse than a question, so a word that does not occur rules the file out.
    """
    said = _plain(wanted)
    for same in (_is_path_of, _says):
        found = [name for name in names if same(said, _plain(name))]
        if found:
            return found
    return []


def says(said: str, name: str, *, vague: bool = False) -> bool:
    """Whether a path has everything that is said about it; `vague`: also when that is nothing."""
    said, name = _plain(said), _plain(name)
    if vague and not _numbers(said) and not any(_core(word) for word in _words(said)):
        return True
    return _says(said, name)


def holds(name: str, said: str) -> bool:
    """Whether a path has these very words, which then mean nothing else: `上个月对账.xlsx`."""
    words = _SUFFIX.sub("", _plain(said))
    return bool(_core(words)) and words in _plain(name)


def numbers_in(path: str) -> set[int]:
    """`sales/202409.xlsx` → 2024 and 9; months may be spelled."""
    return _numbers(_plain(path))


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).strip().casefold().replace("\\", "/")
    return _SPELLED_MONTH.sub(lambda match: str(_NUMERALS[match[1]]), text)


def _is_path_of(said: str, name: str) -> bool:
    said = _SUFFIX.sub("", _ROOTS.sub("", said, count=1)).strip("/")
    name = _SUFFIX.sub("", name)
    return bool(said) and (name == said or name.endswith(f"/{said}"))


def _says(said: str, name: str) -> bool:
    said = _SUFFIX.sub("", said)
    numbers = _numbers(said)
    words = _words(said)
    if not (numbers or any(_core(word) for word in words)) or not numbers <= _numbers(name):
        return False
    return all(word in name or all(_names(part, name) for part in _core(word)) for word in words)


def _numbers(text: str) -> set[int]:
    """`202409` is a year and a month."""
    found: set[int] = set()
    for run in _NUMBER.findall(text):
        if len(run) in (6, 8) and run.startswith(("19", "20")):
            found |= {int(run[:4]), *(int(run[at : at + 2]) for at in range(4, len(run), 2))}
        else:
            found.add(int(run))
    return found


def _words(text: str) -> list[str]:
    """What stands between numbers, their units, and punctuation."""
    return [word for word in _BREAKS.split(_NUMBER.sub(" ", _UNITS.sub(" ", text))) if word]


def _core(word: str) -> list[str]:
    """A word without filler: `销售数据表` is about 销售; nothing may be left."""
    for filler in _FILLER:
        word = word.replace(filler, " ")
    return [part.removesuffix("表") for part in word.split() if part != "表"]


def _names(word: str, name: str) -> bool:
    """Whether the path has the word, in either language; compounds (`销售考勤`) part by part."""
    if word in name:
        return True
    for known, translations in _TRANSLATIONS.items():
        # At the beginning of a word only: `hr` is not meant by `chrome`.
        translated = any(re.search(rf"(?<![a-z]){each}", name) for each in translations)
        if known in word and (known in name or translated):
            rest = word.replace(known, "")
            return not rest or _names(rest, name)
    return False
