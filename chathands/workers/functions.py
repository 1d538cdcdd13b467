"""What a child can be asked to do: this table and nothing else. Imports happen when first used."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from chathands.workers.protocol import Rejected

Files = Sequence[BinaryIO]
Function = Callable[[dict[str, Any], Files], dict[str, Any]]
"""What it returns is JSON-safe but for `blob`: the bytes of a file it made."""


def _read_table(payload: dict[str, Any], files: Files) -> dict[str, Any]:
    from chathands.workers.reading import read_table

    return read_table(payload, files[0])


def _aggregate_table(payload: dict[str, Any], files: Files) -> dict[str, Any]:
    from chathands.workers.aggregate import aggregate_table

    return aggregate_table(payload, files[0])


def _list_sheets(payload: dict[str, Any], files: Files) -> dict[str, Any]:
    from chathands.workers.listing import list_sheets

    return list_sheets(payload, files[0])


def _compare_tables(payload: dict[str, Any], files: Files) -> dict[str, Any]:
    from chathands.workers.comparing import compare_tables

    return compare_tables(payload, files[0], files[1])


def _draw_chart(payload: dict[str, Any], files: Files) -> dict[str, Any]:
    from chathands.workers.charting import draw_chart

    return draw_chart(payload, files[0])


def _export_table(payload: dict[str, Any], files: Files) -> dict[str, Any]:
    from chathands.workers.exporting import export_table

    return export_table(payload, files[0])


def _write_rows(payload: dict[str, Any], files: Files) -> dict[str, Any]:
    from chathands.workers.exporting import write_rows

    return write_rows(payload)


def _probe(payload: dict[str, Any], files: Files) -> dict[str, Any]:
    """Runs into one limit on purpose, so that a host can be checked for which limits hold there.

    `try`: echo, print, size (bytes of the files), files (open descriptors), environment, reject,
    memory, flood (an answer of so many characters), blob (a file of so many bytes), cpu, burn (so
    many CPU seconds), wait, abort.
    """
    attempt = payload.get("try")
    if attempt == "echo":
        return {"echo": payload.get("value"), "pid": os.getpid()}
    if attempt == "print":
        sys.stdout.write("a stray print\n" * 1000)
        sys.stdout.flush()
        os.write(1, b"a stray write\n")
        return {"printed": True}
    if attempt == "size":
        return {"size": sum(len(file.read()) for file in files)}
    if attempt == "blob":
        return {"blob": bytes(int(payload["value"]))}
    if attempt == "files":
        return {"descriptors": sorted(int(entry) for entry in os.listdir("/proc/self/fd"))}
    if attempt == "environment":
        return {"environment": sorted(os.environ), "path": sys.path}
    if attempt == "reject":
        raise Rejected(str(payload.get("value")))
    if attempt == "memory":
        return {"bytes": len(bytearray(int(payload["value"])))}
    if attempt == "flood":
        return {"flood": "x" * int(payload["value"])}
    if attempt == "cpu":
        while True:
            pass
    if attempt == "burn":
        while time.process_time() < float(payload["value"]):
            pass
        return {"burned": payload["value"]}
    if attempt == "wait":
        time.sleep(float(payload["value"]))
        return {"waited": payload["value"]}
    if attempt == "abort":
        os.abort()
    raise ValueError(f"nothing to try: {attempt!r}")


FUNCTIONS: dict[str, Function] = {
    "read_table": _read_table,
    "aggregate_table": _aggregate_table,
    "list_sheets": _list_sheets,
    "compare_tables": _compare_tables,
    "draw_chart": _draw_chart,
    "export_table": _export_table,
    "write_rows": _write_rows,
    "probe": _probe,
}
