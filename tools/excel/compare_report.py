"""What differs between two tables, as the model reads it: counts first, then the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .report import markdown

_FRAME = 900


def compare_report(
    names: Sequence[tuple[str, str | None]], result: dict[str, Any], budget: int
) -> str:
    """Counts are of all rows; each list gets a third of the room."""
    (old, _), (new, _) = names
    lines = [_head("旧", old, result, 0), _head("新", new, result, 1)]
    lines += [
        f"（没有「{asked}」这个文件名，读的是唯一相符的 {name}）" for name, asked in names if asked
    ]
    guessed = "（自动选的）" if result["guessed"] else ""
    lines.append(f"按「{'、'.join(result['keys'])}」{guessed}认出同一行。")
    counts = [result[kind] for kind in ("added", "removed", "changed", "same")]
    lines.append("新增 {} 行，删除 {} 行，修改 {} 行，没变 {} 行。".format(*counts))
    for kind, which in (("only_old", "旧"), ("only_new", "新")):
        if result[kind]:
            lines.append(f"只有{which}文件有的列：{'、'.join(result[kind][:20])}（没有比较）。")
    room = max((budget - _FRAME) // 3, 200)
    if result["changes"]:
        heads = ["/".join(result["keys"]), "列", "旧", "新"]
        lines += _part("修改", "处", heads, result["changes"], len(result["changes"]), room)
        if result["changed"] > len({line[0] for line in result["changes"]}):
            lines.append(f"（修改的一共 {result['changed']} 行，没有全列出）")
    for kind, title in (("added", "新增"), ("removed", "删除")):
        rows = result[f"{kind}_rows"]
        if rows:
            lines += _part(title, "行", result["columns"], rows, result[kind], room)
    notes = list(result["notes"])
    if result["repeated"]:
        notes.append(
            f"有 {result['repeated']} 个值在「{'、'.join(result['keys'])}」里重复，按出现的先后对应"
        )
    if result["blank"]:
        notes.append(f"有 {result['blank']} 行没有「{'、'.join(result['keys'])}」，没有比较")
    if notes:
        lines += ["", f"说明：{'；'.join(notes)}。"]
    return "\n".join(lines)


def _head(which: str, name: str, result: dict[str, Any], at: int) -> str:
    sheet = result["sheets"][at]
    place = f"工作表「{sheet}」，" if sheet else ""
    return f"{which}文件 {name}，{place}{result['sizes'][at]} 行"


def _part(
    title: str,
    unit: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    count: int,
    room: int,
) -> list[str]:
    table, shown = markdown(heads, rows, room)
    more = f"，只列出 {shown} {unit}" if count > shown else ""
    return ["", f"{title}（{count} {unit}{more}）：", "", table]
