"""Markdown as lines of what robots show: no tables, no code, every line break meant.

The subset is what DingTalk documents for custom robots: `#` to `######`, `>`, `**`, `*`, links,
images, `-` and `1.` lists. Tables are shown on a PC and not on phones, so their rows become list
blocks. A single line break shows as none there. `@` is defused: names and numbers come from data,
and nobody is to be called by it. What the others show differently is in reading.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_FENCE = re.compile(r"^\s{0,3}(?P<mark>`{3,}|~{3,})")
_RULE = re.compile(r"^\s{0,3}([-*_])(?:\s*\1){2,}\s*$")
_SETEXT = re.compile(r"^\s{0,3}=+\s*$")
_ITEM = re.compile(r"^(?P<indent>\s*)(?P<mark>[-*+]|\d{1,9}[.)])\s+(?P<text>.*)$")
_TASK = re.compile(r"^\[(?P<done>[ xX])\]\s+")
_DIVIDER = re.compile(r"^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_PIPE = re.compile(r"(?<!\\)\|")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>[^\[\]]{0,500})\]"
    r"\((?P<target>[^()\s]{0,2000})(?:\s[^()]{0,300})?\)"
)
_CODE = re.compile(r"(?P<mark>`{1,3})(?P<text>[^`]{1,2000})(?P=mark)")
_STRUCK = re.compile(r"~~(?P<text>[^~]+)~~")
_AT = re.compile(
    r"(?P<mail>[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b)|@", re.ASCII
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_LONGEST_DIVIDER = 1000

EMPTY_CELL = "—"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the message. List items stand close together, everything else apart."""

    text: str
    item: bool = False
    opener: str = ""
    """What has to stand before it where a part begins with it: a table's head, a code fence."""
    closer: str = ""
    """What has to stand behind it where a part ends with it."""


@dataclass(frozen=True, slots=True)
class Adapted:
    lines: tuple[Line, ...]
    tables: int
    """Tables that became lists."""


def adapt(content: str) -> Adapted:
    """The content as lines DingTalk shows the way they were meant."""
    source = without_controls(content).split("\n")
    lines: list[Line] = []
    tables = 0
    index = 0
    while index < len(source):
        line = source[index]
        fence = _FENCE.match(line)
        if fence:
            index = _code_block(source, index, fence["mark"], lines)
            continue
        if is_table(source, index):
            tables += 1
            index = _table(source, index, lines)
            continue
        lines.extend(_line(line))
        index += 1
    return Adapted(tuple(lines), tables)


def without_controls(content: str) -> str:
    return _CONTROL.sub("", content.replace("\r\n", "\n").replace("\r", "\n"))


def joined(lines: Sequence[Line]) -> str:
    """The lines as the text of one message."""
    text = ""
    for index, line in enumerate(lines):
        if index:
            text += separator(lines[index - 1], line)
        text += line.text
    return text


def separator(before: Line, line: Line) -> str:
    return "\n" if before.item and line.item else "\n\n"


def plain(text: str) -> str:
    """One line without marks, for a title."""
    text = _CONTROL.sub("", text)
    return defused(" ".join(text.split()).lstrip("#> ").replace("**", "").strip())


def defused(text: str) -> str:
    """Every @ that is not inside a mail address becomes a full-width one, which calls nobody."""
    return _AT.sub(lambda match: match["mail"] or "＠", text)


def _code_block(source: Sequence[str], start: int, mark: str, lines: list[Line]) -> int:
    """Quote what a fence holds; a fence that never closes holds the rest. Returns the next line."""
    for index in range(start + 1, len(source)):
        line = source[index]
        if line.strip().startswith(mark) and not line.strip().strip(mark[0]):
            return index + 1
        if line.strip():
            indent = len(line) - len(line.lstrip())
            lines.append(Line(f"> {'　' * (indent // 2)}{defused(line.strip())}"))
    return len(source)


def is_table(source: Sequence[str], index: int) -> bool:
    """Whether a table begins with this line."""
    if index + 1 >= len(source) or not _PIPE.search(source[index]):
        return False
    divider = source[index + 1].strip()
    return (
        "|" in divider
        and len(divider) <= _LONGEST_DIVIDER
        and _DIVIDER.match(divider) is not None
        and len(_cells(divider)) == len(_cells(source[index]))
    )


def _cells(row: str) -> list[str]:
    row = row.strip()
    row = row.removeprefix("|")
    if row.endswith("|") and not row.endswith("\\|"):
        row = row[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _PIPE.split(row)]


def _table(source: Sequence[str], start: int, lines: list[Line]) -> int:
    columns = [_cell(name) for name in _cells(source[start])]
    rows: list[list[str]] = []
    index = start + 2
    while index < len(source) and source[index].strip() and _PIPE.search(source[index]):
        rows.append(_cells(source[index]))
        index += 1
    for number, row in enumerate(rows, 1):
        if len(rows) > 1:
            lines.append(Line(f"**第 {number} 行**"))
        # A row may be shorter than its header; what is too much belongs to the last column.
        cells = [*row[: len(columns) - 1], "|".join(row[len(columns) - 1 :])]
        cells += [""] * (len(columns) - len(cells))
        for column, cell in zip(columns, cells, strict=True):
            lines.append(Line(f"- **{column}**：{_cell(cell)}", item=True))
    if not rows:
        lines.append(Line("、".join(columns) + "（表格没有数据）"))
    return index


def _cell(text: str) -> str:
    """Cells are data: a link or picture in one is somebody else's, and shown as text."""
    text = _BREAK.sub("；", text)
    text = _LINK.sub(lambda match: f"{match['text']}（{match['target']}）", text)
    text = text.replace("`", "").replace("**", "").replace("[", "［").replace("]", "］")
    return defused(text).strip() or EMPTY_CELL


def _line(line: str) -> Iterator[Line]:
    if not line.strip() or _RULE.match(line) or _SETEXT.match(line):
        return
    item = _ITEM.match(line)
    if item:
        mark = item["mark"] if item["mark"][0].isdigit() else "-"
        text = _TASK.sub(lambda match: "☐ " if match["done"] == " " else "☑ ", item["text"])
        first, *rest = _BREAK.split(_inline(text))
        yield Line(f"{item['indent']}{mark} {first.strip()}", item=True)
    else:
        first, *rest = _BREAK.split(_inline(line.strip()))
        if first.strip():
            yield Line(first.strip())
    for more in rest:
        if more.strip():
            yield Line(more.strip())


def _inline(text: str) -> str:
    text = _CODE.sub(lambda match: match["text"], text)
    text = _STRUCK.sub(lambda match: match["text"], text)
    parts: list[str] = []
    end = 0
    for match in _LINK.finditer(text):
        parts += [defused(text[end : match.start()]), _link(match)]
        end = match.end()
    return "".join(parts) + defused(text[end:])


def _link(match: re.Match[str]) -> str:
    """Web links stay, with their address untouched; other schemes act inside the app."""
    label = defused(match["text"])
    if match["target"].lower().startswith(("http://", "https://")):
        return f"{match['image']}[{label}]({match['target']})"
    return f"{label}（{match['target']}）"
