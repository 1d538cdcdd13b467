"""What a child can be asked to do: this table and nothing else. Imports happen when first used."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from chathands.workers.protocol import Rejected

Function = Callable[[dict[str, Any], BinaryIO | None], dict[str, Any]]


def _read_table(payload: dict[str, Any], file: BinaryIO | None) -> dict[str, Any]:
    from chathands.workers.reading import read_table

    return read_table(payload, _required(file))


def _aggregate_table(payload: dict[str, Any], file: BinaryIO | None) -> dict[str, Any]:
    from chathands.workers.aggregate import aggregate_table

    return aggregate_table(payload, _required(file))


def _probe(payload: dict[str, Any], file: BinaryIO | None) -> dict[str, Any]:
    """Runs into one limit on purpose, so that a host can be checked for which limits hold there.

    `try`: echo, print, size (bytes of the file), files (open descriptors), environment, reject,
    memory, flood (an answer of so many characters), cpu, burn (so many CPU seconds), wait, abort.
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
        return {"size": len(_required(file).read())}
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


def _required(file: BinaryIO | None) -> BinaryIO:
    if file is None:
        raise ValueError("this function needs a file")
    return file


FUNCTIONS: dict[str, Function] = {
    "read_table": _read_table,
    "aggregate_table": _aggregate_table,
    "probe": _probe,
}
