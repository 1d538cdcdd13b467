"""A 300,000-row workbook and a small one through the tools, against bare readers; hostile files.

    python benchmarks/excel.py [rows]

One run, about a minute and a half. `total` is a sum by groups over every row, through the executor
and a warm child; `bare` is python-calamine alone turning the same file into lists. Prints seconds,
the resident size of this process before and after, and the child's peak.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from chathands.conversation import ToolCall, ToolResult
from chathands.settings import load_settings
from chathands.toolbox import Caller, Executor, Policy, RunScope, load_tools
from chathands.toolbox.audit import open_audit
from chathands.toolbox.http import SharedHttp
from chathands.toolbox.policy import Rules
from chathands.toolbox.redact import Redactor
from chathands.workers.pool import WorkerPool

TOOLS = Path(__file__).resolve().parents[1] / "tools"
TIMES, SMALL_CALLS = 4, 60

BARE = """
import sys, time
from python_calamine import CalamineWorkbook
began = time.perf_counter()
with open(sys.argv[1], "rb") as file:
    rows = CalamineWorkbook.from_filelike(file).get_sheet_by_index(0).to_python()
print(time.perf_counter() - began)
"""
PANDAS = """
import sys, time
import pandas
began = time.perf_counter()
frame = pandas.read_excel(sys.argv[1], engine="openpyxl")
frame.groupby("区域")["金额"].sum()
print(time.perf_counter() - began)
"""

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
    'officedocument.spreadsheetml.sheet.main+xml"/>'
    '<Override PartName="/xl/styles.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.spreadsheetml.styles+xml"/>'
    '<Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.spreadsheetml.worksheet+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{RELATIONS}/package/2006/relationships">'
    f'<Relationship Id="rId1" Type="{RELATIONS}/officeDocument/2006/relationships/officeDocument"'
    ' Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{NAMESPACE}" '
    f'xmlns:r="{RELATIONS}/officeDocument/2006/relationships">'
    '<sheets><sheet name="流水" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{RELATIONS}/package/2006/relationships">'
    f'<Relationship Id="rId1" Type="{RELATIONS}/officeDocument/2006/relationships/worksheet"'
    ' Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="rId2" Type="{RELATIONS}/officeDocument/2006/relationships/styles"'
    ' Target="styles.xml"/></Relationships>',
    "xl/styles.xml": f'<styleSheet xmlns="{NAMESPACE}"><fonts count="1"><font/></fonts>'
    '<fills count="1"><fill><patternFill/></fill></fills><borders count="1"><border/></borders>'
    '<cellStyleXfs count="1"><xf/></cellStyleXfs>'
    '<cellXfs count="2"><xf/><xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>',
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
            f'<row r="{n}"><c r="A{n}" s="1"><v>{45292 + n % 366}</v></c>'
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


class Bench:
    """The shipped tools as a run uses them, and what it costs."""

    def __init__(self, executor: Executor, pool: WorkerPool, generation: Any) -> None:
        self.executor, self.pool, self.generation = executor, pool, generation
        self.runs = count(1)
        self.child_peak = 0.0

    async def call(self, tool: str, **arguments: Any) -> tuple[ToolResult, float]:
        """The result and its seconds; the child's memory is looked at meanwhile."""
        end = time.monotonic() + 60
        caller = Caller("1", platform="terminal")
        number = next(self.runs)
        scope = RunScope(f"B-{number}", caller, self.generation, lambda: end - time.monotonic())
        began = time.perf_counter()
        calls = [ToolCall(f"c{number}", tool, arguments)]
        job = asyncio.create_task(self.executor.run_batch(calls, scope))
        while not job.done():
            await asyncio.wait({job}, timeout=0.05)
            for pid in self.pool.pids:
                try:
                    self.child_peak = max(self.child_peak, memory_mb(pid, "VmHWM"))
                except (FileNotFoundError, ProcessLookupError):
                    continue
        return job.result().results[0], time.perf_counter() - began


