"""Markdown as QQ can show it: plain text, and tables kept apart. Pure.

QQ shows the marks themselves. Nothing of the content is dropped: what is not understood stays as
it was written, and what stands in code stays to the letter.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Generator, Iterable, Iterator

from plugins.group_chat import rendering_math
from plugins.group_chat.rendering_tables import Table, is_rule, raw_cells

Piece = str | Table

DEEPEST_QUOTE = 5
"""Quotes in quotes that are opened; what is deeper keeps its marks."""
LONGEST_LINE = 20_000
"""Characters of a line whose marks are looked at; longer ones are data, not prose."""

_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufeff]"
)
"""What no QQ client shows, half a character (a reply cut in the middle of an emoji; some
implementations refuse the whole message for one), and marks that turn the direction of writing,
with which a text can look like another one."""

_FENCE = re.compile(r"(\s*)(```+|~~~+)[^`]*")
_QUOTE = re.compile(r"\s{0,3}> ?")
_HEADING = re.compile(r"\s{0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r"\s{0,3}(?:={3,}|-{3,})\s*")
_BREAK_LINE = re.compile(r"\s{0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})")
_BULLET = re.compile(r"(\s*)[*+-][ \t]+(?=\S)(?:\[([ xX])\][ \t]+(?=\S))?")
_NUMBERED_TASK = re.compile(r"(\s*\d{1,4}[.)][ \t]+)\[([ xX])\][ \t]+(?=\S)")
_MATH_OPEN = {"$$": "$$", "\\[": "\\]"}
_DEFINITION = re.compile(r"\s{0,3}\[([^\[\]\n^]{1,100})\]:\s*<?(\S{1,2000}?)>?(?:\s+[\"'(].*)?\s*")

_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)([^\n]{1,2000}?)(?<!`)\1(?!`)")
_TARGET = (
    r"\(\s*<?((?:[^\s()<>]|\([^\s()]{0,200}\)){1,2000})>?(?:\s+[\"'][^\"'\n]{0,300}[\"'])?\s*\)"
)
_LABEL = r"\[((?:[^\[\]\n]|\[[^\[\]\n]{0,100}\]){0,500})\]"
_LINK = re.compile(rf"(!?){_LABEL}{_TARGET}")
_REFERENCE = re.compile(r"(!?)\[([^\[\]\n]{1,500})\]\[([^\[\]\n]{0,100})\]")
_FOOTNOTE = re.compile(r"\[\^([^\[\]\s]{1,40})\]")
_AUTOLINK = re.compile(r"<((?:https?|mailto|ftp):[^\s<>]{1,2000})>")
_URL = re.compile(
    r"https?://[^\s<>\"'`，。；、（）「」【】]{0,2000}[^\s<>\"'`，。；、（）「」【】*_~.,!?;:)\]]"
)
_DRIVE = re.compile(r"\b[A-Za-z]:\\[^\s，。；、]{0,500}")
_ESCAPE = re.compile(r"\\([\\*_`~#\[\]|>])|(?<=^\d)\\\.|(?<=^\d\d)\\\.")
_STRONG = re.compile(r"\*\*(?=\S)([^\n]{1,2000}?)(?<=\S)\*\*")
_STRONG_LINE = re.compile(
    r"(?<![A-Za-z0-9_])__(?=[^\s_])([^\n]{1,1000}?)(?<=[^\s_])__(?![A-Za-z0-9_])"
)
_EMPHASIS = re.compile(
    r"(?<![A-Za-z0-9*])\*(?=[^\s*.,/\\)])([^*\n]{1,1000}?)(?<=[^\s*(/])\*(?![\w*.])"
)
_EMPHASIS_CJK = re.compile(
    r"(?<![A-Za-z0-9*])\*(?=[^\s*.,/\\)])([^*\n]{1,1000}?)(?<=[^\s*(/])\*(?=[\u3400-\u9fff])"
)
_EMPHASIS_LINE = re.compile(r"(?<![\w])_(?=[^\s_])([^_\n]{1,1000}?)(?<=[^\s_])_(?![\w])")
_STRIKE = re.compile(r"~~(?=\S)([^\n]{1,1000}?)(?<=\S)~~")
_TAGS = (
    r"b|strong|i|em|u|ins|p|div|span|font|center|small|big|sub|sup|kbd|mark|code|pre|ul|ol|"
    r"summary|details|section|article|h[1-6]|blockquote|tbody|thead|figure|figcaption|cite|q|var|samp"
)
_TAG = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]{{0,300}})?/?>", re.IGNORECASE)
_STRUCK_TAG = re.compile(r"<(s|del|strike)>([^<\n]{1,1000})</\1>", re.IGNORECASE)
_ITEM = re.compile(r"<li(?:\s[^<>]{0,300})?>\s*", re.IGNORECASE)
_LINE_TAG = re.compile(r"<(?:br|hr)\s*/?>|</(?:p|div|li|h[1-6]|tr|summary)>", re.IGNORECASE)
_ANCHOR = re.compile(
    r"<a\s[^<>]{0,500}?href=[\"']?([^\s\"'<>]{1,2000})[\"']?[^<>]{0,300}>([^<\n]{0,500})</a>",
    re.IGNORECASE,
)
_PICTURE = re.compile(r"<img\s([^<>]{1,2500})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"(src|alt)=(?:\"([^\"]{0,2000})\"|'([^']{0,2000})')", re.IGNORECASE)
_COMMENT = re.compile(r"<!--(.{0,2000}?)-->")
_ENTITY = re.compile(r"&(?:nbsp|lt|gt|amp|quot|apos|middot|mdash|hellip|times);")
_HTML_TABLE = re.compile(r"<table\b[^<>]{0,300}>(.{1,20000}?)</table>", re.IGNORECASE | re.DOTALL)
_HTML_ROW = re.compile(r"<tr\b[^<>]{0,300}>(.*?)(?:</tr>|\Z)", re.IGNORECASE | re.DOTALL)
_HTML_CELL = re.compile(
    r"<t([hd])\b[^<>]{0,300}>(.*?)(?=</t[hd]>|<t[hd]\b|\Z)", re.IGNORECASE | re.DOTALL
)


def pieces_of(markdown: str) -> list[Piece]:
    """The text in order: plain text, and tables between it. No piece is empty."""
    text = without_controls(markdown)
    definitions = _definitions(text)
    found: list[Piece] = []
    lines: list[tuple[str, bool]] = []
    for block in (*_blocks(text.split("\n"), definitions, 0), None):
        if isinstance(block, tuple):
            lines.append(block)
            continue
        if joined := _joined(lines):
            found.append(joined)
        lines = []
        if block is not None:
            found.append(block)
    return found


def without_controls(text: str) -> str:
    """Line ends are `\\n`; what cannot be shown is gone."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _joined(lines: list[tuple[str, bool]]) -> str:
    """One text; outside of code at most one empty line together, none at either end."""
    out: list[str] = []
    for line, code in lines:
        if not code and not line.strip():
            if out and out[-1]:
                out.append("")
            continue
        out.append(line.rstrip() if not code else line)
    return "\n".join(out).strip("\n").rstrip()


