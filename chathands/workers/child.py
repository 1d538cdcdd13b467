"""The child's side: limits on itself, then one job after the other until the parent goes away.

An exception that is not a refusal ends the child: its traceback goes to stderr, which the parent
reads, and the next job gets a fresh process.
"""

from __future__ import annotations

import contextlib
import gc
import io
import math
import os
import queue
import signal
import socket
import sys
import threading
from typing import Any, BinaryIO, cast

from chathands.workers.functions import FUNCTIONS
from chathands.workers.protocol import (
    BLOB_CAP,
    CHUNK,
    MADE_BYTES,
    FrameError,
    Rejected,
    encode,
    receive,
    receive_bytes,
    send,
)

try:
    import resource
except ImportError:  # Windows: the parent's watchdog is the only limit there
    resource = None

OPEN_FILES = 64
WRITTEN_BYTES = 1024 * 1024
"""Of one file: a child writes nothing but its stderr, except while it makes a workbook."""

GARBAGE_THRESHOLD = 200_000
"""Objects made between two looks for cycles. Rows of cells have none, and looking at all of a large
sheet again and again took a tenth of the time."""

RETIRE_MB = 256
"""A child that has grown beyond this is replaced after the job: freed memory comes back in pieces,
and the address space is what the limit counts."""

ORPHAN_SECONDS = 2
"""After the wall limit plus this the child ends itself, should the parent no longer be there to."""


def main(options: dict[str, Any]) -> None:
    """Serve jobs. `options`: memory_mb, cpu_seconds, jobs, handoff (descriptor number or None)."""
    requests, replies = _take_channel()
    _limit(options)
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 50)
    handoff = None
    if options["handoff"] is not None:
        handoff = socket.socket(fileno=options["handoff"])
    send(replies, {"ready": True})
    inbox: queue.SimpleQueue[tuple[dict[str, Any], list[BinaryIO]]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, inbox), daemon=True).start()
    for number in range(1, options["jobs"] + 1):
        job, sent = inbox.get()
        _start_clocks(options, float(job["wall"]))
        reply, blob = _perform(job, _files_of(job, sent, handoff))
        _stop_clocks()
        limited = "limit" in reply
        reply["retire"] = limited or number >= options["jobs"] or _peak_mb() > RETIRE_MB
        reply["blob"] = len(blob)
        send(replies, reply)
        replies.write(blob)
        replies.flush()
        if reply["retire"]:
            return


def _take_channel() -> tuple[BinaryIO, BinaryIO]:
    """The pipes, moved away from 0 and 1 so that a stray print cannot break a frame."""
    requests, replies = os.dup(0), os.dup(1)
    silence = os.open(os.devnull, os.O_RDONLY)
    os.dup2(silence, 0)
    os.close(silence)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return os.fdopen(requests, "rb"), os.fdopen(replies, "wb")


def _listen(
    requests: BinaryIO, inbox: queue.SimpleQueue[tuple[dict[str, Any], list[BinaryIO]]]
) -> None:
    """Jobs into the inbox; when the parent is gone, the whole child, whatever it is doing."""
    try:
        while True:
            job = receive(requests)
            sent: list[BinaryIO] = []
            for size in job["sizes"]:
                file = io.BytesIO()
                for at in range(0, size, CHUNK):
                    file.write(receive_bytes(requests, min(CHUNK, size - at)))
                sent.append(file)
            inbox.put((job, sent))
    except (FrameError, OSError):
        os._exit(0)


def _files_of(
    job: dict[str, Any], sent: list[BinaryIO], handoff: socket.socket | None
) -> list[BinaryIO]:
    """The job's files, each at its beginning."""
    files = sent
    if job["passed"]:
        assert handoff is not None
        _, descriptors, _, _ = socket.recv_fds(handoff, 1, job["passed"])
        files = [cast(BinaryIO, os.fdopen(descriptor, "rb")) for descriptor in descriptors]
    for file in files:
        file.seek(0)  # a passed descriptor shares its position with the sender's
    return files


def _perform(job: dict[str, Any], files: list[BinaryIO]) -> tuple[dict[str, Any], bytes]:
    """The reply, and the file the function made (`blob` of its result)."""
    blob = b""
    try:
        result = FUNCTIONS[job["function"]](job["payload"], files)
        blob = result.pop("blob", b"")
        reply: dict[str, Any] = {"result": result}
        if len(blob) > BLOB_CAP:
            reply = {"limit": "reply"}
        encode(reply)
    except Rejected as rejected:
        reply = {"rejected": rejected.sentence}
    except MemoryError:
        reply = {"limit": "memory"}
    except FrameError:
        reply = {"limit": "reply"}
    finally:
        for file in files:
            file.close()
    return reply, blob if "result" in reply else b""


def _limit(options: dict[str, Any]) -> None:
    if resource is None:
        return
    memory = options["memory_mb"] * 1024 * 1024
    life = options["cpu_seconds"] * (options["jobs"] + 1)
    for name, soft, hard in (
        ("RLIMIT_CORE", 0, 0),
        ("RLIMIT_NOFILE", OPEN_FILES, OPEN_FILES),
        ("RLIMIT_FSIZE", WRITTEN_BYTES, MADE_BYTES),
        ("RLIMIT_CPU", options["cpu_seconds"], life),
        ("RLIMIT_AS", memory, memory),
    ):
        try:
            resource.setrlimit(getattr(resource, name), (soft, hard))
        except (AttributeError, ValueError, OSError) as error:  # macOS refuses RLIMIT_AS
            sys.stderr.write(f"{name} is not available: {error}\n")


def _start_clocks(options: dict[str, Any], wall: float) -> None:
    """RLIMIT_CPU counts a process's whole life, so it is raised for every job."""
    if resource is None:
        return
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = usage.ru_utime + usage.ru_stime
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = max(round(used + options["cpu_seconds"]), math.ceil(used) + 1)
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
    signal.setitimer(signal.ITIMER_REAL, wall + ORPHAN_SECONDS)


def _stop_clocks() -> None:
    if resource is not None:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _peak_mb() -> float:
    """The most memory this process has held. Not from getrusage where /proc has it: that figure
    survives exec, so a child of a large parent would count as large from the start."""
    with contextlib.suppress(OSError), open("/proc/self/status", "rb") as status:
        for line in status:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) / 1024
    if resource is None:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)
