"""File names as people and models write them: what is refused, and which file was meant."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher

from chathands.errors import ToolDenied, ToolFailed

LONGEST_PATH = 400
"""Characters of a path; no office has deeper folders, and sentences quote it."""
LONGEST_PART = 255
"""Bytes of one name, what file systems take."""

_DRIVE = re.compile(r"[A-Za-z]:")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)")
"""Names that Windows takes for devices whatever stands behind the dot."""


def path_parts(path: str) -> tuple[str, ...]:
    """The steps of a relative path, both slashes being separators.

    Raises ToolFailed or ToolDenied with one sentence for everything that is not one.
    """
    if not isinstance(path, str) or not path.strip():
        raise ToolFailed("没有给出文件名。")
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in path):
        raise ToolDenied("文件名里有不可见的控制字符，不能读取。")
    if len(path) > LONGEST_PATH:
        raise ToolFailed("文件名太长，请只写文件名。")
    path = unicodedata.normalize("NFC", path.strip().replace("\\", "/"))
    if path.startswith("//"):
        raise ToolDenied("不能读取网络路径，请只写数据目录里的文件名。")
    if path.startswith("/") or _DRIVE.match(path):
        raise ToolDenied("不能用绝对路径，请只写数据目录里的文件名。")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise ToolDenied("路径里不能有 ..，请只写数据目录里的文件名。")
    if not parts:
        raise ToolFailed("没有给出文件名。")
    for part in parts:
        if len(part.encode()) > LONGEST_PART:
            raise ToolFailed("文件名太长，请只写文件名。")
        if part.startswith("."):
            raise ToolDenied("不能读取隐藏文件。")
        if os.name == "nt" and (":" in part or _RESERVED.match(part)):
            raise ToolDenied("这个名字在 Windows 上不是普通文件，不能读取。")
    return parts


def listable(name: str) -> bool:
    """Whether a directory entry is shown: not hidden, no Office lock file, and readable back."""
    if name.startswith((".", "~$")):
        return False
    try:
        return path_parts(name) == (unicodedata.normalize("NFC", name),)
    except (ToolFailed, ToolDenied):
        return False


def directory_name(identifier: str) -> str:
    """A directory name for a user or group id.

    Digits and lower-case names stay as they are; anything else is spelled safely and gets a piece
    of its hash, so that two ids never share a directory (also where case does not count).
    """
    plain = re.fullmatch(r"[0-9a-z][0-9a-z_-]{0,63}", identifier)
    if plain and not _RESERVED.match(identifier):
        return identifier
    safe = re.sub(r"[^0-9a-z_-]+", "_", identifier.casefold())[:40].strip("_-") or "id"
    digest = hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{safe}-{digest}"


_NUMERALS = {n: str(i) for i, n in enumerate([*"一二三四五六七八九十", "十一", "十二"], 1)}
_MONTH_WORD = re.compile(r"(十[一二]?|[一二三四五六七八九])(?=月|季|号|日|周)")
_FILLER = re.compile(r"[\s_\-.·()（）【】\[\]年月日号份的]+")
_DIGITS = re.compile(r"\d+")


def nearest_paths(wanted: str, paths: Iterable[str], count: int = 5) -> list[str]:
    """The paths whose names come nearest to `wanted`, best first.

    `9月销售` finds `销售_2025-09.xlsx`.
    Letters and numbers are compared apart: numbers without their zeros, 九月 as 9月.
    """
    words, numbers = _features(wanted)
    scored = []
    for path in paths:
        its_words, its_numbers = _features(path)
        alike = SequenceMatcher(None, words, its_words, autojunk=False).ratio()
        if words and (words in its_words or its_words in words) and its_words:
            alike = max(alike, 0.8)
        if numbers:
            shared = len(numbers & its_numbers) / len(numbers)
            score = 0.65 * alike + 0.35 * shared if words else shared
        else:
            score = alike
        if score >= 0.4:
            scored.append((-score, path))
    return [path for _, path in sorted(scored)[:count]]


def _features(path: str) -> tuple[str, frozenset[str]]:
    stem = re.sub(r"\.[A-Za-z0-9]{1,5}$", "", path.replace("\\", "/").rsplit("/", 1)[-1])
    text = unicodedata.normalize("NFKC", stem).casefold()[:120]
    text = _MONTH_WORD.sub(lambda m: _NUMERALS[m[1]], text)
    numbers = frozenset(str(int(d)) for run in _DIGITS.findall(text) for d in _dates(run))
    return _FILLER.sub("", _DIGITS.sub(" ", text)), numbers


def _dates(run: str) -> list[str]:
    """`202509` and `20250901` are a year and a month (and a day), not one number."""
    if len(run) in (6, 8) and run.startswith(("19", "20")):
        return [run[:4], run[4:6], *([run[6:]] if len(run) == 8 else [])]
    return [run]