def _definitions(text: str) -> dict[str, str]:
    """Targets of `[text][id]`, by id; only of ids that are used."""
    if "]:" not in text or "][" not in text:
        return {}
    used = {(m[3] or m[2]).casefold() for m in _REFERENCE.finditer(text)}
    lines = (_DEFINITION.fullmatch(line) for line in text.split("\n"))
    return {m[1].casefold(): m[2] for m in lines if m and m[1].casefold() in used}


def _blocks(
    lines: list[str], definitions: dict[str, str], depth: int
) -> Iterator[tuple[str, bool] | Table]:
    """(line, whether it is code) and tables, in order."""
    at = 0
    while at < len(lines):
        line = lines[at]
        after = lines[at + 1] if at + 1 < len(lines) else ""
        if mark := _FENCE.fullmatch(line):
            at = yield from _code(lines, at + 1, mark[1], mark[2])
            continue
        if (close := _MATH_OPEN.get(line.strip())) and (end := _end(lines, at + 1, close)):
            yield from ((rendering_math.formula(tex), False) for tex in lines[at + 1 : end])
            at = end + 1
        elif "|" in line and is_rule(after, line):
            end = at + 2
            while end < len(lines) and "|" in lines[end] and lines[end].strip():
                end += 1
            rows = [[_cell(cell, definitions) for cell in raw_cells(row)]
                    for row in (line, *lines[at + 2 : end])]  # fmt: skip
            if any(map(any, rows)):
                yield Table.of(rows[0], rows[1:], after)
            at = end
        elif _QUOTE.match(line) and depth < DEEPEST_QUOTE:
            end = at
            while end < len(lines) and _QUOTE.match(lines[end]):
                end += 1
            inner = [_QUOTE.sub("", quoted, count=1) for quoted in lines[at:end]]
            for block in _blocks(inner, definitions, depth + 1):
                if isinstance(block, Table):
                    yield from ((f"│ {row}", False) for row in block.as_list())
                else:
                    yield f"│ {block[0]}".rstrip() if not block[1] else f"│ {block[0]}", block[1]
            at = end
        elif "<table" in line.casefold() and (end := _table_end(lines, at)):
            yield from _html_table("\n".join(lines[at : end + 1]), definitions, depth)
            at = end + 1
        else:
            yield from _plain_line(line, after, definitions)
            at += 2 if line.strip() and _is_underlined(line, after) else 1


