"""LaTeX as models write it in chats, as characters people can read. Pure."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

_MATH = re.compile(
    r"\$\$([^$\n]{1,1000}?)\$\$"
    r"|\\\[([^\n]{1,1000}?)\\\]"
    r"|\\\(([^\n]{1,1000}?)\\\)"
    r"|(?<![\w$\\])\$(?=[^\s$])([^$\n]{1,300}?)(?<=[^\s$\\])\$(?![\d$])"
)
_LOOKS_MATH = re.compile(r"[\\^_{}=<>≤≥]|^[A-Za-z]$")
"""What stands between two single dollars is money (`$5 和 $6`) unless it has one of these."""

_FRACTION = re.compile(r"\\[dtc]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_ROOT = re.compile(r"\\sqrt\s*(?:\[([^\[\]{}]*)\])?\s*\{([^{}]*)\}")
_COMMAND = re.compile(r"\\([A-Za-z]+)(?=([\\\w]?))")
_SCRIPT = re.compile(r"([\^_])(?:\{([^{}]*)\}|([0-9A-Za-z+\-]))")
_SPACING = re.compile(r"\\[,;:! ]")
_DEEPEST = 8
"""Fractions in fractions; nobody reads more, and each level is one pass."""


@cache
def _table() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("latex.json").read_text("utf-8"))


def readable(text: str) -> str:
    """A line with its marked formulas, and bare commands like `\\times`, made readable."""
    if "$" not in text and "\\" not in text:
        return text
    return _symbols(_MATH.sub(_formula, text))


def _formula(found: re.Match[str]) -> str:
    inline = found[4]
    if inline is not None and not _LOOKS_MATH.search(inline):
        return found[0]
    return formula(next(group for group in found.groups() if group is not None))


def formula(tex: str) -> str:
    """One formula without its delimiters. What is not known stays as it was written."""
    wrapper = re.compile(rf"\\(?:{'|'.join(_table()['wrappers'])})\s*\{{([^{{}}]*)\}}")
    tex = re.sub(r"\\(?:begin|end)\{[a-z]+\*?\}", "", tex)
    tex = (
        _SPACING.sub(" ", tex).replace("\\\\", " ").replace("\\%", "%").replace("\\{", "\\lbrace ")
    )
    tex = tex.replace("\\}", "\\rbrace ").replace("\\|", "\\Vert ")
    for _ in range(_DEEPEST):
        before = tex
        tex = wrapper.sub(r"\1", tex)
        tex = _SCRIPT.sub(_script, tex)
        tex = _FRACTION.sub(lambda m: f"{_grouped(m[1])}/{_grouped(m[2])}", tex)
        tex = _ROOT.sub(_root, tex)
        if tex == before:
            break
    return re.sub(r"[ \t]{2,}", " ", _symbols(tex)).strip()


def _symbols(text: str) -> str:
    known = _table()["symbols"]

    def symbol(found: re.Match[str]) -> str:
        if found[1] not in known:
            return found[0]
        # A word keeps its distance from what follows: `\log x`.
        gap = " " if known[found[1]].isascii() and known[found[1]].isalpha() and found[2] else ""
        return known[found[1]] + gap

    return _COMMAND.sub(symbol, text) if "\\" in text else text


def _script(found: re.Match[str]) -> str:
    content = found[2] if found[2] is not None else found[3]
    if content.strip() in ("\\circ", "\\degree"):
        return "°"
    small = _table()["superscripts" if found[1] == "^" else "subscripts"]
    if content and all(character in small for character in content):
        return "".join(small[character] for character in content)
    return found[1] + (content if len(content) == 1 else f"({content})")


def _root(found: re.Match[str]) -> str:
    return f"{'√' if not found[1] else found[1] + '次√'}{_grouped(found[2])}"


def _grouped(text: str) -> str:
    text = text.strip()
    return text if re.fullmatch(r"[\w.%π°²³]*", text) else f"({text})"
