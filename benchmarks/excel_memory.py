"""What a 300,000-row workbook and three hostile ones cost the bot's own process.

    python benchmarks/excel_memory.py [rows]

Prints seconds, the resident size of this process before and after, and the child's peak.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from chathands.errors import WorkerError
from chathands.settings import WorkerSettings
from chathands.workers.pool import WorkerPool

COLUMNS = ("日期", "单号", "区域", "产品", "数量", "单价", "金额", "客户", "备注", "折扣")
REGIONS = ("华东", "华北", "华南", "西南")
NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org"

PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{RELATIONS}/package/2006/content-types">'
    '<Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.spreadsheetml.sheet.main+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{RELATIONS}/package/2006/relationships">'
    f'<Relationship Id="rId1" Type="{RELATIONS}/officeDocument/2006/relationships/officeDocument"'
    ' Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{NAMESPACE}" '
    f'xmlns:r="{RELATIONS}/officeDocument/2006/relationships">'
    '<sheets><sheet name="流水" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{RELATIONS}/package/2006/relationships">'
    f'<Relationship Id="rId1" Type="{RELATIONS}/officeDocument/2006/relationships/worksheet"'
    ' Target="worksheets/sheet1.xml"/></Relationships>',
}


def sheet_xml(lines: Iterator[str]) -> Iterator[bytes]:
    yield f'<worksheet xmlns="{NAMESPACE}"><sheetData>'.encode()
    for line in lines:
        yield line.encode()
    yield b"</sheetData></worksheet>"


def text(reference: str, value: str) -> str:
    return f'<c r="{reference}" t="inlineStr"><is><t>{value}</t></is></c>'


def ledger(rows: int) -> Iterator[str]:
    cells = "".join(text(f"{chr(65 + at)}1", name) for at, name in enumerate(COLUMNS))
    yield f'<row r="1">{cells}</row>'
    for n in range(2, rows + 2):
        pieces, price = n % 12 + 1, n % 97 + 0.5
        numbers = zip("EFGJ", (pieces, price, pieces * price, n % 10 / 10), strict=True)
        yield (
            f'<row r="{n}">{text(f"A{n}", f"2024-{n % 12 + 1:02}-{n % 28 + 1:02}")}'
            f"{text(f'B{n}', f'{n:08}')}{text(f'C{n}', REGIONS[n % 4])}"
            f"{text(f'D{n}', f'产品{n % 50}')}"
            + "".join(f'<c r="{letter}{n}"><v>{value}</v></c>' for letter, value in numbers)
            + f"{text(f'H{n}', f'客户{n % 3000}')}{text(f'I{n}', '无')}</row>"
        )


def far(reference: str) -> Iterator[str]:
    row = "".join(filter(str.isdigit, reference))
    yield f'<row r="1">{text("A1", "名称")}</row>'
    yield f'<row r="{row}"><c r="{reference}"><v>1</v></c></row>'


def write(path: Path, lines: Iterator[str]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in PARTS.items():
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{content}')
        with archive.open("xl/worksheets/sheet1.xml", "w") as part:
            for piece in sheet_xml(lines):
                part.write(piece)


def blanks() -> Iterator[str]:
    yield from (" " * 1_000_000 for _ in range(200))


def memory_mb(pid: int | str, what: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    return 0.0


async def measure(
    pool: WorkerPool, label: str, path: Path, function: str, payload: dict[str, Any]
) -> None:
    before, began = memory_mb("self", "VmRSS"), time.perf_counter()
    base = {"name": path.name, "sheet": None, "hidden": False, "columns": []}
    peak = 0.0
    file = os.open(path, os.O_RDONLY)
    job = asyncio.create_task(pool.run(function, base | payload, file=file))
    while not job.done():
        await asyncio.wait({job}, timeout=0.02)
        for pid in pool.pids:
            try:
                peak = max(peak, memory_mb(pid, "VmHWM"))
            except (FileNotFoundError, ProcessLookupError):
                continue
    size = os.fstat(file).st_size / 1024
    os.close(file)
    try:
        answer = job.result()
        outcome = f"{answer.get('used_rows', answer['total_rows'])} rows"
    except WorkerError as error:
        outcome = f"{type(error).__name__}: {error.sentence}"
    seconds = time.perf_counter() - began
    after = memory_mb("self", "VmRSS")
    print(
        f"{label:24} {size:9.0f} KB {seconds:6.2f} s  "
        f"parent {before:.0f} -> {after:.0f} MB  child peak {peak:.0f} MB  {outcome}"
    )


async def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    pool = WorkerPool(WorkerSettings())
    total = {"function": "sum", "columns": ["金额"], "group_by": ["区域"], "where": [], "top": None}
    with tempfile.TemporaryDirectory() as directory:
        large, corner, column, bomb = (
            Path(directory) / f"{name}.xlsx" for name in ("large", "corner", "column", "bomb")
        )
        write(large, ledger(rows))
        write(corner, far("XFD1048576"))
        write(column, far("A1048576"))
        write(bomb, blanks())
        await measure(pool, "read, first 30", large, "read_table", {"limit": 30})
        await measure(pool, "sum by region", large, "aggregate_table", total)
        await measure(pool, "far corner", corner, "read_table", {"limit": 30})
        await measure(pool, "last row", column, "read_table", {"limit": 30})
        await measure(pool, "zip bomb", bomb, "read_table", {"limit": 30})
    await pool.aclose()


if __name__ == "__main__":
    asyncio.run(main())
