"""Workbooks and CSV files: finding, reading, calculating, comparing, drawing, writing.

Nothing is parsed, drawn or written in this process: chathands.workers does, in limited children.
"""

from .making import (
    aggregate_excel_data,
    draw_excel_chart,
    export_excel_data,
    write_excel_file,
)
from .reading import compare_excel_files, list_excel_files, read_excel_data

__all__ = [
    "aggregate_excel_data",
    "compare_excel_files",
    "draw_excel_chart",
    "export_excel_data",
    "list_excel_files",
    "read_excel_data",
    "write_excel_file",
]
