"""What docs/tools.md says of the spreadsheet tools is so."""

from __future__ import annotations

from pathlib import Path

from chathands.settings import Settings
from chathands.toolbox import load_tools
from chathands.workers import chart_drawing, charting, comparing, crosstab, exporting, listing
from chathands.workers.aggregate import GROUPS_SHOWN
from chathands.workers.kinds import UNPACKED_CAP
from chathands.workers.protocol import BLOB_CAP, FILE_CAP
from chathands.workers.reading import COLUMNS_SHOWN

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "tools.md").read_text("utf-8")


def row(tool: str) -> str:
    return next(line for line in PAGE.splitlines() if line.startswith(f"| `{tool}` |"))


def test_each_spreadsheet_tool_has_its_row() -> None:
    tools = load_tools(ROOT / "tools", Settings(), every=True).generation
    ours = [name for name, owner in tools.owners.items() if owner == "excel/"]
    assert len(ours) == 7
    for name in ours:
        assert row(name).count(" | ") == 4


def test_the_limits_in_the_table_are_the_limits() -> None:
    assert f"列 30 个文件、{listing.SHEETS_LISTED} 张工作表" in row("list_excel_files")
    sizes = f"文件 {FILE_CAP >> 20} MB、解压后 {UNPACKED_CAP >> 20} MB"
    assert sizes in row("read_excel_data")
    assert f"{COLUMNS_SHOWN} 列" in row("read_excel_data")
    assert f"列 {GROUPS_SHOWN} 组" in row("aggregate_excel_data")
    assert f"横着 {crosstab.COLUMNS_ACROSS} 列" in row("aggregate_excel_data")
    assert f"列出 {comparing.ROWS_TOLD} 行" in row("compare_excel_files")
    chart = f"柱 {charting.BARS} 组、线 {charting.POINTS} 点、{charting.SERIES} 组数据"
    assert chart in row("draw_excel_chart")
    assert f"饼 {chart_drawing._SLICES} 块" in row("draw_excel_chart")
    made = f"{exporting.MOST_CELLS:,} 格，{BLOB_CAP // 1_000_000} MB"
    assert made in row("export_excel_data")
