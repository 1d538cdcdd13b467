"""Text as QQ shows it: Markdown made plain, long replies split, our own headings kept apart."""

from __future__ import annotations

import re

APPROVAL_HEAD = "【待确认"
"""How a message that asks for approval begins. A quoted one is recognised by it (after a restart,
or when the send was not acknowledged), so that nothing a model writes may begin this way."""

_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*")
_FENCE = re.compile(r"\s{0,3}(```+|~~~+)[^`]*")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*?)\s*#*\s*")
_BULLET = re.compile(r"(\s*)[*+-]\s+(?=\S)")
_LINK = re.compile(r"!?\[([^\[\]\n]{0,500})\]\((https?://[^\s()]{1,2000})\)")
_STRONG = re.compile(r"\*\*(?=\S)([^\n]{1,2000}?)(?<=\S)\*\*")
_CODE = re.compile(r"`([^`\n]{1,2000})`")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""What no QQ client shows, and half a character (a reply cut in the middle of an emoji): some
implementations refuse the whole message for one."""
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def plain(text: str) -> str:
    """Markdown as plain lines: QQ shows the marks themselves, and no table lines up there.

    Tables become one line per row, headings a line of their own, fences vanish and what they
    hold stays as it is.
    """
    text = _CONTROL.sub("", text.replace("\r\n", "\n"))
    lines = text.replace(APPROVAL_HEAD, "〔待确认").split("\n")
    out: list[str] = []
    fence = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        if fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            else:
                out.append(line)
        elif mark := _FENCE.fullmatch(line):
            fence = mark[1]
        elif at + 1 < len(lines) and "|" in line and _is_rule(lines[at + 1], line):
            end = at + 2
            while end < len(lines) and "|" in lines[end] and lines[end].strip():
                end += 1
            out.extend(_table([_cells(row) for row in (line, *lines[at + 2 : end])]))
            at = end
            continue
        else:
            out.append(_inline(line))
        at += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()


def split(text: str, limit: int) -> list[str]:
    """Parts of at most `limit` characters, cut at paragraphs, else lines, else sentences."""
    parts: list[str] = []
    rest = text.strip()
    while len(rest) > limit:
        cut = _cut(rest, limit)
        parts.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip("\n")
    return [part for part in (*parts, rest) if part.strip()]


def _cut(text: str, limit: int) -> int:
    # A cut in the first third would make a ragged row of tiny messages.
    for mark in ("\n\n", "\n", "。", "；", "，", " "):
        at = text.rfind(mark, limit // 3, limit + 1 - len(mark))
        if at > 0:
            return at + len(mark)
    return limit


def _is_rule(line: str, header: str) -> bool:
    return bool(
        "-" in line
        and _RULE.fullmatch(line)
        and ("|" in line or header.strip().startswith("|"))
        and len(_cells(line)) == len(_cells(header))
    )


def _cells(row: str) -> list[str]:
    row = row.strip().replace("\\|", "\0")
    row = row[1:] if row.startswith("|") else row
    row = row[:-1] if row.endswith("|") else row
    return [_inline(_BREAK.sub(" ", cell).replace("\0", "|").strip()) for cell in row.split("|")]


def _table(rows: list[list[str]]) -> list[str]:
    """Two columns: `key：value`. More: the first cell, then each further cell with its heading."""
    head, *body = rows
    if not body:
        return ["、".join(filter(None, head))]
    out: list[str] = []
    if len(head) == 2:
        out.append(f"{head[0]}：{head[1]}" if head[0] else head[1])
        out.extend("：".join(row[:2]) for row in body)
        return out
    for row in body:
        pairs = [
            f"{title} {cell}".strip()
            for title, cell in zip(head[1:], row[1:], strict=False)
            if cell
        ]
        extra = [cell for cell in row[len(head) :] if cell]
        label = row[0] or "-"
        values = "，".join((*pairs, *extra))
        out.append(f"· {label}：{values}" if values else f"· {label}")
    return out


def _inline(line: str) -> str:
    if heading := _HEADING.fullmatch(line):
        line = heading[1]
    line = _BULLET.sub(r"\1· ", line, count=1) if _BULLET.match(line) else line
    line = _LINK.sub(lambda m: m[2] if m[1] in ("", m[2]) else f"{m[1]}（{m[2]}）", line)
    line = _STRONG.sub(r"\1", line)
    return _CODE.sub(r"\1", line)
