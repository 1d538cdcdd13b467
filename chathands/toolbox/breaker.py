"""A tool that keeps failing is left alone for a while, and then tried once."""

from __future__ import annotations

import socket
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from chathands.toolbox.tool import Tool

FAILURES = 5
"""In a row, of the tool's own doing. Three happen on a bad line; more do not mend themselves."""

FIRST_PAUSE, LONGEST_PAUSE = 30.0, 600.0
"""Seconds that it is left alone; twice as long after each try that fails."""

Doing = Literal["ok", "own", "neutral", "none"]
"""How a call went for the breaker: it worked; it failed by its own doing; it failed because of what
it was asked (no such file, no such city); it says nothing (cancelled, or given too little time)."""

_UNREACHABLE = (ConnectionError, TimeoutError, socket.gaierror)
_TRANSPORT = frozenset({"TransportError", "ClientConnectionError"})
"""Of httpx and aiohttp, by name: importing them here costs a tenth of a second."""


@dataclass(slots=True)
class _State:
    tool: weakref.ref[Tool]
    """Which one it is about; must not keep a module loaded that has been replaced."""
    failures: int = 0
    pause: float = FIRST_PAUSE
    opens_at: float | None = None
    """When it may be tried again; None while it works."""
    probing: bool = False


class Breakers:
    """One for each tool. A tool that was loaded anew begins anew: somebody may have mended it.

    `tell` gets one sentence each time one opens, for an admin.
    """

    def __init__(
        self,
        tell: Callable[[str], object],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._states: dict[str, _State] = {}

    def closed_for(self, tool: Tool) -> float | None:
        """Seconds until the tool may be tried again; None when it may be now."""
        state = self._states.get(tool.name)
        if state is None or state.tool() is not tool or state.opens_at is None:
            return None
        left = state.opens_at - self._clock()
        if left <= 0 and not state.probing:
            return None
        return max(left, 1.0)

    def begin(self, tool: Tool) -> float | None:
        """As `closed_for`, and when the tool may run, this call is the one that tries it. Every
        call that was let in is to be reported."""
        closed = self.closed_for(tool)
        state = self._states.get(tool.name)
        if state is not None and state.tool() is not tool:
            del self._states[tool.name]
        elif closed is None and state is not None and state.opens_at is not None:
            state.probing = True
        return closed

    def report(self, tool: Tool, doing: Doing) -> None:
        """How a call ended."""
        state = self._states.get(tool.name)
        if state is None or state.tool() is not tool:
            if doing != "own":
                return
            state = self._states[tool.name] = _State(weakref.ref(tool))
        tried, state.probing = state.probing, False
        if doing == "ok":
            del self._states[tool.name]
        elif doing == "neutral" and tried:
            # It answers again, though nothing is known of its work: one more failure closes it.
            state.opens_at, state.failures = None, FAILURES - 1
        elif doing == "own":
            state.failures += 1
            if tried:
                state.pause = min(state.pause * 2, LONGEST_PAUSE)
            if tried or (state.failures >= FAILURES and state.opens_at is None):
                state.opens_at = self._clock() + state.pause
                if not tried:
                    self._tell(
                        f"工具 {tool.name} 连续失败 {state.failures} 次，"
                        f"先停用 {state.pause:.0f} 秒，之后自动再试；原因见日志。"
                    )


def unreachable(error: BaseException) -> bool:
    """Whether what a tool raised comes from something it could not reach: then it is not what it
    was asked that is wrong, however it puts it."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        names = {each.__name__ for each in type(cause).__mro__}
        if isinstance(cause, _UNREACHABLE) or names & _TRANSPORT:
            return True
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return False
