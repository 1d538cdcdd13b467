"""Sheets that calamine refuses, read by openpyxl: slower by ten times, and more forgiving.

One cell with an error calamine does not know (`#SPILL!`, `#CALC!`: every newer Excel writes them)
makes it refuse the whole sheet.
"""

from __future__ import annotations

import datetime as dt
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO
from xml.etree.ElementTree import ParseError

from openpyxl import load_workbook
from openpyxl.utils.exceptions import InvalidFileException

from chathands.workers.cells import Cell
from chathands.workers.kinds import CORRUPT
from chathands.workers.protocol import Rejected

MOST_COLUMNS = 1000

_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    ParseError,
    InvalidFileException,
    EOFError,
    OSError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
)
"""What openpyxl raises for a file that is not as it should be."""


def read_rows(file: BinaryIO, sheet: str) -> Iterator[list[Cell]]:
    """Rows from row 1 on, cells from column A on; errors are empty as in the first reader.

    Raises Rejected, also in the middle of a sheet.
    """
    file.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and extensions, for nobody here
            book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
            found: Any = book[sheet]
            # Without it, a wrong <dimension> (WPS writes A1) silently gives one cell.
            found.reset_dimensions()
            for row in found.iter_rows(max_col=MOST_COLUMNS):
                cells = [_cell(cell) for cell in row]
                while cells and cells[-1] == "":
                    cells.pop()
                yield cells
    except _DAMAGE as error:
        raise Rejected(CORRUPT) from error


def _cell(cell: Any) -> Cell:
    value = cell.value
    if value is None or cell.data_type == "e":
        return ""
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date()
    if isinstance(value, str | bool | float | dt.date | dt.time | dt.timedelta):
        return value
    return float(value) if isinstance(value, int) else str(value)
