"""Lists of files, and of the sheets of one, as the model reads them."""

from __future__ import annotations

import datetime as dt
from typing import Any

from chathands.toolbox.files import FileEntry

from .files import Found
from .report import markdown

FILES_LISTED = 30
_FRAME = 300
_ROOTS = {"user": "你发来的", "group": "本群的", "shared": "共享的"}


def files_report(found: Found, said: str, budget: int) -> str:
    """The files, latest first."""
    files = found.files[:FILES_LISTED]
    rows = [[e.name, _size(e.size), _day(e.modified), _ROOTS[e.root]] for e in files]
    table, shown = markdown(["文件", "大小", "修改时间", "在哪里"], rows, budget - _FRAME)
    said = said.strip()[:80]
    head = f"「{said}」可能是下面 {len(found.files)} 个文件：" if said else ""
    if said and found.by_time:
        head = f"没有文件名叫「{said}」的，那段时间改动过的有 {len(found.files)} 个："
    lines = [head or f"共有 {len(found.files)} 个表格文件，新的在前：", "", table]
    if len(found.files) > shown:
        lines += ["", f"另有 {len(found.files) - shown} 个没有列出，说出名字里的词可以缩小范围"]
    if said:
        lines += ["", "不能确定是哪个就问用户。"]
    return "\n".join(lines)


def sheets_report(file: FileEntry, result: dict[str, Any], budget: int) -> str:
    """Every sheet with its true size and its columns."""
    lines = [f"文件 {file.name}，{_size(file.size)}，{_day(file.modified)} 修改"]
    used = len(lines[0])
    left_out = result["more"]
    for sheet in result["sheets"]:
        line = _sheet(sheet)
        if used + len(line) > budget - _FRAME and len(lines) > 1:
            left_out += 1
            continue
        lines.append(line)
        used += len(line)
    if left_out:
        lines.append(f"另有 {left_out} 张工作表没有列出")
    return "\n".join(lines)


def _sheet(sheet: dict[str, Any]) -> str:
    name = f"工作表「{sheet['name']}」" if sheet["name"] is not None else "表格"
    name += "（隐藏）" if sheet["hidden"] else ""
    if "problem" in sheet:
        return f"- {name}：{sheet['problem']}"
    columns = "、".join(sheet["names"])
    more = "……" if sheet["columns"] > len(sheet["names"]) else ""
    header = f"表头在第 {sheet['header_row']} 行" if sheet["header_row"] else "没有认出表头"
    notes = f"。说明：{'；'.join(sheet['notes'])}" if sheet["notes"] else ""
    size = f"{sheet['rows']} 行 × {sheet['columns']} 列"
    return f"- {name}：{size}，{header}。列：{columns}{more}{notes}"


def _size(size: int) -> str:
    return f"{size / 1_048_576:.1f} MB" if size >= 1_048_576 else f"{max(size // 1024, 1)} KB"


def _day(moment: float) -> str:
    return dt.datetime.fromtimestamp(moment).strftime("%Y-%m-%d %H:%M")