@asynccontextmanager
async def bench(directory: Path) -> AsyncIterator[Bench]:
    settings = load_settings(
        directory,
        data_dir=directory / "data",
        state_dir=directory / "state",
        tools_dir=TOOLS,
        approval="never",
    )
    generation = load_tools(TOOLS, settings).generation
    audit = open_audit(settings.state_dir, Redactor.of(settings))
    http, pool = SharedHttp(), WorkerPool(settings.worker)
    executor = Executor(settings, Policy(Rules("never")), audit, pool, http.client)
    try:
        yield Bench(executor, pool, generation)
    finally:
        await http.aclose()
        await pool.aclose()
        audit.close()


def alone(program: str, path: Path) -> float:
    """Seconds that a reader takes in a process of its own, without its imports."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


async def large(made: Bench, path: Path) -> None:
    total = {
        "file_path": path.name,
        "function": "sum",
        "columns": ["金额"],
        "group_by": ["区域"],
    }
    await made.call("aggregate_excel_data", **total | {"file_path": "small.xlsx"})
    before = memory_mb("self", "VmRSS")
    bare, ours = [], []
    for _ in range(TIMES):  # by turns, so that both see the same machine
        bare.append(await asyncio.to_thread(alone, BARE, path))
        result, seconds = await made.call("aggregate_excel_data", **total)
        assert result.status == "ok", result.content
        ours.append(seconds)
    took, base = min(ours), min(bare)  # whatever else runs here only adds
    pandas = await asyncio.to_thread(alone, PANDAS, path)
    print(f"{path.name}: total {took:.2f} s, bare calamine {base:.2f} s")
    print(f"  total / bare              {took / base:6.2f}   (at most 1.7)")
    print(f"  pandas+openpyxl / total   {pandas / took:6.1f}   (at least 5; {pandas:.1f} s)")
    for tool, arguments in (
        ("read_excel_data", {"sort_by": "金额:降序", "where": ["区域=华东"]}),
        ("list_excel_files", {"name": path.name}),
        ("draw_excel_chart", {"kind": "line", "columns": ["金额"], "group_by": ["日期:月"]}),
        ("export_excel_data", {"columns": ["单号", "金额"], "where": ["区域=华东"]}),
    ):
        asked = arguments if "name" in arguments else {"file_path": path.name} | arguments
        result, seconds = await made.call(tool, **asked)
        print(f"  {tool:24} {seconds:6.2f} s  {result.status}")
    after = memory_mb("self", "VmRSS")
    print(f"  this process {before:.0f} -> {after:.0f} MB (grows by less than 30), ", end="")
    print(f"peak of a child {made.child_peak:.0f} MB")


async def small(made: Bench) -> None:
    calls: dict[str, dict[str, Any]] = {
        "read_excel_data": {},
        "aggregate_excel_data": {"function": "sum", "columns": ["金额"], "group_by": ["区域"]},
    }
    for tool, arguments in calls.items():
        times = []
        for _ in range(SMALL_CALLS):
            result, seconds = await made.call(tool, file_path="small.xlsx", **arguments)
            assert result.status == "ok", result.content
            times.append(seconds * 1000)
        times.sort()
        print(
            f"1,000 rows, {tool:22} p50 {statistics.median(times):5.1f} ms (at most 60), "
            f"p95 {times[int(len(times) * 0.95)]:5.1f} ms"
        )


async def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    with tempfile.TemporaryDirectory() as name:
        shared = Path(name) / "data" / "shared"
        shared.mkdir(parents=True)
        path = shared / "large.xlsx"
        for file, lines in (
            ("large", ledger(rows)),
            ("small", ledger(1000)),
            ("corner", far("XFD1048576")),
            ("column", far("A1048576")),
            ("bomb", blanks()),
        ):
            write(shared / f"{file}.xlsx", lines)
        async with bench(Path(name)) as made:
            await large(made, path)
            await small(made)
            for file in ("corner", "column", "bomb"):
                before = memory_mb("self", "VmRSS")
                result, seconds = await made.call("read_excel_data", file_path=f"{file}.xlsx")
                after = memory_mb("self", "VmRSS")
                told = " ".join(result.content.split())[:60]
                print(f"{file:8} {seconds:5.2f} s  {before:.0f} -> {after:.0f} MB  {told}")


if __name__ == "__main__":
    asyncio.run(main())
