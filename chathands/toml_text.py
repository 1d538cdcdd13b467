"""TOML that admins write: reading a file, and saying in Chinese at which line what is wrong."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chathands.errors import ConfigError

MAX_BYTES = 1_000_000
"""Of a file; rules for a hundred tools are 20 kB."""

_HEADER = re.compile(r"\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(?:#.*)?")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_TOML_PLACE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


class Mistake(Exception):
    """Something in the file; `line` counts from 1."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what)
        self.what = f"第 {line} 行，{what}" if line else what

    def as_error(self, path: Path, then: str) -> ConfigError:
        sentence = f"{path.name} 有误：{self.what}。{then}"
        return ConfigError(f"{path}: {self.what}", sentence=sentence)


def read_text(path: Path) -> str | None:
    """The text; None when there is no such file. Raises Mistake."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise Mistake(f"超过 {MAX_BYTES} 字节")
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        what = f"读不出来（{type(error).__name__}），请检查权限和编码（UTF-8）"
        raise Mistake(what) from error


def parse(text: str) -> dict[str, Any]:
    """Raises Mistake."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(str(error), text) from None
    except RecursionError:
        raise Mistake("嵌套太深") from None


def line_of(text: str, where: Sequence[str]) -> int | None:
    """The line where this key is written, or the nearest table around it; the parser does not
    say. Guesses by the look of lines, which is enough to find the place."""
    best, found = 0, None
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        path: list[str] = []
        if header := _HEADER.fullmatch(line):
            path = table = _parts(header[1])
        elif key := _KEY.match(line):
            path = [*table, *_parts(key[1])]
        if len(path) > best and list(where[: len(path)]) == path:
            best, found = len(path), number
    return found


def _not_toml(said: str, text: str) -> Mistake:
    """The library says where in English, at the end of its sentence."""
    place = _TOML_PLACE.search(said)
    line = None
    if place:
        said = said[: place.start()]
        line = int(place[1]) if place[1] else text.count("\n") + 1
    return Mistake(f"不是合法的 TOML：{said}", line)


def _parts(dotted: str) -> list[str]:
    """Of a dotted key; dots inside quotes belong to the part."""
    found = re.findall(r""""([^"]*)"|'([^']*)'|([^\s."']+)""", dotted)
    return [next(filter(None, parts), "") for parts in found]
