"""One child process as the parent holds it. Its methods block and run in the pool's threads."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from chathands.settings import WorkerSettings
from chathands.workers.protocol import (
    BLOB_CAP,
    CHUNK,
    FrameError,
    encode,
    receive,
    receive_bytes,
    send,
)

PASSES_DESCRIPTORS = hasattr(socket, "send_fds")

_ROOT = Path(__file__).resolve().parents[2]

# `-I` keeps the working directory, PYTHON* variables and the user's site directory out, so this
# very package is found by its place (which also serves editable installs and a plain checkout),
# and the parent's other directories come last, where they can shadow nothing.
_BOOT = """\
import json, sys
options = json.loads(sys.argv[1])
sys.path.insert(0, options["root"])
import chathands
sys.path.pop(0)
sys.path.extend(entry for entry in options["path"] if entry not in sys.path)
from chathands.workers.child import main
main(options)
"""

_TAIL = 2000
"""Bytes of a dead child's stderr that go to the log."""


class ChildDied(Exception):
    """The child ended before it answered. `str()` has the end of its stderr, for the log."""

    def __init__(self, returncode: int | None, stderr: str) -> None:
        super().__init__(f"child ended with {returncode}: {stderr}".rstrip(": "))
        self.returncode = returncode

    @property
    def by_signal(self) -> bool:
        """Whether it was killed: by a limit, the kernel, or its own abort()."""
        if self.returncode is None:
            return True
        # Windows has no signals; a crash there is an NTSTATUS, far above any exit code of Python.
        return self.returncode < 0 or self.returncode > 0xFFFF or self.returncode == 3


class Child:
    """A process that is started by its first job."""

    def __init__(self, settings: WorkerSettings, jobs: int, pass_descriptors: bool) -> None:
        self._options = {
            "memory_mb": settings.memory_mb,
            "cpu_seconds": settings.cpu_seconds,
            "jobs": jobs,
            "root": str(_ROOT),
            "path": [entry for entry in sys.path if os.path.isabs(entry)],
            "handoff": None,
        }
        self._pass_descriptors = pass_descriptors
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: BinaryIO | None = None
        self._handoff: socket.socket | None = None
        self._lock = threading.Lock()
        self._killed = False
        self._last_words = ""

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None and not self._killed

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.alive else None

    def ask(self, request: dict[str, Any], files: Mapping[int, int]) -> dict[str, Any]:
        """The child's reply to a request with these files (descriptor → size); what it made is in
        `blob`. Raises ChildDied; the process is gone and closed then."""
        try:
            if self._process is None:
                self._start()
            self._hand_over(request, files)
            replies = self._stream("stdout")
            reply = receive(replies)
            size = reply.pop("blob", 0)
            if not isinstance(size, int) or not 0 <= size <= BLOB_CAP:
                raise FrameError(f"a file of {size} bytes is announced")
            reply["blob"] = receive_bytes(replies, size)
        except (OSError, FrameError) as error:
            if self._process is not None:
                # The pipe closes a moment before the process ends with its own exit code.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(1)
            self.close()
            returncode = None if self._process is None else self._process.returncode
            raise ChildDied(returncode, self._last_words) from error
        if reply.pop("retire", True):
            self.close()
        return reply

    def kill(self) -> None:
        """Ends the process at once; whoever reads from it sees the end. From any thread."""
        with self._lock:
            self._killed = True
            process = self._process
            if process is None or process.poll() is not None:
                return
            if hasattr(os, "killpg"):
                # Its own session, so the group is the child and all it could have started.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()

    def close(self) -> None:
        """Kills, waits, closes the pipes. Again does nothing."""
        self.kill()
        if self._handoff is not None:
            self._handoff.close()
        if self._process is not None:
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):  # unsent bytes of a broken pipe
                    stream.close()  # type: ignore[union-attr]
        if self._stderr is not None and not self._stderr.closed:
            self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - _TAIL))
            self._last_words = self._stderr.read().decode("utf-8", "replace").strip()
            self._stderr.close()

    def _start(self) -> None:
        passed: tuple[int, ...] = ()
        theirs: socket.socket | None = None
        if self._pass_descriptors:
            self._handoff, theirs = socket.socketpair()
            self._options["handoff"] = theirs.fileno()
            passed = (theirs.fileno(),)
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        command = [sys.executable, "-I", "-X", "utf8", "-c", _BOOT, json.dumps(self._options)]
        try:
            with self._lock:
                if self._killed:
                    raise FrameError("killed before it started")
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._stderr,
                    env=_environment(),
                    pass_fds=passed,
                    start_new_session=True,
                    creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0)
                    | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
                )
        finally:
            if theirs is not None:
                theirs.close()
        receive(self._stream("stdout"))  # ready: its limits are set

    def _hand_over(self, request: dict[str, Any], files: Mapping[int, int]) -> None:
        stdin = self._stream("stdin")
        if not files:
            send(stdin, {**request, "passed": 0, "sizes": []})
        elif self._handoff is not None:
            send(stdin, {**request, "passed": len(files), "sizes": []})
            socket.send_fds(self._handoff, [b"f"], list(files))
        else:
            stdin.write(encode({**request, "passed": 0, "sizes": list(files.values())}))
            for file, size in files.items():
                self._copy(file, size, stdin)
            stdin.flush()

    def _copy(self, file: int, size: int, stdin: BinaryIO) -> None:
        os.lseek(file, 0, os.SEEK_SET)
        left = size
        while left:
            piece = os.read(file, min(CHUNK, left))
            if not piece:
                raise FrameError("the file became shorter while it was read")
            stdin.write(piece)
            left -= len(piece)

    def _stream(self, name: str) -> Any:
        assert self._process is not None
        return getattr(self._process, name)


def _environment() -> dict[str, str]:
    """Nothing of ours: no keys, no proxies. One thread for BLAS, two malloc arenas: each more
    reserves address space, which is what RLIMIT_AS counts."""
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TEMP", "TMP") if name in os.environ}
    return kept | {
        "LC_ALL": "C.UTF-8",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
    }
