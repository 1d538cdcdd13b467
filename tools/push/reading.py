"""What a content is made of, so that the kind of message can be chosen, and the same as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .markdown import Line, adapt, defused, is_table, without_controls

_FENCE = re.compile(r"^\s{0,3}(?P<mark>`{3,}|~{3,})")
_SIMPLE = re.compile(r"(?m)^\s{0,3}(?:#{1,6}\s|>)|\*\*[^*\n]+\*\*|`[^`\n]+`")
"""Marks that every platform's first Markdown has."""
_LINK = re.compile(r"(?<!!)\[[^\[\]\n]{1,500}\]\(https?://[^()\s]{1,2000}\)")
_RICH = re.compile(
    r"(?m)^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]|^ {0,3}(?:[`~]{3}|-{3,}[ \t]*$)|!\[|~~[^~\n]+~~"
    r"|(?<![*\w])\*[^*\s][^*\n]*\*(?![*\w])"
)
_BUTTON = re.compile(
    r"^\s*(?:[-*+]\s+)?\[(?P<label>[^\[\]]{1,40})\]\((?P<url>https?://[^()\s]{1,1000})\)\s*$"
)
_ADDRESS = re.compile(r"^https?://\S{1,1000}$")
_TAG = re.compile(r"<(?=[@A-Za-z/!])")

MOST_BUTTONS = 5


@dataclass(frozen=True, slots=True)
class Traits:
    simple: bool
    """Headings, quotes, bold, code in a line."""
    links: bool
    rich: bool
    """Lists, fences, pictures, italics."""
    tables: bool

    @property
    def plain(self) -> bool:
        return not (self.simple or self.links or self.rich or self.tables)


def traits_of(content: str) -> Traits:
    lines = content.splitlines()
    return Traits(
        simple=bool(_SIMPLE.search(content)),
        links=bool(_LINK.search(content)),
        rich=bool(_RICH.search(content)),
        tables=any(is_table(lines, index) for index in range(len(lines) - 1)),
    )


def buttons_of(content: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The content without the links that stand alone at its end, and those (label, address);
    nothing is taken when nothing would be left."""
    lines = content.rstrip().splitlines()
    found: list[tuple[str, str]] = []
    while lines and (not lines[-1].strip() or _BUTTON.match(lines[-1])):
        if match := _BUTTON.match(lines.pop()):
            found.insert(0, (defused(match["label"]), match["url"]))
    if not found or len(found) > MOST_BUTTONS or not any(map(str.strip, lines)):
        return content, ()
    return "\n".join(lines), tuple(found)


def lone_address(content: str) -> tuple[str, str]:
    """Plain words and the address that stands below them; else the content and nothing."""
    lines = [line.strip() for line in content.splitlines() if line.strip()]
    if len(lines) < 2 or not _ADDRESS.match(lines[-1]):
        return content, ""
    return "\n".join(lines[:-1]), lines[-1]


def untagged(text: str) -> str:
    """Tags act in WeCom's and Feishu's texts (`<@user>`, `<at id=…>`, `<font>`): none survives."""
    return _TAG.sub("＜", text)


def as_text(content: str) -> tuple[tuple[Line, ...], int]:
    """The content without any mark, and how many tables became lists."""
    adapted = adapt(content)
    lines = tuple(Line(untagged(_unmarked(line.text)), line.item) for line in adapted.lines)
    return lines, adapted.tables


def _unmarked(text: str) -> str:
    text = re.sub(r"^\s{0,3}#{1,6}\s+", "", text)
    text = re.sub(r"!?\[([^\[\]]*)\]\(([^()\s]*)\)", r"\1（\2）", text)
    return text.replace("**", "")


def kept(content: str) -> Iterator[Line]:
    """The Markdown as it is, line by line, with what a part needs that begins or ends within a
    table or a code block."""
    text = without_controls(content)
    lines = text.split("\n")
    fence = head = ""
    index = 0
    while index < len(lines):
        line = lines[index]
        mark = _FENCE.match(line)
        if fence:
            closes = line.strip().startswith(fence) and not line.strip().strip(fence[0])
            yield Line(line, opener=fence, closer="" if closes else fence)
            fence = "" if closes else fence
        elif mark:
            fence = mark["mark"]
            yield Line(line, closer=fence)
        elif is_table(lines, index):
            head = untagged(f"{line}\n{lines[index + 1]}")
            yield Line(head)
            index += 1
        elif head and "|" in line and line.strip():
            yield Line(untagged(line), opener=head)
        else:
            head = ""
            yield Line(untagged(line))
        index += 1
