"""An MCP server as a child process: one JSON message a line, over its standard streams.

The protocol is the `mcp` package's; its own stdio transport reads lines of any length into memory
and gives the child our stderr, which a server that nobody here wrote must not have.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import anyio
import mcp.types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from chathands.toolbox.mcp_config import WITHIN
from chathands.toolbox.undisturbed import undisturbed

_log = logging.getLogger(__name__)

LONGEST_MESSAGE = 16 * 1024 * 1024
"""Bytes of one message. Files of a run may have 10 MB, 14 as base64."""

LEAVE_SECONDS = 0.5
"""After its input is closed a server ends by itself; after SIGTERM it gets as long again. The bot
itself has to be gone two seconds after the signal."""
KILL_SECONDS = 0.5
"""After SIGKILL, for the system to have done it; then it is only said that it does not end."""
POLL_SECONDS = 0.01
"""Between two looks whether it has ended."""

LOG_LINE = 500
"""Characters of one line of its stderr that reach our log."""
LOG_LINES, LOG_WINDOW = 20, 10.0
"""Lines within so many seconds; a server that prints every call fills no disk of ours."""
TAIL_LINES = 3
"""Last lines kept, to say why it ended."""

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


class Child:
    """A transport for `mcp.Client`. `lost` is set when nothing more will come."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        redact: Callable[[str], str],
    ) -> None:
        self._name = name
        self._command = list(command)
        self._env = {**get_default_environment(), **env, WITHIN: "1"}
        self._cwd = cwd
        self._redact = redact
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._streams: list[Any] = []
        self.lost = asyncio.Event()
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        """The last lines it wrote to stderr, redacted."""

    @property
    def ended(self) -> bool:
        return self._process is not None and self._process.returncode is not None

    async def __aenter__(self) -> Streams:
        program = shutil.which(self._command[0], path=self._env.get("PATH"))
        if program is None and not os.path.isabs(self._command[0]):
            local = self._cwd / self._command[0]
            program = str(local) if os.access(local, os.X_OK) else None
        starting = asyncio.create_subprocess_exec(
            program or self._command[0],
            *self._command[1:],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._env,
            cwd=self._cwd,
            start_new_session=True,
            limit=LONGEST_MESSAGE,
        )
        # Cancelled in the middle, asyncio would wait until nobody holds the pipes any more, which
        # a child of the child may do for ever.
        self._process, cancelled = await undisturbed(starting)
        if cancelled:
            await undisturbed(self._close())
            raise asyncio.CancelledError
        incoming, to_us = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        from_us, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        self._streams = [incoming, to_us, from_us, outgoing]
        self._tasks = [
            self._task(self._read(self._process, incoming), "read"),
            self._task(self._write(self._process, outgoing), "write"),
            self._task(self._follow(self._process), "stderr"),
        ]
        return to_us, from_us

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _, cancelled = await undisturbed(self._close())
        if cancelled:
            raise asyncio.CancelledError

    def _task(self, work: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
        return asyncio.create_task(work, name=f"mcp-{self._name}-{what}")

    async def _read(
        self,
        process: asyncio.subprocess.Process,
        incoming: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        assert process.stdout is not None
        try:
            while line := await process.stdout.readline():
                if not line.strip():
                    continue
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    # Programs print to stdout what belongs to stderr; the next line may be good.
                    _log.info("mcp %s: a line that is no message", self._name)
                    continue
                await incoming.send(SessionMessage(message))
        except ValueError:  # of readline: longer than its limit
            _log.warning("mcp %s: a message of more than %d bytes", self._name, LONGEST_MESSAGE)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            pass
        finally:
            self.lost.set()
            incoming.close()

    async def _write(
        self,
        process: asyncio.subprocess.Process,
        outgoing: MemoryObjectReceiveStream[SessionMessage],
    ) -> None:
        assert process.stdin is not None
        try:
            async for sent in outgoing:
                text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode("utf-8", "replace") + b"\n")
                await process.stdin.drain()
        except (anyio.ClosedResourceError, OSError):
            pass
        finally:
            outgoing.close()

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        """Its stderr into our log: redacted, cut, and not too much of it."""
        assert process.stderr is not None
        clock = asyncio.get_running_loop().time
        since, count, rest = clock(), 0, b""
        while data := await process.stderr.read(4096):
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > 8 * LOG_LINE:  # a line without an end
                lines, rest = [*lines, rest], b""
            for line in lines:
                text = line[: 8 * LOG_LINE].decode("utf-8", "replace")
                text = self._redact("".join(c if c.isprintable() else " " for c in text).strip())
                if not text:
                    continue
                self.tail.append(text[:LOG_LINE])
                if clock() - since > LOG_WINDOW:
                    since, count = clock(), 0
                count += 1
                if count <= LOG_LINES:
                    _log.info("mcp %s: %s", self._name, text[:LOG_LINE])
                elif count == LOG_LINES + 1:
                    _log.info("mcp %s: more lines, not logged", self._name)

    async def _close(self) -> None:
        """Close its input, wait, ask, kill; nothing of it is left behind."""
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        if not await self._ends(LEAVE_SECONDS):
            self._signal(signal.SIGTERM)
            if not await self._ends(LEAVE_SECONDS):
                self._signal(_KILL)
                if not await self._ends(KILL_SECONDS):
                    _log.warning("mcp %s: process %d does not end", self._name, process.pid)
        self._signal(_KILL)  # what it has started itself
        # A descendant that left the group may hold the pipes open: they are closed all the same.
        transport = getattr(process, "_transport", None)
        if transport is not None:
            with contextlib.suppress(OSError):
                transport.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for stream in self._streams:
            stream.close()
        self.lost.set()

    async def _ends(self, seconds: float) -> bool:
        """By its return code: `wait()` also waits for pipes that descendants may hold."""
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while not self.ended and clock() < end:  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(POLL_SECONDS)
        return self.ended

    def _signal(self, number: int) -> None:
        process = self._process
        assert process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, number)
            elif not self.ended:
                process.send_signal(number)


_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
