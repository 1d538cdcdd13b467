"""What a table looks like to the model: a line on what it is, Markdown, remarks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tabulate import tabulate

ROWS_SHOWN = 30
"""Rows a model reads reliably, and what still fits into a small context; the rest is counted."""

_SHEETS_NAMED = 15

_FRAME = 500
"""Characters kept for everything around the table."""

_PREVIEW = 1000
"""Characters of the first rows of a workbook that was made."""

_PIPE = re.compile(r"(\\*)\|")


def read_report(name: str, asked: str | None, result: dict[str, Any], budget: int) -> str:
    """The answer of read_excel_data, within `budget` characters if one row fits."""
    columns, shown = result["columns"], result["shown"]
    table, rows = markdown(shown, result["rows"][:ROWS_SHOWN], budget - _FRAME)
    size = f"共 {result['total_rows']} 行 × {len(columns)} 列"
    lines = [_first_line(name, result, size), *_guess(name, asked), *_readings(result)]
    if titles := [title for title in result["titles"] if title]:
        lines.append(f"表头上方：{'；'.join(titles)[:200]}")
    if left_out := [column for column in columns if column not in shown]:
        lines.append(f"没有列出的列：{'、'.join(left_out)[:400]}")
    lines += _which(result, rows)
    if not result["total_rows"]:
        lines.append("表头下面没有数据。")
    if not rows:
        return "\n".join(lines + _remarks(result))
    lines += ["", table]
    rest = result["matched_rows"] - result["offset"] - rows
    if rest > 0:
        lines += ["", f"已省略剩余 {rest} 行（要合计、排名或按条件统计，用 aggregate_excel_data）"]
    return "\n".join(lines + _remarks(result))


def _which(result: dict[str, Any], rows: int) -> list[str]:
    """Which rows these are, unless they are simply the first ones."""
    matched, offset = result["matched_rows"], result["offset"]
    told = []
    if result["conditions"]:
        told.append(f"条件：{result['conditions']}，符合的有 {matched} 行")
    if result["order"]:
        told.append(f"按{result['order']}排")
    if offset and rows:
        told.append(f"下面是第 {offset + 1} 到第 {offset + rows} 行")
    if offset and not rows and matched:
        told.append(f"一共只有 {matched} 行，offset={offset} 之后没有了")
    return [f"{'；'.join(told)}。"] if told else []


def aggregate_report(name: str, asked: str | None, result: dict[str, Any], budget: int) -> str:
    """The answer of aggregate_excel_data."""
    used, total = result["used_rows"], result["total_rows"]
    lines = [
        _first_line(name, result, f"共 {total} 行 × {len(result['columns'])} 列"),
        *_guess(name, asked),
        *_readings(result),
        f"统计：{result['what']}。用了 {used} 行。",
    ]
    if not used:
        return "\n".join([*lines, "没有符合条件的行。", *_remarks(result)])
    if result["caution"]:
        lines.append(result["caution"])
    table, rows = markdown(result["headers"], result["rows"], budget - _FRAME)
    lines += ["", table]
    if result["groups"] > rows:
        lines += ["", f"共 {result['groups']} 组，只列出 {rows} 组"]
    if result["keys"]:
        whole = "，".join(f"{title} {value}" for title, value in result["overall"])
        lines += ["", f"全部 {used} 行：{whole}"]
    return "\n".join(lines + _remarks(result))


def chart_caption(name: str, asked: str | None, result: dict[str, Any], budget: int) -> str:
    """What the model is told of a picture: its figures, so that it can speak of them."""
    size = f"共 {result['total_rows']} 行"
    lines = [
        f"图「{result['title']}」已画好，画了 {result['points']} 组。",
        _first_line(name, result, size),
        *_guess(name, asked),
        *_readings(result),
        f"统计：{result['what']}。用了 {result['used_rows']} 行。",
    ]
    table, rows = markdown(result["headers"], result["rows"][:ROWS_SHOWN], budget - _FRAME)
    lines += ["", table]
    if result["points"] > rows:
        lines += ["", f"这里只列出图上的前 {rows} 组"]
    return "\n".join(lines + _remarks(result))


def export_caption(name: str, asked: str | None, result: dict[str, Any]) -> str:
    """What the model is told of a workbook that was made."""
    columns = len(result["headers"])
    place = f"工作表「{result['sheet']}」的" if result["sheet"] else ""
    lines = [
        f"Excel 文件已生成，{result['row_count']} 行 × {columns} 列。",
        f"内容：{name} {place}{result['what']}。",
        *_guess(name, asked),
        *_readings(result),
    ]
    if result["preview"]:
        table, rows = markdown(result["headers"], result["preview"], _PREVIEW)
        lines += [f"前 {rows} 行：", "", table]
    return "\n".join(lines + _remarks(result))


def file_title(text: str) -> str:
    """A name people gave, as the name of a file, without its extension."""
    text = re.sub(r'[\\/:*?"<>|\x00-\x1f]+', " ", text).strip(" .")
    return re.sub(r"\.(xlsx?|xlsm|csv|png|jpe?g)$", "", text, flags=re.IGNORECASE).strip() or "结果"


def _first_line(name: str, result: dict[str, Any], size: str) -> str:
    parts = [f"文件 {name}"]
    if result["sheet"]:
        parts.append(f"工作表「{result['sheet']}」")
    header = result["header_row"]
    parts.append(f"表头在第 {header} 行" if header else "没有认出表头，列名用字母代替")
    parts.append(size)
    if others := result["others"]:
        more = f" 等 {len(others)} 张" if len(others) > _SHEETS_NAMED else ""
        parts.append(f"其他工作表：{'、'.join(others[:_SHEETS_NAMED])}{more}")
    return "，".join(parts)


def _guess(name: str, asked: str | None) -> list[str]:
    return [f"（没有「{asked}」这个文件名，读的是唯一相符的 {name}）"] if asked else []


def _readings(result: dict[str, Any]) -> list[str]:
    return [f"{'；'.join(result['readings'])}。"] if result["readings"] else []


def _remarks(result: dict[str, Any]) -> list[str]:
    return [f"说明：{'；'.join(result['notes'])}。"] if result["notes"] else []


def markdown(headers: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> tuple[str, int]:
    """(Markdown, how many of the rows are in it). Unpadded: blanks are tokens, too.

    tabulate's own number parsing would turn 1e5 into 100000 and 1234567.891 into 1.23457e+06.
    """
    lines = tabulate(
        [[_cell(cell) for cell in row] for row in rows],
        headers=[_cell(header) for header in headers],
        tablefmt="pipe",
        disable_numparse=True,
        stralign=None,
        numalign=None,
    ).split("\n")
    head, body = lines[:2], lines[2:]
    head[1] = "|" + "---|" * len(headers)
    used = sum(map(len, head)) + 2
    fitting = 0
    for line in body:
        used += len(line) + 1
        if used > room and fitting:
            break
        fitting += 1
    return "\n".join(head + body[:fitting]), fitting


def _cell(text: str) -> str:
    """One line, with `|` escaped (and the backslashes before it, which would undo that)."""
    return _PIPE.sub(r"\1\1\\|", " ".join(text.split()))