def _code(
    lines: list[str], at: int, indent: str, fence: str
) -> Generator[tuple[str, bool], None, int]:
    """The lines of a fence, without the indentation of its opening; gives where it ends."""
    while at < len(lines):
        bare = lines[at].strip()
        if bare.startswith(fence) and not bare.strip(fence[0]):
            return at + 1
        yield lines[at].removeprefix(indent), True
        at += 1
    return at


def _end(lines: list[str], at: int, close: str) -> int:
    """Where a formula over several lines closes; 0 when it does not soon."""
    for n in range(at, min(at + 40, len(lines))):
        if lines[n].strip() == close:
            return n
    return 0


def _table_end(lines: list[str], at: int) -> int | None:
    for n in range(at, min(at + 400, len(lines))):
        if "</table>" in lines[n].casefold():
            return n
    return None


def _html_table(
    text: str, definitions: dict[str, str], depth: int
) -> Iterator[tuple[str, bool] | Table]:
    """The table, and what stands around it on its lines."""
    found = _HTML_TABLE.search(text)
    rows = [[" ".join(_cell(m[2], definitions).split()) for m in _HTML_CELL.finditer(row[1])]
            for row in _HTML_ROW.finditer(found[1])] if found else []  # fmt: skip
    rows = [row for row in rows if row]
    if found is None or not rows:
        for line in text.split("\n"):
            yield from _plain_line(line, "", definitions)
        return
    if before := text[: found.start()].strip():
        yield from _plain_line(before, "", definitions)
    yield Table.of(rows[0], rows[1:])
    if after := text[found.end() :].strip():
        yield from _blocks(after.split("\n"), definitions, depth)


def _is_underlined(line: str, after: str) -> bool:
    return bool(
        _UNDERLINE.fullmatch(after)
        and after.strip()
        and not _HEADING.fullmatch(line)
        and not _BULLET.match(line)
        and not _BREAK_LINE.fullmatch(line)
    )


def _plain_line(line: str, after: str, definitions: dict[str, str]) -> Iterator[tuple[str, bool]]:
    if len(line) > LONGEST_LINE:
        yield line, False
        return
    if (found := _DEFINITION.fullmatch(line)) and found[1].casefold() in definitions:
        return
    if _BREAK_LINE.fullmatch(line):
        yield "————————", False
        return
    if heading := _HEADING.fullmatch(line):
        line = heading[1]
    elif task := _NUMBERED_TASK.match(line):
        line = f"{task[1]}{_box(task[2])} {line[task.end() :]}"
    elif bullet := _BULLET.match(line):
        mark = _box(bullet[2]) if bullet[2] else "·"
        line = f"{bullet[1].replace(chr(9), '  ')}{mark} {line[bullet.end() :]}"
    for part in _inline(line, definitions).split("\n"):
        yield part, False


def _box(mark: str) -> str:
    return "☐" if mark == " " else "☑"


def _cell(text: str, definitions: dict[str, str]) -> str:
    return " ".join(_inline(text, definitions).split("\n")).strip()


def _inline(line: str, definitions: dict[str, str]) -> str:
    """One line without the marks inside it; what is code or an address is not looked into."""
    if not any(mark in line for mark in "`*_~[<&$\\"):
        return line
    kept: list[str] = []

    def keep(text: str) -> str:
        kept.append(text)
        return f"\0{len(kept) - 1}\0"

    def link(found: re.Match[str]) -> str:
        return _link(found[1], found[2], keep(found[3]), found[3])

    def reference(found: re.Match[str]) -> str:
        target = definitions.get((found[3] or found[2]).casefold())
        return found[0] if target is None else _link(found[1], found[2], keep(target), target)

    line = _CODE.sub(lambda m: keep(m[2][1:-1] if _padded(m[2]) else m[2]), line)
    if "[" in line:
        line = _FOOTNOTE.sub(r"[\1]", _REFERENCE.sub(reference, _LINK.sub(link, line)))
    if "<" in line:
        line = _ANCHOR.sub(lambda m: _link("", m[2], keep(m[1]), m[1]), line)
        line = _PICTURE.sub(lambda m: _picture(m, keep), line)
        line = _AUTOLINK.sub(lambda m: keep(m[1]), line)
    line = _DRIVE.sub(lambda m: keep(m[0]), _URL.sub(lambda m: keep(m[0]), line))
    line = rendering_math.readable(line)
    line = _ESCAPE.sub(lambda m: keep(m[1] or "."), line)
    if "<" in line:
        line = _STRUCK_TAG.sub(r"~~\2~~", _COMMENT.sub(r"\1", _ITEM.sub("· ", line)))
        line = _LINE_TAG.sub("\n", line).strip("\n") if _LINE_TAG.search(line) else line
        line = _TAG.sub("", line)
    line = _STRONG.sub(r"\1", line)
    line = _STRONG_LINE.sub(_unless_name, line)
    line = _EMPHASIS_CJK.sub(r"\1", _EMPHASIS.sub(r"\1", line))
    line = _EMPHASIS_LINE.sub(_unless_name, line)
    line = _STRIKE.sub(r"\1（已划去）", line)
    line = _ENTITY.sub(lambda m: html.unescape(m[0]).replace("\u00a0", " "), line)
    while "\0" in line:  # an address inside a label is kept inside what is kept
        line = re.sub(r"\0(\d+)\0", lambda m: kept[int(m[1])], line)
    return line


def _padded(code: str) -> bool:
    return len(code) > 2 and code[0] == code[-1] == " " and bool(code.strip())


def _link(bang: str, label: str, kept: str, target: str) -> str:
    label = label.strip()
    if bang:
        return f"图片：{label}（{kept}）" if label else f"图片：{kept}"
    return kept if label in ("", target) else f"{label}（{kept}）"


def _picture(found: re.Match[str], keep: Callable[[str], str]) -> str:
    values = {m[1].lower(): m[2] or m[3] or "" for m in _ATTRIBUTE.finditer(found[1])}
    if not values.get("src"):
        return f"图片：{values['alt']}" if values.get("alt") else found[0]
    return _link("!", values.get("alt", ""), keep(values["src"]), values["src"])


def _unless_name(found: re.Match[str]) -> str:
    """`__init__` and `_private_` are names, and their lines belong to them."""
    inner = found[1]
    return found[0] if inner.isascii() and inner.isidentifier() else inner


def text_of(pieces: Iterable[Piece], *, lines: bool = False) -> str:
    """The pieces as one text; tables lined up where that fits a phone (`lines`), else as lists."""
    out: list[str] = []
    for piece in pieces:
        if isinstance(piece, Table):
            piece = "\n".join((piece.as_lines() if lines else None) or piece.as_list())
        out.append(piece)
    return "\n\n".join(filter(None, out)).strip("\n")
